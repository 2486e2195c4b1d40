//! The events table: raw events grouped by object.

use handlescope_model::tables::{Event, Events};
use polars::prelude::{DataFrame, PolarsResult};

use super::event_kind;
use crate::collect::{HandleEvents, RawKind, UNKNOWN_ID};
use crate::etl::Clock;
use crate::lifecycle::{EventOwners, NONE, TrackedEvents};
use crate::stacks::{EventStacks, StackResolver};

/// Rows of one part of the events table.
const PART_ROWS: usize = 1 << 18;

/// The events of each object, objects in their final order.
pub(super) struct GroupedEvents {
    /// Raw rows, grouped by place, in time order within an object.
    rows: Vec<u32>,
    /// For each place the first of its rows; one more for the end.
    first_row: Vec<u32>,
    /// Rundown handles as (place, raw row), grouped by place.
    existing: Vec<(u32, u32)>,
    /// For each place the first of its rundown handles; one more for the end.
    first_existing: Vec<u32>,
    /// For each place its row among the tracked objects.
    objects: Vec<u32>,
}

impl GroupedEvents {
    /// Groups the events (counting sort, so that equal keys keep their order).
    pub(super) fn new(events: &HandleEvents, tracked: &TrackedEvents) -> Self {
        let places = tracked.objects.places();
        let mut objects = vec![0; places.len()];
        for (object, place) in places.iter().enumerate() {
            objects[*place as usize] = object as u32;
        }
        let place_of = |row: usize| {
            let object = tracked.object[row];
            (object != NONE).then(|| places[object as usize])
        };
        let mut first_row = vec![0u32; places.len() + 1];
        let mut first_existing = vec![0u32; places.len() + 1];
        for row in 0..events.len() {
            if let Some(place) = place_of(row) {
                let is_rundown = events.kind[row] == RawKind::Rundown;
                let counts = if is_rundown { &mut first_existing } else { &mut first_row };
                counts[place as usize + 1] += 1;
            }
        }
        for place in 1..first_row.len() {
            first_row[place] += first_row[place - 1];
            first_existing[place] += first_existing[place - 1];
        }
        let mut rows = vec![0; first_row.last().copied().unwrap_or(0) as usize];
        let mut existing = vec![(0, 0); first_existing.last().copied().unwrap_or(0) as usize];
        let (mut next_row, mut next_existing) = (first_row.clone(), first_existing.clone());
        let mut place_row = |row: usize| {
            let Some(place) = place_of(row) else { return };
            if events.kind[row] == RawKind::Rundown {
                let next = &mut next_existing[place as usize];
                existing[*next as usize] = (place, row as u32);
                *next += 1;
            } else {
                let next = &mut next_row[place as usize];
                rows[*next as usize] = row as u32;
                *next += 1;
            }
        };
        (0..events.len()).for_each(&mut place_row);
        let mut grouped = Self { rows, first_row, existing, first_existing, objects };
        grouped.sort_disordered(events);
        grouped
    }

    /// Damaged files have events that were read too late; within an object they are sorted too.
    fn sort_disordered(&mut self, events: &HandleEvents) {
        if events.time.is_sorted() {
            return;
        }
        for bounds in self.first_row.windows(2) {
            let rows = &mut self.rows[bounds[0] as usize..bounds[1] as usize];
            rows.sort_by_key(|row| events.time[*row as usize]);
        }
    }

    /// Number of objects.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The object at a place: its row among the tracked objects, and its raw events.
    pub(super) fn object(&self, place: usize) -> (usize, &[u32]) {
        let rows = self.first_row[place] as usize..self.first_row[place + 1] as usize;
        (self.objects[place] as usize, &self.rows[rows])
    }

    /// Row of the events table where the events of an object start.
    pub(super) fn first_event(&self, place: usize) -> u32 {
        self.first_row[place]
    }

    /// Number of rundown handles of an object.
    pub(super) fn existing_count(&self, place: usize) -> u32 {
        self.first_existing[place + 1] - self.first_existing[place]
    }

