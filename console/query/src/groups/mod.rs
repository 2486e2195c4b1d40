//! `.dump ObjectRef -GroupBy`: groups handles and views into a tree.
//!
//! [`lifetimes`] follows each handle and view from opening to close, [`columns`] gives it a code in each column,
//! [`parts`] counts parts of the objects in parallel, and [`tree`] merges them. [`coder`] makes codes for texts, and
//! [`nodes`] makes and merges groups, also for allocations.
//!
//! These are loops over slices instead of expressions over frames, because the counts depend on the order of rows:
//! objects of a group are distinct, and one pass makes the groups of all levels.

mod coder;
mod columns;
mod counted;
mod cut;
mod leaves;
mod lifetimes;
mod nodes;
mod parts;
mod process_stacks;
mod ranked;
mod stats;
mod tree;

pub use self::coder::Coder;
pub use self::columns::NamePattern;
pub use self::cut::GroupsLeftOut;
pub use self::leaves::counting_sort;
pub use self::nodes::{GroupNodes, Path};
pub use self::stats::GroupStats;
pub use self::tree::{GroupTree, NodeIdx};

use std::sync::Arc;

use handlescope_model::{AcquisitionIdx, StackIdx};

use self::columns::{HandleKeys, KeyRows, KeyTexts};
use self::leaves::LeakingStacks;
use self::lifetimes::LifeTables;
use self::parts::HandleCounter;
use self::process_stacks::ProcessStacks;
use super::acquisition_table::{AcquisitionTable, NeededColumns};
use super::context::FileContext;
use super::criteria::GroupKey;
use super::criteria::{GroupColumn, ObjectCriteria};
use super::error::QueryError;
use super::growth::{self, Growth, Lifetime, TimeWindow};
use super::info::recorded;
use super::program_frames::AcquiringFunctions;
use super::selection::Selection;
use super::stacks::StackSet;
use super::trimmed_stacks::TrimmedStacks;

/// The groups of the objects of one trace that passed.
pub struct Groups {
    /// Columns the objects are grouped by, outermost first.
    pub by: Vec<GroupColumn>,
    /// All groups of all levels, cut as the criteria say.
    pub tree: GroupTree,
    texts: KeyTexts,
    pub stacks: Option<Arc<TrimmedStacks>>,
    /// The functions that open handles, for groups that leak.
    pub functions: Option<Arc<AcquiringFunctions>>,
    pub timed: Option<TimedGroups>,
    /// The time range of the trace, if it has a clock.
    pub window: Option<TimeWindow>,
    /// The time range of all events; only an order in a trace without a clock.
    pub extent: TimeWindow,
}

/// The handles of all groups, for everything that depends on their times.
pub struct TimedGroups {
    /// Handles of the innermost groups, one group after the other.
    pub handles: Vec<AcquisitionIdx>,
    pub table: Arc<AcquisitionTable>,
}

impl TimedGroups {
    /// Returns the handles of a group.
    fn handles<'t>(
        &'t self,
        tree: &GroupTree,
        node: NodeIdx,
    ) -> impl Iterator<Item = AcquisitionIdx> + use<'t> {
        tree.handles(node)
            .into_iter()
            .flat_map(|range| self.handles.get(range).unwrap_or_default())
            .copied()
    }
}

impl Groups {
    /// Groups the handles and views of the objects that passed. `beside` holds handles closed only by process exit, if
    /// the criteria leave them out; only these closes are counted.
    pub fn new(
        file: &FileContext<'_>,
        selection: &Selection,
        beside: Option<&Selection>,
        criteria: &ObjectCriteria,
    ) -> Result<Self, QueryError> {
        let mut by = criteria.groups.by.clone();
        let selections = || [Some(selection), beside].into_iter().flatten();
        let (needs, trims) = (criteria.groups.needs_stacks(), &criteria.groups.trims);
        let stacks = TrimmedStacks::needed(file, selections(), needs, trims)?;
        let process_stacks =
            ProcessStacks::number(file.trace, file.frames.as_ref(), stacks.as_ref(), file.cancel)?;
        // The executable identifies a process.
        let is_plain = criteria.plain_process_names || criteria.with_identities;
        let mut keys = HandleKeys::new(file, &by, stacks.as_ref(), is_plain)?;
        let mut tree = GroupTree::new(by.len());
        let counter = HandleCounter {
            lifetimes: LifeTables::load(file)?,
            keys: KeyRows::load(
                file,
                &by,
                stacks.as_ref(),
                process_stacks.as_ref(),
                selections().any(|selection| selection.events.is_partial()),
            )?,
            cancel: file.cancel,
        };
        for (selection, is_beside) in selections().zip([false, true]) {
            counter.count(selection, is_beside, &mut keys, |part| tree.add(part))?;
        }
        let texts = keys.into_texts(process_stacks.as_ref());
        by.truncate(criteria.groups.depth.unwrap_or(usize::MAX).max(1));
        let of_functions = criteria.groups.leaking && by.last() == Some(&GroupColumn::CreateStack);
        let functions = file
            .frames
            .as_ref()
            .zip(stacks.as_ref())
            .filter(|_| of_functions)
            .map(|(frames, stacks)| AcquiringFunctions::new(frames, stacks));
        let leaking = criteria.groups.leaking.then(|| LeakingStacks {
            functions: functions.as_ref(),
            numbers: texts.stack_numbers(),
        });
        let handles = tree.arrange(
            &criteria.groups,
            criteria.top,
            &counter.lifetimes.times,
            leaking.as_ref(),
            file.cancel,
        )?;
        let info = file.trace.info()?;
        let (mut timed, mut last_ns) = (None, None);
        if criteria.groups.keeps_handles() {
            let table = AcquisitionTable::load(file.trace, NeededColumns::HANDLES)?;
            timed = Some(TimedGroups { handles, table });
            last_ns = file.trace.event_times()?.last_ns();
        }
        let extent = recorded(&info, last_ns.unwrap_or_default());
        let window = info.has_clock().then_some(extent);
        let stacks = stacks.map(Arc::new);
        let functions = functions.map(Arc::new);
        Ok(Self { by, tree, texts, stacks, functions, timed, window, extent })
    }

