//! Raw columns → tables: everything that needs the whole trace happens here.

mod events;
mod methods;
mod modules;
mod object_events;
mod object_names;
mod parts;
mod processes;
mod provider_events;
mod resources;
mod stack_events;
mod threads;
mod trace;

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use handlescope_model::tables::{
    ExistingHandle, ExistingHandles, ObjectType, ObjectTypes, Objects, Stacks, StartHandle,
    StartHandles, Symbols, Warnings,
};
use handlescope_model::{
    ArchiveError, ArchiveWriter, Cancel, Cancelled, FILE_MAPPING_NAME, FILE_MAPPING_TYPE,
    ObjectIdx, ProcessIdx, Table, TypeId,
};

use crate::collect::{Collector, EventCounter};
use crate::error::ExtractError;
use crate::etl::WarningKind;
use crate::lifecycle::{
    AllocationFigures, EXIT_GRACE_NS, EventOwners, ExitCloses, ProcessIndex, closed_start_handles,
    follow_resources, track,
};
use crate::options::ExtractSummary;
use crate::recording::Recording;
use crate::stacks::{AddressSpaces, StackResolver, StackTable};

use self::events::{EventColumns, GroupedEvents};
use self::methods::MethodTable;
use self::modules::ModuleTables;
use self::object_events::{ObjectFigures, write_events};
use self::object_names::{ObjectNames, write_names};
use self::provider_events::{LeftOutAndStacks, ProviderEventTables};
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
    let allocation_columns = follow_resources(&collected, &index, clock, order.as_deref(), cancel)?;
    // Millions of rows, of which these columns have what is needed further.
    (collected.heaps, collected.virtual_memory, collected.described) = Default::default();
    let owners = EventOwners::new(&collected, &index, clock, &mut warnings, cancel)?;
    let in_order = order.as_deref();
    let (tracked, exits, closed) = thread::scope(|scope| {
        let closes = scope.spawn(|| {
            let exits = ExitCloses::new(&collected, &owners, in_order, clock, cancel)?;
            let closed = closed_start_handles(&collected, &owners, &index, in_order, cancel)?;
            Ok::<_, Cancelled>((exits, closed))
        });
        let tracked = track(&collected, &owners, in_order, &mut warnings, cancel)?;
        let (exits, closed) = closes.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok::<_, Cancelled>((tracked, exits, closed))
    })?;
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
    let ObjectFigures { objects, leaked_handles, leaked_views, closed_at_exit } =
        write_events(&mut writer, &columns, &tracked, &names, &mut resolver, cancel)?;
    let object_count = objects.len() as u64;
    let resources = ResourceTables { collected: &collected, clock, columns: &allocation_columns };
    resources.write(&mut writer, &mut resolver, cancel)?;
    let kept_rows = resolver.into_rows();
    let carried = kept_rows.carried(&collected.stacks.events, timeline);
    let AllocationFigures { allocations, never_freed, freed_at_exit } =
        allocation_columns.figures();
    drop(allocation_columns);
    let stack_events =
        stack_events::table(&collected, &spaces, &methods, &index, clock, &mut table, cancel)?;
    // Those of every event have all but what events carry themselves.
    let stacks_joined = match collected.stacks.all {
        Some(_) => (stack_events.stack.iter().flatten().count() + carried.len()) as u64,
        None => kept_rows.len(),
    };
    writer.table(Table::StackEvents, stack_events.into_frame())?;
    let (counts, event_rows) = trace::event_counts(counter, &decoder, clock);
    let provider_events = ProviderEventTables {
        kept: &collected.kept,
        decoder: &mut decoder,
        rows: &event_rows,
        index: &index,
        clock,
        carried: &carried,
        resolver: &mut StackResolver::new(
            &collected.kept.stacks.fragments,
            &spaces,
            &methods,
            &mut table,
        ),
    };
    let LeftOutAndStacks { left_out, stacks } = provider_events.write(&mut writer, cancel)?;
    let stacks_total = stacks_joined + stacks;
    warnings.add(WarningKind::TooManyEvents, left_out, None);
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
        leaked_views,
        closed_at_exit,
        allocations,
        never_freed,
        freed_at_exit,
        stacks_distinct,
        events_lost: u64::from(recording.header.events_lost),
        buffers_lost: u64::from(recording.header.buffers_lost),
        bytes_read: 0,
        output_bytes,
        elapsed: Duration::ZERO,
        warnings,
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
