//! The events table: raw events grouped by object, and what was derived for them.

use std::ops::Range;

use handlescope_model::rules::{is_kernel_handle, is_leak, is_leak_at_exit};
use handlescope_model::tables::{Events, StackEvent, StackEvents};
use handlescope_model::{
    Cancel, Cancelled, EventIdx, EventKind, ObjectIdx, Poll, ProcessIdx, StackIdx,
};
use polars::prelude::{DataFrame, PolarsResult};

use super::groups::GroupedEvents;
use super::raw_rows::RawRows;
use crate::collect::Collector;
use crate::etl::Clock;
use crate::kernel::{DuplicateRow, ViewRow};
use crate::lifecycle::{
    DuplicateOwners, EventOwners, ExitCloses, NONE, ProcessIndex, UnseenClose, UnseenCloses,
    event_kind, known,
};
use crate::raw::RowKind;
use crate::stacks::{AddressSpaces, LookedUp, StackLookUp, StackResolver, StackTable};

/// Inputs of the events table.
pub struct EventColumns<'a> {
    pub collected: &'a Collector,
    pub index: &'a ProcessIndex,
    pub owners: &'a EventOwners,
    pub exits: &'a ExitCloses,
    pub unseen: &'a UnseenCloses<'a>,
    pub clock: &'a Clock,
    pub grouped: &'a GroupedEvents,
}

impl EventColumns<'_> {
    /// A part of the table with the events of objects at these positions, of which nothing is derived yet.
    pub fn batch(&self, positions: Range<usize>) -> EventBatch<'_> {
        let Self { collected, owners, unseen, grouped, .. } = *self;
        let events = grouped.events(positions);
        let count = events.len();
        EventBatch {
            columns: self,
            first_event: events.start as u32,
            raw: RawRows::new(collected, owners, unseen, grouped.raw_rows(events)),
            object: Vec::with_capacity(count),
            closing: Vec::with_capacity(count),
            stack: Vec::new(),
            leaked: Vec::with_capacity(count),
            closed_at_exit: Vec::with_capacity(count),
            unseen: Vec::new(),
        }
    }
}

/// A part of the events table: raw events and what was derived for them.
pub struct EventBatch<'a> {
    columns: &'a EventColumns<'a>,
    /// Row of the first event in the table.
    first_event: u32,
    raw: RawRows<'a>,
    object: Vec<ObjectIdx>,
    closing: Vec<u32>,
    /// Empty until [`Self::set_stacks`].
    stack: Vec<Option<u32>>,
    leaked: Vec<bool>,
    closed_at_exit: Vec<bool>,
    /// Positions of events whose handle or view was closed by an event that the trace lost; there are few.
    unseen: Vec<(usize, UnseenClose)>,
}

/// How the handle or view that an event opened leaks, or which close of it the trace lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leak {
    pub never_closed: bool,
    pub at_exit: bool,
    pub unseen: Option<UnseenClose>,
}

