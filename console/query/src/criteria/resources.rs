//! Criteria that choose allocations, and options for counting them.

use handlescope_model::StackIdx;

use super::StackTrims;
use crate::criterion::{Criteria, Criterion, Given, Syntax, criteria, criterion, is_given};
use crate::resources::ResourceColumn;
use crate::resources::tables::{AllocatorTest, Needed, ResourceRow, RowTest, Tables, kind_name};
use crate::tables::SelectedProcesses;
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::values::{CountRange, SuspectId, TimeRange};

/// Criteria of `.dump Resource`.
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
    /// `-ShowTime`: number of parts that time is divided into.
    pub buckets: Option<usize>,
    /// Whether allocations, not their bytes, are counted over time.
    pub by_count: bool,
    /// Whether each change over time is kept, for what is most at once.
    pub keeps_changes: bool,
    /// `-FoldStack` and `-StackFrom`
    pub trims: StackTrims,
    /// Whether and how stacks are printed.
    pub stacks: StackDisplayArgs,
    /// Criteria that its filters were given as.
    pub options: ResourceOptions,
    /// Whether both the totals and all that was never freed are requested.
    pub with_totals_and_leaks: bool,
    /// Whether the allocations are compared: stacks are examined, and the columns are kept, whatever is grouped by.
    pub is_compared: bool,
}

/// The criteria that filters were given as, where options that choose handles choose allocations, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceOptions {
    /// Criterion that chooses kinds.
    pub kind: Criterion,
    /// Criterion that chooses by stacks that freed.
    pub free_stack: Criterion,
}

impl Default for ResourceOptions {
    fn default() -> Self {
        Self { kind: Criterion::Kind, free_stack: Criterion::FreeStack }
    }
}

/// Effect of a criterion on allocations, and on frees without one.
#[derive(Clone, Copy)]
pub enum Effect {
    /// Tests the allocators of allocations, each once.
    Allocators(for<'a> fn(&'a ResourceCriteria, &'a Tables<'_>) -> AllocatorTest<'a>),
    /// Tests each allocation or free.
    Rows(for<'a> fn(&'a ResourceCriteria, &'a Tables<'_>) -> RowTest<'a>),
    /// Leaves what leaks.
    Leaks,
    /// Tests a stack of allocations, each distinct stack once.
    Stacks {
        filter: fn(&ResourceCriteria) -> &Option<Filter>,
        stack: fn(&Tables<'_>, ResourceRow) -> Option<StackIdx>,
        /// Whether that stack, or its lack, counts.
        counts: fn(&Tables<'_>, ResourceRow) -> bool,
    },
}

criteria! {
    ResourceCriteria(self): Effect {
        (self.options.kind) => kind: Filter, Effect::Allocators(|args, _| Box::new(|allocator| {
            args.kind.as_ref().is_none_or(|filter| filter.matches(kind_name(allocator.kind)))
        }));
        Allocator => allocator: Filter, Effect::Allocators(|args, _| Box::new(|allocator| {
            // A name passes as a whole, whatever line ends it has.
            let filter = args.allocator.as_ref();
            filter.is_none_or(|filter| filter.accepts(filter.line(&allocator.name)))
        }));
        Process => process: ProcessFilter, Effect::Allocators(|args, tables| {
            let processes = SelectedProcesses::new(tables.processes, args.process.as_ref());
            Box::new(move |allocator| processes.has_owner(allocator.process, allocator.pid))
        });
        Suspect => suspect: SuspectId, Effect::Rows(|_, tables| match tables.suspect {
            // A free without an allocation belongs to no suspect.
            Some(rows) => Box::new(|row| matches!(row, ResourceRow::Allocation(row) if rows.has(row.row()))),
            None => Box::new(|_| true),
        });
        leaks, Effect::Leaks;
        MinMaxTime => time, Effect::Rows(|args, tables| {
            let range = args.time.map(|range| range.nanoseconds());
            Box::new(move |row| {
                let time_ns = tables.time_ns(row);
                range.as_ref().is_none_or(|range| time_ns.is_some_and(|ns| range.contains(&ns)))
            })
        });
        MinMaxSize => size, Effect::Rows(|args, tables| {
            let whole_sizes = tables.resources.whole_sizes();
            Box::new(move |row| {
                let sizes = whole_sizes.as_ref().zip(row.allocation());
                let size = sizes.and_then(|(sizes, allocation)| sizes.get(allocation.row()));
                let size = size.copied().or_else(|| tables.size(row));
                let size = size.and_then(|size| u64::try_from(size).ok());
                args.size.is_none_or(|range| size.is_some_and(|size| range.contains(size)))
            })
        });
        CreateStack => create_stack: Filter as Line, Effect::Stacks {
            filter: |args| &args.create_stack,
            stack: |tables, row| tables.resources.stack.get(row.allocation()?.row()),
            counts: |_, _| true,
        };
        (self.options.free_stack) => free_stack: Filter as Line, Effect::Stacks {
            filter: |args| &args.free_stack,
            stack: |tables, row| tables.free_stack(row),
            // An allocation that was not freed has no stack of a free, however its process ended.
            counts: |tables, row| row.allocation().is_none_or(|row| tables.resources.is_freed(row)),
        };
    }
}

impl ResourceCriteria {
    /// Whether it chooses by more than kind, allocator and process.
    pub fn chooses_rows(&self) -> bool {
        self.suspect.is_some()
            || self.time.is_some()
            || self.size.is_some()
            || self.create_stack.is_some()
            || self.free_stack.is_some()
    }

    /// The columns of allocations that are needed.
    pub fn needed(&self) -> Needed {
        Needed {
            end_time: self.buckets.is_some() || self.is_compared,
            end_stack: self.free_stack.is_some(),
        }
    }

    /// Narrows a suspect that is asked for to what it leaked, which is what it counts, unless it is said which part.
    pub fn narrowed_to_leaks_of_suspect(mut self) -> Self {
        let is_narrowed = self.suspect.is_some() && !self.is_of_leaks();
        self.leak |= is_narrowed;
        self.leak_at_exit |= is_narrowed;
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
    pub fn has_stacks(&self) -> bool {
        let has_leaks = self.with_totals_and_leaks && self.by.is_none();
        let leaks = ResourceColumn::LEAKS.iter().filter(|_| has_leaks);
        self.columns().iter().chain(leaks).any(|column| column.stack_names().is_some())
    }

    /// Whether the frames of stacks are needed.
    pub fn needs_frames(&self) -> bool {
        self.is_compared
            || self.suspect.is_some()
            || self.has_stacks()
            || self.create_stack.is_some()
            || self.free_stack.is_some()
    }

    /// The columns of the groups that are shown.
    pub fn columns(&self) -> &[ResourceColumn] {
        match &self.by {
            Some(by) => by,
            None if self.is_of_leaks() => &ResourceColumn::LEAKS,
            None => &ResourceColumn::TOTALS,
        }
    }
}
