//! Finds out why a site leaks allocations, as far as its events prove it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use handlescope_model::tables::{Acquisitions, End, ResourceKind};
use handlescope_model::{AcquisitionIdx, Numbers, Trace};
use indicatif::HumanCount;

use super::super::causes::{Cause, Diagnosis, GroupFindings, proved};
use super::super::suspect::LeakingGroup;
use super::commits::Commits;
use crate::acquired::AcquisitionGroup;
use crate::acquisition_table::AcquisitionTable;
use crate::error::QueryError;
use handlescope_session::values::Size;

/// The word for reservations that nothing is ever committed in. Suspects with this cause are never removed.
pub const RESERVE_WITHOUT_COMMIT: &str = "reserve_without_commit";

/// A block is a chain from this many reallocations on.
const CHAIN: usize = 3;

/// The data that causes are found in.
pub struct SiteCauses<'a> {
    table: &'a AcquisitionTable,
    key: Numbers<u64>,
    grown_from: Numbers<AcquisitionIdx>,
    commits: Commits,
    /// Size of each whole allocation in bytes, by row; `None` if none ended in parts.
    whole_sizes: Option<Vec<i64>>,
    /// Remaining steps along reallocations, so that a damaged table cannot lead in circles.
    steps: AtomicUsize,
}

/// One site with the data that its causes are found in.
pub struct ExaminedSite<'a> {
    causes: &'a SiteCauses<'a>,
    group: &'a LeakingGroup,
    /// Leaked blocks that only grew.
    chains: Vec<ReallocationChain>,
}

/// A block that grew by reallocation.
struct ReallocationChain {
    steps: usize,
    first_size: i64,
    size: i64,
    first_ns: i64,
    last_ns: i64,
}

impl<'a> SiteCauses<'a> {
    pub fn load(trace: &Trace, table: &'a AcquisitionTable) -> Result<Self, QueryError> {
        let key = trace.values(Acquisitions::key)?;
        Ok(Self {
            commits: Commits::load(table, &key),
            whole_sizes: table.whole_sizes(),
            table,
            key,
            grown_from: trace.values(Acquisitions::grown_from)?,
            steps: AtomicUsize::new(2 * table.allocations().len()),
        })
    }

    /// Returns the findings on the groups of a program; `None` for a kind from a newer layout.
    pub fn findings(
        &self,
        groups: &[&AcquisitionGroup<'_>],
        group: &LeakingGroup,
    ) -> Option<GroupFindings> {
        let first = groups.first()?;
        if first.heaps.is_some() {
            let diagnoses = proved(&LeakingGroup::CAUSES_OF_HEAPS, group);
            let ended = "destroyed".to_owned();
            return Some(GroupFindings { diagnoses, ended, ..GroupFindings::default() });
        }
        first.kind?;
        let chains: Vec<ReallocationChain> =
            group.leaked.iter().filter_map(|row| self.chain(*row)).collect();
        let grown = chains
            .iter()
            .map(|chain| (chain.size, chain.per_minute()))
            .reduce(|sum, growth| (i64::saturating_add(sum.0, growth.0), sum.1 + growth.1));
        let site = ExaminedSite { causes: self, group, chains };
        let diagnoses = proved(&ExaminedSite::CAUSES, &site);
        let ended = group.ends.words();
        Some(GroupFindings { diagnoses, grown, ended, ..GroupFindings::default() })
    }

    /// Follows the reallocations that made a block; `None` if there are too few or one did not make it larger.
    fn chain(&self, last: AcquisitionIdx) -> Option<ReallocationChain> {
        let size = |row: AcquisitionIdx| self.table.size.get(row.row());
        let time = |row: AcquisitionIdx| self.table.opened_ns.get(row.row());
        let (last_size, last_ns) = (size(last)?, time(last)?);
        let mut chain = ReallocationChain {
            steps: 0,
            first_size: last_size,
            size: last_size,
            first_ns: last_ns,
            last_ns,
        };
        let mut row = last;
        while let Some(before) = self.grown_from.get(row.row()) {
            let is_left = self
                .steps
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            let before_size = size(before)?;
            if is_left.is_err() || before_size >= chain.first_size {
                return None;
            }
            let first_ns = time(before)?;
            chain = ReallocationChain {
                steps: chain.steps + 1,
                first_size: before_size,
                first_ns,
                ..chain
            };
            row = before;
        }
        (chain.steps >= CHAIN).then_some(chain)
    }
}

impl ExaminedSite<'_> {
    /// Causes of leaked allocations, in the order in which they are reported.
    pub const CAUSES: [Cause<Self>; 5] = [
        (
            RESERVE_WITHOUT_COMMIT,
            "address space that is reserved but never committed",
            Self::without_commit,
        ),
        ("realloc_growth", "blocks that only grow by reallocation", Self::only_grew),
        ("never_freed", "nothing frees what is allocated here", Self::none_freed),
        (
            "sometimes_freed",
            "other allocations made here are freed: check the error paths",
            Self::some_freed,
        ),
        ("exit_only", "freed only by process exit", Self::exits),
    ];

