//! Comparison of two builds: what the second one leaks more or less of, over all traces in which their programs ran.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use polars::prelude::{Expr, LazyFrame, UniqueKeepStrategy, col, lit};

use super::call_site::{CallSite, KEY, identified, keyed};
use super::caveats::FleetCaveat;
use super::choice::FleetCriteria;
use super::no_match::{caveats, no_match};
use super::scan::{AnswerRow, records};
use super::traces::{Fleet, sums};
use crate::FleetError;
use handlescope_query::{
    Amount, ComparedLeaks, ComparisonTotals, SampledGroup, SideLeaks, TraceLeaks, Verdict,
    compare_samples,
};
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::{IgnoreEntry, Ignoring};
use handlescope_session::values::listed;

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
    pub leaks: ComparedLeaks,
    /// Number of machines where it leaks, with the build before and with the build after.
    pub machines: [usize; 2],
    /// The matching entry, if this is a known leak.
    pub ignored: Option<Arc<IgnoreEntry>>,
}

impl BuildsDiff {
    /// Counts the groups.
    pub fn totals(&self) -> ComparisonTotals {
        ComparisonTotals::new(
            self.groups.iter().map(|group| (&group.leaks, group.ignored.is_some())),
        )
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
    let caveats = caveats(fleet, criteria, groups.is_empty(), cancel)?;
    let samples: Vec<SampledGroup> =
        groups.iter().map(|group| group.sampled(fleet, &times)).collect();
    let mut stacks: Vec<ComparedStack> = compare_samples(&samples)
        .into_iter()
        .zip(groups)
        .map(|(leaks, group)| ComparedStack {
            leaks,
            machines: group.leaks.each_ref().map(|leaks| fleet.machines_of(leaks.keys().copied())),
            // Known leaks were compared as well, so that ignoring does not change the significance.
            ignored: group.site.ignored_by(&ignoring.list),
            site: group.site,
        })
        .collect();
    stacks.sort_by_key(|group| {
        let [before, after] = group.leaks.sides.map(|side| i128::from(side.leaked.count));
        (group.leaks.order(), before - after)
    });
    let ignored = stacks.iter().filter(|group| group.ignored.is_some()).count();
    stacks.retain(|group| ignoring.shows(group.ignored.as_ref()));
    let numbers = times.map(|times| -> BTreeSet<usize> {
        times.into_values().flat_map(BTreeMap::into_keys).collect()
    });
    Ok(BuildsDiff {
        builds: builds.clone(),
        traces: numbers.each_ref().map(BTreeSet::len),
        machines: numbers.map(|numbers| fleet.machines_of(numbers)),
        groups: stacks,
        ignored,
        caveats,
    })
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

impl BuildGroup {
    /// Returns what it leaks in the traces in which its program ran.
    fn sampled(&self, fleet: &Fleet, times: &[HashMap<String, ProcessTimes>; 2]) -> SampledGroup {
        let traces = [0, 1].map(|side| -> Vec<TraceLeaks> {
            let ran = times[side].get(&self.site.process).into_iter().flatten();
            ran.map(|(number, &(seconds, processes))| TraceLeaks {
                count: self.leaks[side].get(number).map_or(0, |[count, _]| *count) as f64,
                seconds,
                processes,
                has_losses: fleet.traces.get(*number).is_none_or(|trace| trace.has_losses),
            })
            .collect()
        });
        let sides = [0, 1].map(|side| {
            let sum = |amount: usize| {
                let amounts = self.leaks[side].values().map(|amounts| amounts[amount]);
                amounts.fold(0, i64::saturating_add)
            };
            let seconds: f64 = traces[side].iter().map(|trace| trace.seconds).sum();
            let minutes = seconds / SECONDS_PER_MINUTE;
            SideLeaks {
                leaked: Amount { count: u64::try_from(sum(0)).unwrap_or_default(), bytes: sum(1) },
                per_minute: (minutes > 0.0).then(|| sum(0) as f64 / minutes),
                verdict: self.verdicts[side],
            }
        });
        SampledGroup { sides, traces }
    }
}
