//! Suspects of all traces together, worst first.
//!
//! Suspects of traces are one where process, type, allocator and the identity of the stack are equal. Each is ranked by
//! the number of machines that it affects, times the median over these machines of the score that the suspect has in the
//! worst trace of the machine ([`handlescope_query::why`] scores it). So many traces of one machine count once, and one
//! machine with a very large leak does not outrank a leak of the whole fleet by its size alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::caveats::FleetCaveat;
use super::choice::{FleetCriteria, RowTest};
use super::no_match::no_match;
use super::processes::{Program, programs};
use super::scan::Row;
use super::traces::{Fleet, FleetTrace};
use crate::FleetError;
use handlescope_session::cancel::Cancel;

/// Suspects of a fleet.
pub struct FleetWhy {
    pub suspects: Vec<FleetSuspect>,
    /// Whether anything in the traces passes the filters.
    pub matches: bool,
    pub caveats: Vec<FleetCaveat>,
    pub machines: usize,
    pub traces: usize,
}

/// Common values of suspects of several traces.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    process: String,
    kind: String,
    type_name: String,
    allocator: Option<String>,
    stack: Option<String>,
}

/// A suspect of a fleet.
#[derive(Debug, Clone)]
pub struct FleetSuspect {
    /// Place among the suspects, from 1.
    pub rank: usize,
    pub process: String,
    /// `handle`, `view` or the kind of allocations.
    pub kind: String,
    pub type_name: String,
    pub allocator: Option<String>,
    /// Identity of the create stack.
    pub stack: Option<String>,
    pub function: Option<String>,
    /// Frames, a line each.
    pub stack_text: Option<String>,
    pub machines: usize,
    /// Machines that ran the program.
    pub machines_of_process: usize,
    pub traces: usize,
    pub traces_of_process: usize,
    pub acquired: i64,
    pub leaked: i64,
    pub closed_at_exit: i64,
    pub bytes_unreleased: i64,
    /// Median and maximum over machines of the mean rate of the traces of a machine; `None` where it is nowhere steady.
    pub rate_per_minute: Option<(f64, f64)>,
    /// Words for the growth, and in how many traces, the most frequent first.
    pub verdicts: Vec<(String, usize)>,
    /// Words for causes, likewise.
    pub causes: Vec<(String, usize)>,
    pub first_build: Option<String>,
    pub last_build: Option<String>,
    pub first_day: String,
    pub last_day: String,
    /// Builds of the program after the last one that leaks, in order, and traces in which they ran.
    pub builds_without: Vec<String>,
    pub traces_without: usize,
    /// Number that leaked by day, of the days on which it did.
    pub by_day: BTreeMap<String, DayLeaks>,
    pub worst: WorstTrace,
    pub score: f64,
}

/// Leaks of a suspect on a day.
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
    /// Id of the suspect in the trace, as `-Suspect` takes it.
    pub suspect: String,
    /// Basis of the verdict on its growth there.
    pub evidence: String,
    score: f64,
}

impl FleetSuspect {
    /// Number that nothing, or nothing but the exit of a process, released.
    pub fn unreleased(&self) -> i64 {
        self.leaked.saturating_add(self.closed_at_exit)
    }

    /// Whether it counts allocations.
    pub fn is_of_allocations(&self) -> bool {
        is_of_allocations(&self.kind)
    }
}

/// Whether a kind is one of allocations.
pub fn is_of_allocations(kind: &str) -> bool {
    !matches!(kind, "handle" | "view")
}

/// Columns of `suspects` that are read.
const COLUMNS: &[&str] = &[
    "build",
    "build_order",
    "suspect",
    "process",
    "pid",
    "kind",
    "type",
    "allocator",
    "stack",
    "function",
    "stack_text",
    "acquired",
    "leaked",
    "closed_at_exit",
    "bytes_unreleased",
    "verdict",
    "rate_per_minute",
    "score",
    "causes",
    "evidence",
];

