//! Converts the handle part, object by object with its events, to rows of the tables.
//!
//! The tables are written while the part is read, so that they are never whole in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::take;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::intern::ByteInterner;
use handlescope_model::guard::joined;
use handlescope_model::history::{ExistingHandle, History, StartHandle, StartList, start_objects};
use handlescope_model::rules::{
    CLOSING, DeriveScratch, HANDLE_RUNDOWN_END, OPENING_HANDLES, ObjectEvents, REFERENCE_CHANGES,
    VIEWS, WITH_HANDLE, derive, handle_slot, is_inherited, is_kernel_handle, is_leak,
    is_leak_at_exit, is_leaked_handle, is_leaked_view,
};
use handlescope_model::tables::{
    Acquisitions, Event, EventCount, EventCounts, Object, Objects, ReferenceChanges,
};
use handlescope_model::{
    AcquisitionIdx, ArchiveError, EncodedTable, EventIdx, EventKind, FILE_MAPPING_TYPE, NameIdx,
    ObjectIdx, ProcessIdx, StackIdx, TableEncoder, TableRows, TypeId, sentinel,
};
use polars::prelude::{DataFrame, PolarsResult};
use serde::de::MapAccess;

use super::super::record::{Elements, Fill, Member, Record};
use super::super::records::{CLOSED_WITHOUT_EVENT, EventRecord, ObjectRecord, rank};
use super::session::ProcessRows;
use super::stacks::StackLookup;

/// ETWAnalyzer's separator between two names of one object. It is also written if the second name is empty, which does
/// not count as a name.
const EMPTY_SECOND_NAME: &str = " -- Other Name -- ";

/// Results of the handle part.
pub struct ImportedObjects<'a, 'scope> {
    pub processes: &'a ProcessRows,
    pub stacks: StackLookup<'a>,
    /// Whether this program wrote the extract. Then an offset of 0 is real, while ETWAnalyzer always writes 0. Data
    /// that ETWAnalyzer does not know is present, too.
    pub is_by_handlescope: bool,
    pub objects: TableStream<'scope, Objects>,
    pub acquisitions: TableStream<'scope, Acquisitions>,
    pub changes: TableStream<'scope, ReferenceChanges>,
    /// Handles that were open at the start and belong to no object yet.
    pub start: StartList,
    /// Number of handles open at the end.
    pub existing: u64,
    pub names: ObjectNameSet,
    pub stats: ImportStats,
    pub findings: &'a RefCell<Diagnostics>,
    pub scratch: Scratch,
}

/// Object names without duplicates.
#[derive(Default)]
pub struct ObjectNameSet(pub ByteInterner);

impl ObjectNameSet {
    pub fn row(&mut self, name: &str) -> Option<NameIdx> {
        let mut name = name;
        while let Some(first) = name.strip_suffix(EMPTY_SECOND_NAME) {
            name = first;
        }
        if name.is_empty() {
            return None;
        }
        Some(NameIdx(self.0.intern(name.as_bytes())))
    }
}

/// Counts of events and objects.
#[derive(Debug, Default, Clone, Copy)]
pub struct ImportStats {
    pub handle_events: u64,
    pub leaked_handles: u64,
    pub leaked_views: u64,
    pub closed_at_exit: u64,
    pub stacks_total: u64,
    /// Number of events of each kind.
    pub kinds: [u64; EventKind::ALL.len()],
}

impl ImportStats {
    /// Returns the number of events of each kind, including handles open at the end.
    pub fn event_counts(&self, existing: u64) -> EventCounts {
        let kinds = EventKind::ALL
            .iter()
            .zip(self.kinds)
            .map(|(kind, count)| (kind.name(), kind.event_name(), count));
        let kinds = kinds.chain([("existing", HANDLE_RUNDOWN_END, existing)]);
        kinds
            .filter(|(.., count)| *count > 0)
            .map(|(kind, name, count)| {
                let (kind, name) = (format!("etwanalyzer:{kind}"), Some(name.to_owned()));
                EventCount { kind, name, count, ..EventCount::default() }
            })
            .collect()
    }
}

/// Memory reused for each object.
#[derive(Default)]
pub struct Scratch {
    derive: DeriveScratch,
    rows: Vec<u32>,
    owners: Vec<Owners>,
    /// For each event, whether it is a close made by process exit.
    by_exit: Vec<bool>,
}

/// How an open was closed.
#[derive(Clone, Copy)]
struct CloseFacts {
    /// Position of the closing event.
    by: Option<u32>,
    is_closed: bool,
    at_exit: bool,
}

