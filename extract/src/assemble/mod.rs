//! Raw columns → tables: everything that needs the whole trace happens here.

mod events;
mod methods;
mod modules;
mod processes;
mod provider_events;
mod resources;
mod stack_events;
mod threads;
mod trace;

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use handlescope_model::rules::{DeriveScratch, derive};
use handlescope_model::tables::{
    ExistingHandle, ExistingHandles, Name, Names, Object, ObjectType, ObjectTypes, Objects, Stacks,
    StartHandle, StartHandles, Symbols, Warnings,
};
use handlescope_model::{
    ArchiveError, ArchiveWriter, Cancel, Cancelled, EventIdx, ExistingIdx, FILE_MAPPING_NAME,
    FILE_MAPPING_TYPE, NameIdx, ObjectIdx, Poll, ProcessIdx, RowCount, Table, TypeId,
};

use polars::prelude::{DataFrame, PolarsResult};

use crate::collect::{Collector, EventCounter};
use crate::error::ExtractError;
use crate::etl::WarningKind;
use crate::lifecycle::{
    EXIT_GRACE_NS, EventOwners, ExitCloses, NONE, ProcessIndex, RawEvents, TrackedEvents,
    closed_start_handles, follow_resources, track,
};
use crate::options::ExtractSummary;
use crate::raw::RowKind;
use crate::recording::Recording;
use crate::stacks::{AddressSpaces, StackResolver, StackTable};

use self::events::{Closing, EventColumns, EventPart, GroupedEvents};
use self::methods::MethodTable;
use self::modules::ModuleTables;
use self::provider_events::ProviderEventTables;
use self::resources::ResourceTables;

