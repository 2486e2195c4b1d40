//! Groups of what one process acquired of one type on one stack.

use handlescope_model::{AcquisitionIdx, ProcessIdx, StackIdx};

use crate::acquired::{AcquisitionGroup, AcquisitionGroups, ProcessShare, kind_of};
use crate::amounts::{ByteAmounts, Counts};
use crate::growth::Lifetime;

/// What one process acquired of one kind, type and allocator on one stack.
pub struct InventoryGroup {
    /// Row of the process, if known.
    pub process: Option<ProcessIdx>,
    /// Executable.
    pub process_name: String,
    pub pid: Option<u32>,
    /// `handle`, `view`, or the kind of allocations.
    pub kind: String,
    /// Type of the objects, or the kind of allocations.
    pub type_name: String,
    /// The allocator, if it has the same name in every trace.
    pub allocator: Option<String>,
    /// The stack; one of several with the same functions.
    pub stack: Option<StackIdx>,
    pub counts: Counts,
    /// Bytes, for allocations that have them.
    pub bytes: Option<ByteAmounts>,
    /// When the first and the last that the program did not release were acquired, nanoseconds.
    pub leaked_ns: Option<(i64, i64)>,
    /// Mean time until the program released one, nanoseconds.
    pub mean_lifetime_ns: Option<f64>,
    /// How long the trace shows the process, nanoseconds.
    pub observed_ns: i64,
    /// The acquisitions of the group; the parts of allocations that ended in parts.
    pub members: Vec<AcquisitionIdx>,
}

impl InventoryGroup {
    /// Returns what each process has of each group.
    pub fn all(acquired: &AcquisitionGroups<'_>) -> Vec<Self> {
        let shares = acquired.groups.iter().flat_map(|group| {
            let shares = acquired.shares_and_rows(group).into_iter();
            shares.map(move |(share, rows)| Self::new(acquired, group, &share, rows))
        });
        shares.collect()
    }

    fn new(
        acquired: &AcquisitionGroups<'_>,
        group: &AcquisitionGroup<'_>,
        share: &ProcessShare,
        members: Vec<AcquisitionIdx>,
    ) -> Self {
        let process = acquired.processes.owner(share.row, share.pid);
        let allocator = group.descriptive_allocator().or(group.lasting_allocator());
        let lifetimes = &share.lifetimes.lifetimes;
        let unreleased = lifetimes.iter().filter(|lifetime| lifetime.closed_ns.is_none());
        let leaked_ns = unreleased
            .map(|lifetime| (lifetime.opened_ns, lifetime.opened_ns))
            .reduce(|(first, last), (ns, _)| (first.min(ns), last.max(ns)));
        let (count, sum) = lifetimes
            .iter()
            .filter_map(Lifetime::length_ns)
            .fold((0_u64, 0.0), |(count, sum), ns| (count + 1, sum + ns as f64));
        Self {
            process: share.row,
            process_name: process.name,
            pid: share.pid,
            kind: kind_of(acquired.subject, group.type_name).to_owned(),
            type_name: group.type_name.to_owned(),
            allocator: allocator.map(str::to_owned),
            stack: group.create_stack,
            counts: share.sums.counts,
            bytes: group.has_bytes().then_some(share.sums.bytes),
            leaked_ns,
            mean_lifetime_ns: (count > 0).then(|| sum / count as f64),
            observed_ns: share.lifetimes.window.length_ns(),
            members,
        }
    }

    /// Returns the number that the program released.
    pub fn released(&self) -> u64 {
        self.counts.opened.saturating_sub(self.counts.unreleased())
    }

    /// Returns the sort key of rows, by which readers skip row groups.
    pub fn sort_key(&self) -> (&str, Option<ProcessIdx>, &str, &str, Option<StackIdx>) {
        (&self.process_name, self.process, &self.kind, &self.type_name, self.stack)
    }
}
