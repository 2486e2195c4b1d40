//! Merging the small files of days that are over into one for each table and day.
//!
//! The files of a day are written aside and placed, then its list is replaced, and then what it replaces goes, once nobody
//! reads it any more. Killed at any point, the list names files that are there. Whoever changes rows of a day locks it: a
//! process that adds, replaces or removes a trace after the trace itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use polars::prelude::{DataFrame, col};

use super::error::DatasetError;
use super::manifest::{TableSummary, TraceManifest};
use super::merged::{MERGED, MergedDay, RowsFile, TracesOfFile, day_folder, file_name};
use super::table_file::TableFile;
use super::tables::{DatasetTable, TABLES};
use super::{Dataset, LAST, Partition, READERS, day_of};
use crate::scan::{BATCH_BYTES, BATCH_FILES, collect, of_traces, scan_files, split};
use handlescope_session::cancel::Cancel;

/// Bytes of the tables of a trace that is merged, at most: there is nothing to win of larger ones.
const MAX_BYTES: u64 = 32 << 20;

/// Rows of a row group, of which texts of stacks take most of the memory.
const GROUP_ROWS: usize = 1 << 14;

/// Pause between attempts at a lock.
const PAUSE: Duration = Duration::from_millis(50);

/// Result of merging, before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactResult {
    pub files: [u64; 2],
    pub bytes: [u64; 2],
}

/// The traces of a day that are put together.
struct Day {
    date: Date,
    /// What was merged before.
    before: Option<MergedDay>,
    /// Manifests of all traces that the files are to have. Those of merged ones may be missing.
    traces: BTreeMap<String, Option<TraceManifest>>,
}

impl Day {
    fn partition(&self, trace: &str) -> Partition {
        Partition { date: self.date, trace: trace.to_owned() }
    }

    fn was_merged(&self, trace: &str) -> bool {
        self.before.as_ref().is_some_and(|day| day.traces.contains(trace))
    }

    /// Rows that the traces have in a table; `None` if a trace is being replaced, because its manifest may count other rows.
    fn expected_rows(&self, table: &str) -> Option<u64> {
        let manifests = self.traces.values();
        let manifests = manifests.map(|manifest| manifest.as_ref().filter(|it| !it.unfinished));
        let rows =
            |manifest: &TraceManifest| manifest.tables.get(table).map_or(0, |table| table.rows);
        manifests
            .map(|manifest| manifest.map(rows))
            .try_fold(0, |sum: u64, rows| sum.checked_add(rows?))
    }
}

impl Dataset {
    /// Merges the traces of the days before `today` into one file for each table and day. What was merged before stays as it
    /// is where no trace came to it.
    ///
    /// # Errors
    /// When a file is not the one that was written, the dataset cannot be written or has no locks, or `cancel` asks to stop.
    pub fn compact(&self, today: Date, cancel: &Cancel) -> Result<CompactResult, DatasetError> {
        if !self.store.is_folder() {
            return Err(DatasetError::NoLocks(self.root().to_path_buf()));
        }
        // Removes what killed processes left, also where no day has to be merged.
        drop(self.store.staging()?);
        let days = self.traces()?.into_iter().map(|partition| partition.date);
        let days: BTreeSet<Date> =
            days.chain(self.days_with_files()?).filter(|date| *date < today).collect();
        let mut compacted = CompactResult::default();
        for date in days {
            cancel.check()?;
            let _day = self.lock_day(date)?;
            self.compact_day(date, &mut compacted, cancel)
                .map_err(|error| error.within(self.root()))?;
        }
        Ok(compacted)
    }

    /// Days that have merged files, listed or not.
    fn days_with_files(&self) -> Result<BTreeSet<Date>, DatasetError> {
        let mut days = BTreeSet::new();
        for table in &TABLES {
            let names = self.store.names(&format!("{MERGED}/{}", table.name))?;
            days.extend(names.iter().filter_map(|name| day_of(name)));
        }
        Ok(days)
    }

