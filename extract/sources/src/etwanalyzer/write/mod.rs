//! Writes the tables of a trace into an archive that also has ETWAnalyzer's members.
//!
//! There is one file per part of an extract, as for reading. Every part is streamed: besides the columns of the trace,
//! only some objects, events and stacks are in memory.

mod handles;
mod json;
mod modules;
mod session;
mod stacks;
#[cfg(test)]
mod tests;

use std::fs::{File, FileTimes};
use std::path::Path;

use self::handles::{HandlePartWriter, RecordContext};
use self::json::{MEMBER_LIMIT, document};
use self::session::{MainPart, start_handles, system_process};
use self::stacks::{StacksPart, WrittenStackTexts};
use handlescope_extract::ExtractObserver;
use handlescope_extract::filetime::system_time;
use handlescope_model::history::StartHandle;
use handlescope_model::tables::{
    EventCounts, Events, Frames, Losses, Methods, ModuleLoads, Modules, Names, ObjectTypes,
    Processes, Symbols, Threads, TraceInfo, TraceInfos, Volumes, Warnings, Zombies,
};
use handlescope_model::{ArchiveError, ArchiveWriter, Cancel, Table, TableRows, Texts, Trace};
use serde::Serialize;

pub use self::json::SaveError;

use super::records::ModulesPart;
use super::{ExtractMember, find};

/// Maximum size of the names of start rundown handles, in bytes.
const MAX_NAMES: u64 = 256 << 20;

/// What an archive contains besides the tables.
#[derive(Default)]
pub struct SaveOptions {
    /// Names of frames, replacing those of the trace.
    pub names: Option<Symbols>,
    /// Whether ETWAnalyzer should be able to read the archive. Frames have these names, or module and offset.
    pub etwanalyzer: bool,
}

