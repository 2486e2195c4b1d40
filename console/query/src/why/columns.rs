//! The columns that causes are found in: those of events, and how processes ended.

use std::sync::Arc;

use handlescope_model::rules::handle_slot;
use handlescope_model::tables::{Acquisitions, Processes};
use handlescope_model::{
    AcquisitionIdx, ArchiveError, EventColumns, EventHandles, EventKind, EventPart, EventProcesses,
    EventTimes, EventValues, Numbers, ObjectIdx, OpenedValues, ProcessIdx, RowSet, StackIdx, Table,
    Trace, ViewValues,
};

use crate::context::FileContext;
use crate::tables::ProcessList;

/// The events of handles and views. Events of leaking objects are also kept in order.
pub struct HandleEvents {
    times: EventTimes,
    object: Numbers<ObjectIdx>,
    pub processes: EventProcesses,
    source_process: OpenedValues<ProcessIdx>,
    source_handle: OpenedValues<u64>,
    view_size: ViewValues<i64>,
    tid: EventValues<u32>,
    handle: EventHandles,
    stack: EventValues<StackIdx>,
    leaking: Arc<RowSet>,
    /// The events of leaking objects, one object after the other.
    in_order: Vec<usize>,
    /// Where the events of each object begin in `in_order`; an extra entry marks the end.
    first: Vec<usize>,
    /// The place of each event in `in_order`, by event number.
    place: Vec<u32>,
}

impl HandleEvents {
    /// Reads the columns that tell what became of every handle, and the other columns for events of `leaking` objects.
    pub fn load(file: &FileContext<'_>, leaking: &Arc<RowSet>) -> Result<Self, ArchiveError> {
        let (trace, table) = (file.trace, &file.objects.table);
        let rows = leaking.iter().flat_map(|row| table.acquisitions(ObjectIdx::from_row(row)));
        let rows = RowSet::new(trace.height(Table::Acquisitions)?, rows);
        let rows = Arc::new(rows);
        let times = EventTimes::from_rows(trace, &rows)?;
        let of_leaking = EventColumns::for_rows(trace, rows)?;
        let all = EventColumns::with_all(trace)?;
        let (mut in_order, mut first) = (Vec::new(), Vec::with_capacity(leaking.len() + 1));
        let mut place = vec![0; table.height()];
        for object in leaking.iter().map(ObjectIdx::from_row) {
            first.push(in_order.len());
            times.in_order(trace, object, &mut in_order);
        }
        first.push(in_order.len());
        for (at, event) in (0..).zip(&in_order) {
            if let Some(place) = place.get_mut(*event) {
                *place = at;
            }
        }
        Ok(Self {
            times,
            object: trace.values(Acquisitions::object)?,
            processes: all.processes()?,
            source_process: of_leaking.of_opened(Acquisitions::source_process)?,
            source_handle: of_leaking.of_opened(Acquisitions::source_key)?,
            view_size: of_leaking.of_views(Acquisitions::size)?,
            tid: of_leaking.tids()?,
            handle: of_leaking.handles()?,
            stack: all.stacks()?,
            leaking: Arc::clone(leaking),
            in_order,
            first,
            place,
        })
    }

    /// Returns the event that opened a handle.
    pub fn opening(&self, handle: AcquisitionIdx) -> usize {
        self.times.table.numbering.opening(handle.row())
    }

    /// Returns the event that closed a handle, whoever closed it.
    pub fn closing(&self, handle: AcquisitionIdx) -> Option<usize> {
        self.times.table.ending(handle.row())
    }

    /// Returns the object of a handle.
    pub fn object(&self, handle: AcquisitionIdx) -> ObjectIdx {
        self.object.get(handle.row()).unwrap_or_default()
    }

    /// Returns the owner of a handle.
    pub fn owner(&self, handle: AcquisitionIdx) -> Option<ProcessIdx> {
        self.processes.owner(self.opening(handle))
    }

    /// Returns the place of an event among the events of leaking objects.
    pub fn place(&self, event: usize) -> u32 {
        self.place.get(event).copied().unwrap_or_default()
    }

    /// Returns the events of a leaking object in order.
    pub fn of_object(&self, object: ObjectIdx) -> &[usize] {
        let Some(index) = self.leaking.place(object.row()) else { return &[] };
        let ends = self.first.get(index).zip(self.first.get(index + 1));
        ends.and_then(|(first, end)| self.in_order.get(*first..*end)).unwrap_or_default()
    }

