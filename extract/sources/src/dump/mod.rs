//! A minidump of a process → the tables of a trace.
//!
//! `container` finds the streams, `handles` reads the handles that were open, `information` which threads and processes they
//! refer to, `operations` the last operations on handles, `modules` what addresses lie in, and `process` whose they are. Of the
//! memory of the process nothing is read but its command line. The structures of the format are from the crate `minidump-common`.

mod container;
mod handles;
mod information;
mod modules;
mod operations;
mod process;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Instant;

use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::filetime::{PER_SECOND, UNIX_EPOCH};
use handlescope_extract::intern::Interner;
use handlescope_extract::{
    ExtractError, ExtractObserver, ExtractSummary, Input, MINIDUMP_MAGIC, SourceIdentity,
};
use handlescope_model::rules::handle_slot;
use handlescope_model::tables::{
    MINIDUMP, NO_CLOCK, Process, Processes, Stack, Stacks, TraceInfo, UtcOffsets,
};
use handlescope_model::{Cancel, FrameIdx, PageWatch, open_file};
use minidump_common::format::MINIDUMP_STREAM_TYPE;
use symbolic::common::ByteView;

use self::container::{Minidump, Refusal};
use self::handles::DescriptorList;
use self::modules::{ModuleSpace, file_name};
use self::operations::{HandleOperation, put_in_order};
use self::process::ProcessFacts;
use crate::SourceError;
use crate::operations::{
    Operation, OperationEntry, OperationHandles, OperationTables, event_counts, stack_events,
};

/// Beginning of the names of kinds of events.
const SOURCE: &str = "minidump";

/// Whether a file starts like a minidump; its name does not matter.
///
/// # Errors
/// When it cannot be read.
pub fn is_dump(path: &Path) -> Result<bool, ExtractError> {
    let start = open_file(path)
        .and_then(|mut file| start_of(&mut file))
        .map_err(|source| ExtractError::Open { path: path.to_path_buf(), source })?;
    Ok(start.starts_with(MINIDUMP_MAGIC))
}

/// Whether the content of a trace's file is a minidump.
///
/// # Errors
/// When it cannot be read.
pub fn is_content(input: &mut Input, path: &Path) -> Result<bool, ExtractError> {
    let start = start_of(&mut input.file)
        .map_err(|source| ExtractError::Read { path: path.to_path_buf(), source })?;
    Ok(start.starts_with(MINIDUMP_MAGIC))
}

/// The first 8 bytes of a file, as far as it has them.
fn start_of(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(8).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(start)
}

/// Reads the minidump that was found at `path` and writes the archive `output`, whose folder must exist.
///
/// # Errors
/// When the dump has no handles or cannot be read, was changed meanwhile, the archive cannot be written, or `cancel` asks to
/// stop.
pub fn extract(
    input: Input,
    path: &Path,
    output: &Path,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<ExtractSummary, SourceError> {
    let begin = Instant::now();
    let opened = |source| ExtractError::Open { path: path.to_path_buf(), source };
    let identity = SourceIdentity::new(path).map_err(opened)?;
    observer.on_started(identity.size);
    let bytes = ByteView::map_file(input.file).map_err(opened)?;
    let source = DumpSource { path, name: &input.name, identity: &identity };
    let watch = PageWatch::start();
    let tables = tables(&bytes, source, cancel);
    // What is read of a file that changes may be damaged.
    if watch.has_lost() || SourceIdentity::new(path).map_err(opened)? != identity {
        return Err(ExtractError::Changed { path: path.to_path_buf() }.into());
    }
    let tables = tables?;
    observer.on_progress(identity.size);
    let summary = tables.save(output, observer, cancel)?;
    Ok(ExtractSummary { elapsed: begin.elapsed(), ..summary })
}

/// Where a dump came from.
#[derive(Clone, Copy)]
struct DumpSource<'s> {
    path: &'s Path,
    /// File name of the dump, also when it lay in an archive.
    name: &'s str,
    identity: &'s SourceIdentity,
}

