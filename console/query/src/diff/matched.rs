//! Groups of two traces, by what they have in common.

use std::collections::HashSet;

use handlescope_model::{ProcessIdx, StackIdx};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::builds::Builds;
use super::builds::UnknownCode;
use super::tally::{Sample, Share};
use crate::acquired::{Acquired, Group};
use crate::amounts::Amount;
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::growth::{Growth, ProcessLifetimes, Verdict, Window};
use crate::suspect_rows::SuspectRows;

/// A group that leaks in one of two traces, or in both.
pub struct MatchedGroup {
    /// Name of the processes, if it is known.
    pub process: Option<String>,
    /// Type of the objects, or kind of the allocations.
    pub type_name: String,
    /// The allocator, where it has the same name in every trace; of handles in dumps the pattern of their names.
    pub allocator: Option<String>,
    /// Whether bytes are compared, and not numbers.
    pub has_bytes: bool,
    /// The first frame outside of the system; of a module alone where its frames cannot be compared.
    pub function: Option<String>,
    /// The trace before and the one after.
    pub sides: [MatchedSide; 2],
    /// Whether it belongs to the requested suspect in either trace; always if none is requested.
    pub is_of_suspect: bool,
    /// The functions of a stack through unknown code, which may be those of other groups.
    pub around_unknown: Option<String>,
}

/// Where the handles of a group may be in the other trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Elsewhere<'m> {
    /// Handle tracing keeps only the last operations, so that groups of one type lose handles to the group without a stack,
    /// and get handles from it when tracing is switched on.
    Stack(bool),
    /// Code that was compiled just in time, and has no names, lies elsewhere in every process.
    AroundUnknown(&'m str),
}

/// Program, type, allocator and the groups that may share handles.
type Related<'m> = (Option<&'m str>, &'m str, Option<&'m str>, Elsewhere<'m>);

/// Numbers of handles that groups lost from one trace to the next, and that may be in other groups.
#[derive(Default)]
pub struct Decreases<'m>(HashMap<Related<'m>, u64>);

impl<'m> Decreases<'m> {
    /// Decreases of groups; `is_of_dumps` where stacks may be forgotten.
    pub fn of(groups: &'m [MatchedGroup], is_of_dumps: bool) -> Self {
        let mut decreases: HashMap<Related<'m>, u64> = HashMap::new();
        for group in groups {
            let [before, after] = group.sides.each_ref().map(|side| side.leaked.count);
            let traced = is_of_dumps.then(|| group.traced(group.has_stack()));
            for related in traced.into_iter().chain(group.around_unknown()) {
                *decreases.entry(related).or_default() += before.saturating_sub(after);
            }
        }
        Self(decreases)
    }

    /// Number of handles that may have come to a group because their stacks were forgotten, or became known, or lead through
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

    fn traced(&self, has_stack: bool) -> Related<'_> {
        (self.process.as_deref(), &self.type_name, None, Elsewhere::Stack(has_stack))
    }

    fn around_unknown(&self) -> Option<Related<'_>> {
        let around = Elsewhere::AroundUnknown(self.around_unknown.as_deref()?);
        Some((self.process.as_deref(), &self.type_name, self.allocator.as_deref(), around))
    }

    /// Size of the largest allocation of the group, which lost events may hide.
    pub fn largest(&self) -> f64 {
        let shares = self.sides.iter().flat_map(|side| &side.sample.shares);
        shares.flat_map(|share| &share.sizes).max().map_or(1.0, |size| *size as f64)
    }
}

/// Part of a group in one of the traces.
#[derive(Default)]
pub struct MatchedSide {
    pub leaked: Amount,
    pub create_stack: Option<StackIdx>,
    /// Growth of the group; `None` where nothing leaks.
    pub verdict: Option<Verdict>,
    pub sample: Sample,
    /// Point from which the trace covers the lives of its processes.
    pub start: Start,
}

/// Point from which a trace covers the life of a process, and so what it fills once, ordered by how much of it is
/// covered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// Later than the start of the session, as in a ring.
    #[default]
    Later,
    /// Start of the session.
    Session,
    /// Start of the process.
    Process,
}

/// Key that groups of one program share: its name in lower case, type, allocator.
type Key = (String, String, Option<String>);

/// The groups of two traces.
struct Matching<'t> {
    traces: &'t [Acquired<'t>],
    /// Rows of the requested suspect in each trace, if one is requested.
    suspects: &'t [Option<&'t SuspectRows>],
    builds: Builds,
    unknown_code: UnknownCode,
    groups: Vec<MatchedGroup>,
    /// Index of a group, by its key and the text of its stack.
    by_key: HashMap<(Key, String), usize>,
}

