//! Reads a dataset as a whole: lists its traces, and checks whether its files are the ones that were written.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use handlescope_model::Untrusted;
use jiff::civil::Date;
use polars::prelude::{ParquetReader, SerReader};
use thiserror::Error;

use super::error::DatasetError;
use super::manifest::{Manifest, TableSummary};
use super::store::open;
use super::tables::TABLES;
use super::{Dataset, LAST, PART, Partition, extract_name, is_id, manifest_name};
use crate::scan::Record;
use handlescope_session::cancel::Cancel;

/// A trace as `dataset list` shows it.
#[derive(Debug, Clone)]
pub struct ListedTrace {
    pub partition: Partition,
    pub machine: Option<String>,
    pub build: Option<String>,
    pub source: String,
    pub opened: i64,
    pub leaked: i64,
    pub suspects: i64,
    pub events_lost: Option<i64>,
    pub stacks_without_symbols: i64,
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct Checked {
    pub traces: u64,
    pub rows: u64,
    pub bytes: u64,
    pub problems: Vec<Problem>,
}

/// A difference between a dataset and what was written.
#[derive(Debug, Error)]
pub enum Problem {
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
    #[error("{}: left by a process that ended before its end; remove it", Untrusted(.0))]
    LeftBehind(PathBuf),
    #[error("{0}")]
    Dataset(#[from] DatasetError),
}

impl Dataset {
    /// Returns the traces by day, with the facts from their tables.
    ///
    /// # Errors
    /// If a file of a trace is missing, or cannot be read.
    pub fn listed(&self) -> Result<Vec<ListedTrace>, DatasetError> {
        let partitions = self.complete_traces(|_| true)?.into_iter();
        partitions.map(|partition| self.listed_trace(partition)).collect()
    }

    fn listed_trace(&self, partition: Partition) -> Result<ListedTrace, DatasetError> {
        let path = self.part(LAST, &partition);
        self.part_to_read(LAST, &partition, u64::MAX)?;
        let content = self.store.read(&partition.part(LAST))?.unwrap_or_default();
        let frame = ParquetReader::new(Cursor::new(content)).finish();
        let frame = frame.map_err(DatasetError::parquet(path))?;
        let row = Record::first(&frame);
        Ok(ListedTrace {
            machine: row.text("machine"),
            build: row.text("build"),
            source: row.text("source").unwrap_or_default(),
            opened: row.count("opened"),
            leaked: row.count("leaked"),
            suspects: row.count("suspects"),
            events_lost: row.number("events_lost").map(|lost| lost as i64),
            stacks_without_symbols: row.count("stacks_without_symbols"),
            partition,
        })
    }

    /// Returns the ids of all traces that have anything stored.
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

    /// Returns the id of the stored trace that begins with these digits; `None` if it was removed before.
    ///
    /// # Errors
    /// If there never was one, or there are several.
    pub fn stored(&self, id: &str) -> Result<Option<String>, DatasetError> {
        let ids = self.stored_traces()?.into_keys();
        let id = match super::the_only(id, ids) {
            Err(DatasetError::NoTrace(id)) => id,
            stored => return stored.map(Some),
        };
        // A bucket has no locks that would tell.
        let was_there = self.store.was_locked(&id)? || (!self.store.is_folder() && is_id(&id));
        if was_there { Ok(None) } else { Err(DatasetError::NoTrace(id)) }
    }

    /// Compares all files with what was written.
    ///
    /// # Errors
    /// If a folder cannot be read, or `cancel` asks to stop.
    pub fn check(&self, cancel: &Cancel) -> Result<Checked, DatasetError> {
        let mut checked = Checked::default();
        let mut complete = BTreeMap::new();
        for partition in self.traces()? {
            cancel.check()?;
            checked.traces += 1;
            self.check_trace(&partition, &mut checked);
            complete.insert(partition.trace, partition.date);
        }
        for (trace, path) in self.stored_traces()? {
            if complete.contains_key(&trace) {
                continue;
            }
            let unfinished = self.manifest(&trace).is_ok_and(|manifest| manifest.unfinished);
            checked.problems.push(match self.expect_trace(&trace, |_| true) {
                Err(error) if !unfinished => error.into(),
                _ => Problem::Orphan { path, trace },
            });
        }
        let planted = self.planted(&complete)?;
        checked.problems.extend(planted.into_iter().map(Problem::Dataset));
        checked.problems.extend(self.store.left_behind()?.into_iter().map(Problem::LeftBehind));
        Ok(checked)
    }

