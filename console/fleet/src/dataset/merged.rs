//! Traces of days that are over, merged into one file for each table and day.
//!
//! `_merged/<day>.json` lists the traces and files of a day, and replacing it is what changes them: a trace that it lists
//! has its rows in the files that it names, and nowhere else. The files are `merged/<table>/date=<day>/part-<hash>.parquet`,
//! with the column `trace`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::error::DatasetError;
use super::manifest::TableSummary;
use super::tables::{SCHEMA_VERSION, TABLES};
use super::{Dataset, Partition, is_id};
use handlescope_session::cancel::Cancel;

/// Folder of the files.
pub const MERGED: &str = "merged";
/// Folder of the lists.
pub const LISTS: &str = "_merged";

/// Digits of a SHA-256, and those of them that are in the name of a file.
const HASH_DIGITS: usize = 64;
const NAME_DIGITS: usize = 16;

/// The merged traces of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedDay {
    pub schema_version: i32,
    /// Ids of the traces.
    pub traces: BTreeSet<String>,
    /// The files by their tables.
    pub tables: BTreeMap<String, TableSummary>,
}

/// The merged traces of a dataset.
#[derive(Debug, Clone, Default)]
pub struct MergedDays(pub BTreeMap<Date, MergedDay>);

/// A file with rows of some traces.
#[derive(Debug, Clone)]
pub struct RowsFile {
    pub path: PathBuf,
    pub bytes: u64,
    pub traces: TracesOfFile,
}

/// The traces whose rows of a file count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracesOfFile {
    /// The one that the folder names.
    OfFolder,
    /// All of a merged file.
    All,
    /// Some of a merged file.
    Some(BTreeSet<String>),
}

impl MergedDay {
    pub fn new(traces: BTreeSet<String>, tables: BTreeMap<String, TableSummary>) -> Self {
        Self { schema_version: SCHEMA_VERSION, traces, tables }
    }

    /// The first thing that no program wrote: what it names becomes names of files.
    fn problem(&self) -> Option<String> {
        let id = self.traces.iter().find(|id| !is_id(id));
        let is_hash = |text: &str| {
            text.len() == HASH_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
        };
        let hash = self.tables.values().find(|table| !is_hash(&table.sha256));
        let id = id.map(|id| format!("{id:?} is not the id of a trace"));
        id.or_else(|| hash.map(|table| format!("{:?} is not a hash", table.sha256)))
    }

    /// The files of the tables that this program knows, and what was written.
    pub fn files(&self, date: Date) -> impl Iterator<Item = (String, &TableSummary)> {
        TABLES.iter().filter_map(move |table| self.file(table.name, date))
    }

    /// The file of a table, and what was written; `None` for a table that is newer.
    pub fn file(&self, table: &str, date: Date) -> Option<(String, &TableSummary)> {
        let written = self.tables.get(table)?;
        Some((file_name(table, date, written), written))
    }
}

/// Name of the file of a table and day with this content.
pub fn file_name(table: &str, date: Date, written: &TableSummary) -> String {
    let digits = written.sha256.get(..NAME_DIGITS).unwrap_or_default();
    format!("{}/part-{digits}.parquet", day_folder(table, date))
}

/// Folder of the files of a table and day.
pub fn day_folder(table: &str, date: Date) -> String {
    format!("{MERGED}/{table}/date={date}")
}

fn list_name(date: Date) -> String {
    format!("{LISTS}/{date}.json")
}

impl MergedDays {
    /// Whether the rows of a trace are merged.
    pub fn has(&self, partition: &Partition) -> bool {
        self.0.get(&partition.date).is_some_and(|day| day.traces.contains(&partition.trace))
    }

    pub fn partitions(&self) -> impl Iterator<Item = Partition> {
        self.0.iter().flat_map(|(date, day)| {
            day.traces.iter().map(|trace| Partition { date: *date, trace: trace.clone() })
        })
    }
}