/// Converts a minidump.
fn tables(
    bytes: &[u8],
    source: DumpSource<'_>,
    cancel: &Cancel,
) -> Result<OperationTables, SourceError> {
    let path = || source.path.to_path_buf();
    let mut findings = Diagnostics::default();
    let dump = Minidump::open(bytes, &mut findings).map_err(|Refusal { reason, offset }| {
        SourceError::BadDump { path: path(), reason, offset }
    })?;
    let streams =
        [MINIDUMP_STREAM_TYPE::HandleDataStream, MINIDUMP_STREAM_TYPE::HandleOperationListStream];
    let facts = ProcessFacts::new(&dump, &mut findings);
    if !streams.into_iter().any(|kind| dump.has(kind)) {
        return Err(SourceError::NoHandleData { path: path(), system: facts.other_system });
    }
    let list =
        DescriptorList::new(&dump, &facts, cancel, &mut findings).map_err(ExtractError::from)?;
    let operations = operations::operations(&dump, facts.mask(), cancel, &mut findings)
        .map_err(ExtractError::from)?;
    let mut operations = operations.unwrap_or_default();
    let values = list.as_ref().and_then(DescriptorList::values);
    put_in_order(&mut operations, values.as_ref(), &mut findings);
    let pid = facts.pid.or_else(|| most_frequent_pid(&operations)).unwrap_or_default();
    let modules = ModuleSpace::new(&dump, facts.mask(), pid, &mut findings);
    let mut conversion = OperationConverter {
        modules,
        stacks: Interner::default(),
        pids: vec![pid],
        rows: HashMap::from([(pid, 0)]),
    };
    let history: Vec<OperationEntry> =
        operations.iter().map(|operation| conversion.entry(operation, &mut findings)).collect();
    cancel.check().map_err(ExtractError::from)?;
    let history: Vec<&OperationEntry> = history.iter().collect();
    let open = list.as_ref().map(DescriptorList::list);
    let handles = OperationHandles::new(&history, |_| false, open, &mut findings);
    let event_counts = event_counts(&history, SOURCE);
    let info = info(source, &dump, &facts, history.len());
    let stack_events = stack_events(&history, &conversion.pids);
    let processes = conversion.processes(&facts);
    let OperationConverter { modules, stacks, .. } = conversion;
    let stacks: Stacks = stacks
        .iter()
        .map(|stack| Stack { frames: stack.iter().copied().map(FrameIdx).collect() })
        .collect();
    let open = list.unwrap_or_default().open;
    Ok(OperationTables {
        info,
        processes,
        modules: modules.modules,
        module_loads: modules.loads,
        object_types: open.types(),
        names: open.names(),
        handles,
        stacks,
        stack_events,
        frames: modules.frames,
        event_counts,
        warnings: findings.warnings(),
        ..OperationTables::default()
    })
}

/// The pid of most operations: another process may put handles into this one.
fn most_frequent_pid(operations: &[HandleOperation]) -> Option<u32> {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for operation in operations {
        *counts.entry(operation.pid).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(pid, count)| (*count, *pid)).map(|(pid, _)| pid)
}

/// Rows of what operations refer to.
struct OperationConverter {
    modules: ModuleSpace,
    stacks: Interner<u32>,
    /// The pid of each process; the first is that of the dump.
    pids: Vec<u32>,
    /// Their rows.
    rows: HashMap<u32, u32>,
}

impl OperationConverter {
    fn entry(&mut self, operation: &HandleOperation, findings: &mut Diagnostics) -> OperationEntry {
        if operation.operation == Operation::BadReference {
            findings.count(WarningKind::BadReference, None);
        }
        let frames: Vec<u32> =
            operation.addresses.iter().map(|address| self.modules.frame(*address)).collect();
        let stack = (!frames.is_empty()).then(|| self.stacks.intern(&frames));
        let process = self.process(operation.pid);
        OperationEntry {
            handle: handle_slot(operation.handle),
            shown_handle: operation.handle,
            operation: operation.operation,
            thread: operation.tid,
            process: 0,
            caller: (process != 0).then_some(process),
            stack,
            addresses: stack.unwrap_or_default(),
        }
    }

    /// The row of the process with a pid.
    fn process(&mut self, pid: u32) -> u32 {
        let next = self.pids.len() as u32;
        let row = *self.rows.entry(pid).or_insert(next);
        if row == next {
            self.pids.push(pid);
        }
        row
    }

    /// The process of the dump, whose program is the first module, and those that acted in it.
    fn processes(&self, facts: &ProcessFacts) -> Processes {
        let program = self.modules.modules.path.first();
        let mut processes = Processes::default();
        for (row, pid) in self.pids.iter().enumerate() {
            let path = program.filter(|_| row == 0);
            processes.push(Process {
                pid: *pid,
                name: path.map(|path| file_name(path)).unwrap_or_default(),
                image_path: path.cloned(),
                command_line: if row == 0 { facts.command_line.clone() } else { String::new() },
                ..Process::default()
            });
        }
        processes
    }
}

/// The row of the trace table: the session starts when the dump was written.
fn info(
    source: DumpSource<'_>,
    dump: &Minidump<'_>,
    facts: &ProcessFacts,
    events: usize,
) -> TraceInfo {
    let written = i64::from(dump.header.time_date_stamp) * PER_SECOND + UNIX_EPOCH;
    TraceInfo {
        source_format: Some(MINIDUMP.to_owned()),
        os_version: facts.os_version.clone(),
        os_build: facts.os_build,
        os_build_string: facts.os_build_string.clone(),
        product: facts.other_system.map(str::to_owned),
        clock: NO_CLOCK.to_owned(),
        cpu_count: facts.cpu_count,
        pointer_size: facts.pointer_size,
        session_start_filetime: if dump.header.time_date_stamp == 0 { 0 } else { written },
        tz_bias_minutes: facts.tz_bias_minutes,
        utc_offset_minutes: facts.utc_offset_minutes,
        // Says that the offset is known.
        utc_offsets: facts
            .has_zone
            .then(|| UtcOffsets::text(&[(written, facts.utc_offset_minutes)])),
        events_total: events as u64,
        ..source.identity.trace_info(source.path, source.name)
    }
}
