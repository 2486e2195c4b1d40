//! The columns of acquisitions, and what became of each handle, view and allocation.

use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use handlescope_model::rules::{is_freed, is_never_freed};
use handlescope_model::tables::{
    Acquisitions, Allocator, Allocators, End, Processes, ResourceEnd, ResourceKind,
};
use handlescope_model::{
    AcquisitionIdx, AllocatorIdx, EventTable, Key, Number, Numbers, ObjectIdx, ProcessIdx,
    StackIdx, TableRows, Trace,
};
use hashbrown::HashMap;

use super::criteria::{AcquisitionCriteria, GroupColumn};
use super::error::QueryError;
use super::growth::Lifetime;

/// Which columns are needed, of those that only some queries use.
#[derive(Debug, Clone, Copy)]
pub struct NeededColumns {
    pub opened_stack: bool,
    pub ended_ns: bool,
    pub ended_stack: bool,
    /// Owners, objects, and when owners ended.
    pub owners: bool,
    pub allocators: bool,
}

impl NeededColumns {
    /// For lifetimes of handles; their groups already have the stacks.
    pub const HANDLES: Self = Self {
        opened_stack: false,
        ended_ns: true,
        ended_stack: false,
        owners: true,
        allocators: false,
    };

    /// For lifetimes of allocations, with the stacks that groups and causes need.
    pub const ALLOCATIONS: Self = Self {
        opened_stack: true,
        ended_ns: true,
        ended_stack: true,
        owners: true,
        allocators: true,
    };

    /// Returns the columns needed to answer about allocations with these criteria.
    pub fn for_criteria(criteria: &AcquisitionCriteria) -> Self {
        Self {
            opened_stack: true,
            ended_ns: criteria.groups.keeps_members() || criteria.is_compared,
            ended_stack: criteria.end_stack().is_some()
                || criteria.columns_of_allocations().contains(&GroupColumn::FreeStack),
            owners: criteria.is_compared,
            allocators: true,
        }
    }
}

/// Name of a kind from a newer layout.
const UNKNOWN_KIND: &str = "unknown";

/// Returns the name of a kind of allocations.
pub fn kind_name(code: u32) -> &'static str {
    ResourceKind::from_code(code).map_or(UNKNOWN_KIND, ResourceKind::name)
}

/// The allocators of a trace.
#[derive(Default)]
pub struct AllocatorList(Vec<Allocator>);

impl AllocatorList {
    pub fn load(trace: &Trace) -> Result<Self, QueryError> {
        Ok(Self(Allocators::read(trace)?.rows().collect()))
    }

    pub fn rows(&self) -> &[Allocator] {
        &self.0
    }

    pub fn get(&self, allocator: AllocatorIdx) -> Option<&Allocator> {
        self.0.get(allocator.row())
    }

    /// Assigns the same code to allocators with equal keys, from 0. Returns the code of each allocator, and the first
    /// allocator of each code.
    pub fn codes_by<'a, K: Eq + Hash>(
        &'a self,
        key: impl Fn(&'a Allocator) -> K,
    ) -> (Vec<u32>, Vec<AllocatorIdx>) {
        let (mut codes, mut firsts) = (HashMap::new(), Vec::new());
        let codes = (0..).zip(self.rows()).map(|(row, allocator)| {
            *codes.entry(key(allocator)).or_insert_with(|| {
                firsts.push(AllocatorIdx(row));
                firsts.len() as u32 - 1
            })
        });
        (codes.collect(), firsts)
    }
}

/// The columns of acquisitions used for counting. Columns that are not needed have no rows.
pub struct AcquisitionTable {
    /// The handles and views; their rows come before those of allocations.
    handles: Arc<EventTable>,
    /// The allocators of the trace, if needed.
    pub allocators: AllocatorList,
    pub allocator: Numbers<AllocatorIdx>,
    pub size: Numbers<i64>,
    part_of: Numbers<AcquisitionIdx>,
    pub opened_ns: Numbers<i64>,
    pub opened_stack: Numbers<StackIdx>,
    end: Arc<[u8]>,
    pub ended_ns: Numbers<i64>,
    pub ended_stack: Numbers<StackIdx>,
    pub free_call: Numbers<u32>,
    /// Whether the allocation ended in parts, by row; empty if none did.
    is_in_parts: Vec<bool>,
    process: Numbers<ProcessIdx>,
    object: Numbers<ObjectIdx>,
    /// When each process ended, by row.
    process_end_ns: Numbers<i64>,
    /// Time since which the trace has all events; 0 unless a ring overwrote older ones.
    from_ns: i64,
}

