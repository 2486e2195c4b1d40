//! Columns of `-GroupBy` for allocations: where a column comes from and what its numbers mean.

use handlescope_model::tables::{Acquisitions, Allocator, End, ResourceKind, ResourceMisses};
use handlescope_model::{ArchiveError, Number, Numbers, ProcessIdx, StackIdx, Trace};

use super::columns::group_columns;

/// Name of a kind from a newer layout.
const UNKNOWN_KIND: &str = "unknown";

/// Returns the name of a kind.
pub fn kind_name(code: u32) -> &'static str {
    ResourceKind::from_code(code).map_or(UNKNOWN_KIND, ResourceKind::name)
}

/// Declares the source of a column for allocations and, if they have it, for events without one.
macro_rules! read {
    ($rows:expr $(, $misses:expr)?) => {
        NumberSource { rows: |trace| trace.values($rows), misses: &[$(|trace| trace.values($misses))?] }
    };
}

group_columns! {
    /// A column of `-GroupBy` of allocations.
    ResourceColumn: ResourceColumnSpec;
    CreateStack: "createstack", "stack that allocated"
        => of("stack", "Stack", ResourceKeyKind::Stack(read!(Acquisitions::opened_stack), StackNames {
            frame: ("innermost_frame", "Innermost frame"), text: "text", heading: "Allocated on stack",
        }));
    FreeStack: "freestack", "stack that freed"
        => of("free_stack", "Free stack", ResourceKeyKind::Stack(
            read!(Acquisitions::ended_stack, ResourceMisses::stack),
            StackNames {
                frame: ("free_frame", "Innermost frame of the free"),
                text: "free_text",
                heading: "Freed on stack",
            },
        ));
    Kind: "kind", "heap, commit, and so on"
        => of("kind", "Kind", ResourceKeyKind::Allocator(|allocator| Some(kind_name(allocator.kind))));
    Allocator: "allocator", "heap or other allocator"
        => of("allocator", "Allocator", ResourceKeyKind::Allocator(|allocator| Some(&allocator.name)));
    Process: "process", "owner" => of("process", "Process", ResourceKeyKind::Owner);
    Caller: "allocated_by", "process that allocated, if not the owner"
        => of("allocated_by", "Allocated by", ResourceKeyKind::Process(read!(Acquisitions::opened_by)));
    Thread: "thread", "thread that allocated"
        => of("tid", "Thread", ResourceKeyKind::Number(read!(Acquisitions::opened_tid, ResourceMisses::tid)));
    End: "end", "how it ended"
        => of("end", "End", ResourceKeyKind::Word(read!(Acquisitions::end), |code| {
            End::from_code(code).map(End::name)
        }));
    Size: "size", "bytes of each"
        => of("size", "Size", ResourceKeyKind::Bytes(read!(Acquisitions::size, ResourceMisses::size)));
}

/// The declaration of a column.
struct ResourceColumnSpec {
    name: &'static str,
    title: &'static str,
    kind: ResourceKeyKind,
}

const fn of(name: &'static str, title: &'static str, kind: ResourceKeyKind) -> ResourceColumnSpec {
    ResourceColumnSpec { name, title, kind }
}

/// What kind of value the allocations of a group share in a column, and its source.
pub enum ResourceKeyKind {
    /// A text of their allocators.
    Allocator(fn(&Allocator) -> Option<&str>),
    /// The process that owns them.
    Owner,
    /// A process other than the owner.
    Process(NumberSource<ProcessIdx>),
    Stack(NumberSource<StackIdx>, StackNames),
    Number(NumberSource<u32>),
    /// A number that stands for a word.
    Word(NumberSource<u32>, fn(u32) -> Option<&'static str>),
    /// A number of bytes.
    Bytes(NumberSource<i64>),
}

/// Reads the values of a column.
type NumberReader<T> = fn(&Trace) -> Result<Numbers<T>, ArchiveError>;

/// The source of numbers for allocations, and for events without one if they have some.
pub struct NumberSource<T: Number> {
    rows: NumberReader<T>,
    misses: &'static [NumberReader<T>],
}

/// Names of a stack besides its number.
#[derive(Debug, Clone, Copy)]
pub struct StackNames {
    /// Name in files and title of the innermost frame.
    pub frame: (&'static str, &'static str),
    /// Name of its frames in files.
    pub text: &'static str,
    /// Heading above its frames in text.
    pub heading: &'static str,
}

impl<T: Number> NumberSource<T> {
    /// Loads the numbers of allocations, and of events without one.
    pub fn load(&self, trace: &Trace) -> Result<[Numbers<T>; 2], ArchiveError> {
        let misses = self.misses.first().map(|misses| misses(trace)).transpose()?;
        Ok([(self.rows)(trace)?, misses.unwrap_or_default()])
    }
}

impl ResourceKeyKind {
    /// Returns the rank of the column: groups with equal figures are compared by columns of the lowest rank first.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Allocator(_) | Self::Owner => 0,
            Self::Process(_) => 1,
            Self::Stack(..) => 2,
            Self::Number(_) => 3,
            Self::Word(..) => 4,
            Self::Bytes(_) => 5,
        }
    }
}

impl ResourceColumn {
    /// Columns of totals.
    pub const TOTALS: [Self; 3] = [Self::Kind, Self::Allocator, Self::Process];

    /// Columns of groups of leaks.
    pub const LEAKS: [Self; 6] =
        [Self::Kind, Self::Allocator, Self::Process, Self::Caller, Self::CreateStack, Self::End];

    /// Columns of comparisons: groups of one kind, allocator, owner and stack.
    pub const COMPARED: [Self; 4] = [Self::Kind, Self::Allocator, Self::Process, Self::CreateStack];

    /// Name in files.
    pub fn name(self) -> &'static str {
        self.declared().name
    }

    /// Title in text.
    pub fn title(self) -> &'static str {
        self.declared().title
    }

    pub fn kind(self) -> ResourceKeyKind {
        self.declared().kind
    }

    /// Returns the names of its stack, if it is one.
    pub fn stack_names(self) -> Option<StackNames> {
        match self.kind() {
            ResourceKeyKind::Stack(_, names) => Some(names),
            _ => None,
        }
    }

    /// Whether it is a property of allocators.
    pub fn is_of_allocator(self) -> bool {
        matches!(self.kind(), ResourceKeyKind::Allocator(_) | ResourceKeyKind::Owner)
    }
}