/// Ranks the suspects of a fleet; `min_leaked`: only those that leaked at least so many in all traces.
///
/// # Errors
/// When a table cannot be read, or `cancel` asks to stop.
pub fn fleet_why(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    min_leaked: u64,
    cancel: &Cancel,
) -> Result<FleetWhy, FleetError> {
    let programs = programs(fleet, criteria, cancel)?;
    let mut sums: HashMap<Key, Sums> = HashMap::new();
    let mut test = RowTest::new(criteria);
    fleet.each("suspects", COLUMNS, cancel, |trace, number, row| {
        let (process, type_name) = (row.text("process"), row.text("type"));
        let (process, type_name) = (process.unwrap_or_default(), type_name.unwrap_or_default());
        let passes = test.passes_process(process, row.whole("pid"))
            && test.passes_type(type_name)
            && test.passes_build(row.text("build"));
        if passes {
            let text = |name| row.text(name).map(str::to_owned);
            let key = Key {
                process: process.to_owned(),
                kind: text("kind").unwrap_or_default(),
                type_name: type_name.to_owned(),
                allocator: text("allocator"),
                stack: text("stack"),
            };
            sums.entry(key).or_default().add(fleet, trace, number, row);
        }
    })?;
    let none = Program::default();
    let no_match = if sums.is_empty() { no_match(fleet, criteria, cancel)? } else { None };
    let suspects = sums.into_iter().map(|(key, sums)| {
        let program = programs.get(&key.process).unwrap_or(&none);
        (sums.score(), key.clone(), sums.suspect(key, program))
    });
    let mut suspects: Vec<_> = suspects.collect();
    suspects.sort_by(|(a, a_key, _), (b, b_key, _)| b.total_cmp(a).then_with(|| a_key.cmp(b_key)));
    let ranked = (1..).zip(suspects).map(|(rank, (.., suspect))| FleetSuspect { rank, ..suspect });
    let is_enough = |suspect: &FleetSuspect| {
        u64::try_from(suspect.unreleased()).unwrap_or_default() >= min_leaked
    };
    Ok(FleetWhy {
        suspects: ranked.filter(is_enough).collect(),
        matches: no_match.is_none(),
        caveats: no_match.into_iter().chain(fleet.caveats()).collect(),
        machines: fleet.machines.len(),
        traces: fleet.traces.len(),
    })
}

/// Leaks of a suspect on one machine.
#[derive(Debug, Default)]
struct OnMachine {
    score: f64,
    rates: Vec<f64>,
}

/// Sums over the traces that have a suspect.
#[derive(Debug, Default)]
struct Sums {
    function: Option<String>,
    stack_text: Option<String>,
    acquired: i64,
    leaked: i64,
    closed_at_exit: i64,
    bytes_unreleased: i64,
    traces: BTreeSet<usize>,
    machines: BTreeMap<usize, OnMachine>,
    verdicts: BTreeMap<String, usize>,
    causes: BTreeMap<String, usize>,
    /// The first and the last build, each with the text that orders it in front.
    builds: Option<[(String, String); 2]>,
    by_day: BTreeMap<String, DayLeaks>,
    worst: WorstTrace,
}

impl Sums {
    fn add(&mut self, fleet: &Fleet, trace: &FleetTrace, number: usize, row: &Row<'_>) {
        let count = |name| row.whole(name).unwrap_or_default();
        let text = |name| row.text(name).unwrap_or_default();
        self.acquired = self.acquired.saturating_add(count("acquired"));
        self.leaked = self.leaked.saturating_add(count("leaked"));
        self.closed_at_exit = self.closed_at_exit.saturating_add(count("closed_at_exit"));
        self.bytes_unreleased = self.bytes_unreleased.saturating_add(count("bytes_unreleased"));
        let day = self.by_day.entry(trace.day.clone()).or_default();
        day.traces += usize::from(self.traces.insert(number));
        let unreleased = count("leaked").saturating_add(count("closed_at_exit"));
        day.unreleased = day.unreleased.saturating_add(unreleased);
        let score = row.double("score").unwrap_or_default();
        let machine = self.machines.entry(trace.machine).or_default();
        machine.score = machine.score.max(score);
        machine.rates.extend(row.double("rate_per_minute"));
        *self.verdicts.entry(text("verdict").to_owned()).or_default() += 1;
        for cause in text("causes").split(',').filter(|cause| !cause.is_empty()) {
            *self.causes.entry(cause.to_owned()).or_default() += 1;
        }
        if let Some((order, build)) = row.text("build_order").zip(row.text("build")) {
            self.add_build((order.to_owned(), build.to_owned()));
        }
        if self.worst.trace.is_empty() || score > self.worst.score {
            self.function = row.text("function").map(str::to_owned);
            self.stack_text = row.text("stack_text").map(str::to_owned);
            self.worst = WorstTrace {
                machine: fleet.machine(trace).to_owned(),
                day: trace.day.clone(),
                trace: trace.partition.trace.clone(),
                suspect: text("suspect").to_owned(),
                evidence: text("evidence").to_owned(),
                score,
            };
        }
    }

