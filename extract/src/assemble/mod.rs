//! Turns raw columns into tables: everything that needs the whole trace.

mod acquisitions;
mod batches;
mod files;
mod groups;
mod modules;
mod object_events;
mod processes;
mod provider_events;
mod raw_rows;
mod resources;
mod trace;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::thread;

use handlescope_model::guard::joined;
use handlescope_model::history::{StartHandle, StartList, start_objects};
use handlescope_model::tables::{
    EventCounts, Names, ObjectType, ObjectTypes, Objects, ReferenceChanges, StackRows, Symbols,
    Warnings,
};
use handlescope_model::{
    AcquisitionIdx, ArchiveError, ArchiveWriter, Cancel, Cancelled, FILE_MAPPING_NAME,
    FILE_MAPPING_TYPE, ObjectIdx, ProcessIdx, ROW_GROUP_ROWS, Table, TypeId,
};
use hashbrown::{HashMap, HashSet};

use crate::collect::{Collector, EventCounter};
use crate::error::ExtractError;
use crate::etl::{Clock, WarningKind};
use crate::kernel::ImagePaths;
use crate::lifecycle::{
    self, AllocationColumns, AllocationStats, EventOwners, ExitCloses, Lifetimes, MissingEvents,
    ProcessIndex, TrackedEvents, UnseenCloses, closed_start_handles, find_lost_starts,
    follow_resources, in_time_order, track, unnamed_pids,
};
use crate::metadata::Decoder;
use crate::options::ExtractSummary;
use crate::recording::Recording;
use crate::stacks::{AddressSpaces, FrameInterner, KeptRows, StackResolver, StackTable};

use self::acquisitions::AcquisitionInputs;
use self::batches::{TableAhead, write_sent};
use self::groups::GroupedEvents;
use self::modules::{MethodTable, ModuleTables};
use self::object_events::{ObjectNames, ObjectSenders, ObjectStats, send_objects};
use self::provider_events::{LeftOutAndStacks, ProviderEventTables};
use self::resources::ResourceTables;

