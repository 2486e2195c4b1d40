//! The events table, object by object, the objects derived from it, and the names table.

use std::collections::HashMap;
use std::sync::mpsc::SyncSender;
use std::thread;

use handlescope_model::rules::{
    DeriveScratch, WITH_HANDLE, derive, is_leaked_handle, is_leaked_view,
};
use handlescope_model::tables::{Name, Names, Object, Objects};
use handlescope_model::{
    ArchiveWriter, Cancel, Cancelled, EventIdx, EventKind, ExistingIdx, NameIdx, Poll,
    ROW_GROUP_ROWS, RowCount, Table,
};

use super::batches::{BatchesAhead, write_in_batches};
use super::events::{EventBatch, EventColumns};
use crate::collect::Collector;
use crate::error::ExtractError;
use crate::lifecycle;
use crate::prefetch::prefetch;
use crate::stacks::{LookedUp, StackLookUp, StackResolver};

/// Events whose stacks are looked up before they are numbered: few, so that their frames stay in the cache between.
const LOOKED_UP_AT_ONCE: usize = 1 << 15;

/// Results of the events pass besides the events table.
#[derive(Default)]
pub struct ObjectStats {
    /// Number of objects.
    pub objects: u64,
    /// Events with a stack.
    pub stacks_total: u64,
    /// Creates, duplicates and closes.
    pub handle_events: u64,
    /// Creates and duplicates without close.
    pub leaked_handles: u64,
    /// Views that nothing unmaps.
    pub leaked_views: u64,
    /// Creates, duplicates and maps that only the end of their process closed.
    pub closed_at_exit: u64,
    /// Handles and views whose close is missing, but shown by later events.
    pub closed_unseen: u64,
}

/// Writes the events table: one thread derives rows, a second looks up their stacks, a third numbers these, and this thread
/// encodes. The rows of the objects go to `objects`.
pub fn write_events(
    writer: &mut ArchiveWriter,
    objects: SyncSender<Objects>,
    columns: &EventColumns<'_>,
    tracked: &lifecycle::Objects,
    names: &ObjectNames,
    resolver: &mut StackResolver<'_>,
    cancel: &Cancel,
) -> Result<ObjectStats, ExtractError> {
    let mut builder = EventBuilder::new(columns, tracked, names, objects, cancel);
    let (look_up, numbers) = resolver.halves();
    let mut stacks_total = 0;
    thread::scope(|scope| {
        let batches = BatchesAhead::start(scope, || builder.next_batch());
        let mut looked_up = BatchesAhead::start(scope, look_up_in_parts(batches, look_up));
        let with_stacks = || {
            let mut stacks = Vec::with_capacity(ROW_GROUP_ROWS);
            while let Some((looked_up, batch)) = looked_up.next()? {
                numbers.rows(&looked_up, &mut stacks);
                if let Some(mut batch) = batch {
                    stacks_total += batch.set_stacks(stacks);
                    return Ok(Some(batch));
                }
            }
            Ok(None)
        };
        write_in_batches(writer, Table::Events, with_stacks, EventBatch::into_frame, cancel)
    })?;
    Ok(ObjectStats { stacks_total, ..builder.stats })
}

/// Some stacks of a part of the table, which comes with the last of them.
type LookedUpPart<'a> = (LookedUp<'a>, Option<EventBatch<'a>>);

/// Looks up the stacks of the parts of the table.
fn look_up_in_parts<'s, 'a: 's, 'r: 's>(
    mut batches: BatchesAhead<'s, EventBatch<'a>>,
    stacks: &'s mut StackLookUp<'r>,
) -> impl FnMut() -> Result<Option<LookedUpPart<'a>>, Cancelled> {
    let mut current: Option<(EventBatch<'a>, usize)> = None;
    move || {
        if current.is_none() {
            current = batches.next()?.map(|batch| (batch, 0));
        }
        let Some((batch, first)) = current.take() else { return Ok(None) };
        let end = (first + LOOKED_UP_AT_ONCE).min(batch.len());
        let looked_up = batch.look_up(first..end, stacks);
        if end == batch.len() {
            return Ok(Some((looked_up, Some(batch))));
        }
        current = Some((batch, end));
        Ok(Some((looked_up, None)))
    }
}

/// Objects by which the row of an object is fetched into the cache before it is used: rows lie anywhere, because objects were
/// added in the order of their first events.
const AHEAD: usize = 8;

/// Goes over the objects in their final order and makes the rows of their events.
struct EventBuilder<'a> {
    columns: &'a EventColumns<'a>,
    tracked: &'a lifecycle::Objects,
    names: &'a ObjectNames,
    /// Rows of the objects table for [`Self::sender`].
    objects: Objects,
    sender: SyncSender<Objects>,
    poll: Poll<'a>,
    scratch: DeriveScratch,
    /// The events of an object, by their positions in the part.
    events: Vec<u32>,
    position: usize,
    stats: ObjectStats,
}