/// Groups that leak in either of the traces, and the modules whose frames cannot be compared.
pub fn matched(
    traces: &[Acquired<'_>],
    suspects: &[Option<&SuspectRows>],
    unknown_code: UnknownCode,
) -> Result<(Vec<MatchedGroup>, Vec<String>), QueryError> {
    let builds = builds(traces);
    let (groups, by_key) = (Vec::new(), HashMap::new());
    let mut matching = Matching { traces, suspects, builds, unknown_code, groups, by_key };
    for side in 0..traces.len() {
        matching.add(side, true)?;
    }
    // A group that leaks in one trace only is compared with its match in the other, which does not leak.
    for side in 0..traces.len() {
        matching.add(side, false)?;
    }
    Ok((matching.groups, matching.builds.into_names()))
}

/// Compares the modules in the stacks of what leaks.
fn builds(traces: &[Acquired<'_>]) -> Builds {
    let stacks = |trace: &Acquired<'_>| -> Vec<StackIdx> {
        let leaking = trace.groups.iter().filter(|group| trace.leaks_in_time(group));
        leaking.filter_map(|group| group.create_stack).collect()
    };
    let [before, after] = traces else { return Builds::default() };
    match (before.frames, after.frames) {
        (Some(old), Some(new)) => Builds::compare([(old, &stacks(before)), (new, &stacks(after))]),
        _ => Builds::default(),
    }
}

impl Matching<'_> {
    /// Adds the groups of a trace that leak, or the others, if they match some of those.
    fn add(&mut self, side: usize, leaks: bool) -> Result<(), QueryError> {
        let traces = self.traces;
        let (trace, suspect) = (&traces[side], self.suspects[side]);
        let programs = Programs::of(trace);
        let known_keys: HashSet<Key> = self.by_key.keys().map(|(key, _)| key.clone()).collect();
        let mut shares_by_group: HashMap<usize, ProgramShares> = HashMap::new();
        for group in trace.groups.iter().filter(|group| trace.leaks_in_time(group) == leaks) {
            trace.cancel.check()?;
            let program = group.process.known_name().unwrap_or_default().to_lowercase();
            let allocator = group.lasting_allocator().map(str::to_owned);
            let key = (program, group.type_name.to_owned(), allocator);
            if !leaks && !known_keys.contains(&key) {
                continue;
            }
            let Some(index) = self.index((side, trace), group, &key, leaks) else { continue };
            let shares = shares_by_group
                .entry(index)
                .or_insert_with(|| ProgramShares { program: key.0, by_process: HashMap::new() });
            let matched = &mut self.groups[index].sides[side];
            for share in trace.shares(group) {
                matched.leaked.add(share.leaked);
                let sizes = if group.has_bytes { share.sizes } else { Vec::new() };
                let of_process = Share { process: share.lifetimes, sizes };
                match shares.by_process.entry(share.row) {
                    Entry::Vacant(entry) => drop(entry.insert(of_process)),
                    Entry::Occupied(mut entry) => entry.get_mut().add(of_process),
                }
            }
            matched.create_stack = matched.create_stack.or(group.create_stack.filter(|_| leaks));
            self.groups[index].is_of_suspect |=
                suspect.is_none_or(|rows| leaks && trace.has_any(group, rows));
        }
        for (index, ProgramShares { program, by_process }) in shares_by_group {
            trace.cancel.check()?;
            let matched = &mut self.groups[index].sides[side];
            let (windows, start) = programs.of_name(&program);
            let (processes, sizes): (Vec<ProcessLifetimes>, Vec<Vec<u64>>) =
                by_process.into_values().map(|share| (share.process, share.sizes)).unzip();
            if leaks {
                matched.verdict = Some(match trace.is_of_one_moment {
                    true => Verdict::Short,
                    false => Growth::of_processes(&processes, trace.extent).verdict,
                });
            }
            let shares = processes.into_iter().zip(sizes);
            matched.sample.shares.extend(shares.map(|(process, sizes)| Share { process, sizes }));
            matched.sample.windows = windows;
            matched.start = start;
        }
        // The program ran in the trace, even where the group has nothing there.
        let absent =
            self.groups.iter_mut().filter(|group| group.sides[side].sample.windows.is_empty());
        for group in absent {
            let program = group.process.as_deref().unwrap_or_default().to_lowercase();
            let (windows, start) = programs.of_name(&program);
            group.sides[side].sample.windows = windows;
            group.sides[side].start = start;
        }
        Ok(())
    }

    /// Index of the matching group, which is added if there is none and `may_add`.
    fn index(
        &mut self,
        (side, trace): (usize, &Acquired<'_>),
        group: &Group<'_>,
        key: &Key,
        may_add: bool,
    ) -> Option<usize> {
        let frames = trace.frames.map(Frames::named);
        let stack = frames.as_ref().zip(group.create_stack);
        let text = stack.map(|(named, stack)| self.builds.text(named, stack)).unwrap_or_default();
        let has_unknown = !text.addresses.is_empty();
        let mut whole = text.names.clone();
        if has_unknown {
            let owner = trace.owners(group).first().and_then(|(row, _)| *row);
            let knows_modules = trace.frames.is_some_and(|it| it.knows_modules(owner));
            let life = self.unknown_code.life(side, &group.process, knows_modules);
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
            process: trace.shown_name(group),
            type_name: group.type_name.to_owned(),
            allocator: group.lasting_allocator().map(str::to_owned),
            has_bytes: group.has_bytes,
            function: module.or_else(|| trace.function(group.create_stack?)),
            sides: Default::default(),
            is_of_suspect: false,
            around_unknown: has_unknown.then_some(text.names),
        });
        Some(index)
    }
}

/// Shares of the processes of one program in a group of one trace.
struct ProgramShares {
    /// Name of the program in lower case.
    program: String,
    by_process: HashMap<Option<ProcessIdx>, Share>,
}

/// Times at which the processes of each name ran in a trace.
struct Programs {
    extent: Window,
    start: Start,
    by_name: HashMap<String, (Vec<Window>, Start)>,
}

impl Programs {
    fn of(trace: &Acquired<'_>) -> Self {
        let extent = trace.extent;
        let start = if extent.start_ns > 0 { Start::Later } else { Start::Session };
        let mut by_name: HashMap<String, (Vec<Window>, Start)> = HashMap::new();
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

    /// Windows of the processes of one name; where it did not run, it could have all the time.
    fn of_name(&self, name: &str) -> (Vec<Window>, Start) {
        let runs = self
            .by_name
            .get(name)
            .filter(|(windows, _)| windows.iter().any(|window| window.length_ns() > 0));
        runs.cloned().unwrap_or_else(|| (vec![self.extent], self.start))
    }
}
