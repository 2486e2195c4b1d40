//! Groups of what processes acquired.

use std::borrow::Cow;
use std::ops::Range;

use handlescope_model::rules::{has_bytes, has_lasting_names, is_named_by_allocator};
use handlescope_model::tables::ResourceKind;
use handlescope_model::{FILE_MAPPING_NAME, ProcessIdx, StackIdx};

use super::heaps::CreatedHeaps;
use super::lifetimes::AcquiredSums;
use super::programs::united;
use crate::amounts::Amount;
use crate::answer::Domain;
use crate::growth::ProcessLifetimes;
use crate::tables::ProcessInfo;

/// The type of heaps themselves, as opposed to blocks in them.
pub const PRIVATE_HEAP: &str = "private heap";

/// Returns `handle`, `view`, or the kind of allocations of a type; heaps themselves count as `heap`.
pub fn kind_of(subject: Domain, type_name: &str) -> &str {
    match (subject, type_name) {
        (Domain::Handles, FILE_MAPPING_NAME) => "view",
        (Domain::Handles, _) => "handle",
        (Domain::Allocations, PRIVATE_HEAP) => ResourceKind::Heap.name(),
        (Domain::Allocations, kind) => kind,
    }
}

/// A process and its id, as far as known.
pub type AcquisitionOwner = (Option<ProcessIdx>, Option<u32>);

/// Handles of one process, type and create stack, or allocations of one process, kind, allocator and stack.
pub struct AcquisitionGroup<'t> {
    pub process: Cow<'t, ProcessInfo>,
    /// The kind of the allocations; `None` for handles and for kinds from a newer layout.
    pub kind: Option<ResourceKind>,
    /// The type of the objects, or the kind of the allocations.
    pub type_name: &'t str,
    /// The name of the allocator; for handles without stack in a dump, the pattern of their object names.
    pub allocator: Option<&'t str>,
    /// The stack that acquired it; one of several with the same functions.
    pub create_stack: Option<StackIdx>,
    /// Whether its program never released some of it.
    pub leaks: bool,
    /// Where its acquisitions are among those of all groups.
    pub members: Range<usize>,
    /// The first of its owners.
    pub owner: AcquisitionOwner,
    /// Number of its handles open at the end, whatever opened them.
    pub open_at_end: u64,
    /// The heaps, for a group of heaps that are never destroyed.
    pub heaps: Option<CreatedHeaps>,
}

impl<'t> AcquisitionGroup<'t> {
    /// Whether bytes count rather than numbers.
    pub fn has_bytes(&self) -> bool {
        self.kind.is_some_and(has_bytes)
    }

    /// Returns the name of its allocator, if it says what is allocated, such as the type of a GDI handle.
    pub fn descriptive_allocator(&self) -> Option<&'t str> {
        self.allocator.filter(|name| self.kind.is_some_and(|kind| says_more(kind, name)))
    }

    /// Returns the name of its allocator, if every trace has that name.
    pub fn lasting_allocator(&self) -> Option<&'t str> {
        self.allocator.filter(|_| self.kind.is_none_or(has_lasting_names))
    }
}

/// Whether the name of an allocator says more than the kind of its allocations.
pub fn says_more(kind: ResourceKind, allocator: &str) -> bool {
    is_named_by_allocator(kind) && !allocator.is_empty()
}

/// One process's part of a group.
#[derive(Debug, Clone)]
pub struct ProcessShare {
    /// Row in the table of processes, if known.
    pub row: Option<ProcessIdx>,
    /// Process id, if known.
    pub pid: Option<u32>,
    pub sums: AcquiredSums,
    /// What leaked since the trace has all events: a ring has only some older acquisitions, and not all of their ends.
    pub leaked: Amount,
    /// Lifetimes since then; process exit does not end one.
    pub lifetimes: ProcessLifetimes,
    /// Bytes of each of these lifetimes; empty if numbers count.
    pub sizes: Vec<u64>,
}

impl ProcessShare {
    /// Adds up the shares of a process on several stacks.
    pub fn from_each_process(shares: impl Iterator<Item = Self>) -> Vec<Self> {
        let of_processes = united(shares.map(|share| (Some((share.row, share.pid)), share)));
        let sum = |mut sum: Self, share| {
            sum.add(share);
            sum
        };
        of_processes.into_iter().filter_map(|shares| shares.into_iter().reduce(sum)).collect()
    }

    fn add(&mut self, other: Self) {
        self.sums.add(&other.sums);
        self.leaked.add(other.leaked);
        self.lifetimes.lifetimes.extend(other.lifetimes.lifetimes);
        self.sizes.extend(other.sizes);
    }
}
