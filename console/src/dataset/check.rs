//! Reading a dataset as a whole: its traces, and whether its files are those that were written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use handlescope_model::Untrusted;
use polars::prelude::{DataFrame, ParquetReader, SerReader};
use thiserror::Error;

use super::error::DatasetError;
use super::layout::{Dataset, LAST, Partition, extract_name, manifest_name};
use super::manifest::TableSummary;
use super::tables::TABLES;
use crate::cancel::Cancel;

/// A trace as `dataset list` shows it.
#[derive(Debug, Clone)]
pub(crate) struct ListedTrace {
    pub(crate) partition: Partition,
    pub(crate) machine: Option<String>,
    pub(crate) build: Option<String>,
    pub(crate) source: String,
    pub(crate) opened: i64,
    pub(crate) leaked: i64,
    pub(crate) suspects: i64,
    pub(crate) events_lost: Option<i64>,
    pub(crate) stacks_without_symbols: i64,
}

/// Result of a check.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) traces: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) problems: Vec<Problem>,
}

/// A difference between a dataset and what was written.
#[derive(Debug, Error)]
pub(crate) enum Problem {
    #[error("{}: missing; remove the trace and add it again", Untrusted(.0))]
    Missing(PathBuf),
    #[error("{}: not the content that was written; remove the trace and add it again", Untrusted(.0))]
    Changed(PathBuf),
    #[error(
        "{}: version {version}, and the dataset is marked as {marked}; remove the trace and add it \
         again", Untrusted(.path)
    )]
    Version { path: PathBuf, version: i32, marked: i32 },
    #[error(
        "{}: rows of a trace that was not added to the end; add it again, or dataset remove {trace}",
        Untrusted(.path)
    )]
    Orphan { path: PathBuf, trace: String },
    #[error("{0}")]
    Unreadable(DatasetError),
}

impl Dataset {
    /// The traces with what their table says, by day.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn listed(&self) -> Result<Vec<ListedTrace>, DatasetError> {
        let partitions = self.traces()?.into_iter();
        partitions.map(|partition| self.listed_trace(partition)).collect()
    }

    fn listed_trace(&self, partition: Partition) -> Result<ListedTrace, DatasetError> {
        let path = self.part(LAST, &partition);
        let content = self.store.read(&partition.part(LAST))?.unwrap_or_default();
        let frame = ParquetReader::new(Cursor::new(content)).finish();
        let frame = frame.map_err(DatasetError::parquet(path))?;
        let number = |name| number(&frame, name);
        Ok(ListedTrace {
            machine: text(&frame, "machine"),
            build: text(&frame, "build"),
            source: text(&frame, "source").unwrap_or_default(),
            opened: number("opened").unwrap_or_default(),
            leaked: number("leaked").unwrap_or_default(),
            suspects: number("suspects").unwrap_or_default(),
            events_lost: number("events_lost"),
            stacks_without_symbols: number("stacks_without_symbols").unwrap_or_default(),
            partition,
        })
    }

    /// Ids of all traces of which anything is stored.
    fn stored_traces(&self) -> Result<BTreeMap<String, PathBuf>, DatasetError> {
        let mut stored = BTreeMap::new();
        for table in &TABLES {
            for partition in self.partitions(table.name)? {
                let part = self.part(table.name, &partition);
                stored.entry(partition.trace).or_insert(part);
            }
        }
        stored.extend(self.beside_tables()?);
        Ok(stored)
    }

    /// The id of the trace that begins with some digits, and of which anything is stored.
    ///
    /// # Errors
    /// When there is none, or several.
    pub(crate) fn stored(&self, id: &str) -> Result<String, DatasetError> {
        let ids = self.stored_traces()?.into_keys();
        super::layout::the_only(id, ids)
    }

    /// Compares all files with what was written.
    ///
    /// # Errors
    /// When a folder cannot be read, or `cancel` asks to stop.
    pub(crate) fn check(&self, cancel: &Cancel) -> Result<Checked, DatasetError> {
        let mut checked = Checked::default();
        let mut complete = BTreeSet::new();
        for partition in self.traces()? {
            cancel.check()?;
            checked.traces += 1;
            self.check_trace(&partition, &mut checked);
            complete.insert(partition.trace);
        }
        for (trace, path) in self.stored_traces()? {
            if !complete.contains(&trace) {
                checked.problems.push(Problem::Orphan { path, trace });
            }
        }
        Ok(checked)
    }

    fn check_trace(&self, partition: &Partition, checked: &mut Checked) {
        let manifest = match self.manifest(&partition.trace) {
            Ok(manifest) => manifest,
            Err(error) => return checked.problems.push(Problem::Unreadable(error)),
        };
        let (version, marked) = (manifest.schema_version, self.version);
        if version > marked {
            let path = self.part(LAST, partition);
            checked.problems.push(Problem::Version { path, version, marked });
        }
        for (table, written) in &manifest.tables {
            let path = self.part(table, partition);
            checked.rows += written.rows;
            checked.bytes += written.bytes;
            match self.summary(table, partition) {
                Ok(Some(now)) if now == *written => {}
                Ok(Some(_)) => checked.problems.push(Problem::Changed(path)),
                Ok(None) => checked.problems.push(Problem::Missing(path)),
                Err(error) => checked.problems.push(Problem::Unreadable(error)),
            }
        }
    }

    /// Rows and content of a file as it is now.
    fn summary(
        &self,
        table: &str,
        partition: &Partition,
    ) -> Result<Option<TableSummary>, DatasetError> {
        let Some(file) = self.store.local(&partition.part(table))? else { return Ok(None) };
        // What is no Parquet file has other content, too.
        let rows = rows_of(&file.path).unwrap_or_default();
        TableSummary::of(&file.path, rows).map(Some)
    }

    /// Removes a trace, its extract and its manifest.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub(crate) fn remove(&self, trace: &str) -> Result<(), DatasetError> {
        let _lock = self.store.lock(trace)?;
        self.remove_rows(trace)?;
        self.store.remove(&extract_name(trace))?;
        self.store.remove(&manifest_name(trace))
    }
}

/// Number of rows in a file.
fn rows_of(path: &Path) -> Result<u64, DatasetError> {
    let file = File::open(path).map_err(DatasetError::io(path))?;
    let rows = ParquetReader::new(file).num_rows().map_err(DatasetError::parquet(path))?;
    Ok(rows as u64)
}

fn text(frame: &DataFrame, column: &str) -> Option<String> {
    Some(frame.column(column).ok()?.str().ok()?.get(0)?.to_owned())
}

fn number(frame: &DataFrame, column: &str) -> Option<i64> {
    frame.column(column).ok()?.get(0).ok()?.extract()
}