    /// Returns a group and its ancestors, outermost first.
    pub fn path(&self, node: NodeIdx) -> impl Iterator<Item = NodeIdx> {
        let mut path: Vec<NodeIdx> = self.tree.with_parents(node).collect();
        path.reverse();
        path.into_iter()
    }

    /// Returns the open handles of a group at the ends of `buckets` equal parts of the trace, if requested and known.
    pub fn outstanding(&self, node: NodeIdx, buckets: usize) -> Option<Vec<u32>> {
        let timed = self.timed.as_ref()?;
        let handles = timed.handles(&self.tree, node);
        let times: Vec<Lifetime> = handles.filter_map(|row| timed.table.open_time(row)).collect();
        Some(growth::outstanding(&times, self.window?, buckets))
    }

    /// Returns changes in the number of open handles of a group, unordered; empty unless handles are kept.
    pub fn changes(&self, node: NodeIdx) -> Vec<growth::TimedChange> {
        let Some(timed) = &self.timed else { return Vec::new() };
        let mut changes = Vec::new();
        let handles = timed.handles(&self.tree, node);
        for lifetime in handles.filter_map(|row| timed.table.open_time(row)) {
            changes.push((lifetime.opened_ns, 1));
            let closed_ns = lifetime.closed_ns.map(|closed| closed.max(lifetime.opened_ns));
            changes.extend(closed_ns.map(|closed| (closed, -1)));
        }
        changes
    }

    /// Returns how a group grows over the trace, if known.
    pub fn growth(&self, node: NodeIdx) -> Option<Growth> {
        let timed = self.timed.as_ref()?;
        let handles = timed.handles(&self.tree, node);
        let times: Vec<Lifetime> = handles
            .filter(|row| timed.table.is_in_time(*row))
            .filter_map(|row| timed.table.program_time(row))
            .collect();
        Some(Growth::new(&times, self.window?))
    }

    /// Returns a group's share of all leaks, 0 to 1; its share of the handles if nothing leaks.
    pub fn share(&self, node: NodeIdx) -> f64 {
        let (stats, sums) = (self.tree.stats(node), self.tree.all());
        let (handles, total) = match sums.unreleased {
            0 => (stats.handles, sums.handles),
            unreleased => (stats.unreleased(), unreleased),
        };
        if total == 0 { 0.0 } else { f64::from(handles) / total as f64 }
    }

    /// Returns the stacks that are keys of shown groups.
    pub fn shown_stacks(&self, height: usize) -> StackSet {
        let mut stacks = StackSet::new(height);
        for node in self.tree.shown() {
            if let GroupKey::Stack(stack) = self.key(node) {
                stacks.add(Some(stack));
            }
        }
        stacks
    }

    /// Returns the process label of a group of [`for_create_stacks`](super::criteria::GroupCriteria::for_create_stacks).
    pub fn process_label(&self, node: NodeIdx) -> Option<&str> {
        match self.path(node).map(|node| self.key(node)).next()? {
            GroupKey::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns type and create stack of a group of
    /// [`for_create_stacks`](super::criteria::GroupCriteria::for_create_stacks).
    pub fn type_and_stack(&self, node: NodeIdx) -> (&str, Option<StackIdx>) {
        let mut keys = self.path(node).map(|node| self.key(node)).skip(1);
        let type_name = match keys.next() {
            Some(GroupKey::Text(text)) => text,
            _ => "",
        };
        let stack = match keys.next() {
            Some(GroupKey::Stack(stack)) => Some(stack),
            _ => None,
        };
        (type_name, stack)
    }

    /// Whether the innermost level groups by name pattern, as in
    /// [`for_dumps`](super::criteria::GroupCriteria::for_dumps).
    pub fn has_name_patterns(&self) -> bool {
        self.by.last() == Some(&GroupColumn::NamePattern)
    }

    /// Returns the name pattern of a group, if it is grouped by that.
    pub fn name_pattern(&self, node: NodeIdx) -> Option<&str> {
        match self.key(node) {
            GroupKey::Text(pattern) if self.has_name_patterns() => Some(pattern),
            _ => None,
        }
    }

    /// Returns the text of a stack's representative frame, as stack filters see it.
    pub fn function(&self, file: &FileContext<'_>, stack: Option<StackIdx>) -> Option<String> {
        Some(self.stacks.as_ref()?.function(file.frames.as_ref()?, stack?))
    }

    /// Returns the value that the handles of a group share in its own column.
    pub fn key(&self, node: NodeIdx) -> GroupKey<&str> {
        let (level, code) = self.tree.level_and_code(node);
        self.by.get(level).map_or(GroupKey::None, |column| self.texts.key(*column, code))
    }
}