impl AcquisitionTable {
    pub fn load(trace: &Trace, needed: NeededColumns) -> Result<Arc<Self>, QueryError> {
        let part_of = trace.values(Acquisitions::part_of)?;
        let (of_ends, of_owners) = (needed.ended_ns, needed.owners);
        let allocators = needed.allocators.then(|| AllocatorList::load(trace)).transpose()?;
        Ok(Arc::new(Self {
            handles: trace.event_table()?,
            allocators: allocators.unwrap_or_default(),
            allocator: trace.values(Acquisitions::allocator)?,
            size: trace.values(Acquisitions::size)?,
            opened_ns: trace.values(Acquisitions::opened_ns)?,
            opened_stack: read(trace, Acquisitions::opened_stack, needed.opened_stack)?,
            end: trace.codes(Acquisitions::end)?,
            ended_ns: read(trace, Acquisitions::ended_ns, of_ends)?,
            ended_stack: read(trace, Acquisitions::ended_stack, needed.ended_stack)?,
            free_call: trace.values(Acquisitions::free_call)?,
            is_in_parts: in_parts(&part_of),
            part_of,
            process: read(trace, Acquisitions::process, of_owners)?,
            object: read(trace, Acquisitions::object, of_owners)?,
            process_end_ns: trace.values(Processes::end_ns)?,
            from_ns: trace.info()?.recorded_ns().map_or(0, |time| *time.start()),
        }))
    }

    /// Returns the rows of the allocations.
    pub fn allocations(&self) -> Range<usize> {
        self.handles.allocations..self.height()
    }

    /// Returns the number of rows.
    pub fn height(&self) -> usize {
        self.end.len()
    }

    /// Returns the latest time of an allocation.
    pub fn last_opened_ns(&self) -> Option<i64> {
        self.opened_ns.iter().skip(self.handles.allocations).flatten().max()
    }

    /// Returns the latest time at which something was allocated or ended.
    pub fn last_ns(&self) -> Option<i64> {
        self.ended_ns
            .iter()
            .skip(self.handles.allocations)
            .flatten()
            .chain(self.last_opened_ns())
            .max()
    }

    /// Returns the allocator of an allocation.
    pub fn allocator_of(&self, row: AcquisitionIdx) -> Option<&Allocator> {
        self.allocators.get(self.allocator.get(row.row())?)
    }

    /// Returns the stack of each allocation with the process of its allocator.
    pub fn stacks_of_processes(
        &self,
    ) -> impl Iterator<Item = (Option<StackIdx>, Option<ProcessIdx>)> {
        self.allocations().map(|row| {
            let allocator = self.allocator_of(AcquisitionIdx::from_row(row));
            (self.opened_stack.get(row), allocator.and_then(|allocator| allocator.process))
        })
    }

    /// Whether it is a handle or a view.
    fn is_handle(&self, row: AcquisitionIdx) -> bool {
        row.row() < self.handles.allocations
    }

    /// Returns the object of a handle or view.
    pub fn object(&self, row: AcquisitionIdx) -> Option<ObjectIdx> {
        self.object.get(row.row())
    }

    /// Returns the owner; for handles, `ProcessIdx::NONE` if it is unknown.
    pub fn owner(&self, row: AcquisitionIdx) -> Option<ProcessIdx> {
        let owner = self.process.get(row.row());
        if self.is_handle(row) { owner.or(Some(ProcessIdx::NONE)) } else { owner }
    }

    /// Returns the bytes of an allocation; 0 for handles and views, which count by number.
    pub fn bytes(&self, row: AcquisitionIdx) -> i64 {
        let size = || self.size.get(row.row()).unwrap_or_default();
        if self.is_handle(row) { 0 } else { size() }
    }

    /// Whether it is a part of an allocation other than the first.
    pub fn is_further_part(&self, row: AcquisitionIdx) -> bool {
        self.part_of.get(row.row()).is_some()
    }

    /// Returns the first part of an allocation, if it ended in parts.
    pub fn first_part(&self, row: AcquisitionIdx) -> Option<AcquisitionIdx> {
        let is_in_parts = self.is_in_parts.get(row.row()).copied().unwrap_or_default();
        is_in_parts.then(|| self.part_of.get(row.row()).unwrap_or(row))
    }

    /// Returns how it ended.
    pub fn end(&self, row: AcquisitionIdx) -> Option<End> {
        self.end.get(row.row()).and_then(|code| End::from_code((*code).into()))
    }

    /// Returns how an allocation ended.
    pub fn end_of_allocation(&self, row: AcquisitionIdx) -> Option<ResourceEnd> {
        self.end(row)?.of_allocation()
    }