impl<'a> EventBatch<'a> {
    /// The raw events, which are named by their positions in this part.
    pub fn raw(&self) -> &RawRows<'_> {
        &self.raw
    }

    /// Kind of the next event of which nothing was derived yet.
    pub fn next_kind(&self) -> EventKind {
        self.raw.event_kind(self.object.len())
    }

    /// Row of the first event in the table.
    pub fn first_event(&self) -> u32 {
        self.first_event
    }

    /// Adds what was derived for the next event, which is of this object: the position of the event that closed what it
    /// opened. Returns whether the handle or view that it opened leaks.
    #[inline]
    pub fn push(&mut self, object: usize, closing: Option<u32>) -> Leak {
        let position = self.object.len();
        let leak = self.leak(position, closing);
        let is_exit = self.columns.exits.contains(self.raw.rows[position]);
        self.unseen.extend(leak.unseen.map(|unseen| (position, unseen)));
        self.object.push(ObjectIdx(object as u32));
        self.closing.push(closing.map_or(NONE, |closing| self.first_event + closing));
        self.leaked.push(leak.never_closed);
        self.closed_at_exit.push(is_exit || leak.at_exit);
        leak
    }

    /// Whether the handle or view that an event opened leaks.
    fn leak(&self, position: usize, closing: Option<u32>) -> Leak {
        let Self { columns, raw, .. } = self;
        let kind = raw.event_kind(position);
        let unseen = match closing {
            None => columns.unseen.of(raw.rows[position] as usize),
            Some(_) => None,
        };
        let is_closed =
            closing.is_some() || unseen.is_some() || raw.is_of_no_process(position as u32);
        let is_inherited = kind == EventKind::HandleDuplicate
            && raw.duplicate_owners(position as u32).inherited_by != NONE;
        let at_exit =
            closing.is_some_and(|closing| columns.exits.contains(raw.rows[closing as usize]));
        Leak {
            never_closed: is_leak(kind, is_closed),
            at_exit: is_leak_at_exit(kind, is_inherited, at_exit),
            unseen,
        }
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.raw.rows.len()
    }

    /// Looks up the stacks of some events, by their positions.
    pub fn look_up(&self, events: Range<usize>, stacks: &mut StackLookUp<'_>) -> LookedUp<'a> {
        let Collector { stacks: collected, shared, .. } = self.columns.collected;
        stacks.rows(&collected.events, &shared.timeline, &self.raw.rows[events])
    }

    /// Takes the stacks of all events; returns how many have one.
    pub fn set_stacks(&mut self, stacks: Vec<Option<u32>>) -> u64 {
        self.stack = stacks;
        self.stack.iter().flatten().count() as u64
    }

    /// The events of these kinds, each with its position and `value`. Most traces have events of few kinds.
    fn events_of<T>(&self, kinds: &[RowKind], value: impl Fn(usize) -> T) -> Vec<(usize, T)> {
        let events = self.raw.kind.iter().enumerate().filter(|(_, kind)| kinds.contains(kind));
        events.map(|(at, _)| (at, value(at))).collect()
    }

    /// A column of the values that `value` makes of some events, and of nulls for all others: without any values, which is
    /// one of nulls, where there are none of them.
    fn column<E: Copy, T: Clone>(
        &self,
        events: &[(usize, E)],
        value: impl Fn(E) -> Option<T>,
    ) -> Vec<Option<T>> {
        if events.is_empty() {
            return Vec::new();
        }
        let mut column = vec![None; self.object.len()];
        for (at, event) in events {
            if let Some(slot) = column.get_mut(*at) {
                *slot = value(*event);
            }
        }
        column
    }

    /// The rows, column by column.
    pub fn into_frame(self) -> PolarsResult<DataFrame> {
        let EventColumns { collected, index, owners, clock, .. } = self.columns;
        let Collector { duplicates, references, views, shared, .. } = collected;
        let (timeline, raw) = (&shared.timeline, &self.raw);
        let rows = || raw.rows.iter().map(|row| *row as usize);
        let family_row = |at: usize| raw.family_row[at] as usize;
        let handle = |(kind, handle): (&RowKind, &u32)| match kind {
            RowKind::HandleCreate | RowKind::HandleClose | RowKind::HandleDuplicate => {
                Some(u64::from(*handle))
            }
            _ => None,
        };
        // References are counted in 32 bits without sign; no real count comes near the limit.
        let count = |at: usize| i32::try_from(references.count[family_row(at)]).unwrap_or(i32::MAX);
        let referenced = self.events_of(&[RowKind::Reference, RowKind::Dereference], |at| {
            if raw.kind[at] == RowKind::Reference { count(at) } else { -count(at) }
        });
        let duplicated = self.events_of(&[RowKind::HandleDuplicate], |at| {
            (duplicates.rows[family_row(at)], owners.duplicates[family_row(at)])
        });
        type Duplicate = (DuplicateRow, DuplicateOwners);
        let of_owner = |process: fn(DuplicateOwners) -> u32| {
            self.column(&duplicated, |(_, of): Duplicate| known(process(of)).map(ProcessIdx))
        };
        // Of other events the process of the thread, where the handle is not its own.
        let is_called = |at: usize| match raw.kind[at] {
            RowKind::HandleDuplicate => true,
            RowKind::HandleCreate => is_kernel_handle(raw.handle[at].into()),
            RowKind::HandleClose => {
                is_kernel_handle(raw.handle[at].into()) || owners.foreign.contains(&raw.rows[at])
            }
            _ => false,
        };
        let called = (0..raw.rows.len()).filter(|at| is_called(*at));
        let called: Vec<_> =
            called.map(|at| (at, owners.actor(raw.rows[at] as usize, collected, index))).collect();
        let viewed =
            self.events_of(&[RowKind::Map, RowKind::Unmap], |at| views.rows[family_row(at)]);
        let of_view =
            |value: fn(ViewRow) -> u64| self.column(&viewed, |view: ViewRow| Some(value(view)));
        let of_unseen = |value: &dyn Fn(UnseenClose) -> i64| {
            self.column(&self.unseen, |unseen: UnseenClose| Some(value(unseen)))
        };
        Events {
            kind: raw
                .kind
                .iter()
                .map(|kind| event_kind(*kind).map_or(0, EventKind::code))
                .collect(),
            time_ns: rows().map(|row| clock.ns(timeline.time[row])).collect(),
            process: raw.process.iter().map(|process| ProcessIdx(*process)).collect(),
            tid: rows().map(|row| known(timeline.tid[row]).unwrap_or(0)).collect(),
            handle: raw.kind.iter().zip(&raw.handle).map(handle).collect(),
            ref_delta: self.column(&referenced, Some),
            source_process: of_owner(|owners| owners.source),
            source_pid: self.column(&duplicated, |(raw, _): Duplicate| raw.source_pid),
            source_handle: self
                .column(&duplicated, |(raw, _): Duplicate| Some(raw.source_handle.into())),
            caller_process: self.column(&called, |actor: Option<u32>| actor.map(ProcessIdx)),
            inherited_by: of_owner(|owners| owners.inherited_by),
            view_base: of_view(|view| view.base),
            view_size: of_view(|view| view.size),
            byte_offset: self.column(&viewed, |view: ViewRow| view.byte_offset),
            file_object: of_view(|view| view.file),
            closed_unseen: self
                .column(&self.unseen, |unseen: UnseenClose| Some(unseen.evidence.code())),
            closed_after_ns: of_unseen(&|unseen| clock.ns(unseen.after)),
            closed_before_ns: of_unseen(&|unseen| clock.ns(unseen.before)),
            object: self.object,
            leaked: self.leaked,
            closed_at_exit: self.closed_at_exit,
            closing_event: self.closing.into_iter().map(|row| known(row).map(EventIdx)).collect(),
            stack: self.stack.into_iter().map(|stack| stack.map(StackIdx)).collect(),
        }
        .into_frame()
    }
}

/// Every stack of the trace in time order, if all were kept, unless asked to stop.
pub fn stack_events(
    collected: &Collector,
    spaces: &AddressSpaces,
    methods: &AddressSpaces,
    index: &ProcessIndex,
    clock: &Clock,
    stacks: &mut StackTable,
    cancel: &Cancel,
) -> Result<StackEvents, Cancelled> {
    let mut table = StackEvents::default();
    let Some(all) = &collected.stacks.all else { return Ok(table) };
    let mut poll = Poll::new(cancel);
    let mut resolver = StackResolver::new(all.fragments(), spaces, methods, stacks, 1);
    let mut rows: Vec<_> = all.stacks().iter().collect();
    rows.sort_by_key(|stack| stack.event_time);
    for stack in rows {
        poll.round()?;
        let (parts, more) = stack.parts();
        let resolved = resolver.stack(parts, more, stack.pid, stack.event_time);
        table.push(StackEvent {
            time_ns: clock.ns(stack.event_time),
            process: index.find(stack.pid, stack.event_time).map(ProcessIdx),
            pid: stack.pid,
            tid: stack.tid,
            stack: resolved.map(StackIdx),
        });
    }
    Ok(table)
}
