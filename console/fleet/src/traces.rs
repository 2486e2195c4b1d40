//! The traces of a dataset that a question is about.

use std::array;
use std::collections::BTreeSet;
use std::fs::File;

use polars::prelude::{
    DataFrame, DataType, ExplodeOptions, Expr, IntoLazy, LazyFrame, UnionArgs, col, concat, df,
};

use super::choice::FleetChoice;
use super::scan::{collect, each};
use crate::FleetError;
use crate::dataset::{Dataset, ListedTrace, Partition, TRACE};
use handlescope_session::cancel::Cancel;

/// Name of a machine if the trace does not name it.
const UNKNOWN: &str = "unknown";

/// Number of partial answers about a table that are merged at once.
const MAX_PARTS: usize = 16;

/// A trace in a dataset.
#[derive(Debug, Clone)]
pub struct FleetTrace {
    pub partition: Partition,
    /// Index of its machine in [`Fleet::machines`].
    pub machine: usize,
    /// Day of the session start.
    pub day: String,
    /// Length in seconds; `None` without a clock.
    pub seconds: Option<f64>,
    /// Whether the session lost events or buffers.
    pub has_losses: bool,
    /// Whether it has stacks without symbols.
    pub lacks_symbols: bool,
    /// Number of handles that were never closed, or only by process exit.
    pub unreleased: i64,
}

impl FleetTrace {
    fn new(listed: &ListedTrace, machines: &[String]) -> Self {
        let machine = machine_of(listed);
        Self {
            partition: listed.partition.clone(),
            machine: machines.partition_point(|name| name.as_str() < machine),
            day: listed.partition.date.to_string(),
            seconds: listed.recorded_s,
            has_losses: listed.events_lost.unwrap_or_default() > 0 || listed.buffers_lost > 0,
            lacks_symbols: listed.stacks_without_symbols > 0,
            unreleased: listed.leaked.saturating_add(listed.closed_at_exit),
        }
    }
}

fn machine_of(trace: &ListedTrace) -> &str {
    trace.machine.as_deref().unwrap_or(UNKNOWN)
}

/// The traces of a dataset that match the chosen machines and days.
pub struct Fleet {
    pub dataset: Dataset,
    /// The traces by day and id.
    pub traces: Vec<FleetTrace>,
    /// Names of the machines, sorted.
    pub machines: Vec<String>,
    /// A frame with the ids in the column `trace`, and with [`OF_TRACES`].
    lookup: DataFrame,
    /// Keeps the files.
    _reading: Option<File>,
}

/// Columns that rows get from their trace: its index in [`Fleet::traces`], the name of its machine, and its day.
const OF_TRACES: [&str; 3] = ["number", "machine", "day"];

