//! Comparison of two builds: what the second one leaks more or less of, over all traces in which their programs ran.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use polars::prelude::{Expr, LazyFrame, UniqueKeepStrategy, col, lit};

use super::call_site::{CallSite, KEY, identified, keyed};
use super::caveats::FleetCaveat;
use super::choice::FleetCriteria;
use super::no_match::no_match;
use super::scan::{AnswerRow, records};
use super::traces::{Fleet, sums};
use crate::FleetError;
use handlescope_query::{
    GroupState, SampledState, TraceLeaks, TraceSetLeaks, Verdict, compare_samples,
};
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::{IgnoreEntry, Ignoring};
use handlescope_session::values::listed;

/// An increase of no more than this many bytes is ignored.
const MIN_BYTES: f64 = 65_536.0;

/// Maximum number of builds that an error names.
const MAX_BUILDS: usize = 8;

const SECONDS_PER_MINUTE: f64 = 60.0;

/// Comparison of two builds.
pub struct BuildsDiff {
    pub builds: [String; 2],
    /// Number of traces and machines that ran each build.
    pub traces: [usize; 2],
    pub machines: [usize; 2],
    /// Groups that leak in either build; groups that got worse come first, then new ones.
    pub groups: Vec<ComparedStack>,
    /// Number of groups that are known leaks. They are not in `groups`, unless ignored leaks were asked for.
    pub ignored: usize,
    pub caveats: Vec<FleetCaveat>,
}

/// Comparison of handles or allocations of one program, type and stack.
#[derive(Debug, Clone)]
pub struct ComparedStack {
    pub site: CallSite,
    /// The build before and the build after.
    pub sides: [BuildSide; 2],
    pub state: GroupState,
    pub got_worse: bool,
    /// Whether the traces without losses alone lead to another result.
    pub is_uncertain: bool,
    pub p_value: f64,
    /// The matching entry, if this is a known leak.
    pub ignored: Option<Arc<IgnoreEntry>>,
}

/// Leaks of a group in one build.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BuildSide {
    /// Number that was never released, or only by process exit.
    pub unreleased: u64,
    pub bytes: i64,
    /// Number per minute of the program's run time; `None` if it did not run, or no trace has a clock.
    pub per_minute: Option<f64>,
    /// Number of machines where it leaks.
    pub machines: usize,
    /// The worst growth of the group in any trace.
    pub verdict: Option<Verdict>,
}

impl BuildsDiff {
    pub fn worse(&self) -> usize {
        let is_counted = |group: &&ComparedStack| group.got_worse && group.ignored.is_none();
        self.groups.iter().filter(is_counted).count()
    }

    pub fn uncertain(&self) -> usize {
        let is_counted = |group: &&ComparedStack| group.is_uncertain && group.ignored.is_none();
        self.groups.iter().filter(is_counted).count()
    }

    pub fn count(&self, state: GroupState) -> usize {
        self.groups.iter().filter(|group| group.state == state).count()
    }
}

/// How long a program of a build ran in each trace: seconds and processes, by trace number.
type ProcessTimes = BTreeMap<usize, (f64, usize)>;

/// A group while its leaks are added up.
#[derive(Default)]
struct BuildGroup {
    site: CallSite,
    /// Leaks and bytes by trace.
    leaks: [BTreeMap<usize, [i64; 2]>; 2],
    verdicts: [Option<Verdict>; 2],
}

