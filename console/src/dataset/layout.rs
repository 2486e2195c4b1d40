//! Folders and files of a dataset.
//!
//! ```text
//! _dataset.json                                      marker and version
//! _extracts/<trace>.json7z                           extracts, for single traces and for names found later
//! _manifests/<trace>.json                            rows, bytes and hashes of its tables
//! _staging/, _locks/                                 work in progress
//! groups/date=2026-11-21/trace=<id>/part-0.parquet   a table of a trace, likewise for each other table
//! ```
//!
//! Spark, DuckDB and others read `key=value` in the names of folders as columns (Hive's partitions), and Spark ignores
//! names that begin with an underscore. Tables of a trace appear one after the other, each at once, and that of
//! `traces` last, so that a trace is complete when `traces` has it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handlescope_model::OutputFile;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::error::DatasetError;
use super::tables::{SCHEMA_VERSION, TABLES};

const MARKER: &str = "_dataset.json";
const EXTRACTS: &str = "_extracts";
const MANIFESTS: &str = "_manifests";
const STAGING: &str = "_staging";
const LOCKS: &str = "_locks";
const FORMAT: &str = "handlescope dataset";

/// File with the rows of a table of a trace.
pub(crate) const PART: &str = "part-0.parquet";

/// The table that a complete trace has.
pub(crate) const LAST: &str = "traces";

/// Age from which on work in progress is that of a process that was killed.
const LEFT_BEHIND: Duration = Duration::from_hours(24);

/// Hexadecimal digits of the id of a trace.
const ID_DIGITS: usize = 32;

/// Digits of it that are shown.
const SHORT_DIGITS: usize = 12;

/// Content of the marker.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    format: String,
    schema_version: i32,
}

/// A folder with the tables of many traces.
#[derive(Debug, Clone)]
pub struct Dataset {
    root: PathBuf,
}

/// A trace of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partition {
    /// Day of the session start, UTC.
    pub date: Date,
    /// Id of the trace: 32 hexadecimal digits.
    pub trace: String,
}

impl Partition {
    /// The partition of a trace that was recorded at a time, microseconds since 1970.
    pub(super) fn new(started_us: i64, trace: String) -> Self {
        let started = Timestamp::from_microsecond(started_us).unwrap_or_default();
        Self { date: started.to_zoned(TimeZone::UTC).date(), trace }
    }

    /// The digits of the id by which people know the trace.
    pub(crate) fn short(&self) -> &str {
        self.trace.get(..SHORT_DIGITS).unwrap_or(&self.trace)
    }

    /// Its folder within that of a table.
    fn folder(&self) -> PathBuf {
        Path::new(&format!("date={}", self.date)).join(format!("trace={}", self.trace))
    }
}

impl Dataset {
    /// Whether a folder is a dataset.
    pub fn is_at(folder: &Path) -> bool {
        folder.join(MARKER).is_file()
    }

