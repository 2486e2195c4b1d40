//! What the processes of a trace acquired, in groups.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use handlescope_model::{AcquisitionIdx, AllocatorIdx, ProcessIdx, StackIdx};
use hashbrown::HashSet;

use super::alike::CallerLeaks;
use super::between::{PointAmounts, PointSpan};
use super::group::{AcquisitionGroup, AcquisitionOwner, ProcessShare};
use super::heaps::CreatedHeaps;
use super::lifetimes::{AcquiredLifetimes, AcquiredSums};
use super::programs::united;
use crate::acquisition_table::AcquisitionTable;
use crate::amounts::{Amount, Counts};
use crate::answer::Domain;
use crate::criteria::ProcessCriteria;
use crate::frame_names::Frames;
use crate::growth::{Lifetime, ProcessLifetimes, TimeWindow};
use crate::program_frames::AcquiringFunctions;
use crate::suspect_rows::SuspectRows;
use crate::tables::{ProcessInfo, ProcessList};
use crate::trimmed_stacks::TrimmedStacks;
use handlescope_session::cancel::{Cancel, Cancelled, Poll};

/// The handles and views, or the allocations, of the requested processes in groups.
pub struct AcquisitionGroups<'a> {
    pub subject: Domain,
    pub table: Arc<AcquisitionTable>,
    pub groups: Vec<AcquisitionGroup<'a>>,
    /// The acquisitions of all groups, one group after the other.
    pub members: Cow<'a, [AcquisitionIdx]>,
    /// Number of selected allocations, counting parts.
    pub selected_count: usize,
    pub frames: Option<&'a Frames<'a>>,
    /// Stacks, each mapped to the first one with the same functions.
    pub stacks: Option<Arc<TrimmedStacks>>,
    /// The acquiring functions, if groups are selected by leaks.
    pub functions: Option<Arc<AcquiringFunctions>>,
    pub processes: &'a ProcessList,
    /// The requested owners.
    pub asked: ProcessCriteria,
    /// Whether processes are shown by executable name.
    pub is_plain: bool,
    /// Whether everything open at the end counts, whatever opened it: a dump has the handles of one process at one
    /// moment, and no growth.
    pub is_of_one_moment: bool,
    /// The time range of the trace, if it has a clock.
    pub window: Option<TimeWindow>,
    /// The time range of all events; without a clock, their order.
    pub extent: TimeWindow,
    pub cancel: &'a Cancel,
}

