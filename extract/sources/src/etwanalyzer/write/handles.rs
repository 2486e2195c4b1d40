//! Writes the handle part: objects with the records of their events, in the order of the objects table.

use handlescope_model::rules::{DeriveScratch, ObjectEvents, derive, handle_slot, is_leak};
use handlescope_model::tables::{Acquisitions, Event, Events, ObjectTypes, Objects};
use handlescope_model::{
    ArchiveError, EventIdx, EventKind, EventOrder, ProcessIdx, Texts, Trace, sentinel,
};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::super::record::Rows;
use super::super::records::{
    CLOSED_WITHOUT_EVENT, EventRecord, ExistingRecord, NEVER_CLOSED, ObjectRecord, TypeMap, rank,
};
use super::json::{TableWindow, TryEach};
use super::stacks::WrittenStackTexts;

pub struct HandlePartWriter<'a> {
    pub trace: &'a Trace,
    pub order: &'a EventOrder,
    pub types: &'a ObjectTypes,
    pub names: &'a Texts,
    pub context: RecordContext<'a>,
}

impl Serialize for HandlePartWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("ObjectTypeMap", &TypeMap(self.types.clone()))?;
        let mut objects = ObjectRecords {
            objects: TableWindow::new(self.trace),
            order: self.order,
            events: TableWindow::new(self.trace),
            acquisitions: TableWindow::new(self.trace),
            names: self.names,
            context: self.context,
            next: 0,
            scratch: DeriveScratch::default(),
        };
        map.serialize_entry("ObjectReferences", &TryEach::new(|| objects.next()))?;
        map.end()
    }
}

/// The objects of a trace in sequence.
struct ObjectRecords<'a> {
    objects: TableWindow<'a, Objects>,
    order: &'a EventOrder,
    events: TableWindow<'a, Events>,
    acquisitions: TableWindow<'a, Acquisitions>,
    names: &'a Texts,
    context: RecordContext<'a>,
    next: usize,
    scratch: DeriveScratch,
}

impl ObjectRecords<'_> {
    fn next(&mut self) -> Result<Option<ObjectRecord>, ArchiveError> {
        let order = self.order;
        if self.next >= order.objects {
            return Ok(None);
        }
        let Some(object) = self.objects.row(self.next)? else { return Ok(None) };
        let range = |first: &[u32]| first[self.next] as usize..first[self.next + 1] as usize;
        let (events, listed) = (range(&order.first), range(&order.first_listed));
        self.next += 1;
        let name = object.name.and_then(|name| self.names.get(name.row()));
        // The format has 16 bits; an id with more is not from Windows.
        let type_id = u16::try_from(object.type_id.0).unwrap_or_default();
        let mut record = ObjectRecord {
            pointer: Some(object.pointer as i64),
            name: name.map(str::to_owned),
            type_id: Some(type_id.into()),
            ..ObjectRecord::default()
        };
        let mut keys = Vec::with_capacity(events.len());
        let mut pairs = Pairs { first: events.start as u32, ..Pairs::default() };
        for row in events {
            let Some(event) = self.events.row(row)? else { break };
            // `None` for a kind of a later version.
            let kind = EventKind::from_code(event.kind);
            keys.push((event.time_ns, kind.map(rank)));
            pairs.events.push(PairedEvent::from(&event));
            if let Some(kind) = kind {
                record.add(kind, event_record(&event, self.context));
            }
        }
        record.order = order_of_lists(&keys).map(Rows);
        record.closings = pairs.closings(&mut self.scratch).map(Rows);
        for row in order.listed.get(listed).unwrap_or_default() {
            let Some(handle) = self.acquisitions.row(*row as usize)? else { break };
            record.existing.get_or_insert_default().push(ExistingRecord {
                // 32 bits, as in the event.
                handle: Some(u64::from(handle.key as u32)),
                process: Some(index(handle.process)),
                granted_access: handle.granted_access,
                attributes: handle.attributes,
                handle_count: object.handle_count,
                pointer_count: object.pointer_count,
            });
        }
        Ok(Some(record))
    }
}

/// Returns the positions of the events in the order a reader assumes: by time, and at the same time by list. `None` if
/// they are already in that order.
fn order_of_lists(keys: &[(i64, Option<u8>)]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|at| keys.get(*at));
    (!order.is_sorted()).then_some(order)
}

/// The fields of an event that decide which close belongs to which open.
struct PairedEvent {
    kind: EventKind,
    process: ProcessIdx,
    slot: u64,
    source_process: Option<ProcessIdx>,
    inherited_by: Option<ProcessIdx>,
    closing: Option<EventIdx>,
    /// Whether, if it opened something, that was closed by an event in the trace or never.
    is_plain: bool,
}

impl From<&Event> for PairedEvent {
    fn from(event: &Event) -> Self {
        let kind = EventKind::from_code(event.kind).unwrap_or(EventKind::Reference);
        let is_closed = event.closing_event.is_some();
        Self {
            kind,
            process: event.process,
            slot: handle_slot(event.handle.unwrap_or_default()),
            source_process: event.source_process,
            inherited_by: event.inherited_by,
            closing: event.closing_event,
            // The format has no place for closes that the trace lost.
            is_plain: event.leaked == is_leak(kind, is_closed) || event.closed_unseen.is_some(),
        }
    }
}

