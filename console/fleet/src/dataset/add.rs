//! Adds a trace: its tables are written to a staging folder, and then moved into place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

use handlescope_model::tables::{Modules, Processes};
use handlescope_model::{ModuleIdx, ProcessIdx, TableRows, Trace};
use tempfile::TempDir;

use super::error::DatasetError;
use super::manifest::{TableSummary, TraceManifest};
use super::origin::{Origin, TraceLabels, trace_id};
use super::rows::TraceRows;
use super::table_file::TableFile;
use super::tables::{
    AcquisitionRow, DatasetProcessRow, DatasetRow, DatasetSuspectRow, ModuleRow, StackRow, TABLES,
    TraceRow,
};
use super::{Dataset, EXTRACTS, MANIFESTS, PART, Partition, name_in};
use handlescope_query::{FrameNames, Inventory, OpenOverTime, Source};
use handlescope_session::cancel::Cancel;

/// Number of steps at which the open handles of a trace are counted.
pub const STEPS: usize = 60;

/// The result of adding a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddResult {
    pub partition: Partition,
    /// Whether the dataset already had it.
    pub was_there: bool,
    /// Number of rows of acquisitions.
    pub acquisitions: u64,
    /// Size of its tables in bytes.
    pub bytes: u64,
}

/// Options for adding a trace.
#[derive(Debug, Clone, Default)]
pub struct AddOptions {
    pub given: TraceLabels,
    /// Whether to leave out the extract.
    pub without_extracts: bool,
}

/// The tables of a trace that is not in the dataset yet.
struct StagedTrace {
    folder: TempDir,
    partition: Partition,
    manifest: TraceManifest,
}

impl Dataset {
    /// Adds a loaded trace, unless the dataset has it.
    ///
    /// # Errors
    /// If the archive is damaged, the dataset cannot be written, or `cancel` asks to stop; the dataset is then
    /// unchanged.
    pub fn add(
        &self,
        source: &Source<'_>,
        options: &AddOptions,
        names: &dyn FrameNames,
        cancel: &Cancel,
    ) -> Result<AddResult, DatasetError> {
        let added = self.add_new(source, options, names, cancel);
        added.map_err(|error| error.within(self.root()))
    }

    fn add_new(
        &self,
        source: &Source<'_>,
        options: &AddOptions,
        names: &dyn FrameNames,
        cancel: &Cancel,
    ) -> Result<AddResult, DatasetError> {
        let id = trace_id(source.trace)?;
        if let Some(partition) = self.find(&id)? {
            return Ok(AddResult::before(partition));
        }
        let staged = self.stage(source, id, &options.given, names, cancel)?;
        let extract = (!options.without_extracts).then(|| source.trace.path());
        let _lock = self.store.lock(&staged.partition.trace)?;
        // If several processes add the same trace at once, the first one wins.
        if let Some(partition) = self.find(&staged.partition.trace)? {
            return Ok(AddResult::before(partition));
        }
        self.publish(staged, extract)
    }

    /// Replaces the rows of a trace if more of its stacks have names now, and returns whether it did. The dataset must have
    /// its extract.
    ///
    /// # Errors
    /// Those of [`Self::add`].
    pub fn symbolize(
        &self,
        source: &Source<'_>,
        partition: &Partition,
        names: &dyn FrameNames,
        cancel: &Cancel,
    ) -> Result<bool, DatasetError> {
        let before = self.manifest(&partition.trace)?;
        let id = partition.trace.clone();
        let staged = self.stage(source, id, &before.given, names, cancel);
        let staged = staged.map_err(|error| error.within(self.root()))?;
        if staged.manifest.tables == before.tables {
            return Ok(false);
        }
        let _lock = self.store.lock(&partition.trace)?;
        self.publish(staged, None).map_err(|error| error.within(self.root()))?;
        Ok(true)
    }

    /// Writes the tables of a trace to a staging folder.
    fn stage(
        &self,
        source: &Source<'_>,
        id: String,
        given: &TraceLabels,
        names: &dyn FrameNames,
        cancel: &Cancel,
    ) -> Result<StagedTrace, DatasetError> {
        let origin = Origin::new(source.trace, given)?;
        let partition = Partition::new(origin.day_us(), id);
        let folder = self.store.staging()?;
        let inventory = Inventory::new(source, names, cancel)?;
        let mut tables = StagedTables { folder: folder.path(), cancel, tables: BTreeMap::new() };
        tables.write_all(source.trace, &origin, &inventory)?;
        let manifest = TraceManifest::new(given.clone(), &partition, tables.tables);
        Ok(StagedTrace { folder, partition, manifest })
    }

