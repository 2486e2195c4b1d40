//! Groups of two traces, matched by what they have in common.

use std::collections::HashSet;

use handlescope_model::tables::TraceInfo;
use handlescope_model::{ProcessIdx, StackIdx};
use hashbrown::HashMap;

use super::builds::{Builds, life};
use super::compared::{minutes, per_minute};
use super::group::GroupSite;
use super::outcome::{SideLeaks, Start};
use super::tally::GroupSample;
use crate::acquired::{AcquisitionGroup, AcquisitionGroups};
use crate::amounts::Amount;
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::growth::{Growth, TimeWindow, Verdict};
use crate::suspect_rows::SuspectRows;

/// A group that leaks in one of two traces, or in both.
pub struct MatchedGroup {
    /// What it acquired, without its stack. The function is only a module if the frames cannot be compared.
    pub site: GroupSite,
    /// Whether bytes are compared rather than counts.
    pub has_bytes: bool,
    /// The trace before and the trace after.
    pub sides: [MatchedSide; 2],
    /// Whether it belongs to the requested suspect in either trace; always true if none is requested.
    pub is_of_suspect: bool,
    /// The known functions of a stack with unknown code; other groups may have the same ones.
    pub around_unknown: Option<String>,
}

/// Where handles of a group may be found in the other trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OtherTracePlace<'m> {
    /// Handle tracing keeps only the last operations, so groups lose handles to the group of the same type without a
    /// stack. They gain handles from it when tracing is switched on.
    Stack(bool),
    /// Code compiled just in time without names has a different address in every process.
    AroundUnknown(&'m str),
}

/// Program, type, allocator and where related groups may have the handles.
type RelatedKey<'m> = (Option<&'m str>, &'m str, Option<&'m str>, OtherTracePlace<'m>);

/// How many handles groups lost from one trace to the next, which other groups may have gained.
#[derive(Default)]
pub struct Decreases<'m>(HashMap<RelatedKey<'m>, u64>);

impl<'m> Decreases<'m> {
    /// Sums the decreases of groups; `is_of_dumps` if stacks may be forgotten.
    pub fn new(groups: &'m [MatchedGroup], is_of_dumps: bool) -> Self {
        let mut decreases: HashMap<RelatedKey<'m>, u64> = HashMap::new();
        for group in groups {
            let [before, after] = group.sides.each_ref().map(|side| side.leaked.count);
            let traced = is_of_dumps.then(|| group.traced(group.has_stack()));
            for related in traced.into_iter().chain(group.around_unknown()) {
                *decreases.entry(related).or_default() += before.saturating_sub(after);
            }
        }
        Self(decreases)
    }

    /// Returns how many handles may have moved to a group because their stacks were forgotten, became known, or contain
    /// unknown code.
    pub fn to(&self, group: &'m MatchedGroup) -> u64 {
        let related = [Some(group.traced(!group.has_stack())), group.around_unknown()];
        related.into_iter().flatten().filter_map(|related| self.0.get(&related)).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.values().all(|count| *count == 0)
    }
}

impl MatchedGroup {
    fn has_stack(&self) -> bool {
        self.sides.iter().any(|side| side.create_stack.is_some())
    }

    fn traced(&self, has_stack: bool) -> RelatedKey<'_> {
        let GroupSite { program, type_name, .. } = &self.site;
        (program.as_deref(), type_name, None, OtherTracePlace::Stack(has_stack))
    }

    fn around_unknown(&self) -> Option<RelatedKey<'_>> {
        let around = OtherTracePlace::AroundUnknown(self.around_unknown.as_deref()?);
        let GroupSite { program, type_name, allocator, .. } = &self.site;
        Some((program.as_deref(), type_name, allocator.as_deref(), around))
    }

    /// Returns the size of the group's largest allocation, which lost events may hide.
    pub fn largest(&self) -> f64 {
        self.sides
            .iter()
            .flat_map(|side| side.sample.sizes.iter().flatten())
            .max()
            .map_or(1.0, |size| *size as f64)
    }
}

