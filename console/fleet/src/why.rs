//! The suspects of all traces together, worst first.
//!
//! Suspects of different traces are the same suspect if process, type, allocator and stack identity are equal. For each
//! machine, take the suspect's score in the machine's worst trace ([`handlescope_query::why`] computes it). The rank is
//! the number of affected machines times the median of these scores. So many traces of one machine count once, and a
//! very large leak on one machine does not outrank a leak of the whole fleet by size alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use polars::prelude::{
    DataFrame, Expr, IntoLazy, LazyFrame, PolarsResult, SortMultipleOptions, by_name, col, len, lit,
};

use super::call_site::{CallSite, KEY, identified, keyed};
use super::caveats::FleetCaveat;
use super::choice::FleetCriteria;
use super::no_match::{NO_MATCH, caveats};
use super::scan::{AnswerRow, collect, records};
use super::traces::{ALL, Fleet, numbers, sums};
use crate::FleetError;
use crate::dataset::TRACE;
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::{IgnoreEntry, Ignoring};

/// The suspects of a fleet.
pub struct FleetWhy {
    pub suspects: Vec<FleetSuspect>,
    /// Entries that ignored suspects, one for each ignored suspect. Ignored suspects are not in `suspects`, unless they
    /// were asked for.
    pub ignored: Vec<Arc<IgnoreEntry>>,
    /// Whether anything in the traces passes the filters.
    pub matches: bool,
    pub caveats: Vec<FleetCaveat>,
    pub machines: usize,
    pub traces: usize,
}

/// A suspect of a fleet.
#[derive(Debug, Clone)]
pub struct FleetSuspect {
    /// Rank among the suspects, from 1.
    pub rank: usize,
    pub site: CallSite,
    pub machines: usize,
    /// Number of machines that ran the program.
    pub machines_of_process: usize,
    pub traces: usize,
    pub traces_of_process: usize,
    pub acquired: i64,
    pub leaked: i64,
    pub closed_at_exit: i64,
    pub bytes_unreleased: i64,
    /// Median and maximum over machines, using the mean rate of each machine's traces; `None` if it is steady nowhere.
    pub rate_per_minute: Option<(f64, f64)>,
    /// Growth verdicts as words, and in how many traces each occurs, most frequent first.
    pub verdicts: Vec<(String, usize)>,
    /// Causes as words, likewise.
    pub causes: Vec<(String, usize)>,
    pub first_build: Option<String>,
    pub last_build: Option<String>,
    /// Builds of the program after the last one that leaks, in order, and the number of traces in which they ran.
    pub builds_without: Vec<String>,
    pub traces_without: usize,
    /// Number leaked on each day that has leaks.
    pub by_day: BTreeMap<String, DayLeaks>,
    pub worst: WorstTrace,
    pub score: f64,
    /// The matching entry, if this is a known leak.
    pub ignored: Option<Arc<IgnoreEntry>>,
}

/// The leaks of a suspect on one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayLeaks {
    pub traces: usize,
    pub unreleased: i64,
}

/// The trace in which a suspect has its highest score.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorstTrace {
    pub machine: String,
    pub day: String,
    pub trace: String,
    /// Id of the suspect in the trace, for `-Suspect`.
    pub suspect: String,
    /// The evidence for the growth verdict there.
    pub evidence: String,
}

impl FleetSuspect {
    /// Returns the number that was never released, or only by process exit.
    pub fn unreleased(&self) -> i64 {
        self.leaked.saturating_add(self.closed_at_exit)
    }

    /// Returns the first and the last day on which it leaked.
    pub fn days(&self) -> [&str; 2] {
        let mut days = self.by_day.keys().map(String::as_str);
        let first = days.next().unwrap_or_default();
        [first, days.next_back().unwrap_or(first)]
    }
}

/// Columns of `suspects` that say what a suspect does in each trace.
const BY_TRACE: [&str; 7] =
    ["build", "build_order", "verdict", "rate_per_minute", "score", "causes", "unreleased"];

/// Columns summed up over the traces.
const SUMS: [&str; 4] = ["acquired", "leaked", "closed_at_exit", "bytes_unreleased"];

/// Columns that a suspect takes from the trace with its highest score.
const WORST: [&str; 8] =
    ["score", "machine", "day", TRACE, "suspect", "evidence", "function", "stack_text"];