/// The events of an object.
#[derive(Default)]
struct Pairs {
    /// Row of the first one.
    first: u32,
    events: Vec<PairedEvent>,
}

impl Pairs {
    /// Returns the position of the event that closed what each event opened; `None` if the reader can derive them all.
    fn closings(&self, scratch: &mut DeriveScratch) -> Option<Vec<i64>> {
        let rows: Vec<u32> = (0..self.events.len() as u32).collect();
        derive(self, &rows, scratch);
        let position =
            |event: &PairedEvent| event.closing.map(|row| row.0.wrapping_sub(self.first));
        let derived = scratch.closing.iter().map(|at| Some(*at).filter(|at| *at != sentinel()));
        if self.events.iter().map(position).eq(derived) && self.events.iter().all(|it| it.is_plain)
        {
            return None;
        }
        let closing = |event: &PairedEvent| match position(event) {
            Some(position) => i64::from(position),
            None if event.is_plain => NEVER_CLOSED,
            None => CLOSED_WITHOUT_EVENT,
        };
        Some(self.events.iter().map(closing).collect())
    }

    fn event(&self, event: u32) -> Option<&PairedEvent> {
        self.events.get(event as usize)
    }
}

impl ObjectEvents for Pairs {
    fn kind(&self, event: u32) -> EventKind {
        self.event(event).map_or(EventKind::Reference, |event| event.kind)
    }

    fn process(&self, event: u32) -> Option<ProcessIdx> {
        self.event(event).map(|event| event.process).filter(|process| process.0 != sentinel())
    }

    fn handle(&self, event: u32) -> u64 {
        self.event(event).map_or(0, |event| event.slot)
    }

    fn source_process(&self, event: u32) -> Option<ProcessIdx> {
        self.event(event)?.source_process
    }

    fn inherited_by(&self, event: u32) -> Option<ProcessIdx> {
        self.event(event)?.inherited_by
    }
}

/// Inputs of the records.
#[derive(Clone, Copy)]
pub struct RecordContext<'a> {
    pub stacks: &'a WrittenStackTexts,
    /// Process ids by row.
    pub pids: &'a [u32],
}

impl RecordContext<'_> {
    /// Returns the process id of the source process.
    pub fn source_pid(&self, event: &Event) -> Option<u32> {
        self.pids.get(event.source_process?.row()).copied()
    }
}

/// Returns the number of a process; -1 for none.
pub fn index(process: Option<ProcessIdx>) -> i64 {
    process.filter(|process| process.0 != sentinel()).map_or(-1, |process| i64::from(process.0))
}

fn event_record(event: &Event, context: RecordContext<'_>) -> EventRecord {
    let (stack, stack_row) = context.stacks.number(event.stack);
    let common = EventRecord {
        time_ns: Some(event.time_ns),
        stack: Some(stack.into()),
        stack_row,
        process: Some(index(Some(event.process))),
        tid: Some(event.tid),
        ..EventRecord::default()
    };
    let signed = |value: Option<u64>| value.map(|value| value as i64);
    match EventKind::from_code(event.kind) {
        Some(EventKind::HandleCreate) => EventRecord {
            handle: Some(event.handle.unwrap_or_default()),
            caller_process: event.caller_process.map(|caller| index(Some(caller))),
            ..common
        },
        Some(EventKind::HandleClose) => EventRecord {
            handle: Some(event.handle.unwrap_or_default()),
            caller_process: event.caller_process.map(|caller| index(Some(caller))),
            is_by_exit: event.closed_at_exit.then_some(true),
            ..common
        },
        Some(EventKind::HandleDuplicate) => EventRecord {
            handle: Some(event.handle.unwrap_or_default()),
            source_handle: Some(event.source_handle.unwrap_or_default()),
            source_process: Some(index(event.source_process)),
            // ETWAnalyzer does not know who got the handle. It writes the caller and treats it as the owner, in leaks,
            // inheritance and sharing. So we write the owner.
            caller_process: Some(index(event.caller_process))
                .filter(|caller| *caller != index(Some(event.process))),
            inherited_by: Some(index(event.inherited_by)),
            source_pid: event.source_pid.filter(|pid| Some(*pid) != context.source_pid(event)),
            ..common
        },
        Some(EventKind::Map | EventKind::Unmap) => EventRecord {
            view_base: Some(signed(event.view_base).unwrap_or_default()),
            view_size: signed(event.view_size),
            byte_offset: signed(event.byte_offset),
            file_object: signed(event.file_object),
            misc_info: Some(0),
            is_by_exit: (event.closed_at_exit && event.kind == EventKind::Unmap.code())
                .then_some(true),
            ..common
        },
        Some(EventKind::ObjectCreate) => EventRecord { ref_change: Some(1), ..common },
        Some(EventKind::ObjectDelete) => EventRecord { ref_change: Some(-1), ..common },
        Some(EventKind::Reference | EventKind::Dereference) | None => {
            EventRecord { ref_change: Some(event.ref_delta.unwrap_or_default().into()), ..common }
        }
    }
}
