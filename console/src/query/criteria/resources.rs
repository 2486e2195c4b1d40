//! Which allocations are asked for, and how they are counted.

use super::StackTrims;
use crate::filter::{Filter, ProcessFilter};
use crate::query::criterion::{Criteria, Criterion, Given, criteria, is_given};
use crate::query::resources::ResourceColumn;
use crate::settings::StackDisplayArgs;
use crate::values::{CountRange, SuspectId, TimeRange};

/// What `.dump Resource` is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceCriteria {
    /// `-Kind`: names of kinds, as in `heap`.
    pub kind: Option<Filter>,
    /// `-ProcessName`: allocations that these processes own.
    pub process: Option<ProcessFilter>,
    /// `-Allocator`: names of allocators.
    pub allocator: Option<Filter>,
    /// `-Suspect`: only what a suspect allocated.
    pub suspect: Option<SuspectId>,
    /// `-Leak`: only what was never freed, of processes that live.
    pub leak: bool,
    /// `-LeakAtExit`: only what nothing but the end of its process freed.
    pub leak_at_exit: bool,
    /// `-MinMaxSize`: bytes of an allocation, of all its parts.
    pub size: Option<CountRange>,
    /// `-MinMaxTime`: when it was allocated, since session start.
    pub time: Option<TimeRange>,
    /// `-CreateStack`: the stack that allocated.
    pub create_stack: Option<Filter>,
    /// `-FreeStack`: the stack that freed.
    pub free_stack: Option<Filter>,
    /// `-GroupBy` and `-ShowTotal`: the columns, which may be none for one sum; `None` for totals and leaks, which
    /// have columns of their own.
    pub by: Option<Vec<ResourceColumn>>,
    /// `-ShowTime`: into so many parts time is divided.
    pub buckets: Option<usize>,
    /// Over time allocations are counted, not their bytes.
    pub by_count: bool,
    /// Whether each change over time is kept, for what is most at once.
    pub keeps_changes: bool,
    /// `-FoldStack` and `-StackFrom`
    pub(crate) trims: StackTrims,
    /// Whether and how stacks are printed.
    pub stacks: StackDisplayArgs,
    /// As what its filters were given.
    pub(crate) options: ResourceOptions,
    /// Both the totals and all that was never freed are asked for.
    pub with_totals_and_lost: bool,
    /// The allocations are compared: stacks are looked at, and the columns are kept, whatever is grouped by.
    pub(crate) is_compared: bool,
}

/// The criteria that filters were given as, where options that choose handles choose allocations, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceOptions {
    /// What chooses kinds.
    pub(crate) kind: Criterion,
    /// What chooses by stacks that freed.
    pub(crate) free_stack: Criterion,
}

impl Default for ResourceOptions {
    fn default() -> Self {
        Self { kind: Criterion::Kind, free_stack: Criterion::FreeStack }
    }
}

criteria! {
    ResourceCriteria(self) {
        (self.options.kind) => kind: Filter,
        Allocator => allocator: Filter,
        Process => process: ProcessFilter,
        Suspect => suspect: SuspectId,
        leaks,
        MinMaxTime => time,
        MinMaxSize => size,
        CreateStack => create_stack: Filter,
        (self.options.free_stack) => free_stack: Filter,
    }
}

impl ResourceCriteria {
    /// Whether it chooses by more than kind, allocator and process.
    pub(in crate::query) fn chooses_rows(&self) -> bool {
        self.suspect.is_some()
            || self.time.is_some()
            || self.size.is_some()
            || self.create_stack.is_some()
            || self.free_stack.is_some()
    }

    /// Narrows a suspect that is asked for to what it lost, which is what it counts, unless it is said which part.
    pub(crate) fn lost_by_suspect(mut self) -> Self {
        let of_suspect = self.suspect.is_some() && !self.is_of_leaks();
        self.leak |= of_suspect;
        self.leak_at_exit |= of_suspect;
        self
    }

    /// Whether only what was never freed is asked for.
    pub fn is_of_leaks(&self) -> bool {
        self.leak || self.leak_at_exit
    }

    /// Whether that is shown by the stacks that allocated it.
    pub fn shows_leaks(&self) -> bool {
        self.is_of_leaks() && self.by.is_none()
    }

    /// Whether any groups of the answer have stacks in common.
    pub(crate) fn has_stacks(&self) -> bool {
        let of_both = self.with_totals_and_lost && self.by.is_none();
        let lost = ResourceColumn::LOST.iter().filter(|_| of_both);
        self.columns().iter().chain(lost).any(|column| column.stack_names().is_some())
    }

    /// Whether the frames of stacks are needed.
    pub(in crate::query) fn needs_frames(&self) -> bool {
        self.is_compared
            || self.has_stacks()
            || self.create_stack.is_some()
            || self.free_stack.is_some()
    }

    /// The columns of the groups that are shown.
    pub fn columns(&self) -> &[ResourceColumn] {
        match &self.by {
            Some(by) => by,
            None if self.is_of_leaks() => &ResourceColumn::LOST,
            None => &ResourceColumn::TOTALS,
        }
    }
}