    /// Returns how something ended that the program never released: still open, or with its process.
    pub fn unreleased(&self, row: AcquisitionIdx) -> Option<ResourceEnd> {
        if !self.is_handle(row) {
            return self.end_of_allocation(row).filter(|end| is_never_freed(*end));
        }
        match self.handles.state(row.row()) {
            state if state.is_leaked() => Some(ResourceEnd::Open),
            state if state.is_closed_at_exit() => Some(ResourceEnd::AtExit),
            _ => None,
        }
    }

    /// Whether nothing ever released it, or only process exit did.
    pub fn is_unreleased(&self, row: AcquisitionIdx) -> bool {
        self.unreleased(row).is_some()
    }

    /// Returns how the program released it; a close counts as a free.
    pub fn released(&self, row: AcquisitionIdx) -> Option<ResourceEnd> {
        if self.is_handle(row) {
            (!self.is_unreleased(row)).then_some(ResourceEnd::Freed)
        } else {
            self.end_of_allocation(row).filter(|end| !is_never_freed(*end))
        }
    }

    /// Whether anything but process exit freed an allocation.
    pub fn is_freed(&self, row: AcquisitionIdx) -> bool {
        self.end_of_allocation(row).is_some_and(is_freed)
    }

    /// Whether it was acquired in the time for which the trace has all events: a ring has only some older ones, and not
    /// all of their ends.
    pub fn is_in_time(&self, row: AcquisitionIdx) -> bool {
        self.from_ns <= 0 || self.opened_ns.get(row.row()).is_some_and(|ns| ns >= self.from_ns)
    }

    /// Returns when it was acquired and when it was gone, whatever ended it. A handle is gone with its process at the
    /// latest, even if the trace has no close.
    pub fn open_time(&self, row: AcquisitionIdx) -> Option<Lifetime> {
        Some(Lifetime {
            opened_ns: self.opened_ns.get(row.row())?,
            closed_ns: self.ended_ns.get(row.row()).or_else(|| self.owner_end_ns(row)),
        })
    }

    /// Returns when the process that has a handle ended; allocations end with theirs anyway.
    pub fn owner_end_ns(&self, row: AcquisitionIdx) -> Option<i64> {
        let owner = self.owner(row).filter(|_| self.is_handle(row))?;
        self.process_end_ns.get(owner.row())
    }

    /// Whether nothing ended something with this [open time](Self::open_time); it may also have ended at an unknown
    /// time.
    pub fn never_ends(&self, row: AcquisitionIdx, open_time: Lifetime) -> bool {
        if self.is_handle(row) {
            open_time.closed_ns.is_none() && self.handles.ending(row.row()).is_none()
        } else {
            self.end_of_allocation(row) == Some(ResourceEnd::Open)
        }
    }

    /// Returns when it was acquired and when the program released it.
    pub fn program_time(&self, row: AcquisitionIdx) -> Option<Lifetime> {
        Some(Lifetime {
            opened_ns: self.opened_ns.get(row.row())?,
            closed_ns: self.ended_ns.get(row.row()).filter(|_| !self.is_unreleased(row)),
        })
    }

    /// Returns the bytes of whole allocations by row; `None` if none ended in parts.
    pub fn whole_sizes(&self) -> Option<Vec<i64>> {
        if self.is_in_parts.is_empty() {
            return None;
        }
        let mut sizes: Vec<i64> = vec![0; self.height()];
        let first = |row: usize| {
            self.first_part(AcquisitionIdx::from_row(row)).map_or(row, AcquisitionIdx::row)
        };
        for row in self.allocations() {
            if let Some(sum) = sizes.get_mut(first(row)) {
                *sum = sum.saturating_add(self.size.get(row).unwrap_or_default());
            }
        }
        Some(
            (0..sizes.len())
                .map(|row| sizes.get(first(row)).copied().unwrap_or_default())
                .collect(),
        )
    }
}

/// Loads a column, if it is needed.
fn read<T: Number>(
    trace: &Trace,
    key: Key<Acquisitions, Option<T>>,
    is_needed: bool,
) -> Result<Numbers<T>, QueryError> {
    Ok(if is_needed { trace.values(key)? } else { Numbers::default() })
}

/// Returns whether each row is a part or has parts.
fn in_parts(part_of: &Numbers<AcquisitionIdx>) -> Vec<bool> {
    let mut is_in_parts = Vec::new();
    if !part_of.has_any() {
        return is_in_parts;
    }
    for row in 0..part_of.len() {
        let Some(first) = part_of.get(row) else { continue };
        if is_in_parts.is_empty() {
            is_in_parts.resize(part_of.len(), false);
        }
        for index in [row, first.row()] {
            if let Some(is_in_parts) = is_in_parts.get_mut(index) {
                *is_in_parts = true;
            }
        }
    }
    is_in_parts
}