/// Ranks the suspects of a fleet. Keeps suspects that leaked at least `min_leaked` in all traces together, and leaves
/// out the known leaks of `ignoring`.
///
/// # Errors
/// If a table cannot be read, or `cancel` asks to stop.
pub fn fleet_why(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    min_leaked: u64,
    ignoring: &Ignoring,
    cancel: &Cancel,
) -> Result<FleetWhy, FleetError> {
    let rows = |frame: LazyFrame| {
        let score = col("score").fill_null(lit(0.0));
        keyed(frame.filter(criteria.passes())).with_column(score)
    };
    let suspects = |frame: LazyFrame| {
        let worst: Vec<Expr> = WORST.iter().map(|name| col(*name).first()).collect();
        sorted(frame, &["score"], true).group_by(KEY).agg([sums(&SUMS), worst].concat())
    };
    let traces = |frame: LazyFrame| {
        let columns = [&KEY[..], &BY_TRACE, &["number", "machine", "day"]].concat();
        frame.select(columns.into_iter().map(col).collect::<Vec<_>>())
    };
    let columns = [&["pid"], &KEY[..], &BY_TRACE, &SUMS, &WORST].concat();
    let [suspects, traces] =
        fleet.summed("suspects", &columns, rows, [&suspects, &traces], cancel)?;
    let programs = programs(fleet, criteria, cancel)?;
    let answer = collect(joined(&suspects, traces, programs)?)?;
    let caveats = caveats(fleet, criteria, answer.height() == 0, cancel)?;
    let mut suspects: Vec<FleetSuspect> = records(&answer).map(|row| suspect(row, fleet)).collect();
    for suspect in &mut suspects {
        suspect.ignored = suspect.site.ignored_by(&ignoring.list);
    }
    // Ignored suspects rank last.
    suspects.sort_by(|a, b| {
        let by_place = a.ignored.is_some().cmp(&b.ignored.is_some());
        by_place.then(b.score.total_cmp(&a.score)).then_with(|| a.site.cmp(&b.site))
    });
    let ranked = (1..).zip(suspects).map(|(rank, suspect)| FleetSuspect { rank, ..suspect });
    let is_enough = |suspect: &FleetSuspect| {
        u64::try_from(suspect.unreleased()).unwrap_or_default() >= min_leaked
    };
    let mut suspects: Vec<FleetSuspect> = ranked.filter(is_enough).collect();
    let ignored = suspects.iter().filter_map(|suspect| suspect.ignored.clone()).collect();
    suspects.retain(|suspect| ignoring.shows(suspect.ignored.as_ref()));
    Ok(FleetWhy {
        suspects,
        ignored,
        matches: caveats.iter().all(|caveat| caveat.kind != NO_MATCH),
        caveats,
        machines: fleet.machines.len(),
        traces: fleet.traces.len(),
    })
}

/// Returns the builds of programs: `process`, `build`, `build_order` and `number`, the list of their traces.
fn programs(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    cancel: &Cancel,
) -> Result<DataFrame, FleetError> {
    let passes =
        criteria.passes_process().and(criteria.passes_build()).and(col("process").is_not_null());
    let rows = |frame: LazyFrame| frame.filter(passes.clone());
    let columns = ["process", "build", "build_order"];
    let sum = |frame: LazyFrame| frame.group_by(columns).agg([numbers()]);
    let wanted = [&columns[..], &["pid"]].concat();
    let [programs] = fleet.summed("processes", &wanted, rows, [&sum], cancel)?;
    Ok(programs)
}

fn sorted(frame: LazyFrame, by: &[&str], descending: bool) -> LazyFrame {
    let order = SortMultipleOptions::default().with_maintain_order(true);
    frame.sort(by.to_vec(), order.with_order_descending(descending))
}

