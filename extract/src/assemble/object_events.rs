//! Makes the objects with their acquisitions, one object after the other, and the names table.

use std::collections::HashMap;
use std::sync::mpsc::SyncSender;
use std::thread;

use handlescope_model::history::StartList;
use handlescope_model::rules::{
    DeriveScratch, WITH_HANDLE, derive, is_leaked_handle, is_leaked_view,
};
use handlescope_model::tables::{Name, Names, Object, Objects, ReferenceChanges};
use handlescope_model::{Cancel, Cancelled, EventKind, NameIdx, ObjectIdx, Poll, ROW_GROUP_ROWS};
use polars::prelude::{DataFrame, PolarsResult};

use super::acquisitions::{AcquisitionInputs, EventBatch, NewObject};
use super::batches::{BatchesAhead, send_in_batches};
use crate::collect::Collector;
use crate::error::ExtractError;
use crate::lifecycle;
use crate::prefetch::prefetch;
use crate::stacks::{LookedUp, StackLookUp, StackResolver};

/// Number of events looked up before their stacks are numbered. It is small, so that their frames stay in the cache in
/// between.
const LOOKED_UP_AT_ONCE: usize = 1 << 15;

/// What processing the objects yields besides the tables.
#[derive(Default)]
pub struct ObjectStats {
    /// Number of objects.
    pub objects: u64,
    /// Number of their handles and views.
    pub acquisitions: u32,
    /// Events with a stack.
    pub stacks_total: u64,
    /// Creates, duplicates and closes.
    pub handle_events: u64,
    /// Creates and duplicates without a close.
    pub leaked_handles: u64,
    /// Views that nothing unmaps.
    pub leaked_views: u64,
    /// Creates, duplicates and maps closed only by the end of their process.
    pub closed_at_exit: u64,
    /// Handles and views with a missing close that later events show.
    pub closed_unseen: u64,
}

/// Where the rows of objects go.
pub struct ObjectSenders {
    pub acquisitions: SyncSender<PolarsResult<DataFrame>>,
    pub objects: SyncSender<Objects>,
    pub changes: SyncSender<ReferenceChanges>,
}

/// Makes the tables of objects and their acquisitions. One thread derives rows, a second looks up their stacks, a third
/// numbers these, and another makes frames of them. Also returns the handles of the start rundown that no object has.
pub fn send_objects<'a>(
    to: &ObjectSenders,
    columns: &'a AcquisitionInputs<'a>,
    tracked: &'a lifecycle::ObjectList,
    names: &'a ObjectNames,
    start: StartList,
    resolver: &mut StackResolver<'_>,
    cancel: &'a Cancel,
) -> Result<(ObjectStats, StartList), ExtractError> {
    let mut builder = EventBuilder::new(columns, tracked, names, start, cancel);
    let (look_up, numbers) = resolver.halves();
    let (mut stacks_total, mut acquisitions) = (0, 0);
    thread::scope(|scope| {
        let batches = BatchesAhead::start(scope, || builder.next_batch());
        let mut looked_up = BatchesAhead::start(scope, look_up_in_parts(batches, look_up));
        let with_stacks = || {
            let mut stacks = Vec::with_capacity(ROW_GROUP_ROWS);
            while let Some((looked_up, batch)) = looked_up.next()? {
                numbers.rows(&looked_up, &mut stacks);
                if let Some(mut batch) = batch {
                    stacks_total += batch.set_stacks(stacks);
                    // Sending fails if a table could not be written; the writing threads report that at their end.
                    let _ = to.objects.send(batch.take_objects(acquisitions));
                    let _ = to.changes.send(batch.take_changes());
                    acquisitions += batch.len() as u32;
                    return Ok(Some(batch));
                }
            }
            Ok(None)
        };
        send_in_batches(&to.acquisitions, with_stacks, EventBatch::into_frame, cancel)
    })?;
    Ok((ObjectStats { stacks_total, acquisitions, ..builder.stats }, builder.start))
}

/// Some looked-up stacks of a table part. The part comes with the last of them.
type LookedUpPart<'a> = (LookedUp<'a>, Option<EventBatch<'a>>);

/// Looks up the stacks of the table parts.
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
        let end = (first + LOOKED_UP_AT_ONCE).min(batch.event_count());
        let looked_up = batch.look_up(first..end, stacks);
        if end == batch.event_count() {
            return Ok(Some((looked_up, Some(batch))));
        }
        current = Some((batch, end));
        Ok(Some((looked_up, None)))
    }
}

