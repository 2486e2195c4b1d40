//! Acquisitions of objects: groups raw events by object, and derives handles and views from them.

use std::ops::Range;

use handlescope_model::history::{Life, Lives, RundownHandles, StartList};
use handlescope_model::rules::{is_kernel_handle, is_leak_at_exit};
use handlescope_model::tables::{
    AcquisitionKind, Acquisitions, End, Object, Objects, Origin, ReferenceChange, ReferenceChanges,
};
use handlescope_model::{AcquisitionIdx, EventKind, ObjectIdx, ProcessIdx, RowCount, StackIdx};
use polars::prelude::{DataFrame, PolarsResult};

use super::groups::GroupedEvents;
use super::raw_rows::RawRows;
use crate::collect::Collector;
use crate::etl::Clock;
use crate::kernel::{DuplicateRow, ViewRow};
use crate::lifecycle::{
    DuplicateOwners, EventOwners, ExitCloses, NONE, ProcessIndex, UnseenClose, UnseenCloses, known,
};
use crate::raw::RowKind;
use crate::stacks::{LookedUp, StackLookUp};

/// Inputs for the acquisitions.
pub struct AcquisitionInputs<'a> {
    pub collected: &'a Collector,
    pub index: &'a ProcessIndex,
    pub owners: &'a EventOwners,
    pub exits: &'a ExitCloses,
    pub unseen: &'a UnseenCloses<'a>,
    pub clock: &'a Clock,
    pub grouped: &'a GroupedEvents,
}

impl AcquisitionInputs<'_> {
    /// Returns the part of the table with the events of objects at these positions. Nothing is derived yet.
    pub fn batch(&self, positions: Range<usize>) -> EventBatch<'_> {
        let Self { collected, owners, unseen, grouped, .. } = *self;
        let events = grouped.events(positions);
        // Most handles are opened by one event and closed by another.
        let count = events.len() / 2;
        EventBatch {
            columns: self,
            raw: RawRows::new(collected, owners, unseen, grouped.raw_rows(events)),
            stack: Vec::new(),
            object: Vec::with_capacity(count),
            opened: Vec::with_capacity(count),
            ended: Vec::with_capacity(count),
            end: Vec::with_capacity(count),
            listed: Vec::with_capacity(count),
            in_start: Vec::new(),
            unseen: Vec::new(),
            objects: Objects::default(),
            created: Vec::new(),
            deleted: Vec::new(),
            changes: Vec::new(),
            lives: Lives::default(),
        }
    }

    /// Returns process and handle value of a row of the end rundown.
    fn listed_handle(&self, row: u32) -> (ProcessIdx, u64) {
        let Collector { handles, shared, .. } = self.collected;
        let handle = handles.handle[shared.timeline.row[row as usize] as usize];
        (ProcessIdx(self.owners.process[row as usize]), handle.into())
    }
}

/// Part of the object tables: raw events, and the acquisitions derived from them. Events are identified by their
/// positions in the part.
pub struct EventBatch<'a> {
    columns: &'a AcquisitionInputs<'a>,
    raw: RawRows<'a>,
    /// Stack of each event; empty until [`Self::set_stacks`].
    stack: Vec<Option<u32>>,
    object: Vec<ObjectIdx>,
    /// Events that opened and closed each acquisition, or [`NONE`].
    opened: Vec<u32>,
    ended: Vec<u32>,
    /// Codes of [`End`].
    end: Vec<u32>,
    /// Row of each acquisition in the end rundown, or [`NONE`].
    listed: Vec<u32>,
    /// Acquisitions that the start rundown lists.
    in_start: Vec<(usize, bool)>,
    /// Acquisitions with a close that the trace lost. There are few.
    unseen: Vec<(usize, UnseenClose)>,
    /// Objects of the part. [`Self::take_objects`] fills the columns of their creation and end.
    objects: Objects,
    /// Positions in `objects`, with the events that created and deleted them.
    created: Vec<(usize, u32)>,
    deleted: Vec<(usize, u32)>,
    changes: Vec<(ObjectIdx, u32)>,
    /// Memory reused for each object.
    lives: Lives,
}

