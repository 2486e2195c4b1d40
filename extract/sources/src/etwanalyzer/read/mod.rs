//! Reads ETWAnalyzer's extracts into the tables of a trace.
//!
//! Each part of an extract has a module (`session`, `modules`, `stacks`, `objects`) that knows only how the part is
//! written. [`import`] combines the parts. The large part is read object by object and written at once, so that no
//! document is ever whole in memory.
//!
//! Data missing from the files stays unknown: the process that got a duplicated handle, addresses of modules and
//! frames, counts of other events, the clock.

mod container;
mod document;
mod error;
mod modules;
mod objects;
mod session;
mod stacks;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::Instant;

use self::container::ExtractParts;
use self::modules::ImportedModules;
use self::objects::{HandlePartReader, ImportStats, ImportedObjects, TableStream};
use self::session::{ProcessRows, Time, TraceStats, handlescope_rows};
use self::stacks::ImportedStacks;
use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::{ExtractObserver, ExtractSummary};
use handlescope_model::history::{StartHandle, StartList};
use handlescope_model::output::folder_of;
use handlescope_model::tables::{
    Acquisitions, EventCounts, Losses, Name, Names, ObjectType, ObjectTypes, Objects,
    ReferenceChanges, Threads, TraceInfos, Volumes, Zombies,
};
use handlescope_model::{
    ArchiveError, ArchiveWriter, Cancel, FILE_MAPPING_NAME, FILE_MAPPING_TYPE, Table, TypeId,
};

pub use self::container::import_sources;
pub use self::error::{ImportError, ImportLimits};

use super::records::{HANDLESCOPE_OPTIONS, Main, ModulesPart, NamedStartHandle};
use super::{ExtractMember, record};
use crate::text::ReadProgress;

/// Names written per part of their table.
const NAMES_PER_PART: u32 = 1 << 16;

/// Converts ETWAnalyzer's extract `input` into the archive `output`, whose folder must exist.
///
/// The archive appears under its name only once it is complete.
///
/// # Errors
/// If the extract cannot be read or exceeds the limits, the archive cannot be written, or `cancel` is set.
pub fn import(
    input: &Path,
    output: &Path,
    limits: ImportLimits,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<ExtractSummary, ImportError> {
    let begin = Instant::now();
    let folder = folder_of(output);
    let progress = Rc::new(ReadProgress::new(observer, cancel));
    let size = source_size(input).saturating_mul(limits.record_bytes_per_byte);
    record::allow(limits.record_bytes.saturating_add(size));
    let mut parts = container::open(input, folder, &limits.container, observer, &progress)?;
    let reading = ExtractReader { input, limits, progress, findings: RefCell::default() };
    let read = reading.small_parts(&mut parts)?;
    let writer = ArchiveWriter::create(output)?.stopped_by(cancel);
    let summary =
        reading.convert(read, &mut parts, writer, observer).map_err(|error| cancel.or(error))?;
    Ok(ExtractSummary { elapsed: begin.elapsed(), ..summary })
}

/// Returns the total size of an extract's files in bytes.
fn source_size(input: &Path) -> u64 {
    import_sources(input).into_iter().map(|path| path.metadata().map_or(0, |data| data.len())).sum()
}

/// An extract being read.
struct ExtractReader<'a> {
    input: &'a Path,
    limits: ImportLimits,
    progress: Rc<ReadProgress<'a>>,
    findings: RefCell<Diagnostics>,
}

/// Everything except the objects.
struct SmallParts {
    main: Main,
    processes: ProcessRows,
    modules: ImportedModules,
    stacks: ImportedStacks,
    has_stacks: bool,
}