    /// Moves the tables into the dataset; `traces`, which marks a trace as complete, comes last. The trace must be
    /// locked.
    fn publish(
        &self,
        staged: StagedTrace,
        extract: Option<&Path>,
    ) -> Result<AddResult, DatasetError> {
        let StagedTrace { folder, partition, mut manifest } = staged;
        if let Some(extract) = extract {
            self.keep_extract(extract, &partition.trace)?;
        }
        // There may be rows of an interrupted process, or rows to replace. A manifest was written before either, but it
        // may be lost.
        let may_have_rows = self.store.size(&name_in(MANIFESTS, &partition.trace))?.is_some()
            || self.is_listed(&partition)?;
        let date = if may_have_rows {
            self.find(&partition.trace)?.map_or(partition.date, |found| found.date)
        } else {
            partition.date
        };
        let _day = self.lock_day(date)?;
        // From here on, questions skip the trace until `traces` has it.
        self.write_manifest(&partition.trace, &manifest)?;
        if may_have_rows {
            self.unmerge(date, &BTreeSet::from([partition.trace.clone()]), &Cancel::default())?;
            self.remove_rows(&partition.trace)?;
        }
        for table in &TABLES {
            let staged = folder.path().join(table.name);
            self.store.place(&staged, &partition.folder(table.name))?;
        }
        manifest.unfinished = false;
        self.write_manifest(&partition.trace, &manifest)?;
        Ok(AddResult::now(partition, &manifest))
    }

    /// Copies an extract into the dataset, unless it is already there.
    fn keep_extract(&self, extract: &Path, trace: &str) -> Result<(), DatasetError> {
        let name = name_in(EXTRACTS, trace);
        if self.store.size(&name)?.is_some() {
            return Ok(());
        }
        let mut content = File::open(extract).map_err(DatasetError::io(extract))?;
        self.store.write(&name, &mut content)
    }
}

impl AddResult {
    /// Describes a trace that the dataset already had.
    pub fn before(partition: Partition) -> Self {
        Self { partition, was_there: true, acquisitions: 0, bytes: 0 }
    }

    fn now(partition: Partition, manifest: &TraceManifest) -> Self {
        let acquisitions = manifest.tables.get(AcquisitionRow::TABLE.name);
        Self {
            partition,
            was_there: false,
            acquisitions: acquisitions.map_or(0, |table| table.rows),
            bytes: manifest.tables.values().map(|table| table.bytes).sum(),
        }
    }
}

/// The table files of a trace.
struct StagedTables<'f> {
    folder: &'f Path,
    cancel: &'f Cancel,
    tables: BTreeMap<String, TableSummary>,
}

impl StagedTables<'_> {
    fn write_all(
        &mut self,
        trace: &Trace,
        origin: &Origin,
        inventory: &Inventory<'_>,
    ) -> Result<(), DatasetError> {
        let rows = &TraceRows::new(origin, inventory);
        self.write_acquisitions(rows)?;
        self.write(inventory.groups.iter().map(|group| rows.group(group)))?;
        self.write(inventory.suspects().iter().map(|suspect| DatasetSuspectRow { rows, suspect }))?;
        let stacks = rows.stacks();
        let acquired = rows.acquired_by_stack();
        self.write(stacks.iter().map(|&(index, identity)| {
            let acquired = acquired.get(&identity.key()).copied().unwrap_or_default();
            StackRow { rows, index, identity, acquired }
        }))?;
        let processes: Vec<_> = Processes::read(trace)?.rows().collect();
        let numbered = (0..).map(ProcessIdx::from_row).zip(&processes);
        self.write(numbered.map(|(row, process)| DatasetProcessRow { rows, row, process }))?;
        let modules: Vec<_> = Modules::read(trace)?.rows().collect();
        let numbered = (0..).map(ModuleIdx::from_row).zip(&modules);
        self.write(numbered.map(|(row, module)| ModuleRow { rows, row, module }))?;
        let unnamed = stacks.iter().filter(|(_, stack)| !stack.has_symbols).count();
        self.write(std::iter::once(TraceRow {
            rows,
            info: &origin.info,
            stacks: stacks.len(),
            unnamed,
        }))
    }

    /// Writes acquisitions, and what is open over time.
    fn write_acquisitions(&mut self, rows: &TraceRows<'_>) -> Result<(), DatasetError> {
        let Inventory { columns, window, groups, .. } = rows.inventory;
        let mut growth = window.map(|window| OpenOverTime::new(window, STEPS));
        let acquisitions = groups.iter().flat_map(|group| {
            let acquisitions = columns.of(group);
            if let Some(growth) = &mut growth {
                growth.add(group, &acquisitions);
            }
            let of = rows.group(group);
            acquisitions.into_iter().map(move |acquisition| rows.acquisition(&of, acquisition))
        });
        self.write(acquisitions)?;
        self.write(growth.iter().flat_map(OpenOverTime::rows).map(|at| rows.growth(at)))
    }

    fn write<R: DatasetRow>(&mut self, rows: impl Iterator<Item = R>) -> Result<(), DatasetError> {
        let table = R::TABLE;
        let folder = self.folder.join(table.name);
        fs::create_dir_all(&folder).map_err(DatasetError::io(&folder))?;
        let summary = TableFile::write(&folder.join(PART), &table.schema(), |file| {
            file.push_rows(rows, self.cancel)
        })?;
        self.tables.insert(table.name.to_owned(), summary);
        Ok(())
    }
}