    /// Rundown handles as (place of the object, raw row), grouped by object.
    pub(super) fn existing(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.existing.iter().map(|(place, row)| (*place, *row as usize))
    }

    /// Number of creates, duplicates and closes.
    pub(super) fn handle_events(&self, events: &HandleEvents) -> u64 {
        let is_handle =
            |kind| matches!(kind, RawKind::Create | RawKind::Duplicate | RawKind::Close);
        self.rows.iter().filter(|row| is_handle(events.kind[**row as usize])).count() as u64
    }
}

/// What the rows of the events table are made of.
pub(super) struct EventColumns<'a> {
    pub(super) events: &'a HandleEvents,
    pub(super) owners: &'a EventOwners,
    pub(super) stacks: &'a EventStacks,
    pub(super) clock: &'a Clock,
    pub(super) grouped: &'a GroupedEvents,
}

impl EventColumns<'_> {
    /// An empty part of the table.
    pub(super) fn part(&self) -> EventPart {
        EventPart { rows: Events::default() }
    }

    /// The stack of a raw event.
    pub(super) fn stack(&self, row: usize, resolver: &mut StackResolver<'_>) -> Option<u32> {
        let (parts, more) = (self.stacks.parts(row), self.stacks.more_parts(row));
        resolver.stack(parts, more, self.events.pid[row], self.events.time[row])
    }
}

/// A part of the events table.
pub(super) struct EventPart {
    rows: Events,
}

impl EventPart {
    /// Whether more rows are welcome.
    pub(super) fn has_room(&self) -> bool {
        self.rows.len() < PART_ROWS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a raw event; returns whether it is leaked.
    pub(super) fn push(
        &mut self,
        columns: &EventColumns<'_>,
        place: usize,
        row: usize,
        first_event: u32,
        closing: u32,
        stack: Option<u32>,
    ) -> bool {
        let EventColumns { events, owners, clock, .. } = columns;
        let raw = events.kind[row];
        let Some(kind) = event_kind(raw) else { return false };
        let opens = matches!(raw, RawKind::Create | RawKind::Duplicate | RawKind::Map);
        let leaked = opens && closing == NONE;
        let is_handle = opens && raw != RawKind::Map || raw == RawKind::Close;
        let mut event = Event {
            object: place as u32,
            kind: kind.code(),
            time_ns: clock.ns(events.time[row]),
            process: owners.process[row],
            tid: Some(events.tid[row]).filter(|tid| *tid != UNKNOWN_ID).unwrap_or(0),
            handle: is_handle.then(|| u64::from(events.value[row])),
            leaked,
            closing_event: (closing != NONE).then(|| first_event + closing),
            stack,
            ..Event::default()
        };
        let detail = events.detail[row] as usize;
        match raw {
            RawKind::Reference => event.ref_delta = Some(reference_delta(events.value[row])),
            RawKind::Dereference => event.ref_delta = Some(-reference_delta(events.value[row])),
            RawKind::Duplicate => {
                let (raw, of) = (events.duplicates[detail], owners.duplicates[detail]);
                let known = |row: u32| Some(row).filter(|row| *row != NONE);
                event.source_process = known(of.source);
                event.source_pid = raw.source_pid;
                event.source_handle = Some(u64::from(raw.source_handle));
                event.caller_process = known(of.caller);
                event.inherited_by = known(of.inherited_by);
            }
            RawKind::Map | RawKind::Unmap => {
                let view = events.views[detail];
                event.view_base = Some(events.object[row]);
                event.view_size = Some(view.size);
                event.byte_offset = Some(view.byte_offset);
                event.file_object = Some(view.file);
            }
            _ => {}
        }
        self.rows.push(event);
        leaked
    }

    pub(super) fn into_frame(self) -> PolarsResult<DataFrame> {
        self.rows.into_frame()
    }
}

/// References are counted in 32 bits without sign; no real count comes near the limit.
fn reference_delta(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