/// The processes of an event.
#[derive(Clone, Copy, Default)]
struct Owners {
    process: Option<ProcessIdx>,
    caller: Option<ProcessIdx>,
    source: Option<ProcessIdx>,
    inherited_by: Option<ProcessIdx>,
}

/// The events of an object in time order, with their processes.
struct EventsOfObject<'a> {
    events: &'a [(EventKind, EventRecord)],
    owners: &'a [Owners],
}

impl EventsOfObject<'_> {
    fn owners(&self, row: u32) -> Owners {
        self.owners.get(row as usize).copied().unwrap_or_default()
    }
}

impl ObjectEvents for EventsOfObject<'_> {
    fn kind(&self, row: u32) -> EventKind {
        self.events.get(row as usize).map_or(EventKind::Reference, |(kind, _)| *kind)
    }

    fn process(&self, row: u32) -> Option<ProcessIdx> {
        self.owners(row).process
    }

    fn handle(&self, row: u32) -> u64 {
        let handle = self.events.get(row as usize).and_then(|(_, event)| event.handle);
        handle_slot(handle.unwrap_or_default())
    }

    fn source_process(&self, row: u32) -> Option<ProcessIdx> {
        self.owners(row).source
    }

    fn inherited_by(&self, row: u32) -> Option<ProcessIdx> {
        self.owners(row).inherited_by
    }
}

impl ImportedObjects<'_, '_> {
    /// Adds the next object. Its id is its position in the file, as in ETWAnalyzer.
    pub fn add(&mut self, mut record: ObjectRecord) {
        let mut events = record.take_events();
        let existing = record.existing.unwrap_or_default();
        let new = events.len() as u64 + existing.len() as u64;
        if self.acquisitions.rows().max(self.changes.rows()) + new >= u64::from(sentinel()) {
            self.findings.borrow_mut().count(WarningKind::TooMany, None);
            return;
        }
        events.sort_by_key(|(kind, event)| (event.time_ns.unwrap_or_default(), rank(*kind)));
        reorder(&mut events, record.order.map_or(Vec::new(), |order| order.0));
        let row = ObjectIdx(self.objects.rows() as u32);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.owners.clear();
        scratch.owners.extend(events.iter().map(|(kind, event)| self.owners(*kind, event)));
        scratch.rows.clear();
        scratch.rows.extend(0..events.len() as u32);
        let object_events = EventsOfObject { events: &events, owners: &scratch.owners };
        let derived = derive(&object_events, &scratch.rows, &mut scratch.derive);
        let stated = record.closings.map_or(Vec::new(), |closings| closings.0);
        let stated = Some(stated).filter(|stated| are_closings(stated, &events));
        for (closing, stated) in scratch.derive.closing.iter_mut().zip(stated.iter().flatten()) {
            *closing = u32::try_from(*stated).unwrap_or(sentinel());
        }
        scratch.by_exit.clear();
        let of_event = events.iter().zip(&scratch.owners);
        scratch.by_exit.extend(of_event.map(|(event, owners)| self.is_by_exit(event, *owners)));
        let mut rows = Vec::with_capacity(events.len());
        for (at, event) in events.iter().enumerate() {
            let closing = scratch.derive.closing.get(at).filter(|at| **at != sentinel());
            let owners = scratch.owners.get(at).copied().unwrap_or_default();
            let is_by_exit = |at: usize| scratch.by_exit.get(at).copied().unwrap_or_default();
            let at_exit = closing.is_some_and(|closing| is_by_exit(*closing as usize));
            let kind = event.0;
            let stated = stated.as_ref().and_then(|stated| stated.get(at));
            let closed = CloseFacts {
                by: closing.copied(),
                is_closed: closing.is_some() || stated == Some(&CLOSED_WITHOUT_EVENT),
                at_exit: is_by_exit(at)
                    || is_leak_at_exit(kind, owners.inherited_by.is_some(), at_exit),
            };
            rows.push(self.event(event, owners, closed));
        }
        self.scratch = scratch;
        let existing: Vec<ExistingHandle> = existing
            .iter()
            .map(|handle| ExistingHandle {
                process: stored(self.process(handle.process)),
                handle: handle.handle.unwrap_or_default(),
                granted_access: handle.granted_access,
                attributes: handle.attributes,
                handle_count: handle.handle_count,
                pointer_count: handle.pointer_count,
            })
            .collect();
        self.existing += existing.len() as u64;
        let is_view = events.iter().any(|(kind, _)| VIEWS.contains(*kind));
        let type_id = record.type_id.map(TypeId);
        let object = Object {
            pointer: record.pointer.unwrap_or_default() as u64,
            type_id: type_id.unwrap_or(if is_view { FILE_MAPPING_TYPE } else { TypeId(0) }),
            name: record.name.as_deref().and_then(|name| self.names.row(name)),
            is_multiprocess: derived.is_multiprocess,
            is_overlapped: derived.is_overlapped,
            ..Object::default()
        };
        let first = AcquisitionIdx(self.acquisitions.rows() as u32);
        let history =
            History { events: &rows, first_event: 0, existing: &existing, has_rundown: false };
        let made = history.rows(row, object, first);
        for mut acquisition in made.acquisitions {
            acquisition.take_start(made.object.pointer, &mut self.start);
            self.acquisitions.push(acquisition);
        }
        made.changes.into_iter().for_each(|change| self.changes.push(change));
        self.objects.push(made.object);
    }