/// Compares two builds of programs.
///
/// # Errors
/// If no process has one of the builds, a table cannot be read, or `cancel` asks to stop.
pub fn compare_builds(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    builds: &[String; 2],
    ignoring: &Ignoring,
    cancel: &Cancel,
) -> Result<BuildsDiff, FleetError> {
    let times = times(fleet, criteria, builds, cancel)?;
    let leaks = |frame: LazyFrame| {
        let passes = criteria.passes().and(is_of(builds)).and(col("unreleased").gt(lit(0)));
        keyed(frame.filter(passes))
    };
    let sites = |frame: LazyFrame| {
        frame.group_by(KEY).agg([col("function").first(), col("stack_text").first()])
    };
    let amounts = ["unreleased", "bytes_unreleased"];
    let by_trace = [&KEY[..], &["build", "number"]].concat();
    let sum = |frame: LazyFrame| frame.group_by(by_trace.clone()).agg(sums(&amounts));
    let columns = [&KEY[..], &["build", "pid", "function", "stack_text"], &amounts].concat();
    let [sites, leaks] = fleet.summed("groups", &columns, leaks, [&sites, &sum], cancel)?;
    let rows = |frame: LazyFrame| keyed(frame.filter(is_of(builds)));
    let columns = [&KEY[..], &["build", "verdict"]].concat();
    let words = |frame: LazyFrame| {
        let columns: Vec<Expr> = columns.iter().map(|name| col(*name)).collect();
        frame.select(columns).unique(None, UniqueKeepStrategy::Any)
    };
    let [verdicts] = fleet.summed("suspects", &columns, rows, [&words], cancel)?;
    let sites = sites.with_row_index("id".into(), None)?;
    let groups =
        records(&sites).map(|row| BuildGroup { site: CallSite::new(row), ..BuildGroup::default() });
    let mut groups: Vec<BuildGroup> = groups.collect();
    let place = |row: AnswerRow<'_>| {
        let build = row.text("build")?;
        Some((row.count("id") as usize, builds.iter().position(|known| *known == build)?))
    };
    for row in records(&identified(&sites, leaks)?) {
        let Some((id, side)) = place(row) else { continue };
        let leaked = amounts.map(|name| row.count(name));
        groups[id].leaks[side].insert(row.count("number") as usize, leaked);
    }
    for row in records(&identified(&sites, verdicts)?) {
        let Some((id, side)) = place(row) else { continue };
        let word = row.text("verdict").unwrap_or_default();
        let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.word() == word);
        let known = groups[id].verdicts[side];
        // Verdicts are ordered by importance.
        groups[id].verdicts[side] = known.into_iter().chain(verdict).min();
    }
    groups.sort_by(|a, b| a.site.cmp(&b.site));
    let no_match = if groups.is_empty() { no_match(fleet, criteria, cancel)? } else { None };
    let mut diff = compared(fleet, builds, &times, groups);
    diff.caveats.splice(..0, no_match);
    // Ignores known leaks only after all groups were compared, so that ignoring does not change the significance.
    for group in &mut diff.groups {
        group.ignored = group.site.ignored_by(&ignoring.list);
    }
    diff.ignored = diff.groups.iter().filter(|group| group.ignored.is_some()).count();
    diff.groups.retain(|group| ignoring.shows(group.ignored.as_ref()));
    Ok(diff)
}

/// Whether a row belongs to one of two builds.
fn is_of(builds: &[String; 2]) -> Expr {
    let [before, after] = builds.each_ref().map(|build| col("build").eq(lit(build.as_str())));
    before.or(after)
}

/// Returns how long the programs of each build ran, by program name.
fn times(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    builds: &[String; 2],
    cancel: &Cancel,
) -> Result<[HashMap<String, ProcessTimes>; 2], FleetError> {
    let rows = |frame: LazyFrame| {
        let is_known = col("build").is_not_null().and(col("process").is_not_null());
        frame.filter(is_known.and(criteria.passes_process()))
    };
    let ran = |frame: LazyFrame| {
        frame.filter(is_of(builds)).select(["build", "process", "number", "observed_s"].map(col))
    };
    let known = |frame: LazyFrame| {
        let order = col("build_order").fill_null(col("build"));
        frame
            .group_by([order])
            .agg([col("build").first()])
            .sort(["build_order"], Default::default())
    };
    let columns = ["build", "build_order", "process", "pid", "observed_s"];
    let [ran, known] = fleet.summed("processes", &columns, rows, [&ran, &known], cancel)?;
    if known.height() == 0
        && let Some(no_match) = no_match(fleet, criteria, cancel)?
    {
        return Err(FleetError::NoMatch(no_match.text));
    }
    let mut times: [HashMap<String, ProcessTimes>; 2] = Default::default();
    for row in records(&ran) {
        let (build, process) = (row.text("build"), row.text("process").unwrap_or_default());
        for (_, times) in
            builds.iter().zip(&mut times).filter(|(known, _)| Some(*known) == build.as_ref())
        {
            let times = times.entry(process.clone()).or_default();
            let (seconds, processes) = times.entry(row.count("number") as usize).or_default();
            *seconds += row.number("observed_s").unwrap_or_default();
            *processes += 1;
        }
    }
    for (build, times) in builds.iter().zip(&times) {
        if times.is_empty() {
            let names: Vec<String> = records(&known).filter_map(|row| row.text("build")).collect();
            let known = if names.is_empty() {
                String::new()
            } else {
                format!("; there are {}", listed(&names, MAX_BUILDS))
            };
            return Err(FleetError::NoBuild { build: build.clone(), known });
        }
    }
    Ok(times)
}

