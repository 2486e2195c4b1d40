//! Two builds: what the second leaks more or less of than the first, over all traces in which their programs ran.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::caveats::FleetCaveat;
use super::choice::{FleetCriteria, RowTest};
use super::no_match::no_match;
use super::traces::Fleet;
use crate::FleetError;
use handlescope_query::{Sampled, SampledState, State, TraceLeaks, Verdict, compare_samples};
use handlescope_session::cancel::Cancel;
use handlescope_session::values::listed;

/// Bytes that do not matter.
const MIN_BYTES: f64 = 65_536.0;

/// Builds that an error names.
const MAX_BUILDS: usize = 8;

const SECONDS_PER_MINUTE: f64 = 60.0;

/// Comparison of two builds.
pub struct BuildsDiff {
    pub builds: [String; 2],
    /// Traces and machines that ran each of them.
    pub traces: [usize; 2],
    pub machines: [usize; 2],
    /// Groups that leak in either build: first those that got worse, then new ones.
    pub groups: Vec<ComparedStack>,
    pub caveats: Vec<FleetCaveat>,
}

/// Process, kind, type, allocator and stack of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    process: String,
    kind: String,
    type_name: String,
    allocator: Option<String>,
    stack: Option<String>,
}

/// Comparison of handles or allocations of one program, type and stack.
#[derive(Debug, Clone)]
pub struct ComparedStack {
    pub process: String,
    pub kind: String,
    pub type_name: String,
    pub allocator: Option<String>,
    pub stack: Option<String>,
    pub function: Option<String>,
    pub stack_text: Option<String>,
    /// Build before, and build after.
    pub sides: [BuildSide; 2],
    pub state: State,
    pub got_worse: bool,
    /// Whether the traces without losses alone say something else.
    pub is_uncertain: bool,
    pub p_value: f64,
}

/// Leaks of a group in one build.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BuildSide {
    /// Number that nothing, or nothing but the exit of a process, released.
    pub unreleased: u64,
    pub bytes: i64,
    /// Number by the minutes in which the program ran; `None` if it did not, or no trace has a clock.
    pub per_minute: Option<f64>,
    /// Machines where it leaks.
    pub machines: usize,
    /// Growth of the group, the worst of all traces.
    pub verdict: Option<Verdict>,
}

impl BuildsDiff {
    pub fn worse(&self) -> usize {
        self.groups.iter().filter(|group| group.got_worse).count()
    }

    pub fn uncertain(&self) -> usize {
        self.groups.iter().filter(|group| group.is_uncertain).count()
    }

    pub fn count(&self, state: State) -> usize {
        self.groups.iter().filter(|group| group.state == state).count()
    }
}

/// Time in which a program of a build ran, by the numbers of the traces: seconds and processes.
type Times = BTreeMap<usize, (f64, usize)>;

/// A group while its leaks are added up.
#[derive(Default)]
struct Group {
    function: Option<String>,
    stack_text: Option<String>,
    /// Leaks and bytes by trace.
    leaks: [BTreeMap<usize, (i64, i64)>; 2],
    verdicts: [Option<Verdict>; 2],
}

/// Compares two builds of programs.
///
/// # Errors
/// When no process is of one of the builds, a table cannot be read, or `cancel` asks to stop.
pub fn compare_builds(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    builds: &[String; 2],
    cancel: &Cancel,
) -> Result<BuildsDiff, FleetError> {
    let side = |build: Option<&str>| {
        builds.iter().position(|known| build.is_some_and(|build| build == known))
    };
    let times = times(fleet, criteria, builds, cancel)?;
    let mut groups: HashMap<Key, Group> = HashMap::new();
    let mut test = RowTest::new(criteria);
    let mut passes = |row: &super::scan::Row<'_>| {
        test.passes_process(row.text("process").unwrap_or_default(), row.whole("pid"))
            && test.passes_type(row.text("type").unwrap_or_default())
    };
    let columns =
        [&KEY[..], &["stack_text", "function", "unreleased", "bytes_unreleased"]].concat();
    fleet.each("groups", &columns, cancel, |_, number, row| {
        let unreleased = row.whole("unreleased").unwrap_or_default();
        let Some(side) = side(row.text("build")).filter(|_| unreleased > 0 && passes(row)) else {
            return;
        };
        let group = groups.entry(key(row)).or_default();
        if group.function.is_none() {
            group.function = row.text("function").map(str::to_owned);
            group.stack_text = row.text("stack_text").map(str::to_owned);
        }
        let (count, bytes) = group.leaks[side].entry(number).or_default();
        *count = count.saturating_add(unreleased);
        *bytes = bytes.saturating_add(row.whole("bytes_unreleased").unwrap_or_default());
    })?;
    fleet.each("suspects", &[&KEY[..], &["verdict"]].concat(), cancel, |_, _, row| {
        let Some(side) = side(row.text("build")) else { return };
        let Some(group) = groups.get_mut(&key(row)) else { return };
        let word = row.text("verdict").unwrap_or_default();
        let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.word() == word);
        let known = group.verdicts[side];
        // The words are in the order in which they matter.
        group.verdicts[side] = known.into_iter().chain(verdict).min();
    })?;
    let no_match = if groups.is_empty() { no_match(fleet, criteria, cancel)? } else { None };
    let mut diff = compared(fleet, builds, &times, groups);
    diff.caveats.splice(..0, no_match);
    Ok(diff)
}