impl Fleet {
    /// Lists the traces that pass.
    ///
    /// # Errors
    /// If the dataset cannot be read, no trace passes, or `cancel` asks to stop.
    pub fn new(
        dataset: &Dataset,
        choice: &FleetChoice,
        cancel: &Cancel,
    ) -> Result<Self, FleetError> {
        let reading = dataset.reading();
        let days = choice.days.as_ref();
        let chosen = dataset.complete_traces(|day| days.is_none_or(|days| days.matches(day)))?;
        if chosen.is_empty() && dataset.traces()?.is_empty() {
            return Err(FleetError::Empty);
        }
        let mut listed = dataset.listed_among(&chosen, cancel)?;
        listed.retain(|_, trace| {
            choice.machine.as_ref().is_none_or(|filter| filter.matches(machine_of(trace)))
        });
        if listed.is_empty() {
            return Err(FleetError::NoTrace { filters: choice.text() });
        }
        let machines: BTreeSet<&str> = listed.values().map(machine_of).collect();
        let machines: Vec<String> = machines.into_iter().map(str::to_owned).collect();
        let traces: Vec<FleetTrace> =
            listed.values().map(|trace| FleetTrace::new(trace, &machines)).collect();
        let lookup = df!(
            TRACE => listed.keys().map(|partition| partition.trace.as_str()).collect::<Vec<_>>(),
            "number" => (0..).take(listed.len()).collect::<Vec<u32>>(),
            "machine" => listed.values().map(machine_of).collect::<Vec<_>>(),
            "day" => traces.iter().map(|trace| trace.day.as_str()).collect::<Vec<_>>(),
        )?;
        Ok(Self { traces, dataset: dataset.clone(), machines, lookup, _reading: reading })
    }

    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.traces.iter().map(|trace| &trace.partition)
    }

    /// Counts the machines of some traces.
    pub fn machines_of(&self, traces: impl IntoIterator<Item = usize>) -> usize {
        let traces = traces.into_iter().filter_map(|number| self.traces.get(number));
        traces.map(|trace| trace.machine).collect::<BTreeSet<_>>().len()
    }

    /// Returns the days that have traces, in order.
    pub fn days(&self) -> Vec<&str> {
        let mut days: Vec<&str> = self.traces.iter().map(|trace| trace.day.as_str()).collect();
        days.dedup();
        days
    }

    /// Sums up a table that may be larger than memory. `rows` selects and prepares rows, which have the wanted columns
    /// and `trace`, `number`, `machine` and `day`. Each function in `sums` condenses the rows of some files, and later
    /// its own results. Condensing in two steps must give the same result as condensing all rows at once.
    ///
    /// # Errors
    /// If a file cannot be read, or `cancel` asks to stop. A running plan does not notice `cancel`, but plans are about
    /// files of a few MB.
    pub fn summed<const N: usize>(
        &self,
        table: &'static str,
        columns: &[&'static str],
        rows: impl Fn(LazyFrame) -> LazyFrame,
        sums: [&dyn Fn(LazyFrame) -> LazyFrame; N],
        cancel: &Cancel,
    ) -> Result<[DataFrame; N], FleetError> {
        let mut parts: [Vec<DataFrame>; N] = array::from_fn(|_| Vec::new());
        let merge = |sum: &dyn Fn(LazyFrame) -> LazyFrame, parts: &mut Vec<DataFrame>| {
            cancel.check()?;
            let all: Vec<LazyFrame> = parts.drain(..).map(IntoLazy::lazy).collect();
            let sum = collect(sum(concat(all, UnionArgs::default())?))?;
            parts.push(sum.clone());
            Ok::<_, FleetError>(sum)
        };
        let wanted: Vec<&str> =
            columns.iter().copied().filter(|name| !OF_TRACES.contains(name)).collect();
        each(&self.dataset, table, &wanted, self.partitions(), cancel, |batch| {
            let batch = batch.lazy().left_join(self.lookup.clone().lazy(), col(TRACE), col(TRACE));
            let batch = collect(rows(batch))?;
            for (sum, parts) in sums.iter().zip(&mut parts) {
                parts.push(collect(sum(batch.clone().lazy()))?);
                if parts.len() >= MAX_PARTS {
                    merge(sum, parts)?;
                }
            }
            Ok(())
        })?;
        let mut merged = array::from_fn(|_| DataFrame::empty());
        for ((merged, sum), parts) in merged.iter_mut().zip(sums).zip(&mut parts) {
            *merged = merge(sum, parts)?;
        }
        Ok(merged)
    }
}

/// Explodes lists into all their values.
pub const ALL: ExplodeOptions = ExplodeOptions { empty_as_null: false, keep_nulls: false };

/// Collects the trace numbers of a group into a list.
pub fn numbers() -> Expr {
    col("number").cast(DataType::List(Box::new(DataType::UInt32))).explode(ALL).unique()
}

/// Sums whole numbers as floats, because numbers in hostile files would overflow integers.
pub fn sums(columns: &[&str]) -> Vec<Expr> {
    columns.iter().map(|name| col(*name).cast(DataType::Float64).sum()).collect()
}
