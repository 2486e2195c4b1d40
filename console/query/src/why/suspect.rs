//! Suspects: groups that leak.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use handlescope_model::tables::ResourceKind;
use handlescope_model::{AcquisitionIdx, FILE_MAPPING_NAME, ProcessIdx, StackIdx};

use super::causes::{Diagnosis, GroupFindings, RACE};
use super::names::LeakedNames;
use super::score;
use crate::acquired::{
    AcquiredSums, AcquisitionGroups, AllocationEnds, PRIVATE_HEAP, ProcessShare, ProgramGroup,
    SharedFunction, kind_of,
};
use crate::amounts::{ByteAmounts, Counts};
use crate::answer::Domain;
use crate::growth::{
    Growth, GrowthWords, ProcessLifetimes, TimeParts, TimeWindow, Verdict, outstanding,
};
use crate::requests::RequestStarts;
use crate::tables::ProcessList;
use handlescope_session::settings::IgnoreEntry;
use handlescope_session::values::{Length, SuspectId};

/// Weight of blocks that only grew in the score; the same as that of a burst.
const GROWN_WEIGHT: f64 = 0.5;

/// A group of handles, or of allocations of one kind, that leaks.
#[derive(Debug, Clone)]
pub struct Suspect {
    /// The id by which it can be chosen again, the same in every run.
    pub id: SuspectId,
    /// Place among the suspects of its trace, from 1.
    pub rank: usize,
    /// The owner as `name.exe(pid)`, or the program if there are several owners.
    pub process: String,
    /// Process id of the owner, if there is one owner and its id is known.
    pub pid: Option<u32>,
    /// Start of the owner, nanoseconds since session start; `None` if it started before the trace or there are several.
    pub process_start_ns: Option<i64>,
    /// Owners that leaked something, worst first.
    pub processes: Vec<SuspectProcess>,
    /// Type of the objects, or kind of the allocations.
    pub type_name: String,
    /// Name of the allocator if it says more than the kind, such as `CreatePen`, the type of a GDI handle.
    pub allocator: Option<String>,
    /// The stack that opened or allocated them; one of several equal ones.
    pub create_stack: Option<StackIdx>,
    /// Number of different stacks shown as this one because their functions are equal; `None` for allocations.
    pub create_stacks: Option<usize>,
    /// One stack of each set of equal ones; there are several if they share a function.
    pub equal_stacks: Vec<Option<StackIdx>>,
    /// The function its stacks begin with, if several of them do.
    pub function_of_stacks: Option<SharedFunction>,
    pub counts: Counts,
    /// The bytes of allocations; `None` for handles.
    pub bytes: Option<ByteAmounts>,
    pub growth: Growth,
    /// Number not yet released by the program at the end of each of [`PARTS`](Self::PARTS) equal parts of the trace;
    /// empty without a clock.
    pub open_over_time: Vec<u32>,
    /// The time range of the trace, if it has a clock.
    pub trace: Option<TimeWindow>,
    /// Word for how those that are not leaked end, such as "closed".
    pub ended: String,
    /// Causes of the leak, as far as the events show.
    pub diagnoses: Vec<Diagnosis>,
    /// Names of the objects with leaked handles; empty for allocations.
    pub names: LeakedNames,
    /// The representative frame of the create stack, as stack filters see it.
    pub function: Option<String>,
    /// A process filter that keeps its processes but no others of their program, if only some were asked for.
    pub filter: Option<String>,
    /// Score it was ranked by: kept handles, or kept bytes for allocations, weighted.
    pub score: f64,
    /// The known leak it matches, if any.
    pub ignored: Option<Arc<IgnoreEntry>>,
}

/// A process that leaked part of a suspect.
#[derive(Debug, Clone)]
pub struct SuspectProcess {
    /// `name.exe(pid)`.
    pub process: String,
    /// Row in the table of processes, if known.
    pub row: Option<ProcessIdx>,
    /// Process id, if known.
    pub pid: Option<u32>,
    /// Start of the process, nanoseconds since session start; `None` if it started before the trace.
    pub start_ns: Option<i64>,
    pub counts: Counts,
}

/// What the processes of a program acquired in a group, for finding the causes of its leaks.
pub struct LeakingGroup {
    /// Handles of one object are adjacent.
    pub rows: Vec<AcquisitionIdx>,
    /// Those that the program did not release.
    pub leaked: Vec<AcquisitionIdx>,
    /// Counts of all, in which an allocation that ended in parts counts once.
    pub counts: Counts,
    /// How the allocations that are not leaked ended.
    pub ends: AllocationEnds,
    /// Whether leaked ones are older than the ends of the others explain.
    pub is_beyond_chance: bool,
}

impl LeakingGroup {
    fn new(
        acquired: &AcquisitionGroups<'_>,
        group: &ProgramGroup<'_>,
        AcquiredSums { counts, ends, .. }: AcquiredSums,
        is_beyond_chance: bool,
    ) -> Self {
        let mut rows = acquired.of_groups(&group.groups);
        if acquired.subject == Domain::Handles && group.shared_function().is_some() {
            rows.sort_by_key(|handle| (acquired.table.object(*handle), *handle));
        }
        let is_leaked = |row: &AcquisitionIdx| acquired.table.is_unreleased(*row);
        let leaked = rows.iter().copied().filter(is_leaked).collect();
        Self { rows, leaked, counts, ends, is_beyond_chance }
    }
}

