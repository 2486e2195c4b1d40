//! Traces of a dataset that a question is about.

use std::array;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;

use polars::prelude::{
    DataFrame, DataType, ExplodeOptions, Expr, IntoLazy, LazyFrame, UnionArgs, col, concat, df,
};

use super::choice::FleetCriteria;
use super::scan::{TRACE, collect, each, records};
use crate::FleetError;
use crate::dataset::{Dataset, Partition};
use handlescope_session::cancel::Cancel;

/// Name of a machine that the trace does not name.
const UNKNOWN: &str = "unknown";

/// Answers about parts of a table that are summed up together.
const MAX_PARTS: usize = 16;

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
    /// Column `trace` with the ids, and [`OF_TRACES`].
    lookup: DataFrame,
    /// Keeps the files.
    _reading: Option<File>,
}

/// Columns that rows have of their trace: its number in [`Fleet::traces`], the name of its machine, and its day.
const OF_TRACES: [&str; 3] = ["number", "machine", "day"];

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
        let reading = dataset.reading();
        let days = criteria.days.as_ref();
        let chosen = dataset.complete_traces(|day| days.is_none_or(|days| days.matches(day)))?;
        if chosen.is_empty() && dataset.traces()?.is_empty() {
            return Err(FleetError::Empty);
        }
        let partitions: HashMap<&str, &Partition> =
            chosen.iter().map(|partition| (partition.trace.as_str(), partition)).collect();
        let mut found = BTreeMap::new();
        let columns = [
            TRACE,
            "machine",
            "recorded_s",
            "events_lost",
            "buffers_lost",
            "stacks_without_symbols",
            "leaked",
            "closed_at_exit",
        ];
        each(dataset, "traces", &columns, chosen.iter(), cancel, |rows| {
            for row in records(&rows) {
                let machine = row.text("machine").unwrap_or_else(|| UNKNOWN.to_owned());
                let passes =
                    criteria.machine.as_ref().is_none_or(|filter| filter.matches(&machine));
                let id = row.text(TRACE).filter(|_| passes);
                let partition = id.and_then(|id| partitions.get(id.as_str()).copied());
                let Some(partition) = partition else { continue };
                let trace = FleetTrace {
                    partition: partition.clone(),
                    machine: 0,
                    day: partition.date.to_string(),
                    seconds: row.number("recorded_s"),
                    has_losses: row.count("events_lost") > 0 || row.count("buffers_lost") > 0,
                    lacks_symbols: row.count("stacks_without_symbols") > 0,
                    unreleased: row.count("leaked").saturating_add(row.count("closed_at_exit")),
                };
                found.insert(partition, (machine, trace));
            }
            Ok(())
        })?;
        if found.is_empty() {
            return Err(FleetError::NoTrace { filters: criteria.text() });
        }
        let machines: BTreeSet<&String> = found.values().map(|(machine, _)| machine).collect();
        let machines: Vec<String> = machines.into_iter().cloned().collect();
        let lookup = df!(
            TRACE => found.keys().map(|partition| partition.trace.as_str()).collect::<Vec<_>>(),
            "number" => (0..).take(found.len()).collect::<Vec<u32>>(),
            "machine" => found.values().map(|(machine, _)| machine.as_str()).collect::<Vec<_>>(),
            "day" => found.values().map(|(_, trace)| trace.day.as_str()).collect::<Vec<_>>(),
        )?;
        let traces = found.into_values().map(|(machine, trace)| FleetTrace {
            machine: machines.binary_search(&machine).unwrap_or_default(),
            ..trace
        });
        Ok(Self {
            traces: traces.collect(),
            dataset: dataset.clone(),
            machines,
            lookup,
            _reading: reading,
        })
    }

    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.traces.iter().map(|trace| &trace.partition)
    }

    /// Number of the machines of some traces.
    pub fn machines_of(&self, traces: impl IntoIterator<Item = usize>) -> usize {
        let traces = traces.into_iter().filter_map(|number| self.traces.get(number));
        traces.map(|trace| trace.machine).collect::<BTreeSet<_>>().len()
    }

    /// The days that have traces, in order.
    pub fn days(&self) -> Vec<&str> {
        let mut days: Vec<&str> = self.traces.iter().map(|trace| trace.day.as_str()).collect();
        days.dedup();
        days
    }

    /// Sums up a table that may be larger than memory. `rows` chooses and prepares rows, which have the wanted columns and
    /// `trace`, `number`, `machine` and `day`. Each of `sums` shortens the rows of some files, and later what it made of
    /// them; it has to make the same of both as of all rows at once.
    ///
    /// # Errors
    /// When a file cannot be read, or `cancel` asks to stop, which a plan that runs does not notice: plans are about files
    /// of a few MB.
    pub fn summed<const N: usize>(
        &self,
        table: &'static str,
        columns: &[&'static str],
        rows: impl Fn(LazyFrame) -> LazyFrame,
        sums: [&dyn Fn(LazyFrame) -> LazyFrame; N],
        cancel: &Cancel,
    ) -> Result<[DataFrame; N], FleetError> {
        let wanted = columns.iter().copied().filter(|name| !OF_TRACES.contains(name));
        let wanted: BTreeSet<&str> = wanted.chain([TRACE]).collect();
        let mut parts: [Vec<DataFrame>; N] = array::from_fn(|_| Vec::new());
        let merge = |sum: &dyn Fn(LazyFrame) -> LazyFrame, parts: &mut Vec<DataFrame>| {
            cancel.check()?;
            let all: Vec<LazyFrame> = parts.drain(..).map(IntoLazy::lazy).collect();
            let sum = collect(sum(concat(all, UnionArgs::default())?))?;
            parts.push(sum.clone());
            Ok::<_, FleetError>(sum)
        };
        let wanted: Vec<&str> = wanted.into_iter().collect();
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

/// All values of lists.
pub const ALL: ExplodeOptions = ExplodeOptions { empty_as_null: false, keep_nulls: false };

/// The numbers of the traces of a group, in a list.
pub fn numbers() -> Expr {
    col("number").cast(DataType::List(Box::new(DataType::UInt32))).explode(ALL).unique()
}

/// Sums of whole numbers. Those that hostile files have would overflow as such.
pub fn sums(columns: &[&str]) -> Vec<Expr> {
    columns.iter().map(|name| col(*name).cast(DataType::Float64).sum()).collect()
}
