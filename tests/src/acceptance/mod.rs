//! Checks that handlescope reads a recording of `leaky-program` the way the program wrote it down.

mod expected;
mod observed;
mod replayed;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use leaky_program::truth::AllocationKind;
use serde_json::Value;

pub use self::expected::{
    Allocation, Expectation, ExpectedHandle, ExpectedView, Fate, HandleOrigin,
};
use self::observed::number;
pub use self::observed::{Observation, observe};
pub use self::replayed::{ReplayProgram, replay};

/// Maximum difference between the clocks of the truth and of the trace, microseconds.
const SLACK_US: u64 = 1_000_000;

/// Maximum number of differences that a check names.
const MAX_NAMED: usize = 5;

/// Microseconds from 1601 to 1970.
const FILETIME_EPOCH_US: u64 = 11_644_473_600_000_000;

/// `.why` has to name a function with at least this many leaked handles.
const MANY: usize = 5;

/// A check and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub outcome: CheckOutcome,
}

/// Outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// What was compared.
    Passed(String),
    /// All differences.
    Failed(Vec<String>),
    /// Reason why nothing was compared.
    NotChecked(String),
}

impl Check {
    fn new(name: &'static str, compared: String, differences: Vec<String>) -> Self {
        let outcome = if differences.is_empty() {
            CheckOutcome::Passed(compared)
        } else {
            CheckOutcome::Failed(differences)
        };
        Self { name, outcome }
    }