/// Resolves the collected events and writes the archive. If cancelled, the writer removes the unfinished archive. The
/// caller fills in the bytes read and the elapsed time of the summary.
pub fn assemble(
    recording: &Recording,
    mut collected: Collector,
    counter: &EventCounter,
    output: &Path,
    threads: NonZeroUsize,
    cancel: &Cancel,
) -> Result<ExtractSummary, ExtractError> {
    let clock = &recording.clock;
    let mut warnings = recording.diagnostics.clone();
    warnings.merge(&collected.shared.diagnostics);
    let mut decoder = std::mem::take(&mut collected.metadata.decoder);
    let order = collected.shared.timeline.restore_times();
    let losses = trace::losses(recording, &collected);
    collected.stacks.withdraw_across(&losses);
    let missing = &MissingEvents::new(&losses);
    let doubtful = find_lost_starts(&mut collected, missing, clock, cancel)?;
    warnings.add(WarningKind::DoubtfulPid, doubtful, None);
    let mut index = ProcessIndex::new(&collected.processes.rows);
    let is_lossy = !losses.is_empty();
    // System takes events of unknown processes if it is known from the first moment to the last.
    let is_system_known = [i64::MIN, i64::MAX].iter().all(|time| index.system_at(*time).is_some());
    if is_lossy || !is_system_known {
        let unnamed = unnamed_pids(&collected, &index, is_lossy, cancel)?;
        collected.processes.add_unnamed(unnamed);
        index = ProcessIndex::new(&collected.processes.rows);
    }
    cancel.check()?;
    let in_order = order.as_deref();
    let mut owners =
        EventOwners::new(&collected, &index, in_order, missing, threads, &mut warnings, cancel)?;
    let order = in_time_order(&collected, &index, &owners, order, cancel)?;
    let in_order = order.as_deref();
    let columns = follow_resources(&collected, &index, clock, in_order, cancel)?;
    // `columns` replaces these millions of rows.
    (collected.heaps, collected.virtual_memory, collected.described) = Default::default();
    let index = &index;
    let lifetimes =
        Lifetimes { collected: &collected, index, owners: &owners, missing, clock, cancel };
    let (mut events, closed_before) = track(&lifetimes, in_order, threads, &mut warnings)?;
    owners.set_foreign(std::mem::take(&mut events.foreign));
    let lifetimes =
        Lifetimes { collected: &collected, index, owners: &owners, missing, clock, cancel };
    let (followed, names) =
        ObjectLifetimes::new(lifetimes, events, closed_before, in_order, threads)?;
    drop(order);
    let paths = ImagePaths::new(&collected.system.volumes);
    let modules = ModuleTables::new(&collected.images, &paths, index, clock);
    let [spaces, methods] = address_spaces(recording, &collected, &modules, index);
    cancel.check()?;
    let mut writer = ArchiveWriter::create(output)?.stopped_by(cancel);
    let assembly = Assembly {
        collected: &collected,
        index,
        owners: &owners,
        followed: &followed,
        spaces: &spaces,
        methods: &methods,
        clock,
        threads: threads.get(),
        cancel,
    };
    let (rows, stacks_ahead) =
        TableAhead::start(writer.encoder(), Table::Stacks, StackRows::into_frame);
    let mut stacks = StackTable::new(rows);
    let (objects, objects_ahead) =
        TableAhead::start(writer.encoder(), Table::Objects, Objects::into_frame);
    let (changes, changes_ahead) =
        TableAhead::start(writer.encoder(), Table::ReferenceChanges, ReferenceChanges::into_frame);
    writer.table(Table::Names, names.into_frame())?;
    let (stats, kept_rows) = assembly.write_handles_and_allocations(
        &mut writer,
        &mut stacks,
        (objects, changes),
        &columns,
    )?;
    for table in [objects_ahead, changes_ahead] {
        writer.append(table.finish()?)?;
    }
    let AllocationStats { allocations, never_freed, freed_at_exit } = columns.stats();
    drop(columns);
    let ObjectStats {
        objects: object_count,
        stacks_total,
        handle_events,
        leaked_handles,
        leaked_views,
        closed_at_exit,
        closed_unseen,
        acquisitions: _,
    } = stats;
    let EventTotals { counts, left_out, stacks_total } = assembly.write_remaining_events(
        &mut writer,
        &mut stacks,
        &mut decoder,
        counter,
        &kept_rows,
        stacks_total,
    )?;
    warnings.add(WarningKind::TooManyEvents, left_out, None);
    cancel.check()?;
    let (frames, stacks_distinct) = stacks.finish();
    let frames_in_modules = frames.in_modules();
    let frames = assembly.write_methods_and_start_frames(&mut writer, frames)?;
    writer.table(Table::Symbols, Symbols::default().into_frame())?;
    assembly.write_system(&mut writer, modules, recording.header.start_time)?;
    writer.table(Table::EventCounts, counts.into_frame())?;
    let warnings = warnings.warnings();
    let table: Warnings = warnings.iter().cloned().collect();
    writer.table(Table::Warnings, table.into_frame())?;
    let end_ns = trace::end_ns(recording, counter);
    writer.table(Table::Losses, trace::loss_table(&losses, clock, end_ns).into_frame())?;
    let stats = trace::StackStats { stacks_total, frames_in_modules };
    let info = trace::info(recording, &collected, counter, &owners.attribution, &stats);
    writer.table(Table::Trace, info.into_frame())?;
    cancel.check()?;
    let ObjectLifetimes { tracked, grouped, exits, .. } = followed;
    // Freeing hundreds of megabytes takes time, and so does encoding the last stacks and frames and getting the archive
    // to disk. So this runs in parallel.
    let output_bytes = thread::scope(|scope| {
        scope.spawn(move || drop((collected, owners, tracked, grouped, exits)));
        writer.append(stacks_ahead.finish()?)?;
        writer.append(frames.finish()?)?;
        writer.finish()
    })?;
    Ok(ExtractSummary {
        objects: object_count,
        handle_events,
        leaked_handles,
        leaked_views,
        closed_at_exit,
        closed_unseen,
        allocations,
        never_freed,
        freed_at_exit,
        stacks_distinct,
        events_lost: u64::from(recording.header.events_lost),
        buffers_lost: u64::from(recording.header.buffers_lost),
        output_bytes,
        warnings,
        ..ExtractSummary::default()
    })
}

/// Returns the address ranges of modules and of managed methods.
fn address_spaces(
    recording: &Recording,
    collected: &Collector,
    modules: &ModuleTables,
    index: &ProcessIndex,
) -> [AddressSpaces; 2] {
    let grace = recording.clock.ticks_apart(modules::LOAD_GRACE_NS);
    let pointer_size = recording.header.pointer_size.clamp(4, 8) as usize;
    [
        AddressSpaces::new(modules.mappings(collected, index, grace), pointer_size),
        AddressSpaces::new(modules::mappings(&collected.methods, grace), pointer_size),
    ]
}

/// Objects with their events, and the closes that no event shows.
struct ObjectLifetimes<'a> {
    tracked: lifecycle::ObjectList,
    names: ObjectNames,
    grouped: GroupedEvents,
    exits: ExitCloses,
    unseen: UnseenCloses<'a>,
    /// Whether each handle that was open at the start was closed later.
    closed: Vec<bool>,
}

