//! Datasets: the answers about many traces as Parquet files that any engine can read.
//!
//! `tables` declares the tables and how each column follows from a row, `rows` makes rows of what a trace acquired, and `add`
//! writes them. docs/fleet.md describes datasets for their readers. A dataset has these folders and files:
//!
//! ```text
//! _dataset.json                                      marker and version
//! _extracts/<trace>.json7z                           extracts, for single traces and for names found later
//! _manifests/<trace>.json                            rows, bytes and hashes of its tables
//! _staging/, _locks/                                 work in progress
//! groups/date=2026-11-21/trace=<id>/part-0.parquet   a table of a trace, likewise for each other table
//! merged/groups/date=2026-11-21/part-<hash>.parquet  the same of the traces that _merged/2026-11-21.json lists
//! ```
//!
//! Spark, DuckDB and others read `key=value` in folder names as columns (Hive partitions). Spark ignores names that
//! begin with an underscore. The tables of a trace appear one after another, each atomically, and `traces` comes last.
//! So a trace is complete as soon as `traces` has it. From then on its manifest says so too, and every file that the
//! manifest names must exist.

mod add;
#[cfg(feature = "object-store")]
mod bucket;
mod check;
mod column;
mod compact;
mod error;
mod listed;
mod manifest;
mod merged;
mod origin;
mod rows;
mod store;
mod table_file;
mod tables;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

pub use self::add::{AddOptions, AddResult, STEPS};
pub use self::column::{DatasetColumn, schema};
pub use self::compact::{CompactResult, today};
pub use self::error::DatasetError;
pub use self::listed::ListedTrace;
pub use self::manifest::COMPARED_BYTES;
use self::merged::MergedDays;
pub use self::merged::{RowsFile, TracesOfFile};
pub use self::origin::{TraceLabels, source_id};
pub use self::store::LocalFile;
use self::store::Store;
pub use self::tables::{DATE, DatasetTable, PARTITIONS, SCHEMA_VERSION, TABLES, TRACE};

const MARKER: &str = "_dataset.json";
/// Name of the lock for the marker.
const MARKED: &str = "dataset";
/// Name of the lock of those who read.
const READERS: &str = "readers";
/// Folders with a file of each trace, and the endings of their names.
const EXTRACTS: (&str, &str) = ("_extracts", ".json7z");
const MANIFESTS: (&str, &str) = ("_manifests", ".json");
const FORMAT: &str = "handlescope dataset";

/// Name of the file with the rows of one table and one trace.
pub const PART: &str = "part-0.parquet";

/// The table that only has complete traces.
pub const LAST: &str = "traces";

/// Number of hexadecimal digits of a trace id.
const ID_DIGITS: usize = 32;

/// Number of these digits that people see.
const SHORT_DIGITS: usize = 12;

/// The content of the marker file.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    format: String,
    schema_version: i32,
}

impl Marker {
    /// Reads the marker of a dataset; `None` if there is no dataset.
    fn read(store: &Store) -> Result<Option<Self>, DatasetError> {
        let marker = store.read_json(MARKER)?;
        Ok(marker.filter(|marker: &Self| marker.format == FORMAT))
    }

    /// Marks a folder as a dataset of this version.
    fn write(store: &Store) -> Result<(), DatasetError> {
        let marker = Self { format: FORMAT.to_owned(), schema_version: SCHEMA_VERSION };
        let text = serde_json::to_string_pretty(&marker).unwrap_or_default() + "\n";
        store.write(MARKER, &mut text.as_bytes())
    }
}

/// The tables of many traces.
#[derive(Debug, Clone)]
pub struct Dataset {
    pub store: Store,
    /// Version of the tables: the newest of all programs that added traces.
    pub version: i32,
}

/// A trace in a dataset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partition {
    /// Day of the session start, UTC.
    pub date: Date,
    /// Id of the trace: 32 hexadecimal digits.
    pub trace: String,
}

impl Partition {
    /// Creates the partition of a trace; `started_us` is when its recording started, in microseconds since 1970.
    pub fn new(started_us: i64, trace: String) -> Self {
        let started = Timestamp::from_microsecond(started_us).unwrap_or_default();
        Self { date: started.to_zoned(TimeZone::UTC).date(), trace }
    }

    /// Returns the digits of the id that people see.
    pub fn short(&self) -> &str {
        short(&self.trace)
    }