    /// Returns the events of a leaked handle's object before and after its opening, in order.
    pub fn around(&self, handle: AcquisitionIdx) -> (&[usize], &[usize]) {
        let (object, opening) = (self.object(handle), self.opening(handle));
        let events = self.of_object(object);
        let first = events.first().map_or(0, |first| self.place(*first));
        let at = (self.place(opening).saturating_sub(first) as usize).min(events.len());
        let (before, after) = events.split_at(at);
        (before, after.get(1..).unwrap_or_default())
    }

    pub fn kind(&self, event: usize) -> Option<EventKind> {
        self.times.table.kind(event)
    }

    pub fn time_ns(&self, event: usize) -> Option<i64> {
        self.times.get(event)
    }

    /// Returns the thread of an event; 0 if it is unknown.
    pub fn tid(&self, event: usize) -> u32 {
        self.tid.get(event).unwrap_or_default()
    }

    pub fn stack(&self, event: usize) -> Option<StackIdx> {
        self.stack.get(event)
    }

    /// Returns the size in bytes of the view that an event mapped.
    pub fn view_size(&self, event: usize) -> Option<u64> {
        self.view_size.get(event).map(|size| size as u64)
    }

    pub fn is_opening(&self, event: usize) -> bool {
        self.times.table.numbering.part(event).0 == EventPart::Opened
    }

    /// Returns the value of the handle that an event opened or closed.
    pub fn value(&self, event: usize) -> Option<u64> {
        self.handle.get(event)
    }

    /// Returns the slot of the handle that an event opened or closed.
    pub fn slot(&self, event: usize) -> Option<u64> {
        self.value(event).map(handle_slot)
    }

    /// Returns the slot of the handle that was duplicated.
    pub fn source_slot(&self, event: usize) -> Option<u64> {
        self.source_handle.get(event).map(handle_slot)
    }

    /// Returns the process a handle was duplicated from and the process that duplicated it.
    pub fn duplicated(&self, event: usize) -> (Option<ProcessIdx>, Option<ProcessIdx>) {
        (self.source_process.get(event), self.processes.caller(event))
    }

    /// Whether nothing closed the handle or view that an event opened.
    pub fn is_open(&self, event: usize) -> bool {
        self.times.table.closing(event).is_none()
    }

    /// Returns the event by which the program closed what an event opened.
    pub fn closed_by_program(&self, event: usize) -> Option<usize> {
        self.times.table.closing(event).filter(|_| !self.times.table.is_closed_at_exit(event))
    }
}

/// NTSTATUS values with which Windows ends a failing process, named as in MS-ERREF, section 2.3.1. The last two come
/// from runtimes: an uncaught exception of C++ (`0xE0000000 | 'msc'`) or of .NET (`0xE0000000 | 'CCR'`).
const CRASHES: [(u32, &str); 13] = [
    (0x8000_0003, "breakpoint"),
    (0xC000_0005, "access violation"),
    (0xC000_0006, "in-page error"),
    (0xC000_001D, "illegal instruction"),
    (0xC000_0025, "noncontinuable exception"),
    (0xC000_0094, "integer division by zero"),
    (0xC000_00FD, "stack overflow"),
    (0xC000_0374, "heap corruption"),
    (0xC000_0409, "fail fast"),
    (0xC000_041D, "unhandled exception in a callback"),
    (0xC000_0420, "assertion failure"),
    (0xE06D_7363, "uncaught C++ exception"),
    (0xE043_4352, "uncaught .NET exception"),
];

/// Exit codes of processes, and which process got the same pid next.
pub struct OwnerEnds {
    pub exit_code: Numbers<i32>,
    /// The next process with the same pid, by row.
    pub next: Vec<Option<ProcessIdx>>,
}

impl OwnerEnds {
    pub fn load(trace: &Trace, processes: &ProcessList) -> Result<Self, ArchiveError> {
        let rows = processes.rows();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|row| (rows[*row].pid, rows[*row].start_ns));
        let mut next = vec![None; rows.len()];
        for pair in order.windows(2).filter(|pair| rows[pair[0]].pid == rows[pair[1]].pid) {
            next[pair[0]] = Some(ProcessIdx::from_row(pair[1]));
        }
        Ok(Self { exit_code: trace.values(Processes::exit_code)?, next })
    }

    /// Returns the exit status of a crash and its meaning.
    pub fn crash(&self, process: ProcessIdx) -> Option<(u32, &'static str)> {
        let code = self.exit_code.get(process.row())?.cast_unsigned();
        CRASHES.into_iter().find(|(status, _)| *status == code)
    }
}