    /// Adds objects for handles that only the start rundown lists; `handles` has all handles of that rundown.
    pub fn add_start(&mut self, handles: &[StartHandle]) {
        let rest = std::mem::take(&mut self.start).rest();
        let handles = rest.into_iter().filter_map(|at| handles.get(at as usize)).cloned();
        let (objects, acquisitions) = start_objects(
            handles,
            ObjectIdx(self.objects.rows() as u32),
            AcquisitionIdx(self.acquisitions.rows() as u32),
        );
        objects.rows().for_each(|object| self.objects.push(object));
        acquisitions.rows().for_each(|acquisition| self.acquisitions.push(acquisition));
    }

    /// Whether a close was made by process exit: our own extract states it, its stack shows it, or the process had
    /// already ended.
    fn is_by_exit(&self, (kind, event): &(EventKind, EventRecord), owners: Owners) -> bool {
        let is_stated = CLOSING.contains(*kind) && event.is_by_exit == Some(true);
        is_stated
            || *kind == EventKind::HandleClose
                && (self.stacks.is_of_exit(event.stack)
                    || owners.process.is_some_and(|process| {
                        self.processes.has_ended(process, event.time_ns.unwrap_or_default())
                    }))
    }

    /// Returns the process with this number, if there is one.
    fn process(&self, number: Option<i64>) -> Option<ProcessIdx> {
        let process = self.processes.row(number);
        if process.is_none() && !(self.is_by_handlescope && number == Some(-1)) {
            self.findings.borrow_mut().count(WarningKind::UnknownProcess, None);
        }
        process
    }

    /// Returns the processes of an event. ETWAnalyzer does not record which process got a duplicated handle and assumes
    /// the caller, so we do, too. Extracts of this program name the caller if it is another process.
    fn owners(&self, kind: EventKind, event: &EventRecord) -> Owners {
        let process = self.process(event.process);
        let of_kernel = event.handle.is_some_and(is_kernel_handle);
        let system = self.processes.system().filter(|_| of_kernel && WITH_HANDLE.contains(kind));
        if kind != EventKind::HandleDuplicate {
            let caller = match event.caller_process {
                Some(number) => self.processes.row(Some(number)),
                // ETWAnalyzer writes the process of the thread.
                None => process.filter(|_| system.is_some_and(|system| process != Some(system))),
            };
            return Owners { process: system.or(process), caller, ..Owners::default() };
        }
        let caller = match event.caller_process {
            Some(number) => self.processes.row(Some(number)),
            None => process,
        };
        let source = self.processes.row(event.source_process);
        let handle = Some(event.handle.unwrap_or_default());
        let is_inherited = is_inherited(event.source_handle, handle, source, process);
        let inherited_by = if event.inherited_by.is_some() {
            self.processes.row(event.inherited_by)
        } else {
            let parent = process.filter(|_| is_inherited);
            parent.and_then(|parent| {
                self.processes.inheriting_child(parent, event.time_ns.unwrap_or_default())
            })
        };
        Owners { process: system.or(process), caller, source, inherited_by }
    }