    /// Opens a dataset.
    ///
    /// # Errors
    /// When the folder is none, or one of a newer version.
    pub fn open(folder: &Path) -> Result<Self, DatasetError> {
        if !Self::is_at(folder) {
            return Err(DatasetError::NoDataset(folder.to_path_buf()));
        }
        let path = folder.join(MARKER);
        let text = fs::read_to_string(&path).map_err(DatasetError::io(&path))?;
        let marker: Marker = serde_json::from_str(&text).map_err(|error| DatasetError::Marker {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        if marker.format != FORMAT {
            return Err(DatasetError::NoDataset(folder.to_path_buf()));
        }
        if marker.schema_version > SCHEMA_VERSION {
            let version = marker.schema_version;
            return Err(DatasetError::Newer { path: folder.to_path_buf(), version });
        }
        Ok(Self { root: folder.to_path_buf() })
    }

    /// Opens a dataset, or makes one in an empty or new folder. Several processes may do so at once.
    ///
    /// # Errors
    /// When the folder has other files, or cannot be written.
    pub(crate) fn create(folder: &Path) -> Result<Self, DatasetError> {
        if Self::is_at(folder) {
            return Self::open(folder);
        }
        fs::create_dir_all(folder).map_err(DatasetError::io(folder))?;
        let mut entries = fs::read_dir(folder).map_err(DatasetError::io(folder))?;
        let is_foreign = entries.any(|entry| {
            let name = entry.map(|entry| entry.file_name().to_string_lossy().into_owned());
            !name.is_ok_and(|name| name.starts_with(['_', '.']))
        });
        // Another process may have made it in the meantime.
        if is_foreign && !Self::is_at(folder) {
            return Err(DatasetError::OtherFolder(folder.to_path_buf()));
        }
        let marker = Marker { format: FORMAT.to_owned(), schema_version: SCHEMA_VERSION };
        let text = serde_json::to_string_pretty(&marker).unwrap_or_default() + "\n";
        let path = folder.join(MARKER);
        write_file(&path, &mut text.as_bytes())?;
        Self::open(folder)
    }

    /// The folder of the dataset.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a table.
    pub(crate) fn table(&self, table: &str) -> PathBuf {
        self.root.join(table)
    }

    /// The folder of a table of a trace.
    pub(super) fn folder(&self, table: &str, partition: &Partition) -> PathBuf {
        self.table(table).join(partition.folder())
    }

    /// The rows of a table of a trace.
    pub(crate) fn part(&self, table: &str, partition: &Partition) -> PathBuf {
        self.folder(table, partition).join(PART)
    }

    /// The extract of a trace; it may not be kept.
    pub(crate) fn extract(&self, trace: &str) -> PathBuf {
        self.root.join(EXTRACTS).join(format!("{trace}.json7z"))
    }

    /// The folder of extracts, and the extension of their names.
    pub(super) fn extracts(&self) -> (PathBuf, &'static str) {
        (self.root.join(EXTRACTS), "json7z")
    }

    /// The folder of manifests, and the extension of their names.
    pub(super) fn manifests(&self) -> (PathBuf, &'static str) {
        (self.root.join(MANIFESTS), "json")
    }

    pub(super) fn manifest_path(&self, trace: &str) -> PathBuf {
        self.root.join(MANIFESTS).join(format!("{trace}.json"))
    }

    /// The folder for work in progress, which is made; what processes left there that were killed goes.
    pub(super) fn staging(&self) -> Result<PathBuf, DatasetError> {
        let staging = made(self.root.join(STAGING))?;
        for entry in fs::read_dir(&staging).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|data| data.modified());
            let age = modified.ok().and_then(|modified| modified.elapsed().ok());
            if age.is_some_and(|age| age > LEFT_BEHIND) {
                remove_folder(&entry.path())?;
            }
        }
        Ok(staging)
    }

    /// Traces that are complete, by day and id.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn traces(&self) -> Result<Vec<Partition>, DatasetError> {
        self.partitions(LAST)
    }

    /// Traces that a table has, by day and id; those of an interrupted process, too.
    pub(super) fn partitions(&self, table: &str) -> Result<Vec<Partition>, DatasetError> {
        let mut partitions = Vec::new();
        for (date, folder) in named_folders(&self.table(table), "date=")? {
            let Ok(date) = date.parse() else { continue };
            for (trace, folder) in named_folders(&folder, "trace=")? {
                if folder.join(PART).is_file() {
                    partitions.push(Partition { date, trace });
                }
            }
        }
        partitions.sort();
        Ok(partitions)
    }

    /// The partition of a trace that is complete.
    pub(crate) fn find(&self, trace: &str) -> Result<Option<Partition>, DatasetError> {
        for (date, folder) in named_folders(&self.table(LAST), "date=")? {
            let Ok(date) = date.parse() else { continue };
            if folder.join(format!("trace={trace}")).join(PART).is_file() {
                return Ok(Some(Partition { date, trace: trace.to_owned() }));
            }
        }
        Ok(None)
    }

    /// The trace whose id begins with some digits.
    ///
    /// # Errors
    /// When there is none, or several.
    pub(crate) fn named(&self, id: &str) -> Result<Partition, DatasetError> {
        let mut traces = self.traces()?;
        let id = the_only(id, traces.iter().map(|partition| partition.trace.clone()))?;
        traces.retain(|partition| partition.trace == id);
        traces.pop().ok_or(DatasetError::NoTrace(id))
    }

    /// Waits until no other process changes a trace; it stays so while the file is open.
    pub(super) fn lock(&self, trace: &str) -> Result<File, DatasetError> {
        let path = made(self.root.join(LOCKS))?.join(format!("{trace}.lock"));
        let file = File::options().append(true).create(true).open(&path);
        let file = file.map_err(DatasetError::io(&path))?;
        file.lock().map_err(DatasetError::io(&path))?;
        Ok(file)
    }

    /// Removes the rows of a trace from every table, that of complete traces first.
    pub(super) fn remove_rows(&self, trace: &str) -> Result<(), DatasetError> {
        for table in TABLES.iter().rev() {
            for (_, folder) in named_folders(&self.table(table.name), "date=")? {
                remove_folder(&folder.join(format!("trace={trace}")))?;
                // A day without traces goes, unless another process adds one to it now.
                let _ = fs::remove_dir(&folder);
            }
        }
        Ok(())
    }
}