impl ExtractReader<'_> {
    fn count(&self, kind: WarningKind) {
        self.findings.borrow_mut().count(kind, None);
    }

    fn small_parts(&self, parts: &mut ExtractParts) -> Result<SmallParts, ImportError> {
        let not_an_extract =
            |reason| ImportError::NotAnExtract { path: self.input.to_path_buf(), reason };
        let document = parts.take(ExtractMember::Main);
        let document = document.ok_or_else(|| not_an_extract("it has no main member NAME.json"))?;
        let mut main = Main::default();
        document.read(&mut main, self.limits, &self.progress)?;
        let start = Time::new(&main.start);
        if start.is_none() && main.processes.is_none() {
            return Err(not_an_extract("its main member has neither SessionStart nor Processes"));
        }
        if start.is_none() && !main.is_by_handlescope() {
            self.count(WarningKind::NoStart);
        }
        if main.is_of_another_version() {
            self.count(WarningKind::OtherVersion);
        }
        let processes = ProcessRows::new(&main, start);
        let mut modules = ModulesPart::default();
        if let Some(document) = parts.take(ExtractMember::Modules) {
            document.read(&mut modules, self.limits, &self.progress)?;
        }
        let names = main.processes().iter();
        let names =
            names.map(|process| (process.pid(), process.name.as_deref().unwrap_or_default()));
        let modules = ImportedModules::new(
            &mut modules,
            &names.collect::<Vec<_>>(),
            main.is_by_handlescope(),
        );
        let mut stacks = ImportedStacks::new(modules.is_by_handlescope());
        let document = parts.take(ExtractMember::HandleStacks);
        let has_stacks = document.is_some();
        if let Some(document) = document {
            document.read(&mut stacks, self.limits, &self.progress)?;
        }
        Ok(SmallParts { main, processes, modules, stacks, has_stacks })
    }

    fn convert(
        &self,
        read: SmallParts,
        parts: &mut ExtractParts,
        mut writer: ArchiveWriter,
        observer: &dyn ExtractObserver,
    ) -> Result<ExtractSummary, ImportError> {
        let SmallParts { main, processes, mut modules, mut stacks, has_stacks } = read;
        let objects =
            self.objects(&main, &processes, &mut stacks, has_stacks, parts, &mut writer)?;
        observer.on_phase("writing");
        writer.table(Table::ObjectTypes, object_types(objects.types).into_frame())?;
        let tables = stacks.into_tables(&mut modules);
        let stacks_distinct = tables.stacks.len() as u64;
        let in_modules = tables.frames.module.iter().flatten().count() as u64;
        writer.table(Table::Stacks, tables.stacks.into_frame())?;
        writer.table(Table::Frames, tables.frames.into_frame())?;
        writer.table(Table::Methods, tables.methods.into_frame())?;
        writer.table(Table::Symbols, tables.symbols.into_frame())?;
        writer.table(Table::StackEvents, tables.stack_events.into_frame())?;
        let (module_table, loads) = modules.into_tables();
        writer.table(Table::Modules, module_table.into_frame())?;
        writer.table(Table::ModuleLoads, loads.into_frame())?;
        writer.table(Table::Processes, processes.table(&main).into_frame())?;
        let stats = objects.stats;
        let counts: EventCounts = if main.is_by_handlescope() {
            handlescope_rows(&main, &main.handlescope.event_counts)
        } else {
            stats.event_counts(objects.existing)
        };
        writer.table(Table::EventCounts, counts.into_frame())?;
        let replaced = self.progress.replaced.get();
        self.findings.borrow_mut().add(WarningKind::NoText, replaced, None);
        let warnings = self.findings.borrow().warnings();
        // Only our own extracts have drive letters, threads, zombies, and times of missing events.
        let volumes: Volumes = handlescope_rows(&main, &main.handlescope.volumes);
        writer.table(Table::Volumes, volumes.into_frame())?;
        let threads: Threads = handlescope_rows(&main, &main.handlescope.threads);
        writer.table(Table::Threads, threads.into_frame())?;
        let zombies: Zombies = handlescope_rows(&main, &main.handlescope.zombies);
        writer.table(Table::Zombies, zombies.into_frame())?;
        let losses: Losses = handlescope_rows(&main, &main.handlescope.losses);
        writer.table(Table::Losses, losses.into_frame())?;
        writer.table(Table::Warnings, session::warnings(&main, &warnings).into_frame())?;
        let source_size = source_size(self.input);
        let in_trace = TraceStats {
            source_size,
            stacks_total: stats.stacks_total,
            frames_in_modules: in_modules,
            events: stats.kinds.iter().sum::<u64>() + objects.existing,
        };
        let info = TraceInfos::from_iter([session::info(self.input, &main, &in_trace)]);
        writer.table(Table::Trace, info.into_frame())?;
        self.progress.cancel.check()?;
        Ok(ExtractSummary {
            objects: objects.objects,
            handle_events: stats.handle_events,
            leaked_handles: stats.leaked_handles,
            leaked_views: stats.leaked_views,
            closed_at_exit: stats.closed_at_exit,
            stacks_distinct,
            events_lost: main.header.events_lost.unwrap_or_default(),
            buffers_lost: main.header.buffers_lost.unwrap_or_default(),
            bytes_read: source_size,
            output_bytes: writer.finish()?,
            warnings,
            ..ExtractSummary::default()
        })
    }

    /// Reads the handle part, and meanwhile writes the tables of objects and events.
    fn objects(
        &self,
        main: &Main,
        processes: &ProcessRows,
        stacks: &mut ImportedStacks,
        has_stacks: bool,
        parts: &mut ExtractParts,
        writer: &mut ArchiveWriter,
    ) -> Result<ObjectsWritten, ImportError> {
        let document = parts.take(ExtractMember::Handle);
        match &document {
            None if main.is_by_handlescope() => {}
            None => self.count(WarningKind::NoHandles),
            Some(_) if !has_stacks => self.count(WarningKind::NoStacks),
            Some(_) => {}
        }
        let encoder = writer.encoder();
        let mut names = objects::ObjectNameSet::default();
        let start = start_handles(main, &mut names);
        thread::scope(|scope| {
            let mut rows = ImportedObjects {
                processes,
                stacks: stacks.numbers(!has_stacks),
                is_by_handlescope: main
                    .options
                    .as_deref()
                    .is_some_and(|options| options.starts_with(HANDLESCOPE_OPTIONS)),
                objects: TableStream::start(scope, encoder.clone(), Objects::into_frame),
                acquisitions: TableStream::start(scope, encoder.clone(), Acquisitions::into_frame),
                changes: TableStream::start(scope, encoder.clone(), ReferenceChanges::into_frame),
                start: start_list(&start),
                existing: 0,
                names,
                stats: ImportStats::default(),
                findings: &self.findings,
                scratch: objects::Scratch::default(),
            };
            let mut part = HandlePartReader::new(|object| rows.add(object));
            let read = document
                .map_or(Ok(()), |document| document.read(&mut part, self.limits, &self.progress));
            let types = part.types;
            let count = rows.objects.rows();
            rows.add_start(&start);
            let ImportedObjects { objects, acquisitions, changes, existing, names, stats, .. } =
                rows;
            let written = ObjectsWritten { types, stats, objects: count, existing };
            let tables = [objects.finish(), acquisitions.finish(), changes.finish()];
            read?;
            for table in tables {
                writer.append(table?)?;
            }
            write_names(writer, &names)?;
            Ok(written)
        })
    }
}