    /// Whether anything differs.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, CheckOutcome::Failed(_))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            CheckOutcome::Passed(compared) => write!(f, "ok           {}: {compared}", self.name),
            CheckOutcome::NotChecked(reason) => write!(f, "not checked  {}: {reason}", self.name),
            CheckOutcome::Failed(differences) => {
                let shown = differences
                    .iter()
                    .take(MAX_NAMED)
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join("; ");
                write!(f, "FAILED       {}: {shown}", self.name)?;
                match differences.len().checked_sub(MAX_NAMED) {
                    Some(more @ 1..) => write!(f, "; and {more} more"),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// The handles of the truth, each with its row of the trace if there is one.
type HandleMatches<'a> = Vec<(&'a ExpectedHandle, Option<&'a Value>)>;

/// Compares a trace with the truth.
#[must_use]
pub fn compare(expected: &Expectation, observed: &Observation) -> Vec<Check> {
    let matches = matches(expected, observed);
    let mut checks = vec![losses(observed), opened(&matches)];
    checks.extend([
        compare_each("types", &matches, |handle, row| {
            difference("type", &handle.object_type, text(&row["type"]))
        }),
        compare_each("threads", &matches, |handle, row| {
            // The parent's thread creates the handles that the child inherits.
            difference("thread", handle.tid, row["opened_tid"].as_u64().unwrap_or_default())
        }),
        compare_each("names", &matches, |handle, row| {
            let name = text(&row["name"]);
            let last = name.rsplit('\\').next().unwrap_or_default();
            difference("name", handle.name.as_deref()?, last)
        }),
        stacks(&matches),
        compare_each("closes, leaks and closes at exit", &matches, |handle, row| {
            difference("fate", word(handle.fate), word(fate(row)))
        }),
        compare_each("duplicates and inheritance", &matches, |handle, row| {
            let has = |column: &str| !row[column].is_null();
            match handle.origin {
                HandleOrigin::Opened => None,
                HandleOrigin::Duplicated => {
                    (!has("source_process")).then(|| "no duplicate".to_owned())
                }
                HandleOrigin::Inherited => (!is_inherited(row)).then(|| "not inherited".to_owned()),
            }
        }),
        no_others(expected, observed, &matches),
        counts(expected, &matches, observed),
        views(expected, observed),
    ]);
    for kind in
        [AllocationKind::Heap, AllocationKind::Commit, AllocationKind::Gdi, AllocationKind::User]
    {
        checks.push(allocations(kind, expected, observed));
    }
    checks.push(suspects(expected, observed));
    checks
}

/// Finds the row of each handle: same process and value, opened within a second. Of several it takes the one that is
/// most alike in function, type and thread, then the nearest in time.
fn matches<'a>(expected: &'a Expectation, observed: &'a Observation) -> HandleMatches<'a> {
    let start_us = start_us(observed);
    let mut rows: HashMap<(u64, u64, bool), Vec<&Value>> = HashMap::new();
    for row in &observed.handles {
        let Some((pid, handle)) = row["pid"].as_u64().zip(number(&row["key"])) else { continue };
        rows.entry((pid, handle, is_inherited(row))).or_default().push(row);
    }
    let mut taken = HashSet::new();
    let matches = expected.handles.iter().map(|handle| {
        let is_inherited = handle.origin == HandleOrigin::Inherited;
        let key = (u64::from(handle.pid), handle.handle, is_inherited);
        let candidates = rows.get(&key).map(Vec::as_slice).unwrap_or_default().iter().copied();
        let near = candidates.filter_map(|row| {
            let opened_us = start_us? + row["opened_ns"].as_u64()? / 1_000;
            let distance = opened_us.abs_diff(handle.at_us);
            let is_free = !taken.contains(&number_of(row));
            (is_free && distance <= SLACK_US).then(|| (unlike(handle, row), distance, row))
        });
        let best = near.min_by_key(|(unlike, distance, _)| (*unlike, *distance));
        let row = best.map(|(.., row)| row);
        taken.extend(row.map(number_of));
        (handle, row)
    });
    matches.collect()
}

/// Returns the number of properties that differ.
fn unlike(handle: &ExpectedHandle, row: &Value) -> usize {
    let differs = [
        !text(&row["stack_text"]).contains(&handle.function),
        text(&row["type"]) != handle.object_type,
        row["opened_tid"].as_u64() != Some(handle.tid.into()),
    ];
    differs.into_iter().filter(|differs| *differs).count()
}

fn is_inherited(row: &Value) -> bool {
    row["origin"] == "inherit"
}

fn number_of(row: &Value) -> u64 {
    row["row"].as_u64().unwrap_or_default()
}

/// Returns the start of the session in microseconds since 1970.
fn start_us(observed: &Observation) -> Option<u64> {
    (observed.trace["session_start_filetime"].as_u64()? / 10).checked_sub(FILETIME_EPOCH_US)
}

fn losses(observed: &Observation) -> Check {
    let lost = ["events_lost", "buffers_lost"].into_iter().filter_map(|column| {
        let lost = observed.trace[column].as_u64().unwrap_or(1);
        (lost > 0).then(|| format!("{column} {lost}"))
    });
    Check::new("lost events", "0".to_owned(), lost.collect())
}

fn opened(matches: &HandleMatches<'_>) -> Check {
    let missing: Vec<String> = matches
        .iter()
        .filter(|(_, row)| row.is_none())
        .map(|(handle, _)| format!("{} is not in the trace", label(handle)))
        .collect();
    Check::new("handles", format!("{} opened", matches.len()), missing)
}

/// Compares one property of every handle that is in the trace.
fn compare_each(
    name: &'static str,
    matches: &HandleMatches<'_>,
    difference: impl Fn(&ExpectedHandle, &Value) -> Option<String>,
) -> Check {
    let known: Vec<(&ExpectedHandle, &Value)> =
        matches.iter().filter_map(|(handle, row)| Some((*handle, (*row)?))).collect();
    let differences = known.iter().filter_map(|(handle, row)| {
        difference(handle, row).map(|difference| format!("{}: {difference}", label(handle)))
    });
    Check::new(name, format!("of {} handles", known.len()), differences.collect())
}

fn stacks(matches: &HandleMatches<'_>) -> Check {
    let has_names = matches.iter().flat_map(|(_, row)| row).any(|row| {
        let text = text(&row["stack_text"]);
        text.lines().any(|line| line.contains('!') && line.to_lowercase().contains("leaky"))
    });
    let has_stacks =
        matches.iter().flat_map(|(_, row)| row).any(|row| !text(&row["stack_text"]).is_empty());
    if has_stacks && !has_names {
        let reason = "no function of the program has a name: its PDB is not on the symbol path";
        return Check { name: "stacks", outcome: CheckOutcome::NotChecked(reason.to_owned()) };
    }
    compare_each("stacks", matches, |handle, row| {
        let is_there = text(&row["stack_text"]).contains(&handle.function);
        (!is_there).then(|| format!("{} is not on its stack", handle.function))
    })
}

/// Checks that the program's functions opened no handles that the truth does not have.
fn no_others(expected: &Expectation, observed: &Observation, matches: &HandleMatches<'_>) -> Check {
    let known: HashSet<u64> =
        matches.iter().filter_map(|(_, row)| Some(number_of((*row)?))).collect();
    let functions: HashSet<&str> =
        expected.handles.iter().map(|handle| handle.function.as_str()).collect();
    let others = observed.handles.iter().filter_map(|row| {
        let is_ours = expected.pids.iter().any(|pid| row["pid"].as_u64() == Some((*pid).into()));
        if !is_ours || row["kind"] == "view" || known.contains(&number_of(row)) {
            return None;
        }
        let function = text(&row["function"]);
        let function = functions.iter().find(|name| function.ends_with(*name))?;
        Some(format!("{} {} of {function}", text(&row["type"]), text(&row["key"])))
    });
    Check::new("no other handles", "of these functions".to_owned(), others.collect())
}

/// Compares leaked handles by type, for the functions of the truth.
fn counts(expected: &Expectation, matches: &HandleMatches<'_>, observed: &Observation) -> Check {
    let mut leaked: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for handle in expected.handles.iter().filter(|handle| handle.fate != Fate::Closed) {
        leaked.entry(&handle.object_type).or_default()[0] += 1;
    }
    let known: HashSet<u64> =
        matches.iter().filter_map(|(_, row)| Some(number_of((*row)?))).collect();
    for row in observed.handles.iter().filter(|row| known.contains(&number_of(row))) {
        if fate(row) != Fate::Closed {
            leaked.entry(text(&row["type"])).or_default()[1] += 1;
        }
    }
    let differences = leaked.iter().filter(|(_, [expected, observed])| expected != observed).map(
        |(object_type, [expected, observed])| {
            format!("{object_type}: {observed} instead of {expected}")
        },
    );
    let compared = leaked
        .iter()
        .map(|(object_type, [count, _])| format!("{object_type} {count}"))
        .collect::<Vec<_>>()
        .join(", ");
    Check::new("leaked by type", compared, differences.collect())
}

fn views(expected: &Expectation, observed: &Observation) -> Check {
    const NAME: &str = "mapped views";
    let rows: HashMap<(u64, u64), &Value> = observed
        .handles
        .iter()
        .filter(|row| row["kind"] == "view")
        .filter_map(|row| Some(((row["pid"].as_u64()?, number(&row["key"])?), row)))
        .collect();
    if rows.is_empty() {
        let reason = "views of files were not recorded".to_owned();
        return Check { name: NAME, outcome: CheckOutcome::NotChecked(reason) };
    }
    let differences = expected.views.iter().filter_map(|view| {
        let label = format!("view 0x{:X} of {}", view.address, view.function);
        let Some(row) = rows.get(&(view.pid.into(), view.address)) else {
            return Some(format!("{label} is not in the trace"));
        };
        let size = difference("size", view.size, number(&row["size"]).unwrap_or_default());
        let fate = difference("fate", word(view.fate), word(fate(row)));
        Some(format!("{label}: {}", size.or(fate)?))
    });
    Check::new(NAME, expected.views.len().to_string(), differences.collect())
}

fn allocations(kind: AllocationKind, expected: &Expectation, observed: &Observation) -> Check {
    let name = match kind {
        AllocationKind::Heap => "heap blocks",
        AllocationKind::Commit => "committed pages",
        AllocationKind::Gdi => "GDI objects",
        AllocationKind::User => "USER objects",
    };
    let of_kind = observed.allocations.iter().filter(|row| row["kind"] == kind.name());
    let mut rows: HashMap<(u64, u64), Vec<&Value>> = HashMap::new();
    for row in of_kind {
        if let Some(key) = row["pid"].as_u64().zip(number(&row["key"])) {
            rows.entry(key).or_default().push(row);
        }
    }
    let of_truth: Vec<&Allocation> =
        expected.allocations.iter().filter(|allocation| allocation.kind == kind).collect();
    if of_truth.is_empty() || rows.is_empty() {
        let reason = if of_truth.is_empty() { "the program made none" } else { "not recorded" };
        return Check { name, outcome: CheckOutcome::NotChecked(reason.to_owned()) };
    }
    let start_us = start_us(observed).unwrap_or_default();
    let differences = of_truth.iter().filter_map(|allocation| {
        let label = format!("0x{:X} of {}", allocation.key, allocation.function);
        let rows = rows.get(&(allocation.pid.into(), allocation.key));
        let near = rows.into_iter().flatten().min_by_key(|row| {
            let at_us = start_us + row["opened_ns"].as_u64().unwrap_or_default() / 1_000;
            at_us.abs_diff(allocation.at_us)
        });
        let Some(row) = near else { return Some(format!("{label} is not in the trace")) };
        let size = row["size"].as_u64().unwrap_or_default();
        let size = (allocation.size > 0).then(|| difference("size", allocation.size, size));
        let ended = match text(&row["end"]) {
            "open" => Fate::Leaked,
            "at_exit" => Fate::ClosedAtExit,
            _ => Fate::Closed,
        };
        let fate = difference("fate", word(allocation.fate), word(ended));
        Some(format!("{label}: {}", size.flatten().or(fate)?))
    });
    Check::new(name, of_truth.len().to_string(), differences.collect())
}

/// Checks that `.why` names the functions that leak many handles, and none that leaks nothing before them.
fn suspects(expected: &Expectation, observed: &Observation) -> Check {
    const NAME: &str = "suspects of .why";
    let leaking = expected.leaking();
    let named: Vec<&str> = observed
        .suspects
        .iter()
        .filter(|suspect| {
            text(&suspect["process"]).starts_with(&expected.process) && suspect["bytes"].is_null()
        })
        .map(|suspect| text(&suspect["function"]))
        .collect();
    if named.iter().all(|function| !function.contains('!')) {
        let reason = "no suspect has a function with a name".to_owned();
        return Check { name: NAME, outcome: CheckOutcome::NotChecked(reason) };
    }
    let many = leaking.iter().filter(|(_, (leaked, _))| *leaked >= MANY);
    let missing = many.filter(|(function, _)| !named.iter().any(|name| name.ends_with(*function)));
    let missing = missing.map(|(function, (leaked, opened))| {
        format!("{function}, which leaks {leaked} of {opened}, is none")
    });
    let first = named
        .iter()
        .take(leaking.len())
        .filter(|name| !leaking.keys().any(|function| name.ends_with(function)))
        .map(|name| format!("{name}, which leaks nothing, is among the first"));
    let differences = missing.chain(first).collect();
    Check::new(NAME, named.iter().take(3).copied().collect::<Vec<_>>().join(", "), differences)
}

/// Returns what became of the handle of a row.
fn fate(row: &Value) -> Fate {
    match (&row["leaked"], &row["at_exit"]) {
        (Value::Bool(true), _) => Fate::Leaked,
        (_, Value::Bool(true)) => Fate::ClosedAtExit,
        _ => Fate::Closed,
    }
}

fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Closed => "closed",
        Fate::Leaked => "leaked",
        Fate::ClosedAtExit => "closed at exit",
    }
}

fn label(handle: &ExpectedHandle) -> String {
    format!("{} 0x{:X} of {}", handle.object_type, handle.handle, handle.function)
}

fn difference<A: fmt::Display, B: fmt::Display>(
    what: &str,
    expected: A,
    observed: B,
) -> Option<String> {
    let (expected, observed) = (expected.to_string(), observed.to_string());
    (expected != observed).then(|| format!("{what} '{observed}' instead of '{expected}'"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