    /// Returns its folder within a table.
    pub fn folder(&self, table: &str) -> String {
        format!("{table}/date={}/trace={}", self.date, self.trace)
    }

    /// Returns its file within a table.
    pub fn part(&self, table: &str) -> String {
        format!("{}/{PART}", self.folder(table))
    }
}

/// Returns the digits of an id that people see.
pub fn short(trace: &str) -> &str {
    trace.get(..SHORT_DIGITS).unwrap_or(trace)
}

impl Dataset {
    /// Whether a folder, or a folder of a bucket, is a dataset.
    pub fn is_at(location: &Path) -> bool {
        let store = Store::at(location);
        store.is_ok_and(|store| matches!(store.size(MARKER), Ok(Some(_))))
    }

    /// Opens a dataset in a folder, or at a URL like `s3://bucket/fleet`. If its version is newer, only the tables and
    /// columns that this program knows are read.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(location: &Path) -> Result<Self, DatasetError> {
        let store = Store::at(location)?;
        let none = || DatasetError::NoDataset(location.to_path_buf());
        let marker = Marker::read(&store)?.ok_or_else(none)?;
        Ok(Self { store, version: marker.schema_version })
    }

    /// Opens a dataset to change it.
    ///
    /// # Errors
    /// If there is none, or its version is newer; this program would then write incomplete rows.
    pub fn open_to_change(location: &Path) -> Result<Self, DatasetError> {
        let dataset = Self::open(location)?;
        let Self { version, .. } = dataset;
        if version > SCHEMA_VERSION {
            return Err(DatasetError::Newer { path: location.to_path_buf(), version });
        }
        Ok(dataset)
    }

    /// Opens a dataset to add traces of this version, or creates one in an empty or new folder. Several processes may
    /// do so at once.
    ///
    /// # Errors
    /// If the folder has other files, or a dataset of a newer version, or cannot be written.
    pub fn create(location: &Path) -> Result<Self, DatasetError> {
        Self::create_in(location).map_err(|error| error.within(location))
    }

    fn create_in(location: &Path) -> Result<Self, DatasetError> {
        let store = Store::at(location)?;
        if store.size(MARKER)?.is_some() {
            return Self::open_to_change(location)?.raised()?.with_lock_of_readers();
        }
        let names = store.names("")?;
        let is_foreign = names.iter().any(|name| !name.starts_with(['_', '.']));
        // Another process may have created it in the meantime.
        if is_foreign && store.size(MARKER)?.is_none() {
            return Err(DatasetError::OtherFolder(location.to_path_buf()));
        }
        Marker::write(&store)?;
        Self { store, version: SCHEMA_VERSION }.with_lock_of_readers()
    }

    /// Makes the file for [`Self::reading`], which makes none.
    fn with_lock_of_readers(self) -> Result<Self, DatasetError> {
        drop(self.store.lock_if_free(READERS)?);
        Ok(self)
    }

    /// Raises the dataset to the version of this program, if it was older.
    fn raised(self) -> Result<Self, DatasetError> {
        if self.version >= SCHEMA_VERSION {
            return Ok(self);
        }
        let _lock = self.store.lock(MARKED)?;
        // A newer program may have been faster.
        let marker = Marker::read(&self.store)?;
        if marker.is_none_or(|marker| marker.schema_version < SCHEMA_VERSION) {
            Marker::write(&self.store)?;
        }
        Ok(Self { version: SCHEMA_VERSION, ..self })
    }

    /// Says what this program does not read if the dataset has a newer version.
    pub fn unread(&self) -> Option<String> {
        let version = self.version;
        let is_newer = version > SCHEMA_VERSION;
        is_newer.then(|| {
            format!(
                "the dataset has tables of version {version}, but this program knows {SCHEMA_VERSION}: \
                 newer tables and columns are not read"
            )
        })
    }

    /// Returns the folder of the dataset, or its URL.
    pub fn root(&self) -> &Path {
        self.store.root()
    }

    /// Keeps the files that lists name now from being removed because other files have their rows, as long as the result
    /// lives; `None` where nothing can be locked.
    pub fn reading(&self) -> Option<File> {
        self.store.lock_shared(READERS)
    }

    /// Returns path or URL of the rows of a trace in a table.
    pub fn part(&self, table: &str, partition: &Partition) -> PathBuf {
        self.store.path(&partition.part(table))
    }

    /// Returns the folder of the dataset without links and `..`, which file URLs must not contain; a URL is returned
    /// unchanged.
    pub fn resolved_root(&self) -> PathBuf {
        let root = self.root();
        // Windows would add `\\?\`, and its files do not get URLs.
        let resolved = if cfg!(windows) { None } else { root.canonicalize().ok() };
        resolved.unwrap_or_else(|| root.to_path_buf())
    }

    /// Returns the extract of a trace as a local file; `None` if it was not kept.
    ///
    /// # Errors
    /// If it cannot be fetched.
    pub fn extract(&self, trace: &str) -> Result<Option<LocalFile>, DatasetError> {
        self.store.local(&name_in(EXTRACTS, trace))
    }

    /// Returns the traces in `traces`, by day and id. Questions use [`Self::complete_traces`].
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn traces(&self) -> Result<Vec<Partition>, DatasetError> {
        self.traces_beside(&self.merged_days()?)
    }

    /// The same, if these are merged.
    fn traces_beside(&self, merged: &MergedDays) -> Result<Vec<Partition>, DatasetError> {
        let mut traces = self.partitions(LAST)?;
        traces.extend(merged.partitions());
        traces.sort();
        // Of those whose merge was interrupted there are both.
        traces.dedup();
        Ok(traces)
    }

    /// Returns the traces in a table by day and id, including those of an interrupted process.
    pub fn partitions(&self, table: &str) -> Result<Vec<Partition>, DatasetError> {
        let mut partitions = Vec::new();
        for date in self.store.names(table)? {
            let Some(day) = day_of(&date) else { continue };
            for trace in self.store.names(&format!("{table}/{date}"))? {
                if let Some(trace) = trace.strip_prefix("trace=") {
                    partitions.push(Partition { date: day, trace: trace.to_owned() });
                }
            }
        }
        partitions.sort();
        Ok(partitions)
    }

    /// Returns the partition of a complete trace. Its manifest, which is written before any of its rows, has the day.
    pub fn find(&self, trace: &str) -> Result<Option<Partition>, DatasetError> {
        let partition = match self.manifest(trace) {
            Ok(manifest) => manifest.partition(trace),
            Err(DatasetError::Missing(_)) => return Ok(None),
            // A trace with a damaged manifest can still be removed.
            Err(DatasetError::Damaged { .. }) => {
                return Ok(self.traces()?.into_iter().find(|partition| partition.trace == trace));
            }
            Err(error) => return Err(error),
        };
        let Some(partition) = partition else { return Ok(None) };
        Ok(self.is_listed(&partition)?.then_some(partition))
    }

    /// Finds the trace by the first digits of its id.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn named(&self, id: &str) -> Result<Partition, DatasetError> {
        let mut traces = self.traces()?;
        let id = the_only(id, traces.iter().map(|partition| partition.trace.clone()))?;
        traces.retain(|partition| partition.trace == id);
        traces.pop().ok_or(DatasetError::NoTrace(id))
    }

    /// Removes the rows of a trace from every table; `traces`, which marks it as complete, comes first.
    pub fn remove_rows(&self, trace: &str) -> Result<(), DatasetError> {
        for table in TABLES.iter().rev() {
            for date in self.store.names(table.name)? {
                let day = format!("{}/{date}", table.name);
                self.store.remove(&format!("{day}/trace={trace}"))?;
                self.store.remove_empty(&day);
            }
        }
        Ok(())
    }

    /// Returns the ids of traces that have a file in a folder of [`EXTRACTS`] or [`MANIFESTS`], each with its path.
    fn beside_tables(
        &self,
        (folder, ending): (&str, &str),
    ) -> Result<BTreeMap<String, PathBuf>, DatasetError> {
        let names = self.store.names(folder)?.into_iter();
        let traces = names.filter_map(|name| {
            let trace = name.strip_suffix(ending)?.to_owned();
            Some((trace, self.store.path(&format!("{folder}/{name}"))))
        });
        Ok(traces.collect())
    }
}