/// Columns of a key, and those that choose rows.
const KEY: [&str; 7] = ["build", "process", "pid", "kind", "type", "allocator", "stack"];

fn key(row: &super::scan::Row<'_>) -> Key {
    let text = |name| row.text(name).map(str::to_owned);
    Key {
        process: text("process").unwrap_or_default(),
        kind: text("kind").unwrap_or_default(),
        type_name: text("type").unwrap_or_default(),
        allocator: text("allocator"),
        stack: text("stack"),
    }
}

/// The times in which the programs of each build ran, by their names.
fn times(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    builds: &[String; 2],
    cancel: &Cancel,
) -> Result<[HashMap<String, Times>; 2], FleetError> {
    let mut times: [HashMap<String, Times>; 2] = Default::default();
    let mut known_builds = BTreeMap::new();
    let mut test = RowTest::new(criteria);
    let columns = ["build", "build_order", "process", "pid", "observed_s"];
    fleet.each("processes", &columns, cancel, |_, number, row| {
        let Some((build, process)) = row.text("build").zip(row.text("process")) else { return };
        if !test.passes_process(process, row.whole("pid")) {
            return;
        }
        for (known, times) in builds.iter().zip(&mut times) {
            if known == build {
                let times = times.entry(process.to_owned()).or_default();
                let (seconds, processes) = times.entry(number).or_default();
                *seconds += row.double("observed_s").unwrap_or_default();
                *processes += 1;
            }
        }
        let order = row.text("build_order").unwrap_or(build);
        if !known_builds.contains_key(order) {
            known_builds.insert(order.to_owned(), build.to_owned());
        }
    })?;
    if known_builds.is_empty()
        && let Some(no_match) = no_match(fleet, criteria, cancel)?
    {
        return Err(FleetError::NoMatch(no_match.text));
    }
    for (build, times) in builds.iter().zip(&times) {
        if times.is_empty() {
            let names: Vec<String> = known_builds.into_values().collect();
            let known = match names.is_empty() {
                true => String::new(),
                false => format!("; there are {}", listed(&names, MAX_BUILDS)),
            };
            return Err(FleetError::NoBuild { build: build.clone(), known });
        }
    }
    Ok(times)
}