    /// Diagnoses reservations that nothing was ever committed in.
    fn without_commit(&self) -> Option<Diagnosis> {
        let causes = self.causes;
        // Keyed by the first row of each, because rows of parts lack their offsets in the allocation.
        let mut reserved: BTreeMap<AcquisitionIdx, i64> = BTreeMap::new();
        for row in &self.group.leaked {
            let first = causes.table.first_part(*row).unwrap_or(*row);
            let leaked_bytes = reserved.entry(first).or_default();
            *leaked_bytes =
                leaked_bytes.saturating_add(causes.table.size.get(row.row()).unwrap_or_default());
        }
        let mut unused = (0_u64, 0_i64);
        for (first, leaked_bytes) in reserved {
            let row = first.row();
            let allocator = causes.table.allocator_of(first)?;
            if allocator.kind != ResourceKind::Reserve.code() {
                return None;
            }
            let whole = causes.whole_sizes.as_ref().and_then(|sizes| sizes.get(row).copied());
            let size = whole.or_else(|| causes.table.size.get(row))?.unsigned_abs();
            let (key, time_ns) = (causes.key.get(row)?, causes.table.opened_ns.get(row)?);
            if !causes.commits.has(allocator, key, size, time_ns) {
                unused = (unused.0 + 1, unused.1.saturating_add(leaked_bytes));
            }
        }
        let (count, size) = unused;
        self.diagnosis(count, format!("reserved but never committed ({})", Size(size)))
    }

    /// Diagnoses blocks that reallocations only made larger.
    fn only_grew(&self) -> Option<Diagnosis> {
        let longest = self.chains.iter().max_by_key(|chain| chain.steps)?;
        let [from, to] = [longest.first_size, longest.size].map(Size);
        let count = self.chains.len() as u64;
        let steps = HumanCount(longest.steps as u64);
        let facts = format!("only grows: {steps} reallocations from {from} to {to}");
        self.diagnosis(count, facts)
    }

    /// Returns the rows that ended in the given way.
    fn ended(&self, end: End) -> impl Iterator<Item = usize> {
        self.group
            .rows
            .iter()
            .copied()
            .filter(move |row| self.causes.table.end(*row) == Some(end))
            .map(AcquisitionIdx::row)
    }

    fn none_freed(&self) -> Option<Diagnosis> {
        if self.ended(End::Freed).next().is_some() {
            return None;
        }
        // A reallocation keeps the contents of the block that it frees.
        let facts = match self.ended(End::Reallocated).next() {
            Some(_) => "reallocated, but never freed",
            None => "nothing frees what is allocated here",
        };
        self.diagnosis(self.group.counts.unreleased(), facts)
    }

    fn some_freed(&self) -> Option<Diagnosis> {
        self.ended(End::Freed).next()?;
        let (ends, leaked) = (&self.group.ends, self.group.counts.unreleased());
        let freed = match ends.freed {
            0 => self.diagnosis(leaked, "none freed completely, some in part"),
            freed => Diagnosis::from_error_paths(self.group, freed, "freed")
                .map(|diagnosis| diagnosis.with_others(ends.others())),
        };
        let stacks = self.ended(End::Freed);
        let stacks = stacks.filter_map(|row| self.causes.table.ended_stack.get(row));
        freed.map(|diagnosis| diagnosis.with_stacks(stacks))
    }

    /// Diagnoses allocations that ended with their process.
    fn exits(&self) -> Option<Diagnosis> {
        self.diagnosis(self.group.counts.closed_at_exit, "freed only by process exit")
    }

    /// Makes a diagnosis that explains `count` of the leaked allocations; `None` if `count` is 0.
    fn diagnosis(&self, count: u64, facts: impl Into<String>) -> Option<Diagnosis> {
        Diagnosis::new(count, self.group.counts.unreleased(), facts)
    }
}

impl LeakingGroup {
    /// Causes of leaked heaps.
    pub const CAUSES_OF_HEAPS: [Cause<Self>; 1] =
        [("heap_not_destroyed", "private heaps that are never destroyed", Self::not_destroyed)];

    fn not_destroyed(&self) -> Option<Diagnosis> {
        let (leaked, opened) = (self.counts.unreleased(), self.counts.opened);
        match opened.saturating_sub(leaked) {
            0 => Diagnosis::new(leaked, leaked, "nothing destroys heaps created here"),
            ended => Diagnosis::from_error_paths(self, ended, "destroyed"),
        }
    }
}

impl ReallocationChain {
    fn per_minute(&self) -> f64 {
        let grown = self.size.saturating_sub(self.first_size) as f64;
        let minutes = self.last_ns.saturating_sub(self.first_ns) as f64 / 60e9;
        if minutes > 0.0 { grown / minutes } else { 0.0 }
    }
}
