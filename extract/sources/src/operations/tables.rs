//! Tables of a source with operations on handles.

use std::path::Path;

use handlescope_extract::{ExtractError, ExtractObserver, ExtractSummary};
use handlescope_model::tables::{
    EventCount, EventCounts, Frames, Losses, Methods, ModuleLoads, Modules, Names, ObjectTypes,
    Processes, StackEvent, StackEvents, Stacks, Symbols, TraceInfo, TraceInfos, Volumes, Warning,
    Warnings, Zombies,
};
use handlescope_model::{ArchiveWriter, Cancel, EventKind, ProcessIdx, StackIdx, Table};

use super::{Operation, OperationEntry, OperationHandles};

/// The content of the archive.
#[derive(Default)]
pub struct OperationTables {
    pub info: TraceInfo,
    pub processes: Processes,
    pub modules: Modules,
    pub module_loads: ModuleLoads,
    pub object_types: ObjectTypes,
    pub names: Names,
    pub handles: OperationHandles,
    pub stacks: Stacks,
    pub stack_events: StackEvents,
    pub frames: Frames,
    pub symbols: Symbols,
    pub event_counts: EventCounts,
    pub warnings: Vec<Warning>,
}

impl OperationTables {
    /// Writes the archive `output`, whose folder must exist.
    ///
    /// # Errors
    /// If it cannot be written, or `cancel` is set.
    pub fn save(
        self,
        output: &Path,
        observer: &dyn ExtractObserver,
        cancel: &Cancel,
    ) -> Result<ExtractSummary, ExtractError> {
        observer.on_phase("writing");
        let writer = ArchiveWriter::create(output)?.stopped_by(cancel);
        // If cancellation left out tables, `write` reports another error.
        self.write(writer).map_err(|error| cancel.check().err().map_or(error, Into::into))
    }

    fn write(mut self, mut writer: ArchiveWriter) -> Result<ExtractSummary, ExtractError> {
        self.info.stacks_total = self.stack_events.stack.iter().flatten().count() as u64;
        self.info.frames_in_modules = self.frames.module.iter().flatten().count() as u64;
        let summary = ExtractSummary {
            objects: self.handles.tables.objects.len() as u64,
            handle_events: self.handles.events,
            leaked_handles: self.handles.leaked,
            closed_at_exit: self.handles.closed_at_exit,
            stacks_distinct: self.stacks.len() as u64,
            bytes_read: self.info.source_size,
            warnings: self.warnings.clone(),
            ..ExtractSummary::default()
        };
        writer.table(Table::Trace, TraceInfos::from_iter([self.info]).into_frame())?;
        writer.table(Table::Processes, self.processes.into_frame())?;
        writer.table(Table::Zombies, Zombies::default().into_frame())?;
        writer.table(Table::Modules, self.modules.into_frame())?;
        writer.table(Table::ModuleLoads, self.module_loads.into_frame())?;
        writer.table(Table::Volumes, Volumes::default().into_frame())?;
        writer.table(Table::ObjectTypes, self.object_types.into_frame())?;
        writer.table(Table::Names, self.names.into_frame())?;
        writer.table(Table::Objects, self.handles.tables.objects.into_frame())?;
        writer.table(Table::Acquisitions, self.handles.tables.acquisitions.into_frame())?;
        writer.table(Table::Stacks, self.stacks.into_frame())?;
        writer.table(Table::StackEvents, self.stack_events.into_frame())?;
        writer.table(Table::Frames, self.frames.into_frame())?;
        writer.table(Table::Methods, Methods::default().into_frame())?;
        writer.table(Table::Symbols, self.symbols.into_frame())?;
        writer.table(Table::EventCounts, self.event_counts.into_frame())?;
        writer.table(Table::Losses, Losses::default().into_frame())?;
        writer.table(Table::Warnings, Warnings::from_iter(self.warnings).into_frame())?;
        Ok(ExtractSummary { output_bytes: writer.finish()?, ..summary })
    }
}

/// Returns every operation with its stack, including references to invalid handles.
pub fn stack_events(history: &[&OperationEntry], pids: &[u32]) -> StackEvents {
    let mut events = StackEvents::default();
    for (index, entry) in (0..).zip(history) {
        let process = entry.caller.unwrap_or(entry.process);
        events.push(StackEvent {
            time_ns: index,
            process: Some(ProcessIdx(process)),
            pid: pids.get(process as usize).copied().unwrap_or_default(),
            tid: entry.thread,
            stack: entry.stack.map(StackIdx),
        });
    }
    events
}

/// Counts the operations by kind; `source` is the prefix of the kinds.
pub fn event_counts(history: &[&OperationEntry], source: &str) -> EventCounts {
    // Sorted by kind.
    let kinds = [
        ("bad_ref", "BadReference", Operation::BadReference),
        ("close", EventKind::HandleClose.event_name(), Operation::Close),
        ("open", EventKind::HandleCreate.event_name(), Operation::Open),
    ];
    let mut counts = EventCounts::default();
    for (kind, name, operation) in kinds {
        let count = history.iter().filter(|entry| entry.operation == operation).count() as u64;
        counts.extend((count > 0).then(|| EventCount {
            kind: format!("{source}:{kind}"),
            name: Some(name.to_owned()),
            count,
            ..EventCount::default()
        }));
    }
    counts
}
