//! What the rows of a dataset's tables are built from: the inventory of a trace, and the identities of its stacks.

use handlescope_model::{ModuleIdx, ProcessIdx, StackIdx};
use hashbrown::HashMap;

use super::origin::Origin;
use super::tables::{AcquisitionRow, DatasetGroupRow, DatasetGrowthRow, What};
use handlescope_query::{
    Acquisition, Inventory, InventoryGroup, OpenAt, StackIdentity, StackOfProcess,
};

/// The inventory of a trace and the identities of its stacks.
pub struct TraceRows<'t> {
    pub origin: &'t Origin,
    pub inventory: &'t Inventory<'t>,
    stacks: HashMap<StackOfProcess, StackIdentity>,
}

impl<'t> TraceRows<'t> {
    pub fn new(origin: &'t Origin, inventory: &'t Inventory<'t>) -> Self {
        let stacks = inventory.stacks().into_iter().collect();
        Self { origin, inventory, stacks }
    }

    pub fn stack(
        &self,
        stack: Option<StackIdx>,
        process: Option<ProcessIdx>,
    ) -> Option<&StackIdentity> {
        self.stacks.get(&self.inventory.stack_of(stack?, process))
    }

    pub fn stack_text(&self, stack: Option<StackIdx>) -> Option<String> {
        self.inventory.stack_text(stack?)
    }

    /// Returns the identity of a module's build.
    pub fn build_id(&self, module: ModuleIdx) -> Option<&str> {
        self.origin.build_ids.get(module.row())?.as_deref()
    }

    pub fn group<'r>(&'r self, group: &'r InventoryGroup) -> DatasetGroupRow<'r> {
        let owner = self.origin.owner(group.process, &group.process_name, group.pid);
        let what = What {
            kind: &group.kind,
            type_name: &group.type_name,
            allocator: group.allocator.as_deref(),
            stack: self.stack(group.stack, group.process),
        };
        DatasetGroupRow { rows: self, owner, what, group }
    }

    /// Returns the row of an acquisition of a group.
    pub fn acquisition<'r>(
        &'r self,
        of: &DatasetGroupRow<'r>,
        acquisition: Acquisition<'r>,
    ) -> AcquisitionRow<'r> {
        let DatasetGroupRow { owner, what, group, .. } = *of;
        let close_stack = self.stack(acquisition.close_stack, group.process);
        AcquisitionRow { origin: self.origin, owner, what, acquisition, close_stack }
    }

    pub fn growth<'r>(&'r self, at: OpenAt<'r>) -> DatasetGrowthRow<'r> {
        let group = at.group;
        let owner = self.origin.owner(group.process, &group.process_name, group.pid);
        DatasetGrowthRow { origin: self.origin, owner, at }
    }

    /// Returns the stacks by identity; stacks with the same functions appear once.
    pub fn stacks(&self) -> Vec<(StackIdx, &StackIdentity)> {
        let mut stacks: Vec<(StackIdx, &StackIdentity)> =
            self.stacks.iter().map(|((stack, _), identity)| (*stack, identity)).collect();
        stacks.sort_unstable_by_key(|(stack, identity)| (identity.key(), *stack));
        stacks.dedup_by_key(|(_, identity)| identity.key());
        stacks
    }

    /// Returns the number that each stack acquired, by its identities.
    pub fn acquired_by_stack(&self) -> HashMap<(&str, &str), u64> {
        let mut acquired = HashMap::new();
        for group in &self.inventory.groups {
            if let Some(stack) = self.stack(group.stack, group.process) {
                *acquired.entry(stack.key()).or_default() += group.counts.opened;
            }
        }
        acquired
    }
}

/// Converts a number to what tables have.
pub fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
