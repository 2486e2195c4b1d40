//! Groups of what processes acquired, and the trait of what has them.

use std::borrow::Cow;
use std::slice;

use handlescope_model::{ProcessIdx, StackIdx};

use super::between::{Between, Span};
use super::lifetimes::Ends;
use crate::amounts::{Amount, Bytes, Counts};
use crate::frame_names::Frames;
use crate::growth::{ProcessLifetimes, Window};
use crate::suspect_rows::SuspectRows;
use crate::tables::{ProcessInfo, ProcessList};
use crate::trimmed_stacks::TrimmedStacks;
use handlescope_session::cancel::{Cancel, Cancelled};

/// The type of heaps themselves, not of blocks in them.
pub const PRIVATE_HEAP: &str = "private heap";

/// Handles of one process, type and create stack, or allocations of one process, kind, allocator and stack.
pub struct Group<'t> {
    /// Index of the group in its trace.
    pub index: usize,
    pub process: Cow<'t, ProcessInfo>,
    /// The type of the objects, or the kind of the allocations.
    pub type_name: &'t str,
    /// The name of the allocator; of handles without a stack in a dump the pattern of their objects' names.
    pub allocator: Option<&'t str>,
    /// Whether that says what is allocated, as the type of a GDI handle does.
    pub is_named_by_allocator: bool,
    /// Whether that is the same in every trace.
    pub has_lasting_name: bool,
    /// Whether its bytes count, and not how many there are.
    pub has_bytes: bool,
    /// The stack that acquired it: one of those of the same functions.
    pub create_stack: Option<StackIdx>,
    /// Whether any of it was never released by its program.
    pub leaks: bool,
}

impl<'t> Group<'t> {
    /// The name of its allocator, where it says what is allocated.
    pub fn descriptive_allocator(&self) -> Option<&'t str> {
        self.allocator.filter(|name| self.is_named_by_allocator && !name.is_empty())
    }

    /// The name of its allocator, where every trace has that name.
    pub fn lasting_allocator(&self) -> Option<&'t str> {
        self.allocator.filter(|_| self.has_lasting_name)
    }
}

/// The part of a group that one process has.
#[derive(Debug, Clone)]
pub struct Share {
    /// Row in the table of processes, if known.
    pub row: Option<ProcessIdx>,
    /// Process id, if known.
    pub pid: Option<u32>,
    pub counts: Counts,
    /// The bytes of allocations.
    pub bytes: Bytes,
    /// Ends of the allocations that are not leaked.
    pub ends: Ends,
    /// Leaked since the trace has all events: of older acquisitions a ring has only some, and not all of their ends.
    pub leaked: Amount,
    /// Lifetimes since then; an end of the process ends none.
    pub lifetimes: ProcessLifetimes,
    /// Bytes of each of these lives; empty where their number counts.
    pub sizes: Vec<u64>,
}

/// Handles or allocations of a trace.
pub trait Acquired: Sync {
    /// Plural noun for the acquisitions, as in messages and ids.
    const LABEL: &'static str;
    /// Whether acquisitions have bytes.
    const HAS_BYTES: bool;

    /// The groups of processes that are asked for.
    fn groups(&self) -> impl Iterator<Item = Group<'_>>;
    /// Shares of the processes of a group, which may be several that had one name and id, one after another.
    fn shares(&self, group: &Group<'_>) -> Vec<Share>;
    /// The owners of a group with their ids, as far as they are known.
    fn owners(&self, group: &Group<'_>) -> Vec<(Option<ProcessIdx>, Option<u32>)>;
    /// Whether any of a group leaks that was acquired when the trace has all events.
    fn leaks_in_time(&self, group: &Group<'_>) -> bool;
    /// Whether the trace has what was there at one moment, and no growth.
    fn is_of_one_moment(&self) -> bool {
        false
    }
    /// Amounts of a group at two points of the trace and between them.
    fn between(&self, group: &Group<'_>, span: Span) -> Result<Between, Cancelled>;
    /// Rows of groups: of handles and views, or of allocations.
    fn rows(&self, groups: &[Group<'_>]) -> Vec<usize>;
    /// Whether a group has any of some rows.
    fn has_any(&self, group: &Group<'_>, rows: &SuspectRows) -> bool {
        self.rows(slice::from_ref(group)).into_iter().any(|row| rows.has(row))
    }
    /// The function of the program in a stack, as text.
    fn function(&self, stack: StackIdx) -> Option<String>;
    /// The name of the processes of a group as it is shown; `None` where not even the id is known.
    fn shown_name(&self, group: &Group<'_>) -> Option<String>;
    /// Whether a process is asked for.
    fn matches_process(&self, process: &ProcessInfo) -> bool;
    fn frames(&self) -> Option<&Frames<'_>>;
    /// Stacks, each with the first one of the same functions.
    fn stacks(&self) -> Option<&TrimmedStacks>;
    fn processes(&self) -> &ProcessList;
    /// The time of the trace, if it has a clock.
    fn window(&self) -> Option<Window>;
    /// The times of all events; in a trace without a clock the order of those of handles.
    fn extent(&self) -> Window;
    fn cancel(&self) -> &Cancel;

    /// The time in which a process could acquire and release something, if the trace has a clock.
    fn window_of(&self, process: &ProcessInfo) -> Option<Window> {
        Some(self.window()?.between(process.start_ns, process.end_ns))
    }
}