/// The id that begins with some digits.
///
/// # Errors
/// When there is none, or several.
pub(super) fn the_only(
    id: &str,
    ids: impl Iterator<Item = String>,
) -> Result<String, DatasetError> {
    let id = id.to_ascii_lowercase();
    let mut ids: Vec<String> = ids.filter(|known| known.starts_with(&id)).collect();
    match ids.len() {
        0 => Err(DatasetError::NoTrace(id)),
        1 => Ok(ids.swap_remove(0)),
        _ => Err(DatasetError::Ambiguous { id, ids }),
    }
}

/// Whether a text can be the id of a trace.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Makes a folder, and those above it.
pub(super) fn made(folder: PathBuf) -> Result<PathBuf, DatasetError> {
    fs::create_dir_all(&folder).map_err(DatasetError::io(&folder))?;
    Ok(folder)
}

/// Writes a file, which appears when it is whole, and makes its folder.
pub(super) fn write_file(path: &Path, content: &mut dyn io::Read) -> Result<(), DatasetError> {
    made(path.parent().map(Path::to_path_buf).unwrap_or_default())?;
    let mut write = || {
        let mut file = OutputFile::beside(path)?;
        io::copy(content, &mut file)?;
        file.persist(path)
    };
    write().map_err(DatasetError::io(path))
}

/// Removes a folder with all in it, if it is there.
pub(super) fn remove_folder(folder: &Path) -> Result<(), DatasetError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(DatasetError::Io { path: folder.to_path_buf(), source: error })
        }
        _ => Ok(()),
    }
}

/// Folders whose names begin with a prefix, each with the rest of the name; none where the folder is not there.
fn named_folders(folder: &Path, prefix: &str) -> Result<Vec<(String, PathBuf)>, DatasetError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(DatasetError::io(folder))?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry.map_err(DatasetError::io(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(rest) = name.strip_prefix(prefix) {
            folders.push((rest.to_owned(), entry.path()));
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset() -> (tempfile::TempDir, Dataset) {
        let folder = tempfile::tempdir().expect("a folder");
        let dataset = Dataset::create(folder.path()).expect("a dataset");
        (folder, dataset)
    }

    fn add(dataset: &Dataset, table: &str, date: &str, trace: &str) -> Partition {
        let partition = Partition { date: date.parse().expect("a day"), trace: trace.to_owned() };
        let folder = made(dataset.folder(table, &partition)).expect("a folder");
        fs::write(folder.join(PART), "rows").expect("a file");
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
        assert!(!dataset.folder("groups", &first).exists());
    }

    #[test]
    fn a_folder_of_other_files_is_no_dataset_and_does_not_become_one() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("notes.txt"), "").expect("a file");
        assert!(matches!(Dataset::open(folder.path()), Err(DatasetError::NoDataset(_))));
        assert!(matches!(Dataset::create(folder.path()), Err(DatasetError::OtherFolder(_))));
    }

    #[test]
    fn a_newer_version_is_refused() {
        let (folder, _) = dataset();
        let marker = r#"{"format": "handlescope dataset", "schema_version": 99}"#;
        fs::write(folder.path().join(MARKER), marker).expect("a file");
        assert!(matches!(
            Dataset::open(folder.path()),
            Err(DatasetError::Newer { version: 99, .. })
        ));
    }

    #[test]
    fn the_day_is_that_of_the_start_in_utc() {
        let partition = Partition::new(1_795_305_599_999_999, "aa".to_owned());
        assert_eq!(partition.date.to_string(), "2026-11-21");
    }
}