/// Results of the handle part besides its tables.
struct ObjectsWritten {
    types: BTreeMap<TypeId, String>,
    stats: ImportStats,
    objects: u64,
    existing: u64,
}

/// Returns the handles that were open when the trace started, if this program wrote the extract.
fn start_handles(main: &Main, names: &mut objects::ObjectNameSet) -> Vec<StartHandle> {
    let row = |handle: &NamedStartHandle| StartHandle {
        pointer: handle.pointer,
        process: handle.process,
        pid: handle.pid,
        handle: handle.handle,
        type_id: handle.type_id,
        name: handle.name.as_deref().and_then(|name| names.row(name)),
        closed: handle.closed,
    };
    main.handlescope.start_handles.0.iter().filter(|_| main.is_by_handlescope()).map(row).collect()
}

/// Returns a list of these handles, from which objects then take theirs.
fn start_list(handles: &[StartHandle]) -> StartList {
    let mut list = StartList::default();
    for (number, handle) in (0..).zip(handles) {
        list.add(handle.pointer, handle.process, handle.handle, number);
    }
    list
}

fn write_names(
    writer: &mut ArchiveWriter,
    names: &objects::ObjectNameSet,
) -> Result<(), ArchiveError> {
    let mut next = 0;
    writer.table_in_parts(Table::Names, || {
        let rows = next..names.0.count().min(next + NAMES_PER_PART);
        next = rows.end;
        let batch: Names = rows.map(|row| Name { name: names.0.text(row) }).collect();
        (!batch.is_empty()).then(|| batch.into_frame())
    })
}

fn object_types(mut types: BTreeMap<TypeId, String>) -> ObjectTypes {
    types.entry(FILE_MAPPING_TYPE).or_insert_with(|| FILE_MAPPING_NAME.to_owned());
    types.into_iter().map(|(type_id, name)| ObjectType { type_id, name }).collect()
}