impl<'a> ObjectLifetimes<'a> {
    /// Groups the events of all objects and finds the closes. Also returns the names table.
    fn new(
        lifetimes: Lifetimes<'a>,
        events: TrackedEvents,
        closed_before: HashMap<u32, i64>,
        order: Option<&[u32]>,
        threads: NonZeroUsize,
    ) -> Result<(Self, Names), Cancelled> {
        let TrackedEvents { objects: tracked, object, .. } = events;
        let (grouped, closes, (names, table)) = thread::scope(|scope| {
            let closes = scope.spawn(|| {
                let exits = ExitCloses::new(&lifetimes, order)?;
                let unseen = UnseenCloses::new(closed_before, lifetimes, &exits)?;
                Ok::<_, Cancelled>((exits, unseen, closed_start_handles(&lifetimes, order)?))
            });
            let names = scope.spawn(|| ObjectNames::new(lifetimes.collected, &tracked));
            let grouped = GroupedEvents::new(&lifetimes, &tracked, object, order, threads);
            (grouped, joined(closes.join()), joined(names.join()))
        });
        let (grouped, (exits, unseen, closed)) = (grouped?, closes?);
        Ok((Self { tracked, names, grouped, exits, unseen, closed }, table))
    }
}

/// Counts of all events.
struct EventTotals {
    counts: EventCounts,
    /// Provider events left out because there were too many.
    left_out: u64,
    /// Events with a stack in some table, including those of handles and allocations.
    stacks_total: u64,
}

/// Inputs for the tables.
struct Assembly<'a> {
    collected: &'a Collector,
    index: &'a ProcessIndex,
    owners: &'a EventOwners,
    followed: &'a ObjectLifetimes<'a>,
    /// Modules that addresses may be in.
    spaces: &'a AddressSpaces,
    /// Managed methods that addresses may be in.
    methods: &'a AddressSpaces,
    clock: &'a Clock,
    threads: usize,
    cancel: &'a Cancel,
}

