//! Criteria that select allocations, and options for counting them.

use super::columns::{GroupColumn, KeyKind};
use super::groups::StackTrims;
use super::processes::ProcessCriteria;
use crate::criterion::{
    Criteria, Criterion, GivenCriterion, ValueSyntax, criteria, criterion, is_given,
};
use handlescope_model::tables::ResourceKind;
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::values::{CountRange, SuspectId, TimeRange};

/// Name of a kind from a newer layout.
const UNKNOWN_KIND: &str = "unknown";

/// Returns the name of a kind.
pub fn kind_name(code: u32) -> &'static str {
    ResourceKind::from_code(code).map_or(UNKNOWN_KIND, ResourceKind::name)
}

/// Criteria of `.dump Resource`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceCriteria {
    /// `-Kind`: names of kinds, such as `heap`.
    pub kind: Option<Filter>,
    /// Processes that own the allocations.
    pub owners: ProcessCriteria,
    /// `-Allocator`: names of allocators.
    pub allocator: Option<Filter>,
    /// `-Suspect`: only what a suspect allocated.
    pub suspect: Option<SuspectId>,
    /// `-Leak`: only what was never freed, in processes that still run.
    pub leak: bool,
    /// `-LeakAtExit`: only what nothing but process exit freed.
    pub leak_at_exit: bool,
    /// `-MinMaxSize`: bytes of an allocation, including all its parts.
    pub size: Option<CountRange>,
    /// `-MinMaxTime`: when it was allocated, since session start.
    pub time: Option<TimeRange>,
    /// `-CreateStack`: the stack that allocated.
    pub create_stack: Option<Filter>,
    /// `-FreeStack`: the stack that freed.
    pub free_stack: Option<Filter>,
    /// `-GroupBy` and `-ShowTotal`: the columns, possibly none for a single sum; `None` for totals and leaks, which
    /// have their own columns.
    pub by: Option<Vec<GroupColumn>>,
    /// `-ShowTime`: number of parts the time is divided into.
    pub buckets: Option<usize>,
    /// Whether the allocations of groups are kept, for everything that depends on their times.
    pub keeps_members: bool,
    /// `-FoldStack` and `-StackFrom`
    pub trims: StackTrims,
    /// Whether and how stacks are printed.
    pub stacks: StackDisplayArgs,
    /// The criteria that its filters were given as.
    pub options: ResourceOptions,
    /// Whether both the totals and everything never freed are requested.
    pub with_totals_and_leaks: bool,
    /// Whether the allocations are compared: stacks are examined and the table is kept, whatever they are grouped by.
    pub is_compared: bool,
}

/// The criteria that filters were given as, because options for handles may also select allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceOptions {
    /// The criterion that selects kinds.
    pub kind: Criterion,
    /// The criterion that selects stacks that freed.
    pub free_stack: Criterion,
}

impl Default for ResourceOptions {
    fn default() -> Self {
        Self { kind: Criterion::Kind, free_stack: Criterion::FreeStack }
    }
}

/// What a criterion does to allocations and to frees without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceEffect {
    /// Tests the allocators of allocations, each once.
    Allocators(AllocatorTest),
    /// Tests each allocation or free.
    Rows(ResourceTest),
    /// Keeps what leaks.
    Leaks,
    /// Tests a stack of allocations, each distinct stack once.
    Stacks(StackTest),
}

/// A test of an allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocatorTest {
    Kind,
    Name,
    Owner,
    OwnerCommandLine,
    NewOwner,
}

/// A test of an allocation, or of a free without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceTest {
    Suspect,
    Time,
    Size,
}

/// A test of the stack that allocated or freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackTest {
    Create,
    Free,
}

criteria! {
    ResourceCriteria(self): ResourceEffect {
        (self.options.kind) => kind: Filter, ResourceEffect::Allocators(AllocatorTest::Kind);
        Allocator => allocator: Filter, ResourceEffect::Allocators(AllocatorTest::Name);
        Process => owners.name: ProcessFilter, ResourceEffect::Allocators(AllocatorTest::Owner);
        CmdLine => owners.command_line: Filter as Line, ResourceEffect::Allocators(AllocatorTest::OwnerCommandLine);
        NewProcess => owners.new_process, ResourceEffect::Allocators(AllocatorTest::NewOwner);
        Suspect => suspect: SuspectId, ResourceEffect::Rows(ResourceTest::Suspect);
        leaks, ResourceEffect::Leaks;
        MinMaxTime => time, ResourceEffect::Rows(ResourceTest::Time);
        MinMaxSize => size, ResourceEffect::Rows(ResourceTest::Size);
        CreateStack => create_stack: Filter as Line, ResourceEffect::Stacks(StackTest::Create);
        (self.options.free_stack) => free_stack: Filter as Line, ResourceEffect::Stacks(StackTest::Free);
    }
}

impl ResourceCriteria {
    /// Whether it selects by more than kind, allocator and process.
    pub fn chooses_rows(&self) -> bool {
        self.suspect.is_some()
            || self.time.is_some()
            || self.size.is_some()
            || self.create_stack.is_some()
            || self.free_stack.is_some()
    }

    /// `-Suspect` alone means the suspect's leaks, because these are what it counts; `-Leak` or `-LeakAtExit` override
    /// that.
    pub fn narrowed_to_leaks_of_suspect(mut self) -> Self {
        let is_narrowed = self.suspect.is_some() && !self.is_of_leaks();
        self.leak |= is_narrowed;
        self.leak_at_exit |= is_narrowed;
        self
    }

    /// Whether only leaks are requested.
    pub fn is_of_leaks(&self) -> bool {
        self.leak || self.leak_at_exit
    }

    /// Whether leaks are shown by the stacks that allocated them.
    pub fn shows_leaks(&self) -> bool {
        self.is_of_leaks() && self.by.is_none()
    }

    /// Whether any groups of the answer share stacks.
    pub fn has_stacks(&self) -> bool {
        let has_leaks = self.with_totals_and_leaks && self.by.is_none();
        has_leaks || self.columns().iter().any(|column| column.kind() == KeyKind::Stack)
    }

    /// Whether the frames of stacks are needed.
    pub fn needs_frames(&self) -> bool {
        self.is_compared
            || self.suspect.is_some()
            || self.has_stacks()
            || self.create_stack.is_some()
            || self.free_stack.is_some()
    }

    /// Returns the columns of the shown groups.
    pub fn columns(&self) -> &[GroupColumn] {
        match &self.by {
            Some(by) => by,
            None if self.is_of_leaks() => &GroupColumn::LEAKS,
            None => &GroupColumn::TOTALS,
        }
    }
}