impl AcquisitionGroups<'_> {
    /// Returns the acquisitions of a group, without those in its heaps.
    fn of_group(&self, group: &AcquisitionGroup<'_>) -> &[AcquisitionIdx] {
        self.members.get(group.members.clone()).unwrap_or_default()
    }

    /// Returns the acquisitions of some groups, one group after the other, without those in heaps.
    pub fn of_groups(&self, groups: &[&AcquisitionGroup<'_>]) -> Vec<AcquisitionIdx> {
        groups.iter().flat_map(|group| self.of_group(group)).copied().collect()
    }

    /// Returns everything that was never released, or only by process exit.
    pub fn unreleased(&self) -> impl Iterator<Item = AcquisitionIdx> {
        self.members.iter().copied().filter(|row| self.table.is_unreleased(*row))
    }

    /// Counts the acquisitions of some groups, and how many were never released or only by process exit.
    pub fn leaked<'g>(
        &self,
        groups: impl Iterator<Item = &'g AcquisitionGroup<'g>>,
    ) -> CallerLeaks {
        CallerLeaks::sum(groups.map(|group| {
            let rows = self.of_group(group);
            let unreleased = rows.iter().filter(|row| self.table.is_unreleased(**row));
            CallerLeaks { leaked: unreleased.count() as u64, acquired: rows.len() as u64 }
        }))
    }

    /// Returns the acquisitions of each process of a group. Processes with the same name and id, one after the other, are
    /// in one group.
    fn by_owner(
        &self,
        group: &AcquisitionGroup<'_>,
    ) -> Vec<(AcquisitionOwner, Vec<AcquisitionIdx>)> {
        let owner = |row: &AcquisitionIdx| self.table.owner(*row);
        let runs = self.of_group(group).chunk_by(|one, next| owner(one) == owner(next));
        let by_owner = united(runs.filter_map(|run| Some((Some(owner(run.first()?)), run))));
        let rows = by_owner.into_iter().map(|runs| runs.concat());
        rows.map(|rows| (self.owner(group, rows.first().and_then(owner)), rows)).collect()
    }

    /// Returns a process of a group with its id.
    fn owner(&self, group: &AcquisitionGroup<'_>, row: Option<ProcessIdx>) -> AcquisitionOwner {
        match self.subject {
            Domain::Handles => (row, row.map(|row| self.processes.get(row).pid)),
            Domain::Allocations => group.owner,
        }
    }

    /// Returns the owners of a group, each once.
    pub fn owners(&self, group: &AcquisitionGroup<'_>) -> Vec<AcquisitionOwner> {
        if self.subject == Domain::Allocations {
            return vec![group.owner];
        }
        let mut known = HashSet::new();
        self.of_group(group)
            .iter()
            .map(|row| self.table.owner(*row))
            .filter(|owner| known.insert(*owner))
            .map(|row| self.owner(group, row))
            .collect()
    }

    /// Returns what each process has of a group. There may be several with the same name and id, one after the other.
    pub fn shares(&self, group: &AcquisitionGroup<'_>) -> impl Iterator<Item = ProcessShare> {
        self.shares_and_rows(group).into_iter().map(|(share, _)| share)
    }

    /// Returns what each process has of a group, with its acquisitions, without those in heaps.
    pub fn shares_and_rows(
        &self,
        group: &AcquisitionGroup<'_>,
    ) -> Vec<(ProcessShare, Vec<AcquisitionIdx>)> {
        if self.is_of_one_moment {
            return vec![(self.share_at_end(group), self.of_group(group).to_vec())];
        }
        if let Some(heaps) = &group.heaps {
            return vec![(self.share_of_heaps(group, heaps), Vec::new())];
        }
        self.by_owner(group)
            .into_iter()
            .filter_map(|(owner, rows)| Some((self.share(owner, &rows)?, rows)))
            .collect()
    }

    /// Returns what one process has of a group; `None` if the table lacks the time of some of it.
    fn share(&self, (row, pid): AcquisitionOwner, rows: &[AcquisitionIdx]) -> Option<ProcessShare> {
        let mut acquired = AcquiredLifetimes::new(&self.table, rows)?;
        let sums = acquired.sums;
        let is_in_time = |row: &AcquisitionIdx| self.table.is_in_time(*row);
        if !rows.iter().all(is_in_time) {
            let rows: Vec<AcquisitionIdx> = rows.iter().copied().filter(is_in_time).collect();
            acquired = AcquiredLifetimes::new(&self.table, &rows)?;
        }
        let AcquiredLifetimes { sums: in_time, lifetimes, sizes } = acquired;
        let sizes = if self.subject == Domain::Handles { Vec::new() } else { sizes };
        let lifetimes = self.lifetimes_of(row, lifetimes);
        Some(ProcessShare { row, pid, sums, leaked: in_time.leaked(), lifetimes, sizes })
    }

    /// Returns what the process of a dump has open of a group.
    fn share_at_end(&self, group: &AcquisitionGroup<'_>) -> ProcessShare {
        let (rows, open) = (self.of_group(group), group.open_at_end);
        let lifetimes = rows.iter().filter_map(|row| self.table.program_time(*row)).collect();
        let counts = Counts { leaked: open, closed_at_exit: 0, opened: rows.len() as u64 };
        let sums = AcquiredSums { counts, ..AcquiredSums::default() };
        let (row, pid) = group.owner;
        let lifetimes = ProcessLifetimes { lifetimes, window: self.extent };
        ProcessShare { row, pid, sums, leaked: sums.leaked(), lifetimes, sizes: Vec::new() }
    }

    fn share_of_heaps(&self, group: &AcquisitionGroup<'_>, heaps: &CreatedHeaps) -> ProcessShare {
        let from_ns = self.extent.start_ns;
        let mut lifetimes = heaps.lifetimes.clone();
        lifetimes.retain(|lifetime| from_ns <= 0 || lifetime.opened_ns >= from_ns);
        let (row, pid) = group.owner;
        let lifetimes = self.lifetimes_of(row, lifetimes);
        let (sums, leaked) = (heaps.sums, Amount::default());
        ProcessShare { row, pid, sums, leaked, lifetimes, sizes: Vec::new() }
    }

    /// Returns the time range in which a process could acquire and release something, if the trace has a clock.
    pub fn window_of(&self, process: &ProcessInfo) -> Option<TimeWindow> {
        Some(self.window?.between(process.start_ns, process.end_ns))
    }

    /// Returns the lifetimes of what a process acquired, with the time range in which it could.
    fn lifetimes_of(&self, row: Option<ProcessIdx>, lifetimes: Vec<Lifetime>) -> ProcessLifetimes {
        let window = self.window_of(self.processes.known_or_invalid(row));
        ProcessLifetimes { lifetimes, window: window.unwrap_or(self.extent) }
    }

    /// Whether a group leaks anything that was acquired in the time for which the trace has all events.
    pub fn leaks_in_time(&self, group: &AcquisitionGroup<'_>) -> bool {
        let is_leak =
            |row: &AcquisitionIdx| self.table.is_in_time(*row) && self.table.is_unreleased(*row);
        group.leaks && (self.is_of_one_moment || self.of_group(group).iter().any(is_leak))
    }

    /// Returns the amounts of a group at two points of the trace and between them.
    pub fn between(
        &self,
        group: &AcquisitionGroup<'_>,
        span: PointSpan,
    ) -> Result<PointAmounts, Cancelled> {
        let mut poll = Poll::new(self.cancel);
        let mut between = PointAmounts::default();
        // Few allocations end in parts.
        let mut in_parts: BTreeMap<AcquisitionIdx, PointAmounts> = BTreeMap::new();
        for row in self.of_group(group).iter().copied() {
            poll.round()?;
            let Some(lifetime) = self.table.open_time(row) else { continue };
            let amount = Amount { count: 1, bytes: self.table.bytes(row) };
            let sum = match self.table.first_part(row) {
                None => &mut between,
                Some(first) => in_parts.entry(first).or_default(),
            };
            let is_kept = sum.add(span, lifetime, self.table.never_ends(row, lifetime), amount);
            if let Some(object) = self.table.object(row).filter(|_| is_kept) {
                sum.sample(u64::from(object.0) + 1);
            }
        }
        in_parts.values().for_each(|parts| between.add_once(parts));
        Ok(between)
    }

    /// Returns the rows of groups, including allocations in heaps that are never destroyed.
    pub fn rows(&self, groups: &[&AcquisitionGroup<'_>]) -> Vec<usize> {
        let mut rows: Vec<usize> =
            self.of_groups(groups).into_iter().map(AcquisitionIdx::row).collect();
        let left: HashSet<AllocatorIdx> = groups
            .iter()
            .filter_map(|group| group.heaps.as_ref())
            .flat_map(|heaps| &heaps.left)
            .copied()
            .collect();
        if !left.is_empty() {
            rows.extend(self.table.allocations().filter(|row| {
                self.table.allocator.get(*row).is_some_and(|heap| left.contains(&heap))
            }));
        }
        rows
    }

    /// Whether a group has any of some rows.
    pub fn has_any(&self, group: &AcquisitionGroup<'_>, rows: &SuspectRows) -> bool {
        self.rows(&[group]).into_iter().any(|row| rows.has(row))
    }

    /// Returns the program's function in a stack as text.
    pub fn function(&self, stack: StackIdx) -> Option<String> {
        Some(self.stacks.as_ref()?.function(self.frames?, stack))
    }

    /// Returns the display name of a group's processes; `None` if not even the id is known.
    pub fn shown_name(&self, group: &AcquisitionGroup<'_>) -> Option<String> {
        match (self.subject, group.owner) {
            (Domain::Handles, _) => Some(group.process.shown_name(self.is_plain).to_owned()),
            (Domain::Allocations, (None, None)) => None,
            (Domain::Allocations, _) => Some(group.process.name.clone()),
        }
    }

    /// Whether a process is requested.
    pub fn matches_process(&self, process: &ProcessInfo) -> bool {
        self.asked.matches(process, self.is_plain)
    }
}