impl<'a> EventBuilder<'a> {
    fn new(
        columns: &'a EventColumns<'a>,
        tracked: &'a lifecycle::Objects,
        names: &'a ObjectNames,
        sender: SyncSender<Objects>,
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            columns,
            tracked,
            names,
            objects: Objects::default(),
            sender,
            poll: Poll::new(cancel),
            scratch: DeriveScratch::default(),
            events: Vec::new(),
            position: 0,
            stats: ObjectStats::default(),
        }
    }

    /// The next rows, unless asked to stop; `None` after the last event.
    fn next_batch(&mut self) -> Result<Option<EventBatch<'a>>, Cancelled> {
        let positions = self.columns.grouped.part_from(self.position);
        let mut batch = self.columns.batch(positions.clone());
        for position in positions {
            let grouped = self.columns.grouped;
            if position + AHEAD < grouped.len() {
                prefetch(&self.tracked.rows[grouped.object(position + AHEAD)..]);
            }
            self.object(&mut batch, position)?;
            self.position += 1;
            if self.objects.len() == ROW_GROUP_ROWS || self.position == self.columns.grouped.len() {
                // Fails when the table could not be written, which the end of its thread says.
                let _ = self.sender.send(std::mem::take(&mut self.objects));
            }
        }
        Ok((batch.len() > 0).then_some(batch))
    }

    fn object(&mut self, batch: &mut EventBatch<'a>, position: usize) -> Result<(), Cancelled> {
        let grouped = self.columns.grouped;
        let events = grouped.events(position..position + 1);
        let first_event = events.start as u32;
        // Positions in the part.
        let first = first_event - batch.first_event();
        self.events.clear();
        self.events.extend((first..).take(events.len()));
        let derived = derive(batch.raw(), &self.events, &mut self.scratch);
        for closing in &self.scratch.closing {
            self.poll.round()?;
            let kind = batch.next_kind();
            let closing = self.events.get(*closing as usize).copied();
            let leak = batch.push(position, closing);
            let is = |rule: fn(EventKind, bool) -> bool| u64::from(rule(kind, leak.never_closed));
            self.stats.handle_events += u64::from(WITH_HANDLE.contains(kind));
            self.stats.leaked_handles += is(is_leaked_handle);
            self.stats.leaked_views += is(is_leaked_view);
            self.stats.closed_at_exit += u64::from(leak.at_exit);
            self.stats.closed_unseen += u64::from(leak.unseen.is_some());
        }
        let existing = grouped.existing_of(position);
        let object = grouped.object(position);
        let tracked = &self.tracked.rows[object];
        self.stats.objects += 1;
        self.objects.push(Object {
            pointer: tracked.pointer,
            type_id: tracked.type_id,
            name: self.names.of_object(object, tracked),
            first_event: EventIdx(first_event),
            event_count: RowCount::new(events.len() as u32),
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
#[derive(Default)]
pub struct ObjectNames {
    /// Row of the names table for each interned name; `None` for names that are not used.
    rows: Vec<Option<NameIdx>>,
    /// Rows of the names of objects that have several, or that of their file.
    of_objects: HashMap<u32, NameIdx>,
}

/// ETWAnalyzer's text between two names of one object.
const NAME_SEPARATOR: &str = " -- Other Name -- ";

impl ObjectNames {
    /// The names of all objects, and the names table.
    pub fn new(collected: &Collector, tracked: &lifecycle::Objects) -> (Self, Names) {
        let (mut table, mut names) = (Names::default(), Self::default());
        let mut file_rows = HashMap::new();
        for (object, row) in (0..).zip(&tracked.rows) {
            match tracked.more_names.get(&object) {
                None if row.name != 0 => names.add(row.name, collected, &mut table),
                None => {
                    let Some(file) = tracked.files.get(&object) else { continue };
                    let row = file_rows.entry(*file).or_insert_with(|| {
                        push(&mut table, collected.views.files.names.text(*file))
                    });
                    names.of_objects.insert(object, *row);
                }
                Some(more) => {
                    let mut joined = collected.handles.names.text(row.name);
                    for name in more {
                        joined.push_str(NAME_SEPARATOR);
                        joined.push_str(&collected.handles.names.text(*name));
                    }
                    names.of_objects.insert(object, push(&mut table, joined));
                }
            }
        }
        for handle in &collected.handles.start {
            names.add(handle.name, collected, &mut table);
        }
        (names, table)
    }

    /// Adds an interned name to the table, if it is not there yet; 0 is none.
    fn add(&mut self, name: u32, collected: &Collector, table: &mut Names) {
        let at = name as usize;
        if name == 0 {
            return;
        }
        if self.rows.len() <= at {
            self.rows.resize(at + 1, None);
        }
        self.rows[at].get_or_insert_with(|| push(table, collected.handles.names.text(name)));
    }

    /// Name of an object, a row of the tracked objects.
    fn of_object(&self, object: usize, row: &lifecycle::ObjectRow) -> Option<NameIdx> {
        let of_object = self.of_objects.get(&(object as u32)).copied();
        of_object.or_else(|| self.of_interned(row.name))
    }

    pub fn of_interned(&self, name: u32) -> Option<NameIdx> {
        self.rows.get(name as usize).copied().flatten()
    }
}

/// Adds a name to the table.
fn push(table: &mut Names, name: String) -> NameIdx {
    table.push(Name { name });
    NameIdx(table.len() as u32 - 1)
}
