//! Reads a dataset as a whole: checks whether its files are the ones that were written, and removes traces.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use polars::prelude::{ParquetReader, SerReader};

use super::error::DatasetError;
use super::manifest::{TableSummary, TraceManifest};
use super::merged::{MERGED, MergedDays};
use super::store::open;
use super::tables::TABLES;
use super::{Dataset, EXTRACTS, LAST, MANIFESTS, PART, Partition, day_of, is_id, name_in};
use handlescope_session::cancel::Cancel;

/// The result of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub traces: u64,
    pub rows: u64,
    pub bytes: u64,
    /// Differences between the dataset and what was written.
    pub problems: Vec<DatasetError>,
}

impl Dataset {
    /// Returns the ids of all traces that have anything stored.
    fn stored_traces(&self) -> Result<BTreeMap<String, PathBuf>, DatasetError> {
        let mut stored = BTreeMap::new();
        for table in &TABLES {
            for partition in self.partitions(table.name)? {
                let part = self.part(table.name, &partition);
                stored.entry(partition.trace).or_insert(part);
            }
        }
        for partition in self.merged_days()?.partitions() {
            let part = self.part(LAST, &partition);
            stored.entry(partition.trace).or_insert(part);
        }
        stored.extend(self.beside_tables(EXTRACTS)?);
        stored.extend(self.beside_tables(MANIFESTS)?);
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
    pub fn check(&self, cancel: &Cancel) -> Result<CheckReport, DatasetError> {
        let _reading = self.reading();
        let mut checked = CheckReport::default();
        let mut complete = BTreeMap::new();
        let merged = self.merged_days()?;
        for partition in self.traces_beside(&merged)? {
            cancel.check()?;
            checked.traces += 1;
            self.check_trace(&partition, &merged, &mut checked);
            complete.insert(partition.trace, partition.date);
        }
        for (date, day) in &merged.0 {
            for (name, written) in day.files(*date) {
                cancel.check()?;
                self.check_file(&name, written, &mut checked);
            }
        }
        for (trace, path) in self.stored_traces()? {
            if complete.contains_key(&trace) {
                continue;
            }
            let unfinished = self.manifest(&trace).is_ok_and(|manifest| manifest.unfinished);
            checked.problems.push(match self.expect_trace(&trace, |_| true) {
                Err(error) if !unfinished => error,
                _ => DatasetError::Orphan { path, trace },
            });
        }
        checked.problems.extend(self.planted(&complete, &merged)?);
        let left = self.store.left_behind()?;
        checked.problems.extend(left.into_iter().map(DatasetError::LeftBehind));
        Ok(checked)
    }

    /// Finds files and folders that belong to no trace, and links that replace folders. Hidden files are fine, because
    /// no engine reads them.
    fn planted(
        &self,
        complete: &BTreeMap<String, Date>,
        merged: &MergedDays,
    ) -> Result<Vec<DatasetError>, DatasetError> {
        let mut planted = Vec::new();
        if self.store.is_link(MERGED) {
            planted.push(DatasetError::Link(self.store.path(MERGED)));
        } else {
            self.visit_days(MERGED, &mut planted, |table, date, folder, planted| {
                let listed = merged.0.get(&date).and_then(|day| day.file(table, date));
                for part in self.store.names(folder)? {
                    let name = format!("{folder}/{part}");
                    let is_listed = listed.as_ref().is_some_and(|(listed, _)| *listed == name);
                    self.expect_name(&name, is_listed, planted);
                }
                Ok(())
            })?;
        }
        self.visit_days("", &mut planted, |_, date, folder, planted| {
            for trace in self.store.names(folder)? {
                let folder = format!("{folder}/{trace}");
                let id = trace.strip_prefix("trace=");
                let known = id.and_then(|id| complete.get(id));
                // Leftovers of other traces are reported as orphans.
                let is_known = id.is_some() && known.is_none_or(|known| *known == date);
                if !self.expect_name(&folder, is_known, planted) || known.is_none() {
                    continue;
                }
                for part in self.store.names(&folder)? {
                    self.expect_name(&format!("{folder}/{part}"), part == PART, planted);
                }
            }
            Ok(())
        })?;
        Ok(planted)
    }

    /// Visits the folder of each day of each table below a folder; adds what is beside them to `planted`.
    fn visit_days(
        &self,
        root: &str,
        planted: &mut Vec<DatasetError>,
        mut visit: impl FnMut(&str, Date, &str, &mut Vec<DatasetError>) -> Result<(), DatasetError>,
    ) -> Result<(), DatasetError> {
        let is_top = root.is_empty();
        for table in self.store.names(root)?.into_iter().filter(|name| !is_top || name != MERGED) {
            let is_table = TABLES.iter().any(|known| known.name == table);
            let is_hidden = is_top && table.starts_with(['_', '.']);
            // A newer program may have more tables.
            let is_known = is_table || is_hidden || self.unread().is_some();
            let folder = if is_top { table.clone() } else { format!("{root}/{table}") };
            if !self.expect_name(&folder, is_known, planted) || !is_table {
                continue;
            }
            for day in self.store.names(&folder)? {
                let (folder, date) = (format!("{folder}/{day}"), day_of(&day));
                if self.expect_name(&folder, date.is_some(), planted)
                    && let Some(date) = date
                {
                    visit(&table, date, &folder, planted)?;
                }
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

    fn check_trace(&self, partition: &Partition, merged: &MergedDays, checked: &mut CheckReport) {
        let manifest = match self.manifest(&partition.trace) {
            Ok(manifest) => manifest,
            Err(error) => return checked.problems.push(error),
        };
        if manifest.date != partition.date.to_string() {
            let path = self.part(LAST, partition);
            checked.problems.push(DatasetError::Planted(path));
        }
        let (version, marked) = (manifest.schema_version, self.version);
        if version > marked {
            let path = self.part(LAST, partition);
            checked.problems.push(DatasetError::MarkedOlder { path, version, marked });
        }
        if merged.has(partition) {
            // A merge was interrupted: questions do not read it, and the next merge removes it.
            let left = TABLES.iter().map(|table| partition.folder(table.name));
            let left = left.filter(|name| self.store.names(name).is_ok_and(|it| !it.is_empty()));
            let left = left.map(|name| DatasetError::LeftBehind(self.store.path(&name)));
            return checked.problems.extend(left);
        }
        for (table, written) in &manifest.tables {
            self.check_file(&partition.part(table), written, checked);
        }
    }

    /// Compares a file with what was written.
    fn check_file(&self, name: &str, written: &TableSummary, checked: &mut CheckReport) {
        checked.rows += written.rows;
        checked.bytes += written.bytes;
        let compared = self.expect_content(name, written).and_then(|file| {
            // What is no Parquet file has no rows.
            let has_rows = rows_of(&file.path).unwrap_or_default() == written.rows;
            if has_rows { Ok(()) } else { Err(DatasetError::Changed(self.store.path(name))) }
        });
        checked.problems.extend(compared.err());
    }

    /// Removes traces with their extracts and manifests, and tells `removed` each one that is gone.
    ///
    /// # Errors
    /// When a file cannot be removed, or `cancel` asks to stop.
    pub fn remove<E: From<DatasetError>>(
        &self,
        traces: &BTreeSet<String>,
        cancel: &Cancel,
        mut removed: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let merged = self.merged_days()?;
        let mut days: BTreeMap<Date, BTreeSet<String>> = BTreeMap::new();
        for partition in merged.partitions().filter(|it| traces.contains(&it.trace)) {
            days.entry(partition.date).or_default().insert(partition.trace);
        }
        // Files of merged traces are written once for all that go.
        for (date, traces) in days {
            cancel.check().map_err(DatasetError::from)?;
            traces.iter().for_each(|trace| self.note_removal(trace));
            let _day = self.lock_day(date)?;
            self.unmerge(date, &traces, cancel)?;
        }
        for trace in traces {
            cancel.check().map_err(DatasetError::from)?;
            let _lock = self.store.lock(trace)?;
            self.note_removal(trace);
            if let Some(Partition { date, .. }) = self.find(trace)? {
                let _day = self.lock_day(date)?;
                // It may have been merged just now.
                self.unmerge(date, &BTreeSet::from([trace.clone()]), cancel)?;
                self.remove_rows(trace)?;
            }
            self.remove_rows(trace)?;
            self.store.remove(&name_in(EXTRACTS, trace))?;
            self.store.remove(&name_in(MANIFESTS, trace))?;
            removed(trace)?;
        }
        Ok(())
    }

    /// Notes that a trace goes. On a full disk its manifest stays as it is: if this is interrupted, questions fail until it
    /// is repeated.
    fn note_removal(&self, trace: &str) {
        if let Ok(manifest) = self.manifest(trace) {
            let _ = self.write_manifest(trace, &TraceManifest { unfinished: true, ..manifest });
        }
    }
}

/// Returns the number of rows in a file.
fn rows_of(path: &Path) -> Result<u64, DatasetError> {
    let file = open(path).map_err(DatasetError::io(path))?;
    let rows = ParquetReader::new(file).num_rows().map_err(DatasetError::parquet(path))?;
    Ok(rows as u64)
}