/// Returns the day that the name of a folder has.
fn day_of(folder: &str) -> Option<Date> {
    folder.strip_prefix("date=")?.parse().ok()
}

/// Returns the name of the file that a trace has in a folder of [`EXTRACTS`] or [`MANIFESTS`].
fn name_in((folder, ending): (&str, &str), trace: &str) -> String {
    format!("{folder}/{trace}{ending}")
}

/// Finds the id that begins with these digits.
///
/// # Errors
/// If there is none, or several.
pub fn the_only(id: &str, ids: impl Iterator<Item = String>) -> Result<String, DatasetError> {
    if id.is_empty() {
        return Err(DatasetError::NoId);
    }
    let id = id.to_ascii_lowercase();
    let mut ids: Vec<String> = ids.filter(|known| known.starts_with(&id)).collect();
    match ids.len() {
        0 => Err(DatasetError::NoTrace(id)),
        1 => Ok(ids.swap_remove(0)),
        _ => Err(DatasetError::Ambiguous { id, ids }),
    }
}

/// Whether a text can be a trace id.
pub fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn dataset() -> (tempfile::TempDir, Dataset) {
        let folder = tempfile::tempdir().expect("a folder");
        let dataset = Dataset::create(folder.path()).expect("a dataset");
        (folder, dataset)
    }

    fn add(dataset: &Dataset, table: &str, date: &str, trace: &str) -> Partition {
        let partition = Partition { date: date.parse().expect("a day"), trace: trace.to_owned() };
        dataset.store.write(&partition.part(table), &mut &b"rows"[..]).expect("a file");
        partition
    }

    #[test]
    fn a_trace_is_complete_when_the_last_table_has_it() {
        let (_folder, dataset) = dataset();
        add(&dataset, "groups", "2026-11-21", "aa");
        assert_eq!(dataset.traces().expect("traces"), []);
        let first = add(&dataset, LAST, "2026-11-21", "aa");
        let second = add(&dataset, LAST, "2026-11-20", "ab");
        assert_eq!(dataset.traces().expect("traces"), [second.clone(), first.clone()]);
        assert_eq!(dataset.named("AB").expect("a trace"), second);
        assert!(matches!(dataset.named("a"), Err(DatasetError::Ambiguous { .. })));
        assert!(matches!(dataset.named("b"), Err(DatasetError::NoTrace(_))));
        dataset.remove_rows("aa").expect("removed");
        assert_eq!(dataset.find("aa").expect("a search"), None);
        let bytes = |table, partition: &Partition| {
            dataset.store.size(&partition.part(table)).expect("a file")
        };
        assert_eq!(bytes("groups", &first), None);
        assert_eq!(bytes("groups", &second), None);
        assert_eq!(bytes(LAST, &second), Some(4));
    }

    #[test]
    fn a_folder_of_other_files_is_no_dataset_and_does_not_become_one() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("notes.txt"), "").expect("a file");
        assert!(matches!(Dataset::open(folder.path()), Err(DatasetError::NoDataset(_))));
        assert!(matches!(Dataset::create(folder.path()), Err(DatasetError::OtherFolder(_))));
    }

    fn mark(folder: &tempfile::TempDir, version: i32) {
        let marker =
            format!(r#"{{"format": "{FORMAT}", "schema_version": {version}, "later": 1}}"#);
        fs::write(folder.path().join(MARKER), marker).expect("a file");
    }

    #[test]
    fn a_newer_version_is_read_with_a_note_and_not_changed() {
        let (folder, dataset) = dataset();
        assert_eq!(dataset.unread(), None);
        mark(&folder, 99);
        let dataset = Dataset::open(folder.path()).expect("a dataset");
        assert!(dataset.unread().expect("a note").contains("version 99"));
        for opened in [Dataset::create(folder.path()), Dataset::open_to_change(folder.path())] {
            let error = opened.expect_err("refused");
            assert!(matches!(error, DatasetError::Newer { version: 99, .. }));
        }
    }

    #[test]
    fn a_dataset_has_the_newest_version_of_the_programs_that_added_traces() {
        let (folder, _) = dataset();
        mark(&folder, SCHEMA_VERSION - 1);
        let version = || Dataset::open(folder.path()).expect("a dataset").version;
        assert_eq!(version(), SCHEMA_VERSION - 1);
        Dataset::create(folder.path()).expect("a dataset");
        assert_eq!(version(), SCHEMA_VERSION);
    }

    #[test]
    fn the_day_is_that_of_the_start_in_utc() {
        let partition = Partition::new(1_795_305_599_999_999, "aa".to_owned());
        assert_eq!(partition.date.to_string(), "2026-11-21");
    }
}
