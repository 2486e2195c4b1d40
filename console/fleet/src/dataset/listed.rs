//! The traces of a dataset, with the facts from the table `traces`.

use std::collections::{BTreeMap, HashMap};

use polars::prelude::DataFrame;

use super::error::DatasetError;
use super::{Dataset, LAST, Partition, TRACE};
use crate::FleetError;
use crate::scan::{AnswerRow, each, records};
use handlescope_session::cancel::Cancel;

/// A trace as `dataset list` shows it.
#[derive(Debug, Clone)]
pub struct ListedTrace {
    pub partition: Partition,
    pub machine: Option<String>,
    pub build: Option<String>,
    pub source: String,
    /// Length in seconds; `None` without a clock.
    pub recorded_s: Option<f64>,
    pub opened: i64,
    pub leaked: i64,
    pub closed_at_exit: i64,
    pub suspects: i64,
    pub events_lost: Option<i64>,
    pub buffers_lost: i64,
    pub stacks_without_symbols: i64,
}

/// Columns of it.
const LISTED: [&str; 11] = [
    "machine",
    "build",
    "source",
    "recorded_s",
    "opened",
    "leaked",
    "closed_at_exit",
    "suspects",
    "events_lost",
    "buffers_lost",
    "stacks_without_symbols",
];

impl ListedTrace {
    fn new(partition: &Partition, row: AnswerRow<'_>) -> Self {
        Self {
            partition: partition.clone(),
            machine: row.text("machine"),
            build: row.text("build"),
            source: row.text("source").unwrap_or_default(),
            recorded_s: row.number("recorded_s"),
            opened: row.count("opened"),
            leaked: row.count("leaked"),
            closed_at_exit: row.count("closed_at_exit"),
            suspects: row.count("suspects"),
            events_lost: row.number("events_lost").map(|lost| lost as i64),
            buffers_lost: row.count("buffers_lost"),
            stacks_without_symbols: row.count("stacks_without_symbols"),
        }
    }
}

impl Dataset {
    /// Returns the traces by day, with the facts from their tables.
    ///
    /// # Errors
    /// If a file of a trace is missing, or cannot be read.
    pub fn listed(&self) -> Result<Vec<ListedTrace>, DatasetError> {
        let _reading = self.reading();
        let partitions = self.complete_traces(|_| true)?;
        let listed = self.listed_among(&partitions, &Cancel::default());
        let mut listed = listed.map_err(|error| match error {
            FleetError::Dataset(error) => error,
            FleetError::Tables(source) => {
                DatasetError::Parquet { path: self.store.path(LAST), source }
            }
            error => self.store.damaged(LAST, error.to_string()),
        })?;
        let nothing = DataFrame::empty();
        let without_row = |partition| ListedTrace::new(partition, AnswerRow::first(&nothing));
        let all = partitions.iter();
        Ok(all.map(|it| listed.remove(it).unwrap_or_else(|| without_row(it))).collect())
    }

    /// Returns those of some traces that have a row in the table `traces`.
    ///
    /// # Errors
    /// If a file cannot be read, or `cancel` asks to stop.
    pub fn listed_among(
        &self,
        partitions: &[Partition],
        cancel: &Cancel,
    ) -> Result<BTreeMap<Partition, ListedTrace>, FleetError> {
        let by_id: HashMap<&str, &Partition> =
            partitions.iter().map(|partition| (partition.trace.as_str(), partition)).collect();
        let mut listed = BTreeMap::new();
        each(self, LAST, &LISTED, partitions.iter(), cancel, |rows| {
            listed.extend(records(&rows).filter_map(|row| {
                let partition = *by_id.get(row.text(TRACE)?.as_str())?;
                Some((partition.clone(), ListedTrace::new(partition, row)))
            }));
            Ok(())
        })?;
        Ok(listed)
    }
}
