//! From objects as they are written to rows of the tables.

use handlescope_model::tables::{Event, Events, ExistingHandle, ExistingHandles, Object, Objects};
use handlescope_model::{
    EventIdx, EventKind, FILE_MAPPING_TYPE, NameIdx, ObjectIdx, ProcessIdx, StackIdx,
};

use super::super::lists::List;
use super::findings::{Finding, Findings};
use super::handle_part::{EventRecord, ObjectRecord};
use super::processes::ProcessRows;
use super::stacks_part::StackNumbers;
use super::stream::Stream;
use crate::collect::RawKind;
use crate::intern::ByteInterner;
use crate::lifecycle::{DeriveScratch, DuplicateOwners, NONE, ObjectEvents, derive, stored_kind};

/// ETWAnalyzer's text between two names of one object. It also writes it where the second name is
/// empty, which is no name.
const NO_OTHER_NAME: &str = " -- Other Name -- ";

/// What comes out of the handle part.
pub(super) struct ObjectRows<'a, 'scope> {
    pub(super) processes: &'a ProcessRows,
    pub(super) stacks: StackNumbers<'a>,
    /// Whether this program wrote the extract. Then an offset of 0 is one, whereas ETWAnalyzer
    /// always writes 0, and everything is told that ETWAnalyzer does not know.
    pub(super) is_own: bool,
    pub(super) objects: Stream<'scope, Objects>,
    pub(super) events: Stream<'scope, Events>,
    pub(super) existing: Stream<'scope, ExistingHandles>,
    pub(super) names: Names,
    pub(super) figures: Figures,
    pub(super) findings: &'a Findings,
    pub(super) scratch: Scratch,
}

/// Object names, each once.
#[derive(Default)]
pub(super) struct Names {
    texts: ByteInterner,
    pub(super) count: u32,
}

impl Names {
    pub(super) fn row(&mut self, name: &str) -> Option<NameIdx> {
        let mut name = name;
        while let Some(first) = name.strip_suffix(NO_OTHER_NAME) {
            name = first;
        }
        if name.is_empty() {
            return None;
        }
        let row = self.texts.intern(name.as_bytes());
        self.count = self.count.max(row + 1);
        Some(NameIdx(row))
    }

    /// The name of a row.
    pub(super) fn get(&self, row: u32) -> String {
        String::from_utf8_lossy(self.texts.get(row)).into_owned()
    }
}

/// What is counted.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Figures {
    pub(super) handle_events: u64,
    pub(super) leaked_handles: u64,
    pub(super) stacks_total: u64,
    /// By the number of the kind.
    pub(super) kinds: [u64; EventKind::ALL.len()],
}

/// Memory that is used again for each object.
#[derive(Default)]
pub(super) struct Scratch {
    derive: DeriveScratch,
    rows: Vec<u32>,
    owners: Vec<Owners>,
}

/// The processes of an event.
#[derive(Clone, Copy)]
struct Owners {
    process: u32,
    duplicate: DuplicateOwners,
}

/// The events of one object in time order, with their processes.
struct OneObject<'a> {
    events: &'a [EventRecord],
    owners: &'a [Owners],
}

const NOBODY: DuplicateOwners = DuplicateOwners { caller: NONE, source: NONE, inherited_by: NONE };

impl ObjectEvents for OneObject<'_> {
    fn kind(&self, row: u32) -> RawKind {
        self.events.get(row as usize).map_or(RawKind::Rundown, EventRecord::kind)
    }

    fn process(&self, row: u32) -> u32 {
        self.owners.get(row as usize).map_or(NONE, |owners| owners.process)
    }

    fn handle(&self, row: u32) -> u64 {
        self.events.get(row as usize).map_or(0, |event| event.handle)
    }

    fn duplicate(&self, row: u32) -> DuplicateOwners {
        self.owners.get(row as usize).map_or(NOBODY, |owners| owners.duplicate)
    }
}

impl ObjectRows<'_, '_> {
    /// Takes the next object; its id is its place in the file, as ETWAnalyzer counts.
    pub(super) fn add(&mut self, mut record: ObjectRecord) {
        let rows = self.events.rows() + record.events.len() as u64;
        if rows >= u64::from(NONE)
            || self.existing.rows() + record.existing.len() as u64 >= u64::from(NONE)
        {
            self.findings.count(Finding::TooMany);
            return;
        }
        record.events.sort_by_key(|event| (event.time_ns, event.list));
        reorder(&mut record.events, &record.order);
        let object = ObjectIdx(self.objects.rows() as u32);
        let first_event = self.events.rows() as u32;
        let first_existing = self.existing.rows() as u32;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.owners.clear();
        scratch.owners.extend(record.events.iter().map(|event| self.owners(event)));
        scratch.rows.clear();
        scratch.rows.extend(0..record.events.len() as u32);
        let one = OneObject { events: &record.events, owners: &scratch.owners };
        let derived = derive(&one, &scratch.rows, &mut scratch.derive);
        let events = record.events.iter().zip(&scratch.owners).zip(&scratch.derive.closing);
        for ((event, owners), closing) in events {
            let closing = Some(*closing).filter(|at| *at != NONE).map(|at| first_event + at);
            self.event(object, event, *owners, closing);
        }
        self.scratch = scratch;
        for handle in &record.existing {
            let process = ProcessIdx(self.process(handle.process));
            let handle = ExistingHandle { object, process, handle: handle.handle };
            self.existing.part().push(handle);
        }
        let is_view =
            record.events.iter().any(|event| matches!(event.list, List::Map | List::Unmap));
        self.objects.part().push(Object {
            pointer: record.pointer,
            type_id: record.type_id.unwrap_or(if is_view { FILE_MAPPING_TYPE } else { 0 }),
            name: record.name.as_deref().and_then(|name| self.names.row(name)),
            first_event: EventIdx(first_event),
            event_count: record.events.len() as u32,
            first_existing,
            existing_count: record.existing.len() as u32,
            create_event: derived.create.map(|at| EventIdx(first_event + at)),
            destroy_event: derived.destroy.map(|at| EventIdx(first_event + at)),
            is_multiprocess: derived.is_multiprocess,
            is_overlapped: derived.is_overlapped,
        });
    }