    fn event(
        &mut self,
        (kind, event): &(EventKind, EventRecord),
        owners: Owners,
        closed: CloseFacts,
    ) -> Event {
        let kind = *kind;
        let is_duplicate = kind == EventKind::HandleDuplicate;
        let is_view = VIEWS.contains(kind);
        let is_handle = WITH_HANDLE.contains(kind);
        let is_reference = REFERENCE_CHANGES.contains(kind);
        let leaked = is_leak(kind, closed.is_closed);
        let stack = self
            .stacks
            .handlescope_row(event.stack_row)
            .or_else(|| self.stacks.row(event.stack))
            .map(StackIdx);
        if stack.is_none()
            && event.stack.is_some_and(|number| number != -1 && !self.stacks.has(number))
        {
            self.findings.borrow_mut().count(WarningKind::UnknownStack, None);
        }
        self.stats.handle_events += u64::from(is_handle);
        self.stats.leaked_handles += u64::from(is_leaked_handle(kind, leaked));
        self.stats.leaked_views += u64::from(is_leaked_view(kind, leaked));
        self.stats.closed_at_exit += u64::from(closed.at_exit && OPENING_HANDLES.contains(kind));
        self.stats.stacks_total += u64::from(stack.is_some());
        if let Some(count) = self.stats.kinds.get_mut(kind.code() as usize) {
            *count += 1;
        }
        let view = Some(event).filter(|_| is_view);
        let byte_offset =
            view.filter(|view| self.has_offset(view)).and_then(|view| view.byte_offset);
        let unsigned = |value: Option<i64>| value.map(|value| value as u64);
        Event {
            kind: kind.code(),
            time_ns: event.time_ns.unwrap_or_default(),
            process: stored(owners.process),
            tid: event.tid.unwrap_or_default(),
            handle: is_handle.then(|| event.handle.unwrap_or_default()),
            leaked,
            closed_at_exit: closed.at_exit,
            closed_unseen: None,
            closed_after_ns: None,
            closed_before_ns: None,
            closing_event: closed.by.map(EventIdx),
            stack,
            ref_delta: is_reference.then(|| saturated(event.ref_change.unwrap_or_default())),
            source_process: owners.source,
            source_pid: event
                .source_pid
                .or_else(|| owners.source.map(|source| self.processes.pid(source))),
            source_handle: event.source_handle.filter(|_| is_duplicate),
            caller_process: owners.caller,
            inherited_by: owners.inherited_by,
            view_base: view.map(|view| view.view_base.unwrap_or_default() as u64),
            view_size: unsigned(view.and_then(|view| view.view_size)),
            byte_offset: unsigned(byte_offset),
            file_object: unsigned(view.and_then(|view| view.file_object)),
            ..Event::default()
        }
    }

    /// Whether the offset is known: ETWAnalyzer always writes 0 for both members.
    fn has_offset(&self, event: &EventRecord) -> bool {
        let is_zero = |value: Option<i64>| value.unwrap_or(0) == 0;
        self.is_by_handlescope || !is_zero(event.byte_offset) || !is_zero(event.misc_info)
    }
}

/// Sorts events into the order recorded by this program, given the position of each event. An order that does not fit
/// is ignored.
fn reorder<T>(events: &mut Vec<T>, positions: Vec<usize>) {
    let mut ordered = positions.clone();
    ordered.sort_unstable();
    if positions.is_empty() || !ordered.into_iter().eq(0..events.len()) {
        return;
    }
    let mut sorted: Vec<(usize, T)> = positions.into_iter().zip(std::mem::take(events)).collect();
    sorted.sort_by_key(|(position, _)| *position);
    events.extend(sorted.into_iter().map(|(_, event)| event));
}

/// Whether these are valid positions of closes, each after the event it closes.
fn are_closings(positions: &[i64], events: &[(EventKind, EventRecord)]) -> bool {
    let is_close = |at: usize, position: i64| {
        let close = usize::try_from(position).ok().filter(|close| *close > at);
        let close = close.and_then(|close| events.get(close));
        position < 0 || close.is_some_and(|(kind, _)| CLOSING.contains(*kind))
    };
    positions.len() == events.len()
        && positions.iter().enumerate().all(|(at, position)| is_close(at, *position))
}

/// An unknown process points to no row.
fn stored(process: Option<ProcessIdx>) -> ProcessIdx {
    process.unwrap_or(ProcessIdx(sentinel()))
}

/// Limits a reference count change to 32 bits.
fn saturated(change: i64) -> i32 {
    i32::try_from(change).unwrap_or(if change < 0 { i32::MIN } else { i32::MAX })
}

/// Rows per part of a table.
const BATCH_ROWS: usize = 1 << 16;

/// A table under construction. Another thread encodes it part by part.
pub struct TableStream<'scope, T> {
    batch: T,
    rows_in_batch: usize,
    sent: u64,
    batches: SyncSender<T>,
    encoded: ScopedJoinHandle<'scope, Result<EncodedTable, ArchiveError>>,
}