/// Writes a trace as an archive, and returns the size of the archive in bytes.
///
/// The archive appears under its name only once it is complete; it may replace the archive the trace was read from. An
/// archive for ETWAnalyzer gets the time of the session start, because that program shows it and sorts by it.
///
/// # Errors
/// If the trace cannot be read, the archive cannot be written, a part would be larger than ETWAnalyzer can read, or
/// `cancel` is set.
pub fn save(
    trace: &Trace,
    output: &Path,
    options: SaveOptions,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<u64, SaveError> {
    let SaveOptions { names, etwanalyzer } = options;
    let mut writer = ArchiveWriter::create(output)?.stopped_by(cancel);
    let (symbols, has_names) = match names {
        Some(names) => (names, true),
        None => (Symbols::read(trace)?, false),
    };
    let replaced = has_names.then(|| Table::Symbols.member());
    let old = parts_of(trace);
    trace.copy_members(&mut writer, |member| {
        !old.iter().any(|name| name == member) && replaced.as_deref() != Some(member)
    })?;
    if has_names {
        writer.table(Table::Symbols, symbols.clone().into_frame())?;
    }
    let mut start = None;
    if etwanalyzer {
        let parts = PartsWriter { trace, output, symbols: &symbols, observer, cancel };
        start = Some(parts.write(&mut writer)?);
    }
    cancel.check()?;
    let size = writer.finish()?;
    if let Some(start) = start {
        set_time(output, start);
    }
    Ok(size)
}

/// Whether ETWAnalyzer can read the archive of a trace.
pub fn is_for_etwanalyzer(trace: &Trace) -> bool {
    !parts_of(trace).is_empty()
}

/// Returns the members of an archive that were written for ETWAnalyzer.
fn parts_of(trace: &Trace) -> Vec<String> {
    let names = trace.members();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let parts = ExtractMember::ALL
        .into_iter()
        .filter_map(|member| find(member, &base(trace.path()), &names));
    parts.map(str::to_owned).collect()
}

/// Returns the common prefix of the part names in an archive.
fn base(archive: &Path) -> String {
    archive.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Sets a file's time to the session start, in 100 ns since 1601; 0 means unknown.
fn set_time(path: &Path, filetime: i64) {
    if let Some(time) = system_time(filetime) {
        // The content is complete, and not every file system supports setting times.
        let _ = File::options()
            .write(true)
            .open(path)
            .and_then(|file| file.set_times(FileTimes::new().set_modified(time)));
    }
}

/// The parts of an extract being written.
struct PartsWriter<'a> {
    trace: &'a Trace,
    output: &'a Path,
    symbols: &'a Symbols,
    observer: &'a dyn ExtractObserver,
    cancel: &'a Cancel,
}

impl PartsWriter<'_> {
    /// Writes all parts, main last like ETWAnalyzer, and returns the session start.
    fn write(&self, writer: &mut ArchiveWriter) -> Result<i64, SaveError> {
        let (trace, symbols) = (self.trace, self.symbols);
        let info = info(trace)?;
        let processes = Processes::read(trace)?;
        let (modules, loads) = (Modules::read(trace)?, ModuleLoads::read(trace)?);
        let (frames, methods) = (Frames::read(trace)?, Methods::read(trace)?);
        self.cancel.check()?;
        let (names, types) = (trace.values(Names::name)?, ObjectTypes::read(trace)?);
        let order = trace.event_order()?;
        let start_handles = start_handles(trace, &order)?;
        self.check_names(&start_handles, &names)?;
        // There may be stacks of other events even without objects.
        let has_objects = trace.height(Table::Objects)? + trace.height(Table::Stacks)? > 0;

        let system = system_process(&processes);
        let part = ModulesPart::new(&modules, &loads, &frames, symbols, system);
        self.part(writer, ExtractMember::Modules, &part)?;
        drop(part);
        if has_objects {
            let texts =
                WrittenStackTexts::new(trace, &frames, &modules, &methods, symbols, self.cancel)?;
            let context = RecordContext { stacks: &texts, pids: &processes.pid };
            let part =
                HandlePartWriter { trace, order: &order, types: &types, names: &names, context };
            self.part(writer, ExtractMember::Handle, &part)?;
            let part =
                StacksPart { trace, texts: &texts, frames: &frames, methods: &methods, symbols };
            self.part(writer, ExtractMember::HandleStacks, &part)?;
        }
        let part = MainPart {
            info: &info,
            processes: &processes,
            event_counts: &EventCounts::read(trace)?,
            warnings: &Warnings::read(trace)?,
            volumes: &Volumes::read(trace)?,
            threads: &Threads::read(trace)?,
            zombies: &Zombies::read(trace)?,
            losses: &Losses::read(trace)?,
            start_handles: &start_handles,
            names: &names,
            last_event_ns: last_event(trace)?,
            types_without_objects: (!has_objects).then_some(&types),
        };
        self.part(writer, ExtractMember::Main, &part.record())?;
        Ok(info.session_start_filetime)
    }

    /// Rejects handles with more names than a member may hold, because this part is whole in memory.
    fn check_names(&self, handles: &[StartHandle], names: &Texts) -> Result<(), SaveError> {
        let bytes: usize =
            handles.iter().filter_map(|handle| names.get(handle.name?.row())).map(str::len).sum();
        if bytes as u64 > MAX_NAMES {
            Err(SaveError::TooLarge {
                path: self.output.to_path_buf(),
                member: ExtractMember::Main.name(&base(self.output)),
                limit: MAX_NAMES,
            })
        } else {
            Ok(())
        }
    }

    fn part(
        &self,
        writer: &mut ArchiveWriter,
        part: ExtractMember,
        content: &impl Serialize,
    ) -> Result<(), SaveError> {
        let member = part.name(&base(self.output));
        self.observer.on_phase(&member);
        let file = document(&member, content, self.output, MEMBER_LIMIT, self.cancel)?;
        writer.member(&member, file).map_err(|error| self.cancel.or(error.into()))
    }
}

/// Returns the row of the trace table.
fn info(trace: &Trace) -> Result<TraceInfo, ArchiveError> {
    Ok(TraceInfos::read(trace)?.row(0).unwrap_or_default())
}

/// Returns the time of the last event in ns since session start; 0 without events.
fn last_event(trace: &Trace) -> Result<i64, ArchiveError> {
    Ok(trace.values(Events::time_ns)?.values().iter().copied().max().unwrap_or_default())
}