impl SuspectProcess {
    fn new(share: &ProcessShare, processes: &ProcessList, is_plain: bool) -> Self {
        let process = processes.owner(share.row, share.pid);
        Self {
            process: process.shown_label(is_plain),
            row: share.row,
            pid: share.pid,
            start_ns: process.start_ns,
            counts: share.sums.counts,
        }
    }

    /// Returns the processes that leaked something, worst first.
    fn ranked(mut processes: Vec<Self>) -> Vec<Self> {
        processes.retain(|process| process.counts.unreleased() > 0);
        processes.sort_by_key(|process| Reverse(process.counts.unreleased()));
        processes
    }
}

impl Suspect {
    /// Number of parts the time of a trace is split into.
    pub const PARTS: usize = 48;

    /// Judges a group of a program.
    ///
    /// # Errors
    /// If it is no suspect, with the reason.
    pub fn new(
        acquired: &AcquisitionGroups<'_>,
        group: &ProgramGroup<'_>,
        findings: impl Fn(&ProgramGroup<'_>, &LeakingGroup) -> Option<GroupFindings>,
    ) -> Result<Self, NoSuspect> {
        let shares = group.groups.iter().flat_map(|group| acquired.shares(group));
        let shares = ProcessShare::from_each_process(shares);
        let mut sums = AcquiredSums::default();
        shares.iter().for_each(|share| sums.add(&share.sums));
        let AcquiredSums { counts, bytes, .. } = sums;
        let is_plain = acquired.is_plain;
        let process = |share| SuspectProcess::new(share, acquired.processes, is_plain);
        let processes: Vec<SuspectProcess> = shares.iter().map(process).collect();
        let lifetimes: Vec<ProcessLifetimes> =
            shares.into_iter().map(|share| share.lifetimes).collect();
        let all = lifetimes.iter().flat_map(|process| &process.lifetimes);
        let growth = match acquired.window {
            Some(trace) => Growth::from_processes(&lifetimes, trace),
            None => Growth::without_clock(all.clone()),
        };
        let open_over_time = acquired.window.map(|trace| outstanding(all, trace, Self::PARTS));
        let is_old = growth.evidence.kept > 0 || growth.evidence.outlived.count > 0;
        let is_beyond_chance = acquired.window.is_some() && is_old;
        let leaking = LeakingGroup::new(acquired, group, sums, is_beyond_chance);
        let no_suspect = NoSuspect::new(&growth, group, counts);
        let findings = findings(group, &leaking).ok_or(no_suspect)?;
        let GroupFindings { diagnoses, names, create_stacks, grown, ended } = findings;
        let races = diagnoses.iter().find(|diagnosis| diagnosis.cause == RACE);
        // For allocations with bytes, the score counts the mean bytes of each.
        let mean_size = (bytes.unreleased as f64 / counts.unreleased().max(1) as f64).max(1.0);
        let score = score::of(&growth, races.map_or(0, |races| races.count));
        // A block that grows leaks like many blocks.
        let grown_score = grown.map(|(bytes, _)| GROWN_WEIGHT * bytes as f64);
        let score = score
            .map(|score| score * mean_size)
            .into_iter()
            .chain(grown_score)
            .reduce(f64::max)
            .ok_or(no_suspect)?;
        let rate = growth.steady_rate().filter(|_| bytes.unreleased > 0);
        let per_minute = rate
            .map(|rate| rate.per_minute * mean_size)
            .or(grown.map(|(_, per_minute)| per_minute));
        let ProgramGroup { groups, owners, function } = group;
        let (first, first_process) = groups.first().zip(processes.first()).ok_or(no_suspect)?;
        Ok(Self {
            id: group.id(acquired),
            rank: 0,
            process: owners
                .program(acquired.processes, is_plain)
                .unwrap_or_else(|| first_process.process.clone()),
            pid: owners.pid,
            process_start_ns: owners.sole().and(first_process.start_ns),
            type_name: first.type_name.to_owned(),
            allocator: first.descriptive_allocator().map(str::to_owned),
            create_stack: first.create_stack,
            equal_stacks: groups
                .iter()
                .map(|group| group.create_stack)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            function_of_stacks: function.clone(),
            counts,
            bytes: (acquired.subject == Domain::Allocations)
                .then_some(ByteAmounts { per_minute, ..bytes }),
            growth,
            open_over_time: open_over_time.unwrap_or_default(),
            trace: acquired.window,
            ended,
            diagnoses,
            names,
            create_stacks,
            function: first.create_stack.and_then(|stack| acquired.function(stack)),
            filter: owners.filter.clone(),
            score,
            ignored: None,
            processes: SuspectProcess::ranked(processes),
        })
    }

    /// Returns how many functions of the program all its stacks begin with; `None` if it has one stack.
    pub fn functions_of_all_stacks(&self) -> Option<usize> {
        let function = self.function_of_stacks.as_ref().filter(|it| !it.callers.is_empty());
        function.map(|function| function.path.len())
    }

    /// Returns `handle`, `view`, or the kind of the allocations.
    pub fn kind(&self) -> &str {
        let is_handle = self.bytes.is_none();
        kind_of(if is_handle { Domain::Handles } else { Domain::Allocations }, &self.type_name)
    }

    /// Returns the program its owner runs.
    pub fn program(&self) -> &str {
        let pid = self.pid.map(|pid| format!("({pid})"));
        let name = pid.and_then(|pid| self.process.strip_suffix(&pid));
        name.unwrap_or(&self.process)
    }

    /// Returns the part of the trace in which a steady leak or burst began, with a text; `None` if it began with the
    /// trace.
    pub fn change_point(&self) -> Option<(usize, String)> {
        let (evidence, trace) = (&self.growth.evidence, self.trace?);
        let first_ns = evidence.first_ns?;
        let what = match self.growth.verdict {
            Verdict::Steady => "leaks since",
            Verdict::Burst => "burst at",
            Verdict::Once | Verdict::Balanced | Verdict::Short => return None,
        };
        let part = TimeParts::new(trace, Self::PARTS).part_of(first_ns);
        let since_ns = first_ns.saturating_sub(trace.start_ns);
        let is_later = part > 0 && part < Self::PARTS;
        is_later.then(|| (part, format!("{what} {} into the trace", Length(since_ns))))
    }

    /// Returns the rate of a steady leak per minute.
    pub fn rate_per_minute(&self) -> Option<f64> {
        self.growth.steady_rate().map(|rate| rate.per_minute)
    }

    /// Returns how many leak per request of its processes, if it leaks steadily and requests are known.
    pub fn rate_per_request(&self) -> Option<f64> {
        let rate = self.growth.evidence.per_request();
        rate.filter(|_| self.growth.verdict == Verdict::Steady)
    }

    /// Counts the requests its processes began while it leaked.
    pub fn count_requests(&mut self, requests: &RequestStarts) {
        let evidence = &mut self.growth.evidence;
        let Some((first, last)) = evidence.first_ns.zip(evidence.last_ns) else { return };
        let rows = self.processes.iter().filter_map(|process| process.row);
        evidence.requests = rows.map(|row| requests.between(row, first, last)).sum();
    }

    /// Returns the evidence for the verdict, as a sentence without a full stop.
    pub fn evidence(&self) -> String {
        let total = match self.bytes {
            // This includes allocations made before the trace, if that is all there is; they have no lifetimes.
            Some(_) => self.counts.opened,
            None => self.growth.evidence.opened as u64,
        };
        let words =
            GrowthWords { closed: &self.ended, leaked: self.unreleased(), opened: self.opened() };
        self.growth.evidence.sentence(self.growth.verdict, words, total)
    }

    /// Returns the predicate for all that the program did not close or free. What process exit released is not
    /// *leaked*.
    pub fn unreleased(&self) -> &'static str {
        match (self.counts.closed_at_exit, self.bytes) {
            (0, _) => "leaked",
            (_, None) if self.type_name == FILE_MAPPING_NAME => "not unmapped by the program",
            (_, None) => "not closed by the program",
            (_, Some(_)) => "not freed by the program",
        }
    }

