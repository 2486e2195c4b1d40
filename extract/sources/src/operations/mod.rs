//! Operations on handles in known order but without times, as handle tracing keeps them. They come from text of
//! `!htrace` and from minidumps. They are converted to lifetimes of handles, and those to tables. If the source has a
//! list of the handles open after the last operation, it is used, too.

mod open;
mod tables;

use std::collections::HashMap;

pub use self::open::{ListedHandle, OpenHandleList, OpenList};
pub use self::tables::{OperationTables, event_counts, stack_events};
use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_model::history::{ExistingHandle, Histories, History};
use handlescope_model::rules::{handle_slot, is_leak, is_leak_at_exit};
use handlescope_model::tables::{ClosedUnseen, Event, Object};
use handlescope_model::{EventIdx, EventKind, ProcessIdx, StackIdx, TypeId};

/// An operation of handle tracing (PROCESS_HANDLE_TRACING_ENTRY, `Type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Open,
    Close,
    /// A reference to a handle that is not open.
    BadReference,
}

/// An operation as recorded by its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationEntry {
    /// [`handle_slot`] of the value: `RegCloseKey` closes with a tag bit set.
    pub handle: u64,
    /// The handle value as shown by the source.
    pub shown_handle: u64,
    pub operation: Operation,
    /// 0 if unknown.
    pub thread: u32,
    /// Row of the process that owns the handle.
    pub process: u32,
    /// Row of the thread's process, if that is another one.
    pub caller: Option<u32>,
    /// Row of the stack.
    pub stack: Option<u32>,
    /// Number of the stack's addresses. Their names depend on which symbols the debugger had found when it printed
    /// them.
    pub addresses: u32,
}

impl OperationEntry {
    /// Whether two entries of one process are the same event.
    pub fn is_same(&self, entry: &Self) -> bool {
        (self.shown_handle, self.operation, self.thread, self.addresses)
            == (entry.shown_handle, entry.operation, entry.thread, entry.addresses)
    }
}

/// Open and close of a handle; either may be missing.
#[derive(Debug, Clone, Copy, Default)]
struct HandleLife {
    /// Positions in the history.
    open: Option<u32>,
    close: Option<u32>,
    /// The value was opened again, so it had been closed, although the source lacks the close.
    is_reopened: bool,
    at_exit: bool,
    /// Row of the corresponding open handle.
    listed: Option<u32>,
    /// Row of a handle listed while this one was open, which gives its type and name.
    described: Option<u32>,
    /// It is not among the open handles, although the source lacks the close.
    is_unlisted: bool,
}

/// Columns of the handles.
#[derive(Default)]
pub struct OperationHandles {
    pub tables: Histories,
    /// Number of operations on the handles.
    pub events: u64,
    pub leaked: u64,
    pub closed_at_exit: u64,
}

impl OperationHandles {
    /// Makes an object for each lifetime of a handle value, because tracing does not show which handles share one.
    /// `is_exit` tells whether a stack shows process exit. `open` is `None` if the source does not list open handles.
    pub fn new(
        history: &[&OperationEntry],
        is_exit: impl Fn(u32) -> bool,
        open: Option<OpenList<'_>>,
        findings: &mut Diagnostics,
    ) -> Self {
        let mut lives = lives(history, is_exit, findings);
        if let Some(open) = open {
            list(&mut lives, history, open, findings);
        }
        let mut handles = Self::default();
        let has_rundown = open.is_some_and(|open| open.is_complete);
        for life in lives {
            handles.add(life, history, open.map_or(&[], |open| open.handles), has_rundown);
        }
        handles
    }

    fn add(
        &mut self,
        life: HandleLife,
        history: &[&OperationEntry],
        open_handles: &[ListedHandle],
        has_rundown: bool,
    ) {
        let HandleLife { open, close, is_reopened, at_exit, listed, described, is_unlisted } = life;
        let closing = close.filter(|_| open.is_some()).map(|_| EventIdx(1));
        let mut events = Vec::new();
        for index in [open, close].into_iter().flatten() {
            let Some(entry) = history.get(index as usize) else { continue };
            let kind =
                if Some(index) == open { EventKind::HandleCreate } else { EventKind::HandleClose };
            let leaked = is_leak(kind, closing.is_some() || is_reopened || is_unlisted);
            let closed_at_exit = at_exit
                && (kind == EventKind::HandleClose || is_leak_at_exit(kind, false, at_exit));
            self.leaked += u64::from(leaked);
            self.closed_at_exit += u64::from(closed_at_exit && kind == EventKind::HandleCreate);
            let unseen = is_unlisted.then_some(history.len() as i64);
            events.push(Event {
                kind: kind.code(),
                time_ns: i64::from(index),
                process: ProcessIdx(entry.process),
                tid: entry.thread,
                handle: Some(entry.shown_handle),
                leaked,
                closed_at_exit,
                closing_event: closing.filter(|_| kind == EventKind::HandleCreate),
                closed_unseen: unseen.map(|_| ClosedUnseen::NotInRundown.code()),
                closed_after_ns: unseen.map(|_| i64::from(index)),
                closed_before_ns: unseen,
                caller_process: entry.caller.map(ProcessIdx),
                stack: entry.stack.map(StackIdx),
                ..Event::default()
            });
        }
        let handle = |row: Option<u32>| open_handles.get(row? as usize);
        let existing = handle(listed).map(|handle| ExistingHandle {
            process: ProcessIdx(handle.process),
            handle: handle.handle,
            granted_access: handle.granted_access,
            attributes: handle.attributes,
            handle_count: handle.handle_count,
            pointer_count: handle.pointer_count,
        });
        let described = handle(listed.or(described));
        let object = Object {
            type_id: described.map_or(TypeId(0), |handle| handle.type_id),
            name: described.and_then(|handle| handle.name),
            ..Object::default()
        };
        self.events += events.len() as u64;
        let existing = existing.as_slice();
        self.tables
            .add(object, &History { events: &events, first_event: 0, existing, has_rundown });
    }
}