fn compared(
    fleet: &Fleet,
    builds: &[String; 2],
    times: &[HashMap<String, Times>; 2],
    groups: HashMap<Key, Group>,
) -> BuildsDiff {
    let mut groups: Vec<(Key, Group)> = groups.into_iter().collect();
    groups.sort_by(|(a, _), (b, _)| a.cmp(b));
    let samples = |lossless: bool| -> Vec<[Sampled; 2]> {
        let sample = |(key, group): &(Key, Group)| {
            [0, 1].map(|side| sampled(fleet, times[side].get(&key.process), group, side, lossless))
        };
        groups.iter().map(sample).collect()
    };
    let all = samples(false);
    let states = compare_samples(&all);
    let has_losses = fleet.traces.iter().any(|trace| trace.has_losses);
    let whole = has_losses.then(|| {
        let samples = samples(true);
        let states = compare_samples(&samples);
        let lacks_side = |sides: &[Sampled; 2], all: &[Sampled; 2]| {
            sides
                .iter()
                .zip(all)
                .any(|(side, all)| side.traces.is_empty() && !all.traces.is_empty())
        };
        let known = samples.iter().zip(&all).map(|(sides, all)| !lacks_side(sides, all));
        states.into_iter().zip(known).collect::<Vec<_>>()
    });
    let stacks = groups.into_iter().zip(all).zip(states).enumerate();
    let stacks = stacks.map(|(index, (((key, group), samples), state))| {
        let whole = whole.as_ref().and_then(|states| states.get(index));
        stack(fleet, key, group, &samples, state, whole.copied())
    });
    let mut stacks: Vec<ComparedStack> = stacks.collect();
    stacks.sort_by_key(|group| {
        let [before, after] = group.sides.map(|side| i128::from(side.unreleased));
        (!group.got_worse, !group.is_uncertain, group.state, before - after)
    });
    let numbers = |side: usize| -> BTreeSet<usize> {
        times[side].values().flat_map(|times| times.keys().copied()).collect()
    };
    let numbers = [numbers(0), numbers(1)];
    let machines = numbers.each_ref().map(|numbers| {
        let traces = numbers.iter().filter_map(|number| fleet.traces.get(*number));
        traces.map(|trace| trace.machine).collect::<BTreeSet<_>>().len()
    });
    BuildsDiff {
        builds: builds.clone(),
        traces: numbers.each_ref().map(BTreeSet::len),
        machines,
        groups: stacks,
        caveats: fleet.caveats(),
    }
}

fn sampled(
    fleet: &Fleet,
    times: Option<&Times>,
    group: &Group,
    side: usize,
    lossless: bool,
) -> Sampled {
    let ran = times.into_iter().flatten().filter(|(number, _)| {
        !lossless || fleet.traces.get(**number).is_some_and(|trace| !trace.has_losses)
    });
    let mut sampled = Sampled { verdict: group.verdicts[side], ..Sampled::default() };
    for (number, (seconds, processes)) in ran {
        let leaked = group.leaks[side].get(number).map_or(0, |(count, _)| *count);
        sampled.traces.push(TraceLeaks { count: leaked as f64, seconds: *seconds });
        sampled.processes += processes;
    }
    sampled
}

fn stack(
    fleet: &Fleet,
    key: Key,
    group: Group,
    samples: &[Sampled; 2],
    SampledState { state, got_worse, p_value }: SampledState,
    whole: Option<(SampledState, bool)>,
) -> ComparedStack {
    let sides = [0, 1].map(|side| {
        let leaks = &group.leaks[side];
        let sum = |amount: fn(&(i64, i64)) -> i64| {
            leaks.values().map(amount).fold(0, i64::saturating_add)
        };
        let count = sum(|(count, _)| *count);
        let minutes = samples[side].seconds() / SECONDS_PER_MINUTE;
        let machines = leaks.keys().filter_map(|number| fleet.traces.get(*number));
        let machines: BTreeSet<usize> = machines.map(|trace| trace.machine).collect();
        BuildSide {
            unreleased: u64::try_from(count).unwrap_or_default(),
            bytes: sum(|(_, bytes)| *bytes),
            per_minute: (minutes > 0.0).then(|| count as f64 / minutes),
            machines: machines.len(),
            verdict: group.verdicts[side],
        }
    });
    // Little memory does not matter.
    let [before, after] = sides.map(|side| side.bytes as f64);
    let ratio = samples[1].seconds().max(1.0) / samples[0].seconds().max(1.0);
    let matters = before.max(after) <= 0.0 || after - before * ratio > MIN_BYTES;
    let is_uncertain =
        matters && whole.is_some_and(|(whole, is_known)| !is_known || whole.got_worse != got_worse);
    let got_worse = got_worse && matters && !is_uncertain;
    let state = match state {
        State::New | State::Gone => state,
        _ if is_uncertain => State::Uncertain,
        State::Worse if !matters => State::Same,
        state => state,
    };
    let Key { process, kind, type_name, allocator, stack } = key;
    ComparedStack {
        process,
        kind,
        type_name,
        allocator,
        stack,
        function: group.function,
        stack_text: group.stack_text,
        sides,
        state,
        got_worse,
        is_uncertain,
        p_value,
    }
}