impl Dataset {
    /// Lists of merged traces.
    ///
    /// # Errors
    /// When a list cannot be read, or is none that a program wrote.
    pub fn merged_days(&self) -> Result<MergedDays, DatasetError> {
        let mut days = BTreeMap::new();
        for name in self.store.names(LISTS)? {
            let Some(Ok(date)) = name.strip_suffix(".json").map(str::parse) else { continue };
            // The day may have lost its last trace in the meantime.
            days.extend(self.merged_day(date)?.map(|day| (date, day)));
        }
        Ok(MergedDays(days))
    }

    /// The list of a day; `None` where nothing is merged.
    pub fn merged_day(&self, date: Date) -> Result<Option<MergedDay>, DatasetError> {
        let name = list_name(date);
        let day: Option<MergedDay> = self.store.read_json(&name)?;
        match day.as_ref().and_then(MergedDay::problem) {
            Some(reason) => Err(self.store.damaged(&name, reason)),
            None => Ok(day),
        }
    }

    /// Replaces the list of a day; one without traces goes.
    pub fn write_merged_day(&self, date: Date, day: &MergedDay) -> Result<(), DatasetError> {
        if day.traces.is_empty() {
            return self.store.remove(&list_name(date));
        }
        self.store.write_json(&list_name(date), day)
    }

    /// Files with the rows that some traces have in a table, in the order of the traces; none for traces that are older than
    /// the table. The content of files of up to `compared` bytes is compared with what was written.
    ///
    /// # Errors
    /// When a file is not the one that was written, or `cancel` asks to stop.
    pub fn files_to_read<'p>(
        &self,
        table: &str,
        traces: impl Iterator<Item = &'p Partition>,
        compared: u64,
        cancel: &Cancel,
    ) -> Result<Vec<RowsFile>, DatasetError> {
        let days = self.merged_days()?;
        let partitions: Vec<&Partition> = traces.collect();
        // Traces by the merged file that has their rows, until the file is listed.
        let mut merged: BTreeMap<Date, BTreeSet<String>> = BTreeMap::new();
        for partition in partitions.iter().filter(|partition| days.has(partition)) {
            merged.entry(partition.date).or_default().insert(partition.trace.clone());
        }
        let mut files = Vec::new();
        for partition in partitions {
            cancel.check()?;
            let day = days.0.get(&partition.date).filter(|_| days.has(partition));
            let (name, written, traces) = match day {
                None => {
                    let mut manifest = self.manifest(&partition.trace)?;
                    let Some(written) = manifest.tables.remove(table) else { continue };
                    (partition.part(table), written, TracesOfFile::OfFolder)
                }
                Some(day) => {
                    let Some(traces) = merged.remove(&partition.date) else { continue };
                    let Some((name, written)) = day.file(table, partition.date) else { continue };
                    let is_all = traces == day.traces;
                    let traces =
                        if is_all { TracesOfFile::All } else { TracesOfFile::Some(traces) };
                    (name, written.clone(), traces)
                }
            };
            if self.store.is_folder() && written.bytes <= compared {
                self.expect_content(&name, &written)?;
            } else {
                self.expect_file(&name, &written)?;
            }
            files.push(RowsFile { path: self.store.path(&name), bytes: written.bytes, traces });
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_no_program_wrote_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let dataset = Dataset::create(folder.path()).expect("a dataset");
        let date: Date = "2026-11-21".parse().expect("a day");
        let table = |sha256: &str| {
            let summary = TableSummary { rows: 1, bytes: 1, sha256: sha256.to_owned() };
            BTreeMap::from([("groups".to_owned(), summary)])
        };
        let hash = "a".repeat(HASH_DIGITS);
        for (id, hash, is_refused) in [
            ("0".repeat(32), hash.clone(), false),
            ("../x".to_owned(), hash.clone(), true),
            ("0".repeat(32), "../../../etc/passwd".to_owned(), true),
        ] {
            let day = MergedDay::new(BTreeSet::from([id]), table(&hash));
            dataset.write_merged_day(date, &day).expect("a list");
            assert_eq!(dataset.merged_days().is_err(), is_refused, "{day:?}");
        }
        std::fs::write(folder.path().join(list_name(date)), "{").expect("a file");
        assert!(matches!(dataset.traces(), Err(DatasetError::Damaged { .. })));
    }
}