impl<'scope, T: TableRows + Extend<T::Row> + Default + Send + 'scope> TableStream<'scope, T> {
    /// Starts a table; `frame` converts each part to a frame.
    pub fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        encoder: TableEncoder,
        frame: fn(T) -> PolarsResult<DataFrame>,
    ) -> Self {
        let (batches, encode): (SyncSender<T>, Receiver<T>) = sync_channel(1);
        let encoded = scope
            .spawn(move || encoder.encode_in_parts(T::TABLE, || encode.recv().ok().map(frame)));
        Self { batch: T::default(), rows_in_batch: 0, sent: 0, batches, encoded }
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> u64 {
        self.sent + self.rows_in_batch as u64
    }

    pub fn push(&mut self, row: T::Row) {
        if self.rows_in_batch >= BATCH_ROWS {
            self.send();
        }
        self.batch.extend([row]);
        self.rows_in_batch += 1;
    }

    fn send(&mut self) {
        self.sent += take(&mut self.rows_in_batch) as u64;
        // If nobody receives it, encoding has failed; `finish` returns the reason.
        let _ = self.batches.send(take(&mut self.batch));
    }

    /// Returns the encoded table.
    pub fn finish(mut self) -> Result<EncodedTable, ArchiveError> {
        self.send();
        let Self { batches, encoded, .. } = self;
        drop(batches);
        joined(encoded.join())
    }
}

/// Reads the handle part, and passes on each object once it is complete.
pub struct HandlePartReader<F> {
    /// Type names by id.
    pub types: BTreeMap<TypeId, String>,
    objects: Elements<EachObject<F>>,
}

struct EachObject<F>(F);

impl<F: FnMut(ObjectRecord)> HandlePartReader<F> {
    pub fn new(each: F) -> Self {
        Self { types: BTreeMap::new(), objects: Elements(EachObject(each)) }
    }
}

impl<F: FnMut(ObjectRecord)> Record for HandlePartReader<F> {
    const MEMBERS: &'static [&'static str] = &["ObjectTypeMap", "ObjectReferences"];

    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match name {
            "ObjectTypeMap" => map.next_value_seed(Fill(&mut self.types)),
            _ => map.next_value_seed(Fill(&mut self.objects)),
        }
    }
}

impl<F: FnMut(ObjectRecord)> Member for EachObject<F> {
    const EXPECTED: &'static str = ObjectRecord::EXPECTED;

    fn null(&mut self) {
        (self.0)(ObjectRecord::default());
    }

    fn object<'de, A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        let mut object = ObjectRecord::default();
        object.object(map)?;
        (self.0)(object);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;

    use super::*;

    fn read(text: &str) -> (BTreeMap<TypeId, String>, Vec<ObjectRecord>) {
        let mut objects = Vec::new();
        let mut part = HandlePartReader::new(|object| objects.push(object));
        Fill(&mut part)
            .deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()))
            .unwrap();
        (part.types, objects)
    }

    #[test]
    fn every_list_gives_events_of_its_kind() {
        let (_, mut objects) = read(
            r#"{"ObjectReferences":[{"ObjectPtr":-1,"ObjectType":16,"Name":"x",
              "CreateEvent":{"RefCountChange":1},"DestroyEvent":null,
              "HandleCreateEvents":[{"HandleValue":18446744073709551615,"TimeNs":3,"StackIdx":1,"ProcessIdx":2,"ThreadId":7}],
              "HandleDuplicateEvents":null,"HandleCloseEvents":[{}],
              "RefChanges":[{"RefCountChange":-2},{"RefCountChange":3}],
              "FileMapEvents":[{"ViewBase":4096}],"FileUnmapEvents":[],
              "Existing":[{"Handle":4,"Process":1},{}]}]}"#,
        );
        let object = &mut objects[0];
        let events = object.take_events();
        let kinds: Vec<EventKind> = events.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            kinds,
            [
                EventKind::ObjectCreate,
                EventKind::HandleCreate,
                EventKind::HandleClose,
                EventKind::Dereference,
                EventKind::Reference,
                EventKind::Map
            ]
        );
        assert_eq!((object.pointer, object.type_id), (Some(-1), Some(16)));
        let (_, create) = &events[1];
        assert_eq!((create.handle, create.tid, create.process), (Some(u64::MAX), Some(7), Some(2)));
        let existing: Vec<_> =
            object.existing.iter().flatten().map(|h| (h.handle, h.process)).collect();
        assert_eq!(existing, [(Some(4), Some(1)), (None, None)]);
    }

    #[test]
    fn types_may_come_last_or_not_at_all() {
        let (types, objects) = read(
            r#"{"ObjectReferences":[null,{}],"objecttypemap":{"16":"Event","x":"y","17":null}}"#,
        );
        assert_eq!(
            types.into_iter().collect::<Vec<_>>(),
            [(TypeId(16), "Event".into()), (TypeId(17), String::new())]
        );
        assert_eq!(objects.len(), 2);
        assert!(read("{}").0.is_empty());
    }
}
