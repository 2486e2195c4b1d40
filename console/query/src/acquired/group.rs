//! Groups of what processes acquired.

use std::borrow::Cow;
use std::ops::Range;

use handlescope_model::{ProcessIdx, StackIdx};
use hashbrown::HashMap;

use super::lifetimes::Ends;
use crate::amounts::{Amount, Bytes, Counts};
use crate::growth::ProcessLifetimes;
use crate::tables::ProcessInfo;

/// The type of heaps themselves, not of blocks in them.
pub const PRIVATE_HEAP: &str = "private heap";

/// A process with its id, as far as they are known.
pub type Owner = (Option<ProcessIdx>, Option<u32>);

/// Handles of one process, type and create stack, or allocations of one process, kind, allocator and stack.
pub struct Group<'t> {
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
    /// Place of its acquisitions among those of all groups.
    pub members: Range<usize>,
    /// The first of its owners.
    pub owner: Owner,
    /// Number of its handles that are open at the end, whatever opened them.
    pub open_at_end: u64,
    /// Place among the heaps that stay, of a group of heaps.
    pub heaps: Option<usize>,
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

impl Share {
    /// Adds up the shares that a process has on several stacks.
    pub fn of_each_process(shares: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut places: HashMap<Owner, usize> = HashMap::new();
        let mut sums: Vec<Self> = Vec::new();
        for share in shares {
            let place = *places.entry((share.row, share.pid)).or_insert(sums.len());
            match sums.get_mut(place) {
                Some(sum) => sum.add(share),
                None => sums.push(share),
            }
        }
        sums
    }

    fn add(&mut self, other: Self) {
        self.counts.add(other.counts);
        self.bytes.unreleased = self.bytes.unreleased.saturating_add(other.bytes.unreleased);
        self.bytes.allocated = self.bytes.allocated.saturating_add(other.bytes.allocated);
        self.ends.add_all(&other.ends);
        self.leaked.add(other.leaked);
        self.lifetimes.lifetimes.extend(other.lifetimes.lifetimes);
        self.sizes.extend(other.sizes);
    }
}