    fn add_build(&mut self, build: (String, String)) {
        match &mut self.builds {
            None => self.builds = Some([build.clone(), build]),
            Some([first, _]) if build.0 < first.0 => *first = build,
            Some([_, last]) if build.0 > last.0 => *last = build,
            Some(_) => {}
        }
    }

    /// Number by which the suspect is ranked.
    fn score(&self) -> f64 {
        let scores = self.machines.values().map(|machine| machine.score).collect();
        self.machines.len() as f64 * median(scores).unwrap_or_default()
    }

    fn rate_per_minute(&self) -> Option<(f64, f64)> {
        let rates = self.machines.values().filter(|machine| !machine.rates.is_empty());
        let means =
            rates.map(|machine| machine.rates.iter().sum::<f64>() / machine.rates.len() as f64);
        let means: Vec<f64> = means.collect();
        let most = means.iter().copied().reduce(f64::max)?;
        Some((median(means)?, most))
    }

    fn suspect(self, key: Key, program: &Program) -> FleetSuspect {
        let Key { process, kind, type_name, allocator, stack } = key;
        let (score, rate_per_minute) = (self.score(), self.rate_per_minute());
        let (first, last) = match self.builds {
            Some([first, last]) => (Some(first), Some(last)),
            None => (None, None),
        };
        let newer = last.as_ref().map(|(order, _)| {
            let newer = program.builds.iter().filter(|(known, _)| *known > order);
            newer.map(|(_, build)| build).collect::<Vec<_>>()
        });
        let newer = newer.unwrap_or_default();
        let traces_without: BTreeSet<usize> =
            newer.iter().flat_map(|build| build.traces.iter().copied()).collect();
        FleetSuspect {
            rank: 0,
            process,
            kind,
            type_name,
            allocator,
            stack,
            function: self.function,
            stack_text: self.stack_text,
            machines: self.machines.len(),
            machines_of_process: program.machines.len().max(self.machines.len()),
            traces: self.traces.len(),
            traces_of_process: program.traces.len().max(self.traces.len()),
            acquired: self.acquired,
            leaked: self.leaked,
            closed_at_exit: self.closed_at_exit,
            bytes_unreleased: self.bytes_unreleased,
            rate_per_minute,
            verdicts: frequent(self.verdicts),
            causes: frequent(self.causes),
            first_build: first.map(|(_, build)| build),
            last_build: last.map(|(_, build)| build),
            first_day: self
                .by_day
                .first_key_value()
                .map_or_else(String::new, |(day, _)| day.clone()),
            last_day: self.by_day.last_key_value().map_or_else(String::new, |(day, _)| day.clone()),
            builds_without: newer.into_iter().map(|build| build.name.clone()).collect(),
            traces_without: traces_without.len(),
            by_day: self.by_day,
            worst: self.worst,
            score,
        }
    }
}

/// Words with their counts, the most frequent first.
fn frequent(words: BTreeMap<String, usize>) -> Vec<(String, usize)> {
    let mut words: Vec<(String, usize)> = words.into_iter().collect();
    words.sort_by_key(|(_, count)| Reverse(*count));
    words
}

/// The middle of some numbers, or the mean of the two in the middle.
pub fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers.len().checked_sub(1)? / 2, numbers.len() / 2);
    Some((numbers.get(low)? + numbers.get(high)?) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(machines: &[f64]) -> f64 {
        let machines = (0..).zip(machines);
        let machines = machines
            .map(|(machine, score)| (machine, OnMachine { score: *score, rates: vec![*score] }));
        Sums { machines: machines.collect(), ..Sums::default() }.score()
    }

    #[test]
    fn many_machines_outrank_one_with_a_large_leak_and_few_others() {
        assert_eq!(score(&[100.0; 30]), 3_000.0);
        assert_eq!(score(&[100_000.0, 10.0, 10.0]), 30.0);
        assert_eq!(score(&[]), 0.0);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_two() {
        assert_eq!(median(vec![4.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn builds_are_ordered_by_their_numbers() {
        let mut sums = Sums::default();
        for (order, build) in [("0009", "9"), ("0010", "10"), ("0002", "2")] {
            sums.add_build((order.to_owned(), build.to_owned()));
        }
        let names = sums.builds.expect("builds").map(|(_, build)| build);
        assert_eq!(names, ["2", "10"]);
    }
}