    /// Finds files and folders that belong to no trace, and links that replace folders. Hidden files are fine, because
    /// no engine reads them.
    fn planted(
        &self,
        complete: &BTreeMap<String, Date>,
    ) -> Result<Vec<DatasetError>, DatasetError> {
        let mut planted = Vec::new();
        for table in self.store.names("")? {
            let is_table = TABLES.iter().any(|known| known.name == table);
            // A newer program may have more tables.
            let is_known = is_table || table.starts_with(['_', '.']) || self.unread().is_some();
            let days = match self.expect_name(&table, is_known, &mut planted) && is_table {
                true => self.store.names(&table)?,
                false => Vec::new(),
            };
            for day in days {
                let folder = format!("{table}/{day}");
                let date = day.strip_prefix("date=").and_then(|day| day.parse().ok());
                if self.expect_name(&folder, date.is_some(), &mut planted) {
                    self.planted_on(&folder, date, complete, &mut planted)?;
                }
            }
        }
        Ok(planted)
    }

    /// Finds such files and folders in the folder of a day.
    fn planted_on(
        &self,
        day: &str,
        date: Option<Date>,
        complete: &BTreeMap<String, Date>,
        planted: &mut Vec<DatasetError>,
    ) -> Result<(), DatasetError> {
        for trace in self.store.names(day)? {
            let folder = format!("{day}/{trace}");
            let id = trace.strip_prefix("trace=");
            let known = id.and_then(|id| complete.get(id));
            // Leftovers of other traces are reported as orphans.
            let is_known = id.is_some() && known.is_none_or(|known| Some(*known) == date);
            if !self.expect_name(&folder, is_known, planted) || known.is_none() {
                continue;
            }
            for part in self.store.names(&folder)? {
                self.expect_name(&format!("{folder}/{part}"), part == PART, planted);
            }
        }
        Ok(())
    }

    /// Whether a file or folder belongs to the dataset; if not, adds it to `planted`.
    fn expect_name(&self, name: &str, is_known: bool, planted: &mut Vec<DatasetError>) -> bool {
        let path = self.store.path(name);
        let is_hidden = || {
            let is_file = matches!(self.store.size(name), Ok(Some(_)));
            is_file && name.rsplit('/').next().is_some_and(|name| name.starts_with(['_', '.']))
        };
        if self.store.is_link(name) {
            planted.push(DatasetError::Link(path));
        } else if !is_known && !is_hidden() {
            planted.push(DatasetError::Planted(path));
        } else {
            return is_known;
        }
        false
    }

    fn check_trace(&self, partition: &Partition, checked: &mut Checked) {
        let manifest = match self.manifest(&partition.trace) {
            Ok(manifest) => manifest,
            Err(error) => return checked.problems.push(error.into()),
        };
        if manifest.date != partition.date.to_string() {
            let path = self.part(LAST, partition);
            checked.problems.push(DatasetError::Planted(path).into());
        }
        let (version, marked) = (manifest.schema_version, self.version);
        if version > marked {
            let path = self.part(LAST, partition);
            checked.problems.push(Problem::Version { path, version, marked });
        }
        for (table, written) in &manifest.tables {
            let path = self.part(table, partition);
            checked.rows += written.rows;
            checked.bytes += written.bytes;
            let summary = self
                .expect_part(table, partition, written)
                .and_then(|()| self.summary(table, partition));
            match summary {
                Ok(Some(now)) if now == *written => {}
                Ok(Some(_)) => checked.problems.push(DatasetError::Changed(path).into()),
                Ok(None) => checked.problems.push(DatasetError::Missing(path).into()),
                Err(error) => checked.problems.push(error.into()),
            }
        }
    }

    /// Returns the rows and content of a file as it is now.
    fn summary(
        &self,
        table: &str,
        partition: &Partition,
    ) -> Result<Option<TableSummary>, DatasetError> {
        let Some(file) = self.store.local(&partition.part(table))? else { return Ok(None) };
        // A file that is not Parquet also has other content, so the number of rows does not matter.
        let rows = rows_of(&file.path).unwrap_or_default();
        TableSummary::of(&file.path, rows).map(Some)
    }

    /// Removes a trace, its extract and its manifest.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(&self, trace: &str) -> Result<(), DatasetError> {
        let _lock = self.store.lock(trace)?;
        if let Ok(manifest) = self.manifest(trace) {
            // On a full disk the manifest stays unchanged. If removing is then interrupted, questions fail until it is
            // repeated.
            let _ = self.write_manifest(trace, &Manifest { unfinished: true, ..manifest });
        }
        self.remove_rows(trace)?;
        self.store.remove(&extract_name(trace))?;
        self.store.remove(&manifest_name(trace))
    }
}

/// Returns the number of rows in a file.
fn rows_of(path: &Path) -> Result<u64, DatasetError> {
    let file = open(path).map_err(DatasetError::io(path))?;
    let rows = ParquetReader::new(file).num_rows().map_err(DatasetError::parquet(path))?;
    Ok(rows as u64)
}
