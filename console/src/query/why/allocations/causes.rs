//! Why a site loses allocations, as far as its events prove it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use handlescope_model::tables::{ResourceEnd, ResourceKind, Resources};
use handlescope_model::{Numbers, ResourceIdx, StackIdx};
use indicatif::{HumanBytes, HumanCount};

use super::super::causes::{Cause, Diagnosis, Findings};
use super::super::suspect::Sums;
use super::commits::Commits;
use crate::query::acquired::{Allocations, Group, PRIVATE_HEAP};
use crate::query::amounts::Counts;
use crate::query::error::QueryError;
use crate::query::resources::{AllocatorList, ResourceTable};
use crate::values::Counted;

/// Stacks of frees that are named.
const FREE_STACKS: usize = 3;

/// Reallocations from which on a block is a chain.
const CHAIN: usize = 3;

/// What causes are found in.
pub(in crate::query::why) struct SiteCauses<'a> {
    allocations: &'a Allocations<'a>,
    table: &'a ResourceTable,
    allocators: &'a AllocatorList,
    key: Numbers<u64>,
    grown_from: Numbers<ResourceIdx>,
    commits: Commits,
    /// Bytes of whole allocations by row, where any ended in parts.
    whole_sizes: Option<Vec<i64>>,
    /// Steps along reallocations that are left: a damaged table must not lead in circles.
    steps: AtomicUsize,
}

/// A block that reallocations made.
struct Chain {
    steps: usize,
    first_size: i64,
    size: i64,
    first_ns: i64,
    last_ns: i64,
}

impl<'a> SiteCauses<'a> {
    pub(in crate::query::why) fn load(
        allocations: &'a Allocations<'_>,
    ) -> Result<Self, QueryError> {
        let Allocations { origin, table, allocators, .. } = allocations;
        let key = origin.trace.values(Resources::key)?;
        Ok(Self {
            allocations,
            commits: Commits::load(table, allocators, &key),
            whole_sizes: table.whole_sizes(),
            table,
            allocators,
            key,
            grown_from: origin.trace.values(Resources::grown_from)?,
            steps: AtomicUsize::new(2 * table.len()),
        })
    }

    /// Why groups of a program leak; `None` of a kind of a newer layout.
    pub(in crate::query::why) fn findings(
        &self,
        groups: &[Group<'_>],
        sums: &Sums,
    ) -> Option<Findings> {
        let type_name = groups.first()?.type_name;
        if type_name == PRIVATE_HEAP {
            return Some(heaps(&sums.counts));
        }
        ResourceKind::ALL.iter().find(|kind| kind.name() == type_name)?;
        let rows = self.allocations.resources(groups);
        let lost: Vec<ResourceIdx> =
            rows.iter().copied().filter(|row| self.table.is_lost(*row)).collect();
        let chains: Vec<Chain> = lost.iter().filter_map(|row| self.chain(*row)).collect();
        let all = [
            self.without_commit(&lost),
            only_grew(&chains),
            self.frees(&rows, sums),
            exits(&sums.counts),
        ];
        let grown = chains.iter().map(|chain| (chain.size, chain.per_minute()));
        let grown = grown.reduce(|all, one| (i64::saturating_add(all.0, one.0), all.1 + one.1));
        let diagnoses = all.into_iter().flatten().collect();
        Some(Findings { diagnoses, grown, ended: sums.ends.words() })
    }

    /// Whether the program frees any allocation of the site.
    fn frees(&self, rows: &[ResourceIdx], sums: &Sums) -> Option<Diagnosis> {
        let mut stacks: HashMap<StackIdx, u64> = HashMap::new();
        let (mut has_frees, mut has_reallocations) = (false, false);
        for row in rows.iter().map(|row| row.row()) {
            let end = self.table.end.get(row).and_then(ResourceEnd::from_code);
            // A reallocation goes on with what it frees.
            has_reallocations |= end == Some(ResourceEnd::Reallocated);
            if end == Some(ResourceEnd::Freed) {
                has_frees = true;
                if let Some(stack) = self.table.end_stack.get(row) {
                    *stacks.entry(stack).or_default() += 1;
                }
            }
        }
        let Counts { opened, .. } = sums.counts;
        let lost = sums.counts.lost();
        if lost == 0 {
            return None;
        }
        if !has_frees {
            let text = match has_reallocations {
                true => "what this stack allocates is reallocated, but never freed",
                false => "nothing that this stack allocates is ever freed",
            };
            return Some(diagnosis(Cause::NeverFreed, lost, text.to_owned()));
        }
        let [all, left] = [opened, lost].map(HumanCount);
        let freed = sums.ends.freed;
        let are = |count: u64| if count == 1 { "is" } else { "are" };
        let (is_freed, others) = (are(freed), sums.ends.others());
        let freed = HumanCount(freed);
        let text = match (freed, others.as_str()) {
            (HumanCount(0), _) => {
                format!("of {all} of this stack some are freed in part, and none is freed wholly")
            }
            (freed, "") => format!(
                "{freed} of {all} of this stack {is_freed} freed, {left} {} not: look at its error paths",
                are(lost)
            ),
            (freed, others) => format!(
                "{freed} of {all} of this stack {is_freed} freed{others}, {left} {} never freed: look at its \
                 error paths",
                are(lost)
            ),
        };
        let mut stacks: Vec<_> = stacks.into_iter().collect();
        stacks.sort_by_key(|(stack, count)| (Reverse(*count), *stack));
        let stacks = stacks.into_iter().take(FREE_STACKS).map(|(stack, _)| stack).collect();
        Some(Diagnosis { stacks, ..diagnosis(Cause::SometimesFreed, lost, text) })
    }

    /// The reallocations that made a block, if there are some and each made it larger.
    fn chain(&self, last: ResourceIdx) -> Option<Chain> {
        let size = |row: ResourceIdx| self.table.size.get(row.row());
        let time = |row: ResourceIdx| self.table.time_ns.get(row.row());
        let (last_size, last_ns) = (size(last)?, time(last)?);
        let mut chain =
            Chain { steps: 0, first_size: last_size, size: last_size, first_ns: last_ns, last_ns };
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
            chain = Chain { steps: chain.steps + 1, first_size: before_size, first_ns, ..chain };
            row = before;
        }
        (chain.steps >= CHAIN).then_some(chain)
    }