/// Object to add.
pub struct NewObject<'o> {
    pub row: ObjectIdx,
    pub object: Object,
    pub events: Range<u32>,
    /// For each of its events, the position of the event that closes it, or [`NONE`].
    pub closing: &'o [u32],
    /// Its rows in the end rundown.
    pub listed: &'o [u32],
}

/// How an acquisition leaks, or whether the trace lost its close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcquisitionLeak {
    pub never_closed: bool,
    pub at_exit: bool,
    pub is_unseen: bool,
}

impl<'a> EventBatch<'a> {
    /// Returns the raw events.
    pub fn raw(&self) -> &RawRows<'_> {
        &self.raw
    }

    /// Returns the number of acquisitions so far.
    pub fn len(&self) -> usize {
        self.object.len()
    }

    /// Returns the number of events.
    pub fn event_count(&self) -> usize {
        self.raw.rows.len()
    }

    /// Adds the next object with its acquisitions. Takes those that the start rundown lists from `start`. `each` gets
    /// the kind of each opening event, and how the acquisition leaks.
    pub fn add(
        &mut self,
        object: NewObject<'_>,
        start: &mut StartList,
        mut each: impl FnMut(EventKind, AcquisitionLeak),
    ) {
        let NewObject { row, object, events, closing, listed } = object;
        let from = self.len();
        let mut lives = std::mem::take(&mut self.lives);
        let kinds = events.clone().map(|at| self.raw.event_kind(at as usize));
        lives.find(kinds, closing);
        let absolute = |at: u32| known(at).map_or(NONE, |at| events.start + at);
        for Life { opened, ended } in lives.found.drain(..) {
            self.push(row, absolute(opened), absolute(ended), &mut each);
        }
        self.lives = lives;
        if !listed.is_empty() {
            self.match_listed(row, from, listed);
        }
        if !start.is_empty() {
            self.match_start(object.pointer, from, start);
        }
        for at in events {
            let of = match self.raw.event_kind(at as usize) {
                EventKind::ObjectCreate => &mut self.created,
                EventKind::ObjectDelete => &mut self.deleted,
                EventKind::Reference | EventKind::Dereference => {
                    self.changes.push((row, at));
                    continue;
                }
                _ => continue,
            };
            of.push((self.objects.len(), at));
        }
        let count = RowCount::new((self.len() - from) as u32);
        self.objects.pointer.push(object.pointer);
        self.objects.type_id.push(object.type_id);
        self.objects.name.push(object.name);
        self.objects.acquisition_count.push(count);
        self.objects.is_multiprocess.push(object.is_multiprocess);
        self.objects.is_overlapped.push(object.is_overlapped);
    }

    fn push(
        &mut self,
        object: ObjectIdx,
        opened: u32,
        ended: u32,
        each: &mut impl FnMut(EventKind, AcquisitionLeak),
    ) {
        let Self { columns, raw, .. } = self;
        let mut unseen = None;
        let end = match (known(ended), known(opened)) {
            (Some(ended), _) if columns.exits.contains(raw.rows[ended as usize]) => End::AtExit,
            (Some(_), _) => End::Closed,
            (None, Some(opened)) => {
                unseen = columns.unseen.of(raw.rows[opened as usize] as usize);
                match unseen {
                    Some(unseen) => End::from(unseen.evidence),
                    None if raw.is_of_no_process(opened) => End::Closed,
                    None => End::Open,
                }
            }
            (None, None) => End::Open,
        };
        if let Some(opened) = known(opened) {
            let kind = raw.event_kind(opened as usize);
            let is_inherited = kind == EventKind::HandleDuplicate
                && raw.duplicate_owners(opened).inherited_by != NONE;
            each(
                kind,
                AcquisitionLeak {
                    never_closed: end == End::Open,
                    at_exit: is_leak_at_exit(kind, is_inherited, end == End::AtExit),
                    is_unseen: unseen.is_some(),
                },
            );
        }
        self.unseen.extend(unseen.map(|unseen| (self.object.len(), unseen)));
        self.object.push(object);
        self.opened.push(opened);
        self.ended.push(ended);
        self.end.push(end.code());
        self.listed.push(NONE);
    }

    /// Matches handles in the end rundown to the object's acquisitions, which begin at `from`, and adds those that were
    /// opened before the trace.
    fn match_listed(&mut self, object: ObjectIdx, from: usize, rows: &[u32]) {
        let mut listed = RundownHandles::default();
        for row in rows {
            let (process, handle) = self.columns.listed_handle(*row);
            listed.add(process, handle, *row);
        }
        // Of several handles with one value, the last opened are the ones still open.
        for at in (from..self.len()).rev().filter(|at| self.ended[*at] == NONE) {
            if let Some(row) = listed.take(self.process(at), self.key(at)) {
                self.listed[at] = row;
            }
        }
        for row in listed.rest() {
            self.push(object, NONE, NONE, &mut |_, _| {});
            if let Some(listed) = self.listed.last_mut() {
                *listed = row;
            }
        }
    }

    /// Matches handles in the start rundown to the object's acquisitions without opening event.
    fn match_start(&mut self, pointer: u64, from: usize, start: &mut StartList) {
        for at in (from..self.len()).filter(|at| self.opened[*at] == NONE) {
            if start.take(pointer, self.process(at), self.key(at)) {
                self.in_start.push((at, true));
            }
        }
    }

    /// Returns the event that says what was acquired: the opening, or else the close.
    fn event(&self, at: usize) -> Option<usize> {
        known(self.opened[at]).or(known(self.ended[at])).map(|event| event as usize)
    }

    /// Returns the owner of an acquisition.
    fn process(&self, at: usize) -> ProcessIdx {
        let Some(event) = self.event(at) else { return self.listed_alone(at).0 };
        let child = match self.raw.kind[event] {
            RowKind::HandleDuplicate => known(self.raw.duplicate_owners(event as u32).inherited_by),
            _ => None,
        };
        ProcessIdx(child.unwrap_or(self.raw.process[event]))
    }

    fn key(&self, at: usize) -> u64 {
        let Some(event) = self.event(at) else { return self.listed_alone(at).1 };
        match self.raw.kind[event] {
            RowKind::Map | RowKind::Unmap => self.view(event).base,
            _ => self.raw.handle[event].into(),
        }
    }

    /// Returns owner and value of an acquisition that is only in the end rundown.
    fn listed_alone(&self, at: usize) -> (ProcessIdx, u64) {
        let row = known(self.listed[at]);
        row.map_or((ProcessIdx::NONE, 0), |row| self.columns.listed_handle(row))
    }

    fn view(&self, event: usize) -> ViewRow {
        self.columns.collected.views.rows[self.raw.family_row[event] as usize]
    }

    fn is_view(&self, event: usize) -> bool {
        matches!(self.raw.kind[event], RowKind::Map | RowKind::Unmap)
    }

    /// Looks up the stacks of some events.
    pub fn look_up(&self, events: Range<usize>, stacks: &mut StackLookUp<'_>) -> LookedUp<'a> {
        let Collector { stacks: collected, shared, .. } = self.columns.collected;
        stacks.rows(&collected.events, &shared.timeline, &self.raw.rows[events])
    }

    /// Sets the stacks of all events; returns how many have one.
    pub fn set_stacks(&mut self, stacks: Vec<Option<u32>>) -> u64 {
        self.stack = stacks;
        self.stack.iter().flatten().count() as u64
    }

    fn stack_of(&self, event: u32) -> Option<StackIdx> {
        self.stack.get(event as usize).copied().flatten().map(StackIdx)
    }

    fn time_ns(&self, event: u32) -> i64 {
        let timeline = &self.columns.collected.shared.timeline;
        self.columns.clock.ns(timeline.time[self.raw.rows[event as usize] as usize])
    }

    fn tid(&self, event: u32) -> Option<u32> {
        let timeline = &self.columns.collected.shared.timeline;
        known(timeline.tid[self.raw.rows[event as usize] as usize]).filter(|tid| *tid != 0)
    }

    fn known_process(&self, event: u32) -> Option<ProcessIdx> {
        known(self.raw.process[event as usize]).map(ProcessIdx)
    }

    /// Takes the objects of the part once stacks are known; `first` is the row of the first acquisition.
    pub fn take_objects(&mut self, first: u32) -> Objects {
        let mut objects = std::mem::take(&mut self.objects);
        let mut next = first;
        let firsts = objects.acquisition_count.iter().map(|count| {
            let first = next;
            next += count.0;
            AcquisitionIdx(first)
        });
        objects.first_acquisition = firsts.collect();
        let height = objects.len();
        let created = std::mem::take(&mut self.created);
        objects.created_ns = column(height, &created, |event| Some(self.time_ns(event)));
        objects.created_tid = column(height, &created, |event| self.tid(event));
        objects.created_process = column(height, &created, |event| self.known_process(event));
        objects.created_stack = column(height, &created, |event| self.stack_of(event));
        let deleted = std::mem::take(&mut self.deleted);
        objects.deleted_ns = column(height, &deleted, |event| Some(self.time_ns(event)));
        objects.deleted_tid = column(height, &deleted, |event| self.tid(event));
        objects.deleted_process = column(height, &deleted, |event| self.known_process(event));
        objects.deleted_stack = column(height, &deleted, |event| self.stack_of(event));
        objects
    }

    /// Takes the reference changes of the part once stacks are known.
    pub fn take_changes(&mut self) -> ReferenceChanges {
        let references = &self.columns.collected.references;
        let changes = std::mem::take(&mut self.changes).into_iter().map(|(object, event)| {
            // Counts are unsigned 32-bit numbers; no real count comes near the limit.
            let count = references.count[self.raw.family_row[event as usize] as usize];
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            let is_rise = self.raw.kind[event as usize] == RowKind::Reference;
            ReferenceChange {
                object,
                time_ns: self.time_ns(event),
                process: self.known_process(event),
                tid: self.tid(event),
                stack: self.stack_of(event),
                delta: if is_rise { count } else { -count },
            }
        });
        changes.collect()
    }

    /// Returns acquisitions opened by an event of certain kinds, each with the `value` of that event.
    fn opened_as<T>(&self, kinds: &[RowKind], value: impl Fn(usize) -> T) -> Vec<(usize, T)> {
        let opened = (0..).zip(&self.opened).filter_map(|(at, event)| Some((at, known(*event)?)));
        let of_kind = opened.filter(|(_, event)| kinds.contains(&self.raw.kind[*event as usize]));
        of_kind.map(|(at, event)| (at, value(event as usize))).collect()
    }

    /// Returns the process that made the call, if it is not the owner.
    fn caller(&self, event: usize) -> Option<ProcessIdx> {
        let AcquisitionInputs { collected, index, owners, .. } = self.columns;
        let row = self.raw.rows[event];
        let is_called = match self.raw.kind[event] {
            RowKind::HandleDuplicate => true,
            RowKind::HandleCreate => is_kernel_handle(self.raw.handle[event].into()),
            RowKind::HandleClose => {
                is_kernel_handle(self.raw.handle[event].into()) || owners.foreign.contains(&row)
            }
            _ => false,
        };
        let actor = is_called.then(|| owners.actor(row as usize, collected, index)).flatten();
        actor.map(ProcessIdx)
    }

    /// Returns the rows, column by column.
    pub fn into_frame(self) -> PolarsResult<DataFrame> {
        let AcquisitionInputs { collected, owners, clock, grouped, .. } = self.columns;
        let raw = &self.raw;
        let rows = || 0..self.len();
        let opened = || self.opened.iter().map(|event| known(*event));
        let ended = || self.ended.iter().map(|event| known(*event));
        let process: Vec<ProcessIdx> = rows().map(|at| self.process(at)).collect();
        let duplicated = self.opened_as(&[RowKind::HandleDuplicate], |event| {
            let row = raw.family_row[event] as usize;
            (collected.duplicates.rows[row], owners.duplicates[row], raw.process[event])
        });
        type Duplicate = (DuplicateRow, DuplicateOwners, u32);
        let is_view = |at: usize| self.event(at).is_some_and(|event| self.is_view(event));
        let viewed: Vec<(usize, ViewRow)> = if raw.has_views() {
            rows()
                .filter(|at| is_view(*at))
                .filter_map(|at| Some((at, self.view(self.event(at)?))))
                .collect()
        } else {
            Vec::new()
        };
        let of_unseen = |value: fn(UnseenClose) -> i64| {
            self.unseen.iter().map(move |(at, unseen)| (*at, clock.ns(value(*unseen))))
        };
        let mut kind = vec![AcquisitionKind::Handle.code(); self.len()];
        viewed.iter().for_each(|(at, _)| kind[*at] = AcquisitionKind::View.code());
        let mut ended_ns: Vec<Option<i64>> =
            ended().map(|event| event.map(|event| self.time_ns(event))).collect();
        of_unseen(|unseen| unseen.before).for_each(|(at, ns)| ended_ns[at] = Some(ns));
        let callers = |events: &[u32]| {
            let events = events
                .iter()
                .enumerate()
                .filter_map(|(at, event)| Some((at, self.caller(known(*event)? as usize)?)));
            let callers: Vec<_> = events.collect();
            column(self.len(), &callers, Some)
        };
        let other_keys: Vec<(usize, u64)> = opened()
            .zip(ended())
            .enumerate()
            .filter_map(|(at, (opened, ended))| {
                let key = |event: u32| raw.handle[event as usize];
                let (opened, ended) = (key(opened?), key(ended?));
                (opened != ended).then_some((at, ended.into()))
            })
            .collect();
        let in_rundown = if grouped.has_existing() {
            self.listed.iter().map(|row| Some(*row != NONE)).collect()
        } else {
            Vec::new()
        };
        let after: Vec<(usize, i64)> = of_unseen(|unseen| unseen.after).collect();
        Acquisitions {
            kind,
            key: rows().map(|at| self.key(at)).collect(),
            size: column(self.len(), &viewed, |view: ViewRow| Some(view.size as i64)),
            origin: opened().map(|event| self.origin(event).code()).collect(),
            opened_ns: opened().map(|event| event.map(|event| self.time_ns(event))).collect(),
            opened_tid: opened().map(|event| self.tid(event?)).collect(),
            opened_stack: opened().map(|event| self.stack_of(event?)).collect(),
            opened_by: callers(&self.opened),
            ended_ns,
            ended_tid: ended().map(|event| self.tid(event?)).collect(),
            ended_stack: ended().map(|event| self.stack_of(event?)).collect(),
            ended_by: callers(&self.ended),
            ended_after_ns: column(self.len(), &after, Some),
            ended_key: column(self.len(), &other_keys, Some),
            in_rundown,
            in_start_rundown: column(self.len(), &self.in_start, Some),
            source_process: column(self.len(), &duplicated, |(_, of, process): Duplicate| {
                let parent = known(process).filter(|_| of.inherited_by != NONE);
                known(of.source).or(parent).map(ProcessIdx)
            }),
            source_pid: column(self.len(), &duplicated, |(row, ..): Duplicate| row.source_pid),
            source_key: column(self.len(), &duplicated, |(row, ..): Duplicate| {
                Some(row.source_handle.into())
            }),
            byte_offset: column(self.len(), &viewed, |view: ViewRow| view.byte_offset),
            file_object: column(self.len(), &viewed, |view: ViewRow| Some(view.file)),
            process: process.into_iter().map(ProcessIdx::known).collect(),
            end: self.end,
            object: self.object.into_iter().map(Some).collect(),
            ..Acquisitions::default()
        }
        .into_frame()
    }

    fn origin(&self, opened: Option<u32>) -> Origin {
        let Some(event) = opened else { return Origin::Before };
        let kind = self.raw.event_kind(event as usize);
        let is_inherited = kind == EventKind::HandleDuplicate
            && self.raw.duplicate_owners(event).inherited_by != NONE;
        Origin::from_event(kind, is_inherited).unwrap_or(Origin::Create)
    }
}

/// Creates a column with `value` for some rows and null for all others. The column is empty, which means only nulls, if
/// there are no such rows.
fn column<E: Copy, T: Clone>(
    height: usize,
    rows: &[(usize, E)],
    value: impl Fn(E) -> Option<T>,
) -> Vec<Option<T>> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut column = vec![None; height];
    for (at, row) in rows {
        column[*at] = value(*row);
    }
    column
}