/// Prefetch distance in objects. Their rows may be anywhere, because objects were added in the order of their first
/// events.
const AHEAD: usize = 8;

/// Goes through the objects in their final order and makes their rows.
struct EventBuilder<'a> {
    columns: &'a AcquisitionInputs<'a>,
    tracked: &'a lifecycle::ObjectList,
    names: &'a ObjectNames,
    /// Handles of the start rundown that no object has claimed so far.
    start: StartList,
    poll: Poll<'a>,
    scratch: DeriveScratch,
    /// Events of the current object, as positions in the part.
    events: Vec<u32>,
    position: usize,
    stats: ObjectStats,
}

impl<'a> EventBuilder<'a> {
    fn new(
        columns: &'a AcquisitionInputs<'a>,
        tracked: &'a lifecycle::ObjectList,
        names: &'a ObjectNames,
        start: StartList,
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            columns,
            tracked,
            names,
            start,
            poll: Poll::new(cancel),
            scratch: DeriveScratch::default(),
            events: Vec::new(),
            position: 0,
            stats: ObjectStats::default(),
        }
    }

    /// Returns the next rows, unless cancelled; `None` after the last object.
    fn next_batch(&mut self) -> Result<Option<EventBatch<'a>>, Cancelled> {
        let grouped = self.columns.grouped;
        if self.position == grouped.len() {
            return Ok(None);
        }
        let positions = grouped.part_from(self.position);
        let mut batch = self.columns.batch(positions.clone());
        let first_event = grouped.events(positions.clone()).start;
        for position in positions {
            if position + AHEAD < grouped.len() {
                prefetch(&self.tracked.rows[grouped.object(position + AHEAD)..]);
            }
            self.object(&mut batch, first_event, position)?;
            self.position += 1;
        }
        Ok(Some(batch))
    }

    fn object(
        &mut self,
        batch: &mut EventBatch<'a>,
        first_event: usize,
        position: usize,
    ) -> Result<(), Cancelled> {
        let grouped = self.columns.grouped;
        let events = grouped.events(position..position + 1);
        let first = (events.start - first_event) as u32;
        let events = first..first + events.len() as u32;
        self.events.clear();
        self.events.extend(events.clone());
        let derived = derive(batch.raw(), &self.events, &mut self.scratch);
        for event in &self.events {
            self.poll.round()?;
            let kind = batch.raw().event_kind(*event as usize);
            self.stats.handle_events += u64::from(WITH_HANDLE.contains(kind));
        }
        let object = grouped.object(position);
        let tracked = &self.tracked.rows[object];
        self.stats.objects += 1;
        let object = Object {
            pointer: tracked.pointer,
            type_id: tracked.type_id,
            name: self.names.of_object(object, tracked),
            is_multiprocess: derived.is_multiprocess,
            is_overlapped: derived.is_overlapped,
            ..Object::default()
        };
        let new = NewObject {
            row: ObjectIdx::from_row(position),
            object,
            events,
            closing: &self.scratch.closing,
            listed: grouped.existing_of(position),
        };
        let stats = &mut self.stats;
        batch.add(new, &mut self.start, |kind, leak| {
            let is = |rule: fn(EventKind, bool) -> bool| u64::from(rule(kind, leak.never_closed));
            stats.leaked_handles += is(is_leaked_handle);
            stats.leaked_views += is(is_leaked_view);
            stats.closed_at_exit += u64::from(leak.at_exit);
            stats.closed_unseen += u64::from(leak.is_unseen);
        });
        Ok(())
    }
}

/// Names of objects, as rows of the names table.
#[derive(Default)]
pub struct ObjectNames {
    /// Row of the names table for each interned name; `None` for unused names.
    rows: Vec<Option<NameIdx>>,
    /// Rows for objects with several names, or with the name of their file.
    of_objects: HashMap<u32, NameIdx>,
}

/// ETWAnalyzer's text between two names of one object.
const NAME_SEPARATOR: &str = " -- Other Name -- ";

impl ObjectNames {
    /// Returns the names of all objects, and the names table.
    pub fn new(collected: &Collector, tracked: &lifecycle::ObjectList) -> (Self, Names) {
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

    /// Adds an interned name to the table unless it is already there; 0 means no name.
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

    /// Returns the name of an object; `object` is its row among the tracked objects.
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