impl Assembly<'_> {
    /// Writes the events of objects, and allocations. Also returns which of these events have a stack; events of
    /// handles are included only if events carry their stacks.
    fn write_handles_and_allocations(
        &self,
        writer: &mut ArchiveWriter,
        stacks: &mut StackTable,
        (objects, changes): (SyncSender<Objects>, SyncSender<ReferenceChanges>),
        allocations: &AllocationColumns,
    ) -> Result<(ObjectStats, KeptRows), ExtractError> {
        let Self { collected, index, owners, followed, clock, cancel, .. } = *self;
        let fragments = collected.stacks.events.fragments();
        cancel.check()?;
        let mut resolver =
            StackResolver::new(fragments, self.spaces, self.methods, stacks, self.threads);
        let ObjectLifetimes { tracked, names, grouped, exits, unseen, .. } = followed;
        let columns = AcquisitionInputs { collected, index, owners, exits, unseen, clock, grouped };
        let resources = ResourceTables { collected, clock, columns: allocations };
        // Each handle event is in one row of the table, so counting works without noting rows. Rows are noted if
        // provider events may carry the same stacks, which must count once.
        resolver.note_rows(collected.stacks.events.has_carried());
        let start = self.start_list();
        let mut handle_rows = 0;
        let (mut stats, allocators) = write_sent(writer, Table::Acquisitions, |acquisitions| {
            let to = ObjectSenders { acquisitions, objects, changes };
            let (stats, start) =
                send_objects(&to, &columns, tracked, names, start, &mut resolver, cancel)?;
            let first_object = ObjectIdx::from_row(stats.objects as usize);
            let (objects, rows) = start_objects(
                start.rest().into_iter().map(|at| self.start_handle(at as usize)),
                first_object,
                AcquisitionIdx(stats.acquisitions),
            );
            let first = stats.acquisitions + rows.len() as u32;
            // Sending fails if a table could not be written; the writing threads report that at their end.
            let _ = to.objects.send(objects);
            let _ = to.acquisitions.send(rows.into_frame());
            handle_rows = resolver.rows().len();
            resolver.note_rows(true);
            let allocators = resources.allocators(&mut resolver);
            resources.send_allocations(first, &to.acquisitions, &mut resolver, cancel)?;
            Ok((stats, allocators))
        })?;
        writer.table(Table::Allocators, allocators.into_frame())?;
        resources.write_misses(writer, &mut resolver, cancel)?;
        let rows = resolver.into_rows();
        stats.stacks_total += rows.len() - handle_rows;
        Ok((stats, rows))
    }

    /// Returns the handles of the start rundown.
    fn start_list(&self) -> StartList {
        let mut list = StartList::default();
        for at in 0..self.collected.handles.start.len() {
            let StartHandle { pointer, process, handle, .. } = self.start_handle(at);
            list.add(pointer, process, handle, at as u32);
        }
        list
    }

    /// Returns a handle of the start rundown.
    fn start_handle(&self, at: usize) -> StartHandle {
        let Self { collected, index, followed, .. } = self;
        let handle = &collected.handles.start[at];
        StartHandle {
            pointer: handle.object,
            process: index.find(handle.pid, handle.time).map(ProcessIdx),
            pid: handle.pid,
            handle: u64::from(handle.handle),
            type_id: TypeId(handle.type_id.into()),
            name: followed.names.of_interned(handle.name),
            closed: followed.closed[at],
        }
    }

    /// Writes the stacks of all events, if they were kept, and the provider events. The stacks of `kept_rows` are
    /// already in tables.
    fn write_remaining_events(
        &self,
        writer: &mut ArchiveWriter,
        stacks: &mut StackTable,
        decoder: &mut Decoder,
        counter: &EventCounter,
        kept_rows: &KeptRows,
        kept_stacks: u64,
    ) -> Result<EventTotals, ExtractError> {
        let Self { collected, index, spaces, methods, clock, cancel, .. } = *self;
        let stack_events =
            trace::stack_events(collected, spaces, methods, index, clock, stacks, cancel)?;
        let (event_stacks, kept) = (&collected.stacks.events, &collected.kept);
        // `all` does not include stacks that events carry themselves.
        let stacks_joined = match collected.stacks.all {
            Some(_) => {
                let carried = kept_rows.carried(event_stacks).count();
                (stack_events.stack.iter().flatten().count() + carried) as u64
            }
            None => kept_stacks,
        };
        writer.table(Table::StackEvents, stack_events.into_frame())?;
        let (counts, rows) = trace::event_counts(counter, decoder, clock);
        let carried = &if kept.is_empty() {
            HashSet::new()
        } else {
            kept_rows.carried_events(event_stacks, &collected.shared.timeline)
        };
        // Events are resolved one at a time.
        let resolver =
            &mut StackResolver::new(event_stacks.fragments(), spaces, methods, stacks, 1);
        let provider_events =
            ProviderEventTables { kept, decoder, rows: &rows, index, clock, carried, resolver };
        let LeftOutAndStacks { left_out, stacks } = provider_events.write(writer, cancel)?;
        Ok(EventTotals { counts, left_out, stacks_total: stacks_joined + stacks })
    }

    /// Writes the methods, and starts to encode the frames, which refer to them.
    fn write_methods_and_start_frames(
        &self,
        writer: &mut ArchiveWriter,
        frames: FrameInterner,
    ) -> Result<TableAhead, ArchiveError> {
        let Self { collected, index, spaces, clock, .. } = *self;
        let methods = MethodTable::new(&collected.methods, frames.methods(), spaces, index, clock);
        let (methods, method_rows) = methods.into_parts();
        let mut start = 0;
        let next = move || {
            let part = start..(start + ROW_GROUP_ROWS).min(frames.len());
            start = part.end;
            let row = |method| method_rows.get(&method).copied();
            (!part.is_empty()).then(|| frames.rows(part, row).into_frame())
        };
        let frames = TableAhead::from_parts(writer.encoder(), Table::Frames, next);
        writer.table(Table::Methods, methods.into_frame())?;
        Ok(frames)
    }

    /// Writes the system inventory: types, processes, zombies, threads, modules and volumes.
    fn write_system(
        &self,
        writer: &mut ArchiveWriter,
        modules: ModuleTables,
        session_start: i64,
    ) -> Result<(), ArchiveError> {
        let Self { collected, index, clock, .. } = *self;
        writer.table(Table::ObjectTypes, object_types(collected).into_frame())?;
        let image_paths = modules.process_images(collected, index);
        let processes = processes::table(&collected.processes.rows, &image_paths, clock);
        writer.table(Table::Processes, processes.into_frame())?;
        let zombies = processes::zombies(&collected.processes, session_start, clock);
        writer.table(Table::Zombies, zombies.into_frame())?;
        let threads = processes::threads(&collected.threads.rows, index, clock);
        writer.table(Table::Threads, threads.into_frame())?;
        let (modules, loads) = modules.into_tables();
        writer.table(Table::Modules, modules.into_frame())?;
        writer.table(Table::ModuleLoads, loads.into_frame())?;
        writer.table(Table::Volumes, trace::volumes(collected).into_frame())
    }
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