/// Resolves what one pass gathered and writes the archive, unless asked to stop: then
/// the unfinished archive goes away with its writer. Of the summary, bytes read and time are left.
pub(crate) fn assemble(
    recording: &Recording,
    mut collected: Collector,
    counter: &EventCounter,
    output: &Path,
    cancel: &Cancel,
) -> Result<ExtractSummary, ExtractError> {
    let clock = &recording.clock;
    let mut warnings = recording.diagnostics.clone();
    warnings.merge(&collected.shared.diagnostics);
    let mut decoder = std::mem::take(&mut collected.metadata.decoder);
    let order = collected.shared.timeline.restore_times();
    let index = ProcessIndex::new(&collected.processes.rows);
    cancel.check()?;
    let ledger = follow_resources(&collected, &index, clock, order.as_deref(), cancel)?;
    // Millions of rows, of which the ledger has what is needed further.
    (collected.heaps, collected.virtual_memory, collected.described) = Default::default();
    let owners = EventOwners::new(&collected, &index, clock, &mut warnings, cancel)?;
    let tracked = track(&collected, &owners, order.as_deref(), &mut warnings, cancel)?;
    let exits = ExitCloses::new(&collected, &owners, order.as_deref(), clock, cancel)?;
    let closed = closed_start_handles(&collected, &owners, &index, order.as_deref(), cancel)?;
    drop(order);
    let timeline = &collected.shared.timeline;
    let grouped = GroupedEvents::new(timeline, &tracked, cancel)?;
    let modules = ModuleTables::new(&collected.images, &index, clock);
    let grace = clock.ticks(EXIT_GRACE_NS);
    let spaces = AddressSpaces::new(
        modules.mappings(&collected, &index, grace),
        recording.header.pointer_size.clamp(4, 8) as usize,
    );

    let methods = AddressSpaces::new(
        methods::mappings(&collected.methods, grace),
        recording.header.pointer_size.clamp(4, 8) as usize,
    );

    cancel.check()?;
    let mut writer = ArchiveWriter::create(output)?.stopped_by(cancel);
    let mut table = StackTable::default();
    let fragments = collected.stacks.events.fragments();
    cancel.check()?;
    let mut resolver = StackResolver::new(fragments, &spaces, &methods, &mut table);
    let names = write_names(&mut writer, &collected, &tracked)?;
    let columns = EventColumns {
        collected: &collected,
        owners: &owners,
        exits: &exits,
        clock,
        grouped: &grouped,
    };
    let ObjectFigures { objects, stacks_total, leaked_handles, closed_at_exit } =
        write_events(&mut writer, &columns, &tracked, &names, &mut resolver, cancel)?;
    let object_count = objects.len() as u64;
    let resources = ResourceTables { collected: &collected, clock, ledger: &ledger };
    resources.write(&mut writer, &mut resolver, cancel)?;
    drop(ledger);
    let stack_events =
        stack_events::table(&collected, &spaces, &methods, &index, clock, &mut table, cancel)?;
    writer.table(Table::StackEvents, stack_events.into_frame())?;
    let (counts, event_rows) = trace::event_counts(counter, &decoder, clock);
    let provider_events = ProviderEventTables {
        kept: &collected.kept,
        decoder: &mut decoder,
        rows: &event_rows,
        index: &index,
        clock,
        resolver: &mut StackResolver::new(
            &collected.kept.stacks.fragments,
            &spaces,
            &methods,
            &mut table,
        ),
    };
    let too_many = provider_events.write(&mut writer, cancel)?;
    warnings.add(WarningKind::TooManyEvents, too_many, None);
    cancel.check()?;
    let frames_in_modules = table.frames().in_modules();
    let frames = table.frames();
    let methods = MethodTable::new(&collected.methods, frames.methods(), &spaces, &index, clock);
    writer.table(Table::Frames, frames.table(|method| methods.row(method)).into_frame())?;
    writer.table(Table::Methods, methods.into_table().into_frame())?;
    let stacks = table.into_table();
    let stacks_distinct = stacks.len() as u64;
    write_objects_and_stacks(&mut writer, objects, stacks)?;
    cancel.check()?;
    writer.table(Table::Symbols, Symbols::default().into_frame())?;

    write_existing(&mut writer, &collected, &owners, &grouped)?;
    write_start_handles(&mut writer, &collected, &index, &closed, &names)?;
    writer.table(Table::ObjectTypes, object_types(&collected).into_frame())?;
    let image_paths = modules.process_images(&collected, &index);
    let process_table = processes::table(&collected.processes.rows, &image_paths, clock);
    writer.table(Table::Processes, process_table.into_frame())?;
    let thread_table = threads::table(&collected.threads.rows, &index, clock);
    writer.table(Table::Threads, thread_table.into_frame())?;
    let (module_table, loads) = modules.into_tables();
    writer.table(Table::Modules, module_table.into_frame())?;
    writer.table(Table::ModuleLoads, loads.into_frame())?;
    writer.table(Table::Volumes, trace::volumes(&collected).into_frame())?;
    writer.table(Table::EventCounts, counts.into_frame())?;
    let warnings = warnings.warnings();
    let warning_table: Warnings = warnings.iter().cloned().collect();
    writer.table(Table::Warnings, warning_table.into_frame())?;
    let info = trace::info(
        recording,
        &collected,
        counter,
        &owners.attribution,
        &trace::StackFigures { stacks_total, frames_in_modules },
    );
    writer.table(Table::Trace, info.into_frame())?;
    cancel.check()?;
    let output_bytes = writer.finish()?;
    Ok(ExtractSummary {
        objects: object_count,
        handle_events: grouped.handle_events(timeline),
        leaked_handles,
        closed_at_exit,
        stacks_distinct,
        events_lost: u64::from(recording.header.events_lost),
        buffers_lost: u64::from(recording.header.buffers_lost),
        bytes_read: 0,
        output_bytes,
        elapsed: Duration::ZERO,
        warnings,
    })
}

/// What comes out of the events besides their table.
#[derive(Default)]
struct ObjectFigures {
    objects: Objects,
    /// Events with a stack.
    stacks_total: u64,
    /// Creates and duplicates without close.
    leaked_handles: u64,
    /// Creates and duplicates that only the end of their process closed.
    closed_at_exit: u64,
}

/// Writes the events table.
fn write_events(
    writer: &mut ArchiveWriter,
    columns: &EventColumns<'_>,
    tracked: &TrackedEvents,
    names: &ObjectNames,
    resolver: &mut StackResolver<'_>,
    cancel: &Cancel,
) -> Result<ObjectFigures, ExtractError> {
    let mut builder = EventBuilder::new(columns, tracked, names, resolver, cancel);
    let next = || builder.next_part();
    write_in_parts(writer, Table::Events, next, EventPart::into_frame, cancel)?;
    Ok(builder.figures)
}

