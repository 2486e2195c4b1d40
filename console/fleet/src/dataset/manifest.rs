//! The manifest of a trace: what was written for it. Questions and checks use it to notice missing or damaged files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::DatasetError;
use super::merged::MergedDays;
use super::origin::TraceLabels;
use super::store::{LocalFile, open};
use super::tables::SCHEMA_VERSION;
use super::{Dataset, LAST, MANIFESTS, Partition, name_in};
use handlescope_session::cancel::Cancel;

/// Number of bytes hashed at once.
const BUFFER_BYTES: usize = 1 << 16;

/// Maximum size of a part that a query compares with the manifest byte by byte, even if it may skip the part. For a
/// larger part it compares only the size; damage then shows when the part cannot be read.
pub const COMPARED_BYTES: u64 = 4 << 20;

/// What was written for a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceManifest {
    pub schema_version: i32,
    /// Version of the program.
    pub extractor: String,
    /// Facts given for the trace; they are reused if its rows are written again.
    pub given: TraceLabels,
    /// Day of the session start.
    pub date: String,
    /// Whether the tables are being placed or removed, or a process was killed while doing so.
    #[serde(default)]
    pub unfinished: bool,
    pub tables: BTreeMap<String, TableSummary>,
}

/// Rows and content of a table of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSummary {
    pub rows: u64,
    pub bytes: u64,
    pub sha256: String,
}

impl TraceManifest {
    /// Creates the manifest of a trace that has no tables in place yet.
    pub fn new(
        given: TraceLabels,
        partition: &Partition,
        tables: BTreeMap<String, TableSummary>,
    ) -> Self {
        let extractor = env!("CARGO_PKG_VERSION").to_owned();
        let date = partition.date.to_string();
        let schema_version = SCHEMA_VERSION;
        Self { schema_version, extractor, given, date, unfinished: true, tables }
    }

    /// Returns the partition of its trace.
    pub fn partition(&self, trace: &str) -> Option<Partition> {
        Some(Partition { date: self.date.parse().ok()?, trace: trace.to_owned() })
    }
}

impl TableSummary {
    /// Summarizes a file with this number of rows.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(path: &Path, rows: u64) -> Result<Self, DatasetError> {
        let mut file = open(path).map_err(DatasetError::io(path))?;
        let (mut hasher, mut bytes) = (Sha256::new(), 0);
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = file.read(&mut buffer).map_err(DatasetError::io(path))?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            bytes += read as u64;
        }
        let digits = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { rows, bytes, sha256: digits })
    }
}

impl Dataset {
    /// Reads the manifest of a trace.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn manifest(&self, trace: &str) -> Result<TraceManifest, DatasetError> {
        let name = name_in(MANIFESTS, trace);
        let manifest: Option<TraceManifest> = self.store.read_json(&name)?;
        let manifest = manifest.ok_or_else(|| DatasetError::Missing(self.store.path(&name)))?;
        // Names of tables become names of folders.
        let is_name = |table: &&String| {
            table.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        match manifest.tables.keys().find(|table| !is_name(table)) {
            Some(table) => {
                let reason = format!("{table:?} is not the name of a table");
                Err(self.store.damaged(&name, reason))
            }
            None => Ok(manifest),
        }
    }

    /// Returns the traces for a question about some days, by day and id, after checking that every file in their
    /// manifests exists. Skips traces of an interrupted process.
    ///
    /// # Errors
    /// If a part or a manifest is missing, or a part has another size than was written.
    pub fn complete_traces(
        &self,
        is_chosen: impl Fn(&str) -> bool,
    ) -> Result<Vec<Partition>, DatasetError> {
        let merged = self.merged_days()?;
        let mut traces = self.traces_beside(&merged)?;
        let mut ids = BTreeSet::new();
        for partition in &traces {
            if !ids.insert(partition.trace.clone()) {
                return Err(DatasetError::Planted(self.part(LAST, partition)));
            }
        }
        traces.retain(|partition| is_chosen(&partition.date.to_string()));
        let mut complete = Vec::new();
        for partition in traces {
            match self.expect_parts(&partition, &merged) {
                Ok(()) => complete.push(partition),
                Err(_) if self.was_removed(&partition)? => {}
                Err(error) => return Err(error),
            }
        }
        for (date, day) in merged.0.iter().filter(|(date, _)| is_chosen(&date.to_string())) {
            day.files(*date).try_for_each(|(name, written)| self.expect_file(&name, written))?;
        }
        for (trace, _) in self.beside_tables(MANIFESTS)? {
            if !ids.contains(&trace) {
                self.expect_trace(&trace, &is_chosen)?;
            }
        }
        Ok(complete)
    }