fn compared(
    fleet: &Fleet,
    builds: &[String; 2],
    times: &[HashMap<String, ProcessTimes>; 2],
    groups: Vec<BuildGroup>,
) -> BuildsDiff {
    let samples = |lossless: bool| -> Vec<[TraceSetLeaks; 2]> {
        let sample = |group: &BuildGroup| {
            let times = times.each_ref().map(|times| times.get(&group.site.process));
            [0, 1].map(|side| sampled(fleet, times[side], group, side, lossless))
        };
        groups.iter().map(sample).collect()
    };
    let (all, whole) = (samples(false), samples(true));
    let states = compare_samples(&all).into_iter().zip(compare_samples(&whole));
    let is_known = whole.iter().zip(&all).map(|(whole, all)| {
        let mut sides = whole.iter().zip(all);
        sides.all(|(whole, all)| !whole.traces.is_empty() || all.traces.is_empty())
    });
    let is_known: Vec<bool> = is_known.collect();
    let stacks = groups.into_iter().zip(all).zip(states).zip(is_known);
    let stacks = stacks.map(|(((group, samples), (state, whole)), is_known)| {
        let says_else = !is_known || whole.got_worse != state.got_worse;
        stack(fleet, group, &samples, state, says_else)
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
    BuildsDiff {
        builds: builds.clone(),
        traces: numbers.each_ref().map(BTreeSet::len),
        machines: numbers.map(|numbers| fleet.machines_of(numbers)),
        groups: stacks,
        ignored: 0,
        caveats: fleet.caveats(),
    }
}

fn sampled(
    fleet: &Fleet,
    times: Option<&ProcessTimes>,
    group: &BuildGroup,
    side: usize,
    lossless: bool,
) -> TraceSetLeaks {
    let ran = times.into_iter().flatten().filter(|(number, _)| {
        !lossless || fleet.traces.get(**number).is_some_and(|trace| !trace.has_losses)
    });
    let mut sampled = TraceSetLeaks { verdict: group.verdicts[side], ..TraceSetLeaks::default() };
    for (number, (seconds, processes)) in ran {
        let leaked = group.leaks[side].get(number).map_or(0, |[count, _]| *count);
        sampled.traces.push(TraceLeaks { count: leaked as f64, seconds: *seconds });
        sampled.processes += processes;
    }
    sampled
}

/// Compares a group. `says_else`: traces without losses alone lead to another result.
fn stack(
    fleet: &Fleet,
    group: BuildGroup,
    samples: &[TraceSetLeaks; 2],
    SampledState { state, got_worse, p_value }: SampledState,
    says_else: bool,
) -> ComparedStack {
    let sides = [0, 1].map(|side| {
        let leaks = &group.leaks[side];
        let sum = |amount: usize| {
            leaks.values().map(|amounts| amounts[amount]).fold(0, i64::saturating_add)
        };
        let minutes = samples[side].seconds() / SECONDS_PER_MINUTE;
        BuildSide {
            unreleased: u64::try_from(sum(0)).unwrap_or_default(),
            bytes: sum(1),
            per_minute: (minutes > 0.0).then(|| sum(0) as f64 / minutes),
            machines: fleet.machines_of(leaks.keys().copied()),
            verdict: group.verdicts[side],
        }
    });
    // A small amount of memory is ignored.
    let [before, after] = sides.map(|side| side.bytes as f64);
    let ratio = samples[1].seconds().max(1.0) / samples[0].seconds().max(1.0);
    let matters = before.max(after) <= 0.0 || after - before * ratio > MIN_BYTES;
    let is_uncertain = matters && says_else;
    let got_worse = got_worse && matters && !is_uncertain;
    let state = match state {
        GroupState::New | GroupState::Gone => state,
        _ if is_uncertain => GroupState::Uncertain,
        GroupState::Worse if !matters => GroupState::Same,
        state => state,
    };
    let ignored = None;
    ComparedStack { site: group.site, sides, state, got_worse, is_uncertain, p_value, ignored }
}
