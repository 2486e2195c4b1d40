//! Traces of a dataset that a question is about.

use std::collections::{BTreeMap, HashMap};

use super::choice::FleetCriteria;
use super::scan::{Row, TRACE, each};
use crate::FleetError;
use crate::dataset::{Dataset, Partition};
use handlescope_session::cancel::Cancel;

/// Name of a machine that the trace does not name.
const UNKNOWN: &str = "unknown";

/// A trace of a dataset.
#[derive(Debug, Clone)]
pub struct FleetTrace {
    pub partition: Partition,
    /// Number of its machine in [`Fleet::machines`].
    pub machine: usize,
    /// Day of the session start.
    pub day: String,
    /// Length in seconds; `None` without a clock.
    pub seconds: Option<f64>,
    /// Whether the session lost events or buffers.
    pub has_losses: bool,
    /// Whether it has stacks without symbols.
    pub lacks_symbols: bool,
    /// Handles that nothing, or nothing but the exit of their process, closed.
    pub unreleased: i64,
}

/// Traces of a dataset that machines and days leave.
pub struct Fleet {
    pub dataset: Dataset,
    /// The traces by day and id.
    pub traces: Vec<FleetTrace>,
    /// Names of the machines, sorted.
    pub machines: Vec<String>,
    by_id: HashMap<String, usize>,
}

impl Fleet {
    /// Lists the traces that pass.
    ///
    /// # Errors
    /// When the dataset cannot be read, no trace is left, or `cancel` asks to stop.
    pub fn new(
        dataset: &Dataset,
        criteria: &FleetCriteria,
        cancel: &Cancel,
    ) -> Result<Self, FleetError> {
        let days = criteria.days.as_ref();
        let chosen = dataset.complete_traces(|day| days.is_none_or(|days| days.matches(day)))?;
        if chosen.is_empty() && dataset.traces()?.is_empty() {
            return Err(FleetError::Empty);
        }
        let partitions: BTreeMap<String, Partition> =
            chosen.into_iter().map(|partition| (partition.trace.clone(), partition)).collect();
        let mut fleet = Self {
            dataset: dataset.clone(),
            traces: Vec::new(),
            machines: Vec::new(),
            by_id: HashMap::new(),
        };
        let mut machines: BTreeMap<String, usize> = BTreeMap::new();
        each(dataset, "traces", COLUMNS, partitions.values(), cancel, |rows| {
            for row in rows {
                let machine = row.text("machine").unwrap_or(UNKNOWN);
                let passes = criteria.machine.as_ref().is_none_or(|filter| filter.matches(machine));
                let partition = row.text(TRACE).and_then(|id| partitions.get(id));
                let Some(partition) = partition.filter(|_| passes) else { continue };
                let next = machines.len();
                let number = *machines.entry(machine.to_owned()).or_insert(next);
                fleet.traces.push(trace_of(&row, partition.clone(), number));
            }
            Ok(())
        })?;
        if fleet.traces.is_empty() {
            return Err(FleetError::NoTrace { filters: criteria.text() });
        }
        let places: HashMap<usize, usize> = machines.values().copied().zip(0..).collect();
        for trace in &mut fleet.traces {
            trace.machine = places.get(&trace.machine).copied().unwrap_or_default();
        }
        fleet.machines = machines.into_keys().collect();
        fleet.traces.sort_by(|a, b| a.partition.cmp(&b.partition));
        let ids = fleet.traces.iter().map(|trace| trace.partition.trace.clone());
        fleet.by_id = ids.zip(0..).collect();
        Ok(fleet)
    }

    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.traces.iter().map(|trace| &trace.partition)
    }

    /// Name of the machine of a trace.
    pub fn machine(&self, trace: &FleetTrace) -> &str {
        self.machines.get(trace.machine).map_or("", String::as_str)
    }

    /// The days that have traces, in order.
    pub fn days(&self) -> Vec<&str> {
        let mut days: Vec<&str> = self.traces.iter().map(|trace| trace.day.as_str()).collect();
        days.dedup();
        days
    }

    /// Reads columns of a table of all traces; each row comes with its trace and the number of it.
    pub fn each(
        &self,
        table: &'static str,
        columns: &[&'static str],
        cancel: &Cancel,
        mut visit: impl FnMut(&FleetTrace, usize, &Row<'_>),
    ) -> Result<(), FleetError> {
        let columns: Vec<&'static str> = columns.iter().copied().chain([TRACE]).collect();
        each(&self.dataset, table, &columns, self.partitions(), cancel, |rows| {
            // Rows of a trace stand together.
            let mut last: Option<(String, usize)> = None;
            for row in rows {
                let Some(id) = row.text(TRACE) else { continue };
                let number = match &last {
                    Some((known, number)) if known == id => Some(*number),
                    _ => self.by_id.get(id).copied(),
                };
                let Some((number, trace)) =
                    number.and_then(|number| Some((number, self.traces.get(number)?)))
                else {
                    continue;
                };
                if last.as_ref().is_none_or(|(known, _)| known != id) {
                    last = Some((id.to_owned(), number));
                }
                visit(trace, number, &row);
            }
            Ok(())
        })
    }
}

/// Columns of `traces` that are read.
const COLUMNS: &[&str] = &[
    TRACE,
    "machine",
    "recorded_s",
    "events_lost",
    "buffers_lost",
    "stacks_without_symbols",
    "leaked",
    "closed_at_exit",
];

/// The trace of a row of `traces`, whose machine has this number.
fn trace_of(row: &Row<'_>, partition: Partition, machine: usize) -> FleetTrace {
    let count = |name| row.whole(name).unwrap_or_default();
    FleetTrace {
        day: partition.date.to_string(),
        partition,
        machine,
        seconds: row.double("recorded_s"),
        has_losses: count("events_lost") > 0 || count("buffers_lost") > 0,
        lacks_symbols: count("stacks_without_symbols") > 0,
        unreleased: count("leaked").saturating_add(count("closed_at_exit")),
    }
}