/// Returns the lifetimes of all handle values, ordered by end, followed by those without an end, ordered by start.
fn lives(
    history: &[&OperationEntry],
    is_exit: impl Fn(u32) -> bool,
    findings: &mut Diagnostics,
) -> Vec<HandleLife> {
    let (mut ended, mut open) = (Vec::new(), HashMap::<(u32, u64), HandleLife>::new());
    for (index, entry) in (0..).zip(history) {
        let handle = (entry.process, entry.handle);
        match entry.operation {
            Operation::BadReference => {}
            Operation::Open => {
                let life = HandleLife { open: Some(index), ..HandleLife::default() };
                if let Some(before) = open.insert(handle, life) {
                    findings.count(WarningKind::ReopenedHandle, None);
                    ended.push(HandleLife { is_reopened: true, ..before });
                }
            }
            Operation::Close => {
                let life = open.remove(&handle).unwrap_or_else(|| {
                    findings.count(WarningKind::CloseWithoutObject, None);
                    HandleLife::default()
                });
                let at_exit = entry.stack.is_some_and(&is_exit);
                ended.push(HandleLife { close: Some(index), at_exit, ..life });
            }
        }
    }
    let mut open: Vec<HandleLife> = open.into_values().collect();
    open.sort_unstable_by_key(|life| life.open);
    ended.extend(open);
    ended
}

/// Finds the lifetime of each listed handle: the last one that had started, and had not ended, when the handle was
/// listed. If only one lifetime of a value is known, and it starts later, the handle still belongs to it: an earlier
/// lifetime would have a close. Handles that no operation opened get a lifetime without operations.
fn list(
    lives: &mut Vec<HandleLife>,
    history: &[&OperationEntry],
    open: OpenList<'_>,
    findings: &mut Diagnostics,
) {
    let of_handles = lives_of_handles(lives, history);
    let mut unopened = Vec::new();
    for (row, handle) in (0..).zip(open.handles) {
        let key = (handle.process, handle_slot(handle.handle));
        let of_handle = of_handles.get(&key).map_or(&[][..], Vec::as_slice);
        let before = handle.before.unwrap_or(history.len() as u32);
        let begun = of_handle.partition_point(|(begin, _)| *begin < i64::from(before));
        let last = begun.checked_sub(1).or((of_handle.len() == 1).then_some(0));
        let life = last.and_then(|last| lives.get_mut(of_handle.get(last)?.1));
        match life.filter(|life| life.close.is_none_or(|close| before <= close)) {
            Some(life) => {
                life.described = Some(row);
                let is_open = life.close.is_none() && !life.is_reopened && !handle.is_outdated;
                // Linux file descriptors may differ only in the tag bits of handles, but no operations on them are
                // known.
                life.listed = is_open.then_some(row).or(life.listed);
            }
            None if handle.is_outdated => {}
            None => {
                let is_after_close = !of_handle.is_empty();
                findings.add(WarningKind::ListedAfterClose, is_after_close.into(), None);
                unopened.push(HandleLife { listed: Some(row), ..HandleLife::default() });
            }
        }
    }
    for life in lives.iter_mut().filter(|life| life.close.is_none() && !life.is_reopened) {
        life.is_unlisted = open.is_complete && life.listed.is_none();
        findings.add(WarningKind::OpenNotListed, u64::from(life.is_unlisted), None);
    }
    lives.extend(unopened);
}

/// Returns the lifetimes of each handle of a process, ordered by start: the index of the open, or -1.
fn lives_of_handles(
    lives: &[HandleLife],
    history: &[&OperationEntry],
) -> HashMap<(u32, u64), Vec<(i64, usize)>> {
    let mut of_handles: HashMap<(u32, u64), Vec<(i64, usize)>> = HashMap::new();
    for (number, life) in lives.iter().enumerate() {
        let entry = life.open.or(life.close).and_then(|index| history.get(index as usize));
        if let Some(entry) = entry {
            let begin = life.open.map_or(-1, i64::from);
            let key = (entry.process, entry.handle);
            of_handles.entry(key).or_default().push((begin, number));
        }
    }
    of_handles.values_mut().for_each(|lives| lives.sort_unstable());
    of_handles
}