    /// Locks the rows of a day, to change them.
    pub fn lock_day(&self, date: Date) -> Result<Option<File>, DatasetError> {
        self.store.lock(&format!("merge-{date}"))
    }

    fn compact_day(
        &self,
        date: Date,
        compacted: &mut CompactResult,
        cancel: &Cancel,
    ) -> Result<(), DatasetError> {
        let before = self.merged_day(date)?;
        self.clear(date, before.as_ref(), cancel)?;
        let mut traces = BTreeMap::new();
        for trace in before.iter().flat_map(|day| &day.traces) {
            traces.insert(trace.clone(), self.manifest(trace).ok());
        }
        let merged = traces.len();
        let [mut files, mut bytes] = before.as_ref().map_or([0; 2], |day| size(&day.tables));
        for partition in self.partitions(LAST)?.into_iter().filter(|it| it.date == date) {
            cancel.check()?;
            let manifest = self.manifest(&partition.trace)?;
            let [count, size] = size(&manifest.tables);
            if !manifest.unfinished && size <= MAX_BYTES {
                files += count;
                bytes += size;
                traces.insert(partition.trace, Some(manifest));
            }
        }
        // One trace alone has no more files than a day.
        if traces.len() == merged || traces.len() < 2 {
            return Ok(());
        }
        let after = self.merge(&Day { date, before, traces }, cancel)?;
        for (side, [files, bytes]) in [[files, bytes], size(&after.tables)].into_iter().enumerate()
        {
            compacted.files[side] += files;
            compacted.bytes[side] += bytes;
        }
        Ok(())
    }

    /// Takes traces out of the merged files of a day, which is locked; their manifests stay.
    ///
    /// # Errors
    /// Those of [`Self::compact`].
    pub fn unmerge(
        &self,
        date: Date,
        traces: &BTreeSet<String>,
        cancel: &Cancel,
    ) -> Result<(), DatasetError> {
        let Some(before) = self.merged_day(date)? else { return Ok(()) };
        if before.traces.is_disjoint(traces) {
            return Ok(());
        }
        let left = before.traces.difference(traces);
        let left: BTreeMap<_, _> =
            left.map(|trace| (trace.clone(), self.manifest(trace).ok())).collect();
        self.merge(&Day { date, before: Some(before), traces: left }, cancel).map(drop)
    }

    /// Writes the files and the list of a day, and removes what they replace.
    fn merge(&self, day: &Day, cancel: &Cancel) -> Result<MergedDay, DatasetError> {
        let folder = self.store.staging()?;
        let mut tables = BTreeMap::new();
        for table in TABLES.iter().filter(|_| !day.traces.is_empty()) {
            let path = folder.path().join(table.name);
            let written = self.write_merged(day, table, &path, cancel)?;
            tables.insert(table.name.to_owned(), written);
        }
        for (table, written) in &tables {
            let name = file_name(table, day.date, written);
            self.store.place(&folder.path().join(table), &name)?;
        }
        let after = MergedDay::new(day.traces.keys().cloned().collect(), tables);
        self.write_merged_day(day.date, &after)?;
        self.clear(day.date, Some(&after), cancel)?;
        Ok(after)
    }