/// Joins the facts about each suspect: sums over its traces, and lists of its machines, days, words and builds.
fn joined(suspects: &DataFrame, traces: DataFrame, programs: DataFrame) -> PolarsResult<LazyFrame> {
    let suspects = suspects.with_row_index("id".into(), None)?;
    let traces = identified(&suspects, traces)?.lazy();
    let suspects = suspects.lazy();
    let programs = programs.lazy();
    let words = |word: &str, rows: LazyFrame| {
        let counted = rows.group_by(["id", word]).agg([len().alias("count")]);
        let frequent = sorted(sorted(counted, &[word], false), &["count"], true);
        let count = col("count").alias(format!("{word}_traces"));
        frequent.group_by(["id"]).agg([col(word).alias(format!("{word}s")), count])
    };
    let causes = col("causes").str().split(lit(",")).alias("cause");
    let causes =
        traces.clone().select([col("id"), causes]).explode(by_name(["cause"], true, false), ALL);
    let days = traces.clone().group_by(["id", "day"]);
    let days = days.agg([col("number").n_unique(), sums(&["unreleased"]).remove(0)]);
    let machines = traces.clone().group_by(["id", "machine"]);
    let machines = machines.agg([col("score").max(), col("rate_per_minute").mean()]);
    let builds =
        traces.clone().filter(col("build").is_not_null().and(col("build_order").is_not_null()));
    let builds = collect(sorted(builds, &["build_order"], false).group_by(["id"]).agg([
        col("build").first().alias("first_build"),
        col("build").last().alias("last_build"),
        col("build_order").last().alias("last_order"),
    ]))?
    .lazy();
    let newer = suspects.clone().select([col("id"), col("process")]);
    let newer = newer.inner_join(builds.clone(), col("id"), col("id"));
    let newer = newer.inner_join(programs.clone(), col("process"), col("process"));
    let newer = newer.filter(col("build_order").gt(col("last_order")));
    let ran = programs.group_by(["process"]).agg([numbers().alias("ran")]);
    let parts = [
        machines.group_by(["id"]).agg([
            col("score").alias("scores"),
            col("rate_per_minute").drop_nulls().alias("rates"),
        ]),
        sorted(days, &["day"], false).group_by(["id"]).agg([
            col("day").alias("days"),
            col("number").alias("day_traces"),
            col("unreleased").alias("day_unreleased"),
        ]),
        words("verdict", traces.with_column(col("verdict").fill_null(lit("")))),
        words("cause", causes.filter(col("cause").neq(lit("")))),
        builds,
        sorted(newer, &["build_order"], false).group_by(["id"]).agg([
            col("build").unique_stable().alias("builds_without"),
            numbers().len().alias("traces_without"),
        ]),
    ];
    let all = suspects.left_join(ran, col("process"), col("process"));
    Ok(parts.into_iter().fold(all, |all, part| all.left_join(part, col("id"), col("id"))))
}

fn suspect(row: AnswerRow<'_>, fleet: &Fleet) -> FleetSuspect {
    let text = |name| row.text(name).unwrap_or_default();
    let counts = |name| row.numbers(name).into_iter().map(|count| count as usize);
    let unreleased = row.numbers("day_unreleased").into_iter().map(|count| count as i64);
    let days = row.texts("days").into_iter().zip(counts("day_traces").zip(unreleased));
    let by_day: BTreeMap<String, DayLeaks> =
        days.map(|(day, (traces, unreleased))| (day, DayLeaks { traces, unreleased })).collect();
    let (scores, rates) = (row.numbers("scores"), row.numbers("rates"));
    let most = rates.iter().copied().reduce(f64::max);
    let machines = scores.len();
    let traces = by_day.values().map(|leaks| leaks.traces).sum();
    let ran: Vec<usize> = counts("ran").collect();
    FleetSuspect {
        rank: 0,
        site: CallSite::new(row),
        machines,
        traces,
        traces_of_process: ran.len().max(traces),
        machines_of_process: fleet.machines_of(ran).max(machines),
        acquired: row.count("acquired"),
        leaked: row.count("leaked"),
        closed_at_exit: row.count("closed_at_exit"),
        bytes_unreleased: row.count("bytes_unreleased"),
        rate_per_minute: median(rates).zip(most),
        verdicts: row.texts("verdicts").into_iter().zip(counts("verdict_traces")).collect(),
        causes: row.texts("causes").into_iter().zip(counts("cause_traces")).collect(),
        first_build: row.text("first_build"),
        last_build: row.text("last_build"),
        builds_without: row.texts("builds_without"),
        traces_without: row.count("traces_without") as usize,
        by_day,
        worst: WorstTrace {
            machine: text("machine"),
            day: text("day"),
            trace: text(TRACE),
            suspect: text("suspect"),
            evidence: text("evidence"),
        },
        score: score(scores),
        ignored: None,
    }
}

/// Returns the number that ranks a suspect, from its highest score on each machine.
fn score(machines: Vec<f64>) -> f64 {
    machines.len() as f64 * median(machines).unwrap_or_default()
}

/// Returns the median; of an even number of values, the mean of the middle two.
fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers.len().checked_sub(1)? / 2, numbers.len() / 2);
    Some((numbers.get(low)? + numbers.get(high)?) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_machines_outrank_one_with_a_large_leak_and_few_others() {
        assert_eq!(score(vec![100.0; 30]), 3_000.0);
        assert_eq!(score(vec![100_000.0, 10.0, 10.0]), 30.0);
        assert_eq!(score(Vec::new()), 0.0);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_two() {
        assert_eq!(median(vec![4.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