/// Writes a table of which `next` makes the parts, `None` behind the last one.
///
/// One thread makes the next part while this one encodes and compresses the last.
fn write_in_parts<P: Send>(
    writer: &mut ArchiveWriter,
    table: Table,
    mut next: impl FnMut() -> Result<Option<P>, Cancelled> + Send,
    frame: impl Fn(P) -> PolarsResult<DataFrame>,
    cancel: &Cancel,
) -> Result<(), ExtractError> {
    thread::scope(|scope| {
        let (parts, encode) = sync_channel(2);
        let build = scope.spawn(move || {
            while let Some(part) = next()? {
                if parts.send(part).is_err() {
                    break;
                }
            }
            Ok::<_, Cancelled>(())
        });
        let encoded = writer.encoder().encode_in_parts(table, || {
            let part = encode.recv().ok().filter(|_| !cancel.is_cancelled());
            part.map(&frame)
        });
        // Without a receiver the builder ends after the part at hand.
        drop(encode);
        build.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        cancel.check()?;
        Ok(writer.append(encoded?)?)
    })
}

/// Encodes two large tables side by side.
fn write_objects_and_stacks(
    writer: &mut ArchiveWriter,
    objects: Objects,
    stacks: Stacks,
) -> Result<(), ArchiveError> {
    let encoder = writer.encoder();
    let (objects, stacks) = thread::scope(|scope| {
        let stacks = scope.spawn(|| encoder.encode(Table::Stacks, stacks.into_frame()));
        let objects = encoder.encode(Table::Objects, objects.into_frame());
        (objects, stacks.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    writer.append(objects?)?;
    writer.append(stacks?)
}

/// Goes over the objects in their final order and makes the rows of their events.
struct EventBuilder<'a, 'r> {
    columns: &'a EventColumns<'a>,
    tracked: &'a TrackedEvents,
    names: &'a ObjectNames,
    resolver: &'a mut StackResolver<'r>,
    poll: Poll<'a>,
    scratch: DeriveScratch,
    place: usize,
    figures: ObjectFigures,
}

impl<'a, 'r> EventBuilder<'a, 'r> {
    fn new(
        columns: &'a EventColumns<'a>,
        tracked: &'a TrackedEvents,
        names: &'a ObjectNames,
        resolver: &'a mut StackResolver<'r>,
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            columns,
            tracked,
            names,
            resolver,
            poll: Poll::new(cancel),
            scratch: DeriveScratch::default(),
            place: 0,
            figures: ObjectFigures::default(),
        }
    }

    /// The next rows, unless asked to stop; `None` after the last object.
    fn next_part(&mut self) -> Result<Option<EventPart<'a>>, Cancelled> {
        let mut part = self.columns.part();
        while self.place < self.columns.grouped.len() && part.has_room() {
            self.object(&mut part)?;
            self.place += 1;
        }
        Ok((!part.is_empty()).then_some(part))
    }

    fn object(&mut self, part: &mut EventPart<'a>) -> Result<(), Cancelled> {
        let Self { columns, place, .. } = *self;
        let (object, rows) = columns.grouped.object(place);
        let raw = RawEvents { collected: columns.collected, owners: columns.owners };
        let derived = derive(&raw, rows, &mut self.scratch);
        let first_event = columns.grouped.first_event(place);
        for (row, closing) in rows.iter().zip(&self.scratch.closing) {
            self.poll.round()?;
            let row = *row as usize;
            let stack = columns.stack(row, self.resolver);
            self.figures.stacks_total += u64::from(stack.is_some());
            let closing = rows
                .get(*closing as usize)
                .map(|row| Closing { event: first_event + closing, row: *row });
            let leak = part.push(place, row, closing, stack.unwrap_or(NONE));
            let is_view = columns.collected.shared.timeline.kind[row] == RowKind::Map;
            self.figures.leaked_handles += u64::from(leak.never_closed && !is_view);
            self.figures.closed_at_exit += u64::from(leak.at_exit);
        }
        let existing = columns.grouped.existing_of(place);
        let tracked = &self.tracked.objects.rows[object];
        self.figures.objects.push(Object {
            pointer: tracked.pointer,
            type_id: tracked.type_id,
            name: self.names.of_object(object),
            first_event: EventIdx(first_event),
            event_count: RowCount::new(rows.len() as u32),
            first_existing: ExistingIdx(existing.start),
            existing_count: RowCount::new(existing.end - existing.start),
            create_event: derived.create.map(|at| EventIdx(first_event + at)),
            destroy_event: derived.destroy.map(|at| EventIdx(first_event + at)),
            is_multiprocess: derived.is_multiprocess,
            is_overlapped: derived.is_overlapped,
        });
        Ok(())
    }
}

/// Names of objects as rows of the names table.
struct ObjectNames {
    /// Row of the names table for each interned name; [`NONE`] for unused ones.
    rows: Vec<u32>,
    /// For each object its row, or [`NONE`].
    objects: Vec<u32>,
}

impl ObjectNames {
    fn of_object(&self, object: usize) -> Option<NameIdx> {
        self.objects.get(object).copied().filter(|row| *row != NONE).map(NameIdx)
    }

    fn of_interned(&self, name: u32) -> Option<NameIdx> {
        self.rows.get(name as usize).copied().filter(|row| *row != NONE).map(NameIdx)
    }
}

/// ETWAnalyzer's text between two names of one object.
const OTHER_NAME: &str = " -- Other Name -- ";

fn write_names(
    writer: &mut ArchiveWriter,
    collected: &Collector,
    tracked: &TrackedEvents,
) -> Result<ObjectNames, ArchiveError> {
    let mut table = Names::default();
    let mut rows = Vec::new();
    let mut row_of = |name: u32, table: &mut Names| {
        if name == 0 {
            return NONE;
        }
        if rows.len() <= name as usize {
            rows.resize(name as usize + 1, NONE);
        }
        if rows[name as usize] == NONE {
            rows[name as usize] = table.len() as u32;
            table.push(Name { name: collected.handles.names.text(name) });
        }
        rows[name as usize]
    };
    let mut objects = Vec::with_capacity(tracked.objects.rows.len());
    for (object, row) in tracked.objects.rows.iter().enumerate() {
        objects.push(match tracked.objects.more_names.get(&(object as u32)) {
            None => row_of(row.name, &mut table),
            Some(more) => {
                let mut joined = collected.handles.names.text(row.name);
                for name in more {
                    joined.push_str(OTHER_NAME);
                    joined.push_str(&collected.handles.names.text(*name));
                }
                table.push(Name { name: joined });
                table.len() as u32 - 1
            }
        });
    }
    for handle in &collected.handles.start {
        row_of(handle.name, &mut table);
    }
    writer.table(Table::Names, table.into_frame())?;
    Ok(ObjectNames { rows, objects })
}

fn write_existing(
    writer: &mut ArchiveWriter,
    collected: &Collector,
    owners: &EventOwners,
    grouped: &GroupedEvents,
) -> Result<(), ArchiveError> {
    let timeline = &collected.shared.timeline;
    let mut table = ExistingHandles::default();
    for (place, row) in grouped.existing() {
        table.push(ExistingHandle {
            object: ObjectIdx(place),
            process: ProcessIdx(owners.process[row]),
            handle: u64::from(collected.handles.handle[timeline.row[row] as usize]),
        });
    }
    writer.table(Table::ExistingHandles, table.into_frame())
}

fn write_start_handles(
    writer: &mut ArchiveWriter,
    collected: &Collector,
    index: &ProcessIndex,
    closed: &[bool],
    names: &ObjectNames,
) -> Result<(), ArchiveError> {
    let mut table = StartHandles::default();
    for (handle, closed) in collected.handles.start.iter().zip(closed) {
        table.push(StartHandle {
            pointer: handle.object,
            process: index.find(handle.pid, handle.time).map(ProcessIdx),
            pid: handle.pid,
            handle: u64::from(handle.handle),
            type_id: TypeId(handle.type_id.into()),
            name: names.of_interned(handle.name),
            closed: Some(*closed),
        });
    }
    writer.table(Table::StartHandles, table.into_frame())
}

fn object_types(collected: &Collector) -> ObjectTypes {
    let types = &collected.object_types.names;
    let mut table = ObjectTypes::default();
    for (type_id, name) in types {
        table.push(ObjectType { type_id: TypeId((*type_id).into()), name: name.clone() });
    }
    let mapping = ObjectType { type_id: FILE_MAPPING_TYPE, name: FILE_MAPPING_NAME.to_owned() };
    if !types.contains_key(&(FILE_MAPPING_TYPE.0 as u16)) {
        table.push(mapping);
    }
    table
}