    /// Whether another process has removed a trace, or begun to replace it, since it was listed.
    fn was_removed(&self, partition: &Partition) -> Result<bool, DatasetError> {
        let is_expected = match self.manifest(&partition.trace) {
            Err(DatasetError::Missing(_)) => false,
            manifest => !manifest?.unfinished,
        };
        Ok(!is_expected && !self.is_listed(partition)?)
    }

    /// Whether `traces` has a trace now.
    pub fn is_listed(&self, partition: &Partition) -> Result<bool, DatasetError> {
        let Partition { date, trace } = partition;
        let has_part = self.store.size(&partition.part(LAST))?.is_some();
        Ok(has_part || self.merged_day(*date)?.is_some_and(|day| day.traces.contains(trace)))
    }

    /// Fails if a part of a trace is missing or has another size than was written; files of merged traces are not looked at.
    fn expect_parts(&self, partition: &Partition, merged: &MergedDays) -> Result<(), DatasetError> {
        let manifest = self.manifest(&partition.trace)?;
        if manifest.date != partition.date.to_string() {
            return Err(DatasetError::Planted(self.part(LAST, partition)));
        }
        if merged.has(partition) {
            return Ok(());
        }
        for (table, written) in &manifest.tables {
            self.expect_file(&partition.part(table), written)?;
        }
        Ok(())
    }

    /// Fails if a file is missing or has another size than was written.
    pub fn expect_file(&self, name: &str, written: &TableSummary) -> Result<(), DatasetError> {
        match self.store.size(name)? {
            Some(bytes) if bytes == written.bytes => Ok(()),
            Some(_) => Err(DatasetError::Changed(self.store.path(name))),
            None => Err(DatasetError::Missing(self.store.path(name))),
        }
    }

    /// Fails if `traces` lacks a trace that was added completely.
    pub fn expect_trace(
        &self,
        trace: &str,
        is_chosen: impl Fn(&str) -> bool,
    ) -> Result<(), DatasetError> {
        let manifest = match self.manifest(trace) {
            // It was removed in the meantime.
            Err(DatasetError::Missing(_)) => return Ok(()),
            manifest => manifest?,
        };
        if manifest.unfinished || !is_chosen(&manifest.date) {
            return Ok(());
        }
        let Some(partition) = manifest.partition(trace) else { return Ok(()) };
        // Another process may have placed it since the traces were listed.
        if self.is_listed(&partition)? {
            Ok(())
        } else {
            Err(DatasetError::Missing(self.part(LAST, &partition)))
        }
    }

    /// The first of the files with the rows of some traces whose content is not what was written.
    pub fn first_damage<'p>(
        &self,
        table: &str,
        partitions: impl Iterator<Item = &'p Partition>,
        cancel: &Cancel,
    ) -> Option<DatasetError> {
        self.files_to_read(table, partitions, u64::MAX, cancel).err()
    }

    /// Compares size and content of a file with what was written, and returns the file.
    pub fn expect_content(
        &self,
        name: &str,
        written: &TableSummary,
    ) -> Result<LocalFile, DatasetError> {
        self.expect_file(name, written)?;
        let path = self.store.path(name);
        let Some(file) = self.store.local(name)? else {
            return Err(DatasetError::Missing(path));
        };
        let now = TableSummary::new(&file.path, written.rows)?;
        if now == *written { Ok(file) } else { Err(DatasetError::Changed(path)) }
    }

    pub fn write_manifest(
        &self,
        trace: &str,
        manifest: &TraceManifest,
    ) -> Result<(), DatasetError> {
        self.store.write_json(&name_in(MANIFESTS, trace), manifest)
    }
}

#[cfg(test)]
impl Dataset {
    /// Writes the manifest of a trace that has only one table, as the table is now.
    pub fn write_manifest_of(&self, table: &str, partition: &Partition) {
        let summary = TableSummary::new(&self.part(table, partition), 1).expect("a file");
        let tables = BTreeMap::from([(table.to_owned(), summary)]);
        let manifest = TraceManifest::new(TraceLabels::default(), partition, tables);
        self.write_manifest(&partition.trace, &manifest).expect("a manifest");
    }
}