    /// Reservations of which nothing is ever committed.
    fn without_commit(&self, lost: &[ResourceIdx]) -> Option<Diagnosis> {
        // By the first row of each, because a part says nothing of where it lies in its allocation.
        let mut reserved: BTreeMap<ResourceIdx, i64> = BTreeMap::new();
        for row in lost {
            let first = self.table.first_part(*row).unwrap_or(*row);
            let left = reserved.entry(first).or_default();
            *left = left.saturating_add(self.table.size.get(row.row()).unwrap_or_default());
        }
        let mut unused = (0_u64, 0_i64);
        for (first, left) in reserved {
            let row = first.row();
            let allocator = self.allocators.get(self.table.allocator.get(row)?)?;
            if allocator.kind != ResourceKind::Reserve.code() {
                return None;
            }
            let whole = self.whole_sizes.as_ref().and_then(|sizes| sizes.get(row).copied());
            let size = whole.or_else(|| self.table.size.get(row))?.unsigned_abs();
            let (key, time_ns) = (self.key.get(row)?, self.table.time_ns.get(row)?);
            if !self.commits.has(allocator, key, size, time_ns) {
                unused = (unused.0 + 1, unused.1.saturating_add(left));
            }
        }
        let (count, size) = unused;
        let text = format!(
            "{} ({}) were reserved, and nothing of them was ever committed",
            HumanCount(count),
            bytes(size)
        );
        (count > 0).then(|| diagnosis(Cause::ReserveWithoutCommit, count, text))
    }
}

impl Chain {
    fn per_minute(&self) -> f64 {
        let grown = self.size.saturating_sub(self.first_size) as f64;
        let minutes = self.last_ns.saturating_sub(self.first_ns) as f64 / 60e9;
        if minutes > 0.0 { grown / minutes } else { 0.0 }
    }
}

/// Blocks that reallocations made larger and larger.
fn only_grew(chains: &[Chain]) -> Option<Diagnosis> {
    let longest = chains.iter().max_by_key(|chain| chain.steps)?;
    let [from, to] = [longest.first_size, longest.size].map(bytes);
    let text = format!(
        "{} only grew, by up to {} reallocations, from {from} to {to}",
        HumanCount(chains.len() as u64),
        HumanCount(longest.steps as u64),
    );
    Some(diagnosis(Cause::ReallocGrowth, chains.len() as u64, text))
}

/// What the ends of processes took along.
fn exits(counts: &Counts) -> Option<Diagnosis> {
    let count = counts.closed_at_exit;
    let text =
        format!("{} ended with their process, and nothing before freed them", HumanCount(count));
    (count > 0).then(|| diagnosis(Cause::ExitOnly, count, text))
}

/// Heaps that are never destroyed.
fn heaps(counts: &Counts) -> Findings {
    let text = format!(
        "of {} that this stack creates, {} never destroyed",
        Counted(counts.opened, "heap"),
        HumanCount(counts.lost())
    );
    let diagnoses = vec![diagnosis(Cause::HeapNotDestroyed, counts.lost(), text)];
    Findings { diagnoses, grown: None, ended: "destroyed".to_owned() }
}

fn diagnosis(cause: Cause, count: u64, text: String) -> Diagnosis {
    Diagnosis { cause, count, object_ids: Vec::new(), text, stacks: Vec::new() }
}

fn bytes(size: i64) -> HumanBytes {
    HumanBytes(u64::try_from(size).unwrap_or_default())
}