/// One trace's part of a group.
#[derive(Default)]
pub struct MatchedSide {
    pub leaked: Amount,
    pub create_stack: Option<StackIdx>,
    /// How the group grows; `None` if nothing leaks.
    pub verdict: Option<Verdict>,
    pub sample: GroupSample,
    /// From when on the trace covers the lives of its processes.
    pub start: Start,
    /// Whether the trace has processes of the program.
    pub has_run: bool,
}

impl MatchedSide {
    pub fn leaks(&self, has_lengths: bool) -> SideLeaks {
        let minutes = minutes(self.sample.length_ns(), has_lengths);
        let per_minute = per_minute(self.leaked.count, minutes);
        SideLeaks { leaked: self.leaked, per_minute, verdict: self.verdict }
    }
}

/// The key that groups of one program share: program name in lower case, type, allocator.
type SharedGroupKey = (String, String, Option<String>);

/// The groups of two traces while they are matched.
struct Matching<'t> {
    traces: [&'t AcquisitionGroups<'t>; 2],
    /// Rows of the requested suspect in each trace, if one is requested.
    suspects: &'t [Option<SuspectRows>],
    infos: [&'t TraceInfo; 2],
    builds: Builds,
    groups: Vec<MatchedGroup>,
    /// Index of a group by its key and stack text.
    by_key: HashMap<(SharedGroupKey, String), usize>,
}

/// Returns the groups that leak in either trace, and the modules with frames that cannot be compared.
pub fn matched(
    traces: [&AcquisitionGroups<'_>; 2],
    suspects: &[Option<SuspectRows>],
    infos: [&TraceInfo; 2],
) -> Result<(Vec<MatchedGroup>, Vec<String>), QueryError> {
    let (builds, groups, by_key) = (Builds::new(traces), Vec::new(), HashMap::new());
    let mut matching = Matching { traces, suspects, infos, builds, groups, by_key };
    // A group that leaks in only one trace is compared with its match in the other.
    for (leaks, side) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        matching.add(side, leaks)?;
    }
    Ok((matching.groups, matching.builds.into_names()))
}