    /// Returns the predicate for how the program got them.
    fn opened(&self) -> &'static str {
        match (self.bytes, self.type_name.as_str()) {
            (None, FILE_MAPPING_NAME) => "mapped",
            (None, _) => "opened",
            (_, PRIVATE_HEAP) => "created",
            _ => "allocated",
        }
    }
}

/// The reason why a group is no suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoSuspectReason {
    /// None is older than one that was closed.
    Young,
    /// Some are older, but that may be chance.
    Chance,
    /// Lifetimes are too long compared with the trace.
    LongLived,
    /// The commits of the group are a suspect.
    Committed,
}

/// Counts of a group that is no suspect.
#[derive(Debug, Clone, Copy)]
pub struct NoSuspect {
    pub reason: NoSuspectReason,
    /// The kind of allocations; `None` for handles, for heaps themselves and for kinds from a newer layout.
    pub kind: Option<ResourceKind>,
    pub counts: Counts,
    /// Number of those leaked that are older than any closed one of the group became.
    pub older: u64,
}

impl NoSuspect {
    fn new(growth: &Growth, group: &ProgramGroup<'_>, counts: Counts) -> Self {
        let older = growth.evidence.outlived.older as u64;
        let reason = match (growth.verdict, older) {
            (Verdict::Balanced, 0) => NoSuspectReason::Young,
            (Verdict::Balanced, _) => NoSuspectReason::Chance,
            _ => NoSuspectReason::LongLived,
        };
        let blocks = group.groups.first().filter(|group| group.heaps.is_none());
        Self { reason, kind: blocks.and_then(|group| group.kind), counts, older }
    }
}