    /// Writes the rows of a table of a day to a file, ordered by trace, and checks that none is missing.
    fn write_merged(
        &self,
        day: &Day,
        table: &DatasetTable,
        path: &Path,
        cancel: &Cancel,
    ) -> Result<TableSummary, DatasetError> {
        let schema = table.merged_schema();
        let columns: Vec<_> = schema.iter_names().map(|name| col(name.clone())).collect();
        let empty = DataFrame::empty_with_schema(&schema);
        let written = TableFile::write(path, &schema, |file| {
            let mut waiting = empty.clone();
            let files = self.files_of(day, table, cancel)?;
            for part in split(&files, BATCH_BYTES, BATCH_FILES) {
                cancel.check()?;
                let frame = scan_files(self, part, table).map(|rows| of_traces(part, rows));
                let read = frame.and_then(|rows| collect(rows.select(columns.clone())));
                let added = read.and_then(|read| waiting.vstack_mut(&read).map(drop));
                added.map_err(DatasetError::parquet(path))?;
                if waiting.height() >= GROUP_ROWS {
                    file.push(&waiting)?;
                    waiting = empty.clone();
                }
            }
            file.push(&waiting)
        })?;
        let rows = written.rows;
        if day.expected_rows(table.name).is_some_and(|expected| expected != rows) {
            let reason =
                format!("the files of {} have {rows} rows, not as many as written", day.date);
            return Err(self.store.damaged(table.name, reason));
        }
        Ok(written)
    }

    /// Files with the rows of a table of a day, one for each trace, in the order of the traces.
    fn files_of(
        &self,
        day: &Day,
        table: &DatasetTable,
        cancel: &Cancel,
    ) -> Result<Vec<RowsFile>, DatasetError> {
        let merged = day.before.as_ref().and_then(|before| before.file(table.name, day.date));
        if let Some((name, written)) = &merged {
            self.expect_content(name, written)?;
        }
        let mut files = Vec::new();
        for (trace, manifest) in &day.traces {
            cancel.check()?;
            let written = manifest.as_ref().and_then(|manifest| manifest.tables.get(table.name));
            let (name, traces) = if day.was_merged(trace) {
                let Some((name, _)) = &merged else { continue };
                (name.clone(), TracesOfFile::Some(BTreeSet::from([trace.clone()])))
            } else {
                let Some(written) = written else { continue };
                let name = day.partition(trace).part(table.name);
                self.expect_content(&name, written)?;
                (name, TracesOfFile::OfFolder)
            };
            let bytes = written.map_or(BATCH_BYTES / 8, |written| written.bytes);
            files.push(RowsFile { path: self.store.path(&name), bytes, traces });
        }
        Ok(files)
    }

    /// Removes the files of a day that its list does not name, and the folders of traces that it names, once nobody reads.
    fn clear(
        &self,
        date: Date,
        listed: Option<&MergedDay>,
        cancel: &Cancel,
    ) -> Result<(), DatasetError> {
        let (mut left, mut folders) = (Vec::new(), Vec::new());
        for table in &TABLES {
            let day = format!("{}/date={date}", table.name);
            for name in self.store.names(&day)? {
                let id = name.strip_prefix("trace=");
                if id.is_some_and(|id| listed.is_some_and(|day| day.traces.contains(id))) {
                    left.push(format!("{day}/{name}"));
                }
            }
            folders.push(day);
            let folder = day_folder(table.name, date);
            let listed = listed.and_then(|day| day.file(table.name, date));
            let listed = listed.map(|(name, _)| name);
            let names = self.store.names(&folder)?.into_iter();
            let names = names
                .filter(|name| name.starts_with("part-"))
                .map(|name| format!("{folder}/{name}"));
            left.extend(names.filter(|name| Some(name) != listed.as_ref()));
            folders.push(folder);
        }
        if left.is_empty() {
            return Ok(());
        }
        let _nobody_reads = loop {
            cancel.check()?;
            match self.store.lock_if_free(READERS)? {
                Some(lock) => break lock,
                None => thread::sleep(PAUSE),
            }
        };
        // That of complete traces first.
        for name in left.iter().rev() {
            self.store.remove(name)?;
        }
        folders.iter().for_each(|folder| self.store.remove_empty(folder));
        Ok(())
    }
}

/// Returns the number of files of tables, and their bytes.
fn size(tables: &BTreeMap<String, TableSummary>) -> [u64; 2] {
    [tables.len() as u64, tables.values().map(|table| table.bytes).sum()]
}

/// The day that is not over, in UTC.
pub fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}