    /// The row of a process; [`NONE`] for a number that means none.
    fn process(&self, number: Option<i64>) -> u32 {
        let process = self.processes.row(number);
        if process == NONE && !(self.is_own && number == Some(-1)) {
            self.findings.count(Finding::UnknownProcess);
        }
        process
    }

    /// The processes of an event. ETWAnalyzer does not tell whom a duplicated handle went to, so that
    /// it is that of the caller, as for ETWAnalyzer; we tell the caller where it is another one.
    fn owners(&self, event: &EventRecord) -> Owners {
        let target = self.process(event.process);
        if event.list != List::HandleDuplicate {
            return Owners { process: target, duplicate: NOBODY };
        }
        let caller = match event.caller_process {
            Some(number) => self.processes.row(Some(number)),
            None => target,
        };
        let source = self.processes.row(event.source_process);
        let is_inherited = event.source_handle == Some(event.handle) && source == target;
        let inherited_by = if event.inherited_by.is_some() {
            self.processes.row(event.inherited_by)
        } else {
            let child = is_inherited.then(|| self.processes.heir(target, event.time_ns)).flatten();
            child.unwrap_or(NONE)
        };
        Owners { process: target, duplicate: DuplicateOwners { caller, source, inherited_by } }
    }

    fn event(
        &mut self,
        object: ObjectIdx,
        event: &EventRecord,
        owners: Owners,
        closing: Option<u32>,
    ) {
        let kind = stored_kind(event.kind());
        let is_duplicate = kind == EventKind::HandleDuplicate;
        let is_view = matches!(kind, EventKind::Map | EventKind::Unmap);
        let is_handle =
            is_duplicate || matches!(kind, EventKind::HandleCreate | EventKind::HandleClose);
        let is_reference = matches!(kind, EventKind::Reference | EventKind::Dereference);
        let opens = is_duplicate || matches!(kind, EventKind::HandleCreate | EventKind::Map);
        let leaked = opens && closing.is_none();
        let stack = self.stacks.own_row(event.stack_row);
        let stack = stack.or_else(|| self.stacks.row(event.stack)).map(StackIdx);
        if stack.is_none()
            && event.stack.is_some_and(|number| number != -1 && !self.stacks.has(number))
        {
            self.findings.count(Finding::UnknownStack);
        }
        self.figures.handle_events += u64::from(is_handle);
        self.figures.leaked_handles += u64::from(leaked && is_handle);
        self.figures.stacks_total += u64::from(stack.is_some());
        if let Some(count) = self.figures.kinds.get_mut(kind.code() as usize) {
            *count += 1;
        }
        let row =
            |process: u32| Some(process).filter(|row| is_duplicate && *row != NONE).map(ProcessIdx);
        let duplicate = owners.duplicate;
        let byte_offset = event.byte_offset.filter(|_| is_view && self.tells_offset(event));
        self.events.part().push(Event {
            object,
            kind: kind.code(),
            time_ns: event.time_ns,
            process: ProcessIdx(owners.process),
            tid: event.tid,
            handle: is_handle.then_some(event.handle),
            leaked,
            closing_event: closing.map(EventIdx),
            stack,
            ref_delta: is_reference.then(|| saturated(event.ref_change)),
            source_process: row(duplicate.source),
            source_pid: event
                .source_pid
                .or_else(|| row(duplicate.source).map(|row| self.processes.pid(row.0))),
            source_handle: event.source_handle.filter(|_| is_duplicate),
            caller_process: row(duplicate.caller),
            inherited_by: row(duplicate.inherited_by),
            view_base: is_view.then_some(event.view_base),
            view_size: event.view_size.filter(|_| is_view),
            byte_offset,
            file_object: event.file_object.filter(|_| is_view),
        });
    }

    /// ETWAnalyzer writes 0 for both, always; then nothing is known.
    fn tells_offset(&self, event: &EventRecord) -> bool {
        let is_zero = |value: Option<u64>| value.unwrap_or(0) == 0;
        self.is_own || !is_zero(event.byte_offset) || !is_zero(event.misc_info)
    }
}

/// Puts events into an order of our own: the places of the events as they are. One that does not fit
/// them is none.
fn reorder(events: &mut Vec<EventRecord>, places: &[usize]) {
    let mut ordered: Vec<usize> = places.to_vec();
    ordered.sort_unstable();
    if places.is_empty() || !ordered.into_iter().eq(0..events.len()) {
        return;
    }
    let mut placed: Vec<(usize, EventRecord)> =
        places.iter().copied().zip(std::mem::take(events)).collect();
    placed.sort_by_key(|(place, _)| *place);
    events.extend(placed.into_iter().map(|(_, event)| event));
}

/// Reference counts have 32 bits.
fn saturated(change: i64) -> i32 {
    i32::try_from(change).unwrap_or(if change < 0 { i32::MIN } else { i32::MAX })
}