impl Matching<'_> {
    /// Adds the groups of a trace that leak, or else those that do not but match some already added.
    fn add(&mut self, side: usize, leaks: bool) -> Result<(), QueryError> {
        let (trace, suspect) = (self.traces[side], self.suspects[side].as_ref());
        let programs = ProgramRuns::new(trace);
        let known_keys: HashSet<SharedGroupKey> =
            self.by_key.keys().map(|(key, _)| key.clone()).collect();
        // The place of each process among those of a group, and the first place of a group with the name of its program.
        let mut places: HashMap<(usize, Option<ProcessIdx>), usize> = HashMap::new();
        let mut first_places: HashMap<usize, (usize, String)> = HashMap::new();
        for group in trace.groups.iter().filter(|group| trace.leaks_in_time(group) == leaks) {
            trace.cancel.check()?;
            let program = group.process.known_name().unwrap_or_default().to_lowercase();
            let allocator = group.lasting_allocator().map(str::to_owned);
            let key = (program, group.type_name.to_owned(), allocator);
            if !leaks && !known_keys.contains(&key) {
                continue;
            }
            let Some(index) = self.index((side, trace), group, &key, leaks) else { continue };
            let matched = &mut self.groups[index].sides[side];
            first_places.entry(index).or_insert((matched.sample.processes.len(), key.0));
            for share in trace.shares(group) {
                matched.leaked.add(share.leaked);
                let sizes = if group.has_bytes() { share.sizes } else { Vec::new() };
                let next = matched.sample.processes.len();
                let place = *places.entry((index, share.row)).or_insert(next);
                matched.sample.add(place, share.lifetimes, sizes);
            }
            matched.create_stack = matched.create_stack.or(group.create_stack.filter(|_| leaks));
            self.groups[index].is_of_suspect |=
                suspect.is_none_or(|rows| leaks && trace.has_any(group, rows));
        }
        for (index, (first, program)) in first_places {
            trace.cancel.check()?;
            let matched = &mut self.groups[index].sides[side];
            let processes = matched.sample.processes.get(first..).unwrap_or_default();
            if leaks {
                matched.verdict = Some(if trace.is_of_one_moment {
                    Verdict::Short
                } else {
                    Growth::from_processes(processes, trace.extent).verdict
                });
            }
            (matched.sample.windows, matched.start) = programs.of_name(&program);
            matched.has_run = true;
        }
        // The program may have run in the trace even if the group has nothing there.
        let absent =
            self.groups.iter_mut().filter(|group| group.sides[side].sample.windows.is_empty());
        for group in absent {
            let program = group.site.program.as_deref().unwrap_or_default().to_lowercase();
            let matched = &mut group.sides[side];
            (matched.sample.windows, matched.start) = programs.of_name(&program);
            matched.has_run = programs.by_name.contains_key(&program);
        }
        Ok(())
    }

    /// Returns the index of the matching group; adds the group if there is none and `may_add` is true.
    fn index(
        &mut self,
        (side, trace): (usize, &AcquisitionGroups<'_>),
        group: &AcquisitionGroup<'_>,
        key: &SharedGroupKey,
        may_add: bool,
    ) -> Option<usize> {
        let frames = trace.frames.map(Frames::named);
        let stack = frames.as_ref().zip(group.create_stack);
        let text = stack.map(|(named, stack)| self.builds.text(named, stack)).unwrap_or_default();
        let has_unknown = !text.addresses.is_empty();
        let mut whole = text.names.clone();
        if has_unknown {
            let owner = trace.owners(group).first().and_then(|(row, _)| *row);
            let knows_modules = trace.frames.is_some_and(|it| it.owner_of_code(owner).is_some());
            let life = life(self.infos, side, &group.process, knows_modules);
            whole.push_str(&format!("{:X?} of {life}", text.addresses));
        }
        let key = (key.clone(), whole);
        if let Some(index) = self.by_key.get(&key) {
            return Some(*index);
        }
        if !may_add {
            return None;
        }
        let index = self.groups.len();
        self.by_key.insert(key, index);
        let module = stack.and_then(|(named, stack)| {
            Some(self.builds.module(&named.representative(stack)?)?.to_owned())
        });
        self.groups.push(MatchedGroup {
            site: GroupSite {
                program: trace.shown_name(group),
                type_name: group.type_name.to_owned(),
                allocator: group.lasting_allocator().map(str::to_owned),
                function: module.or_else(|| trace.function(group.create_stack?)),
                ..GroupSite::default()
            },
            has_bytes: group.has_bytes(),
            sides: Default::default(),
            is_of_suspect: false,
            around_unknown: has_unknown.then_some(text.names),
        });
        Some(index)
    }
}

/// When the processes of each name ran in a trace.
struct ProgramRuns {
    extent: TimeWindow,
    start: Start,
    by_name: HashMap<String, (Vec<TimeWindow>, Start)>,
}

impl ProgramRuns {
    fn new(trace: &AcquisitionGroups<'_>) -> Self {
        let extent = trace.extent;
        let start = if extent.start_ns > 0 { Start::Later } else { Start::Session };
        let mut by_name: HashMap<String, (Vec<TimeWindow>, Start)> = HashMap::new();
        for process in trace.processes.rows() {
            let Some(window) = trace.window_of(process) else { continue };
            if window.end_ns < window.start_ns {
                continue;
            }
            let name = process.known_name().unwrap_or_default().to_lowercase();
            let (windows, covered_from) = by_name.entry(name).or_insert((Vec::new(), start));
            windows.push(window);
            if process.start_ns.is_some_and(|started| started >= extent.start_ns) {
                *covered_from = Start::Process;
            }
        }
        Self { extent, start, by_name }
    }

    /// Returns the windows of processes with a name. A program that did not run could have run all the time.
    fn of_name(&self, name: &str) -> (Vec<TimeWindow>, Start) {
        let runs = self
            .by_name
            .get(name)
            .filter(|(windows, _)| windows.iter().any(|window| window.length_ns() > 0));
        runs.cloned().unwrap_or_else(|| (vec![self.extent], self.start))
    }
}
