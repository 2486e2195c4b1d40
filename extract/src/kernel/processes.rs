//! Lifetimes of processes (MOF class Process_TypeGroup1) and threads (MOF class Thread_TypeGroup1).

use std::collections::HashMap;

use handlescope_model::Table;

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, LifeEvent, PassState, Timeline};

const START: EventId = EventId::Hook(0x0301);
const END: EventId = EventId::Hook(0x0302);
const RUNDOWN_START: EventId = EventId::Hook(0x0303);
const RUNDOWN_END: EventId = EventId::Hook(0x0304);
const DEFUNCT: EventId = EventId::Hook(0x0327);

/// Session id the kernel logs for a process without session.
const NO_SESSION: u32 = u32::MAX;

/// Process event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessPayload {
    pub action: LifeEvent,
    /// Unique process key; 0 if the event version has none.
    pub key: u64,
    pub pid: u32,
    pub parent_pid: u32,
    /// Windows session; `None` for a process without one.
    pub session_id: Option<u32>,
    pub exit_status: i32,
    /// Security identifier, where present.
    pub sid: Option<String>,
    /// Image file name without path.
    pub name: String,
    /// Command line; empty if the event version has none.
    pub command_line: String,
}

/// Lifetime of a pid; times are raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRow {
    /// Process as described by the events.
    pub process: ProcessPayload,
    /// Start, if it was seen.
    pub start: Option<i64>,
    /// End, if it was seen.
    pub end: Option<i64>,
    /// Time of the last rundown that listed it.
    pub listed: Option<i64>,
    /// Since when events of its pid belong to it, if its start was not seen but other events show it.
    pub since: Option<i64>,
    /// Whether only its pid is known. Such rows come last.
    pub is_unnamed: bool,
    /// Process and thread that logged the start, if the header names them. They are the ones that created the process.
    pub creator: Option<(u32, u32)>,
    /// Position of the start event.
    pub start_position: Option<EventPosition>,
    /// Position of the end event.
    pub end_position: Option<EventPosition>,
}

/// Process that a rundown lists as ended but still in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZombieRow {
    pub process: ProcessPayload,
    /// End as FILETIME, if the event has it.
    pub exit_time: Option<i64>,
    /// Time of the last rundown that listed it.
    pub listed: i64,
}

/// Position of an event among those with the same timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventPosition {
    pub processor: u16,
    /// Rows of the timeline before it.
    pub rows: u32,
}

impl EventPosition {
    /// Whether the event comes after a timeline row with the same time; `None` if that is unknown because the row is
    /// from another processor.
    pub fn is_after(&self, row: usize, timeline: &Timeline) -> Option<bool> {
        let is_same = timeline.processor.get(row) == Some(&self.processor);
        is_same.then_some(row < self.rows as usize)
    }
}

/// Process lifetimes in the order they were first seen.
///
/// Only a start event begins a lifetime at a known time, and only an end event ends one; rundowns say that a process
/// exists. Ends are matched to starts by pid in time order, because process keys are reused too.
#[derive(Debug, Default)]
pub struct Processes {
    pub rows: Vec<ProcessRow>,
    /// Processes that rundowns list as ended. They are not lifetimes: no events belong to them.
    pub zombies: Vec<ZombieRow>,
    live: HashMap<u32, usize>,
    /// Rows of zombies by key and pid.
    listed_zombies: HashMap<(u64, u32), usize>,
    /// Time of the first process in the rundown at the end.
    end_rundown: Option<i64>,
}

impl EventFamily for Processes {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (START, "ProcessStart"),
        (END, "ProcessEnd"),
        (RUNDOWN_START, "ProcessDCStart"),
        (RUNDOWN_END, "ProcessDCEnd"),
        (DEFUNCT, "ProcessDefunct"),
    ];
    const TABLES: &'static [Table] = &[Table::Processes, Table::Zombies];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        use Field::{Ansi, Bytes, Pointers, User, Utf16};
        match event.version {
            0 => &[Pointers(2), User, Ansi],
            1 => &[Pointers(1), Bytes(16), User, Ansi],
            2 => &[Pointers(1), Bytes(16), User, Ansi, Utf16],
            3 => &[Pointers(1), Bytes(16), Pointers(1), User, Ansi, Utf16],
            4 => &[Pointers(1), Bytes(16), Pointers(1), Bytes(4), User, Ansi, Utf16],
            _ => &[
                Pointers(1),
                Bytes(16),
                Pointers(1),
                Bytes(4),
                User,
                Ansi,
                Utf16,
                Utf16,
                Utf16,
                Bytes(8),
            ],
        }
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        let mut payload = Payload::from_event(event);
        let process = ProcessPayload::decode(event, &mut payload)?;
        if event.id == DEFUNCT {
            let exit_time = (event.version >= 5).then(|| exit_time(&mut payload)).flatten();
            self.add_zombie(ZombieRow { process, exit_time, listed: event.time });
            return Some(());
        }
        if event.id == RUNDOWN_END {
            self.end_rundown = self.end_rundown.or(Some(event.time));
        }
        let rows = shared.timeline.len() as u32;
        let position = EventPosition { processor: event.processor, rows };
        let thread = event.pid.zip(event.tid);
        self.add_event(process, event.time, thread, position);
        Some(())
    }
}

impl Processes {
    /// Handles one process event at a raw time; `thread` is the process and thread that logged it.
    fn add_event(
        &mut self,
        process: ProcessPayload,
        time: i64,
        thread: Option<(u32, u32)>,
        position: EventPosition,
    ) {
        let pid = process.pid;
        // Another key means another process: the end of the previous one and the start of this one are missing.
        if process.action != LifeEvent::Begin
            && let Some(row) = self.live.get(&pid).and_then(|row| self.rows.get(*row))
            && ![0, process.key].contains(&row.process.key)
            && process.key != 0
        {
            self.live.remove(&pid);
        }
        match process.action {
            LifeEvent::Begin => {
                let row = self.add(process, Some(time));
                (self.rows[row].creator, self.rows[row].start_position) = (thread, Some(position));
                self.live.insert(pid, row);
            }
            LifeEvent::End => {
                let row = match self.live.remove(&pid) {
                    Some(row) => row,
                    None => self.add(process.clone(), None),
                };
                if let Some(row) = self.rows.get_mut(row) {
                    (row.end, row.end_position) = (Some(time), Some(position));
                    row.process.exit_status = process.exit_status;
                    complete(&mut row.process, &process);
                }
            }
            LifeEvent::Rundown => {
                let row = match self.live.get(&pid) {
                    Some(row) => *row,
                    None => {
                        let row = self.add(process.clone(), None);
                        self.live.insert(pid, row);
                        row
                    }
                };
                if let Some(row) = self.rows.get_mut(row) {
                    row.listed = Some(time);
                    complete(&mut row.process, &process);
                }
            }
        }
    }

    /// Adds a process that a rundown lists as ended. Start and end rundown list the same ones.
    fn add_zombie(&mut self, zombie: ZombieRow) {
        let ids = (zombie.process.key, zombie.process.pid);
        let row = *self.listed_zombies.entry(ids).or_insert(self.zombies.len());
        match self.zombies.get_mut(row) {
            Some(known) => *known = zombie,
            None => self.zombies.push(zombie),
        }
    }

    /// The zombies of the rundown at the end, which lacks those that were freed before it. Without any there, all: Windows
    /// lists them at the end, but a trace may lack that.
    pub fn last_zombies(&self) -> impl Iterator<Item = &ZombieRow> {
        let is_of_end =
            |zombie: &ZombieRow| self.end_rundown.is_some_and(|end| zombie.listed >= end);
        let has_end = self.zombies.iter().any(is_of_end);
        self.zombies.iter().filter(move |zombie| !has_end || is_of_end(zombie))
    }

    /// Adds processes known only by pid.
    pub fn add_unnamed(&mut self, pids: impl IntoIterator<Item = u32>) {
        for pid in pids {
            let row = self.add(ProcessPayload::nameless(pid), None);
            self.rows[row].is_unnamed = true;
        }
    }

    /// Adds a process known only by its pid and the time since when it has events.
    pub fn add_nameless(&mut self, pid: u32, since: i64) {
        let row = self.add(ProcessPayload::nameless(pid), None);
        self.rows[row].since = Some(since);
    }

    fn add(&mut self, process: ProcessPayload, start: Option<i64>) -> usize {
        self.rows.push(ProcessRow {
            process,
            start,
            end: None,
            listed: None,
            since: None,
            is_unnamed: false,
            creator: None,
            start_position: None,
            end_position: None,
        });
        self.rows.len() - 1
    }
}

/// Fills in what an earlier event of the process left empty.
fn complete(known: &mut ProcessPayload, more: &ProcessPayload) {
    if known.name.is_empty() {
        known.name.clone_from(&more.name);
    }
    if known.command_line.is_empty() {
        known.command_line.clone_from(&more.command_line);
    }
    if known.sid.is_none() {
        known.sid.clone_from(&more.sid);
    }
}

impl ProcessPayload {
    /// Creates a process known only by pid.
    fn nameless(pid: u32) -> Self {
        Self {
            action: LifeEvent::Rundown,
            key: 0,
            pid,
            parent_pid: 0,
            session_id: None,
            exit_status: 0,
            sid: None,
            name: String::new(),
            command_line: String::new(),
        }
    }

    /// Decodes versions 0 to 5 of the event, up to the command line.
    fn decode(event: &Event<'_>, p: &mut Payload<'_>) -> Option<Self> {
        let action = match event.id {
            START => LifeEvent::Begin,
            END => LifeEvent::End,
            RUNDOWN_START | RUNDOWN_END | DEFUNCT => LifeEvent::Rundown,
            _ => return None,
        };
        // Version 1 starts with the page directory base, where later versions have the key.
        let first = if event.version >= 1 { p.pointer()? } else { 0 };
        let key = if event.version >= 2 { first } else { 0 };
        let (pid, parent_pid, session_id, exit_status) = match event.version {
            0 => (p.pointer()? as u32, p.pointer()? as u32, None, 0),
            _ => {
                let (pid, parent_pid, session) = (p.u32()?, p.u32()?, p.u32()?);
                (pid, parent_pid, Some(session).filter(|id| *id != NO_SESSION), p.u32()? as i32)
            }
        };
        if event.version >= 3 {
            p.pointer()?;
        }
        if event.version >= 4 {
            p.u32()?;
        }
        let sid = sid(p)?;
        let name = p.ansi().into_owned();
        let command_line = if event.version >= 2 { p.utf16() } else { String::new() };
        Some(Self {
            action,
            key,
            pid,
            parent_pid,
            session_id,
            exit_status,
            sid,
            name,
            command_line,
        })
    }
}

/// Reads the end time, which follows package name and application id; 0 means none.
fn exit_time(p: &mut Payload<'_>) -> Option<i64> {
    let _ = (p.utf16(), p.utf16());
    p.u64().map(|time| time as i64).filter(|time| *time > 0)
}

/// Reads the user of a process as text, if there is one.
fn sid(p: &mut Payload<'_>) -> Option<Option<String>> {
    let Some(Sid { revision, authority, values }) = Sid::decode(p)? else { return Some(None) };
    let mut text = format!("S-{revision}-{authority}");
    let values = values.chunks_exact(4).filter_map(|value| Payload::new(value, 4).u32());
    values.for_each(|value| text.push_str(&format!("-{value}")));
    Some(Some(text))
}

/// Security identifier.
pub struct Sid<'a> {
    revision: u8,
    authority: u64,
    /// Subauthorities, four bytes each.
    pub values: &'a [u8],
}

impl<'a> Sid<'a> {
    /// Decodes a TOKEN_USER: four zero bytes, or pointer and attributes (16 bytes, 8 on 32-bit systems) before a binary
    /// SID.
    pub fn decode(p: &mut Payload<'a>) -> Option<Option<Self>> {
        let mut ahead = *p;
        let is_null = ahead.u32()? == 0;
        // The low 32 bits of a kernel pointer may be zero; text after a null never looks like the high half of one.
        let is_pointer =
            p.pointer_size() == 8 && ahead.u32().is_some_and(|high| high >= 0xFFFF_0000);
        if is_null && !is_pointer {
            p.skip(4)?;
            return Some(None);
        }
        p.skip(2 * p.pointer_size())?;
        let (revision, count) = (p.u8()?, p.u8()?);
        let authority = p.bytes(6)?.iter().fold(0u64, |sum, b| sum << 8 | u64::from(*b));
        let values = p.bytes(4 * usize::from(count))?;
        Some(Some(Self { revision, authority, values }))
    }
}

const THREAD_START: EventId = EventId::Hook(0x0501);
const THREAD_END: EventId = EventId::Hook(0x0502);
const THREAD_RUNDOWN_START: EventId = EventId::Hook(0x0503);
const THREAD_RUNDOWN_END: EventId = EventId::Hook(0x0504);

/// Lifetime of a thread id; times are raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRow {
    pub pid: u32,
    pub tid: u32,
    /// Time of its first event: the start, if it was seen.
    pub seen: i64,
    pub is_started: bool,
    /// End, if it was seen.
    pub end: Option<i64>,
    /// Process and thread that logged the start, if it was seen and its header names them.
    pub creator: Option<(u32, u32)>,
    /// Win32 start address; 0 if no event has it.
    pub start_address: u64,
}

/// Thread lifetimes in the order they were first seen.
///
/// As with processes, only a start event begins a lifetime and only an end event ends one.
#[derive(Debug, Default)]
pub struct Threads {
    pub rows: Vec<ThreadRow>,
    live: HashMap<(u32, u32), u32>,
}

impl EventFamily for Threads {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (THREAD_START, "ThreadStart"),
        (THREAD_END, "ThreadEnd"),
        (THREAD_RUNDOWN_START, "ThreadDCStart"),
        (THREAD_RUNDOWN_END, "ThreadDCEnd"),
    ];
    const TABLES: &'static [Table] = &[Table::Threads];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.version {
            0 => &[Field::Bytes(8)],
            _ => &[Field::Bytes(8), Field::Pointers(6)],
        }
    }

    fn take(&mut self, event: &Event<'_>, _: &mut PassState) -> Option<()> {
        let row = decode_thread(event)?;
        let ids = (row.pid, row.tid);
        let known = (event.id != THREAD_START).then(|| self.live.get(&ids)).flatten().copied();
        let known = known.unwrap_or_else(|| {
            self.rows.push(row);
            self.rows.len() as u32 - 1
        });
        let thread = self.rows.get_mut(known as usize)?;
        if thread.start_address == 0 {
            thread.start_address = row.start_address;
        }
        if event.id == THREAD_END {
            thread.end = Some(event.time);
            self.live.remove(&ids);
        } else {
            self.live.insert(ids, known);
        }
        Some(())
    }
}

impl Threads {
    /// Returns process and thread id if an event starts or ends a thread.
    pub fn changed(event: &Event<'_>) -> Option<(u32, u32)> {
        let is_change = [THREAD_START, THREAD_END].contains(&event.id);
        let thread = is_change.then(|| decode_thread(event)).flatten()?;
        Some((thread.pid, thread.tid))
    }
}

/// Decodes versions 0 to 4 of the event, as a row for a thread that was not seen before.
///
/// Version 0 has the thread id first and nothing else (Thread_V0_TypeGroup1). Since version 1, four stack limits and
/// the kernel start address (version 3: the affinity) precede the Win32 start address. End events may stop after the
/// ids (Thread_V1_TypeGroup2).
fn decode_thread(event: &Event<'_>) -> Option<ThreadRow> {
    let mut p = Payload::from_event(event);
    let (first, second) = (p.u32()?, p.u32()?);
    let (pid, tid) = if event.version == 0 { (second, first) } else { (first, second) };
    let mut start_address = || {
        p.skip(5 * p.pointer_size())?;
        p.pointer()
    };
    let start_address = (event.version > 0).then(&mut start_address).flatten().unwrap_or_default();
    let is_started = event.id == THREAD_START;
    let creator = event.pid.zip(event.tid).filter(|_| is_started);
    Some(ThreadRow { pid, tid, seen: event.time, is_started, end: None, creator, start_address })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(version: u8, payload: &[u8]) -> Event<'_> {
        Event { id: START, version, payload, ..Event::default() }
    }

    fn decode(event: &Event<'_>) -> Option<ProcessPayload> {
        ProcessPayload::decode(event, &mut Payload::from_event(event))
    }

    fn body(with_flags: bool, sid: &[u8]) -> Vec<u8> {
        let mut bytes = 0xFFFF_8000_0000_1000u64.to_le_bytes().to_vec();
        for field in [77u32, 4, 1, 0x103] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend([0; 8]);
        if with_flags {
            bytes.extend([0; 4]);
        }
        bytes.extend(sid);
        bytes.extend(b"app.exe\0a\0b\0\0\0");
        bytes
    }

    #[test]
    fn versions_3_and_4_differ_in_the_flags() {
        for (version, with_flags) in [(3, false), (4, true), (5, true)] {
            let bytes = body(with_flags, &[0; 4]);
            let process = decode(&event(version, &bytes)).unwrap();
            assert_eq!((process.pid, process.parent_pid, process.session_id), (77, 4, Some(1)));
            assert_eq!((process.name.as_str(), process.command_line.as_str()), ("app.exe", "ab"));
            assert_eq!(process.sid, None);
        }
    }

    #[test]
    fn a_sid_reads_as_text() {
        let mut sid = vec![1; 16];
        sid.extend([1, 2, 0, 0, 0, 0, 0, 5]);
        sid.extend(21u32.to_le_bytes());
        sid.extend(1000u32.to_le_bytes());
        let bytes = body(true, &sid);
        let process = decode(&event(4, &bytes)).unwrap();
        assert_eq!(process.sid.as_deref(), Some("S-1-5-21-1000"));
        assert_eq!(process.name, "app.exe");
    }

    #[test]
    fn a_cut_payload_is_no_process() {
        let bytes = body(true, &[0; 4]);
        for end in 0..36 {
            assert_eq!(decode(&event(4, &bytes[..end])), None, "{end}");
        }
    }

    fn process(action: LifeEvent, pid: u32) -> ProcessPayload {
        ProcessPayload {
            action,
            key: 0,
            pid,
            parent_pid: 4,
            session_id: Some(0),
            exit_status: 259,
            sid: None,
            name: "a.exe".into(),
            command_line: String::new(),
        }
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let mut processes = Processes::default();
        processes.add_event(process(LifeEvent::Rundown, 7), 10, None, EventPosition::default());
        processes.add_event(process(LifeEvent::End, 7), 20, None, EventPosition::default());
        processes.add_event(process(LifeEvent::Begin, 7), 30, None, EventPosition::default());
        processes.add_event(process(LifeEvent::Rundown, 7), 40, None, EventPosition::default());
        let times: Vec<_> = processes.rows.iter().map(|row| (row.start, row.end)).collect();
        assert_eq!(times, [(None, Some(20)), (Some(30), None)]);
    }

    #[test]
    fn another_key_is_another_process_although_an_end_and_a_start_are_missing() {
        let with_key = |action, key| ProcessPayload { key, ..process(action, 7) };
        for last in [LifeEvent::Rundown, LifeEvent::End] {
            let mut processes = Processes::default();
            processes.add_event(with_key(LifeEvent::Begin, 1), 10, None, EventPosition::default());
            processes.add_event(with_key(last, 2), 40, None, EventPosition::default());
            let times: Vec<_> = processes.rows.iter().map(|row| (row.start, row.end)).collect();
            let end = (last == LifeEvent::End).then_some(40);
            assert_eq!(times, [(Some(10), None), (None, end)]);
        }
        // Versions without a key prove nothing.
        let mut processes = Processes::default();
        processes.add_event(with_key(LifeEvent::Begin, 1), 10, None, EventPosition::default());
        processes.add_event(with_key(LifeEvent::End, 0), 40, None, EventPosition::default());
        assert_eq!(processes.rows.len(), 1);
    }

    #[test]
    fn an_end_without_start_is_a_process_from_before_the_trace() {
        let mut processes = Processes::default();
        processes.add_event(process(LifeEvent::End, 7), 20, None, EventPosition::default());
        assert_eq!((processes.rows[0].start, processes.rows[0].end), (None, Some(20)));
    }
}

#[cfg(test)]
mod threads_tests {
    use super::*;

    /// A payload with process 7 and thread 8, started at 0x70 plus its pointer size.
    fn payload(version: u8, pointer_size: usize) -> Vec<u8> {
        let ids: [u32; 2] = if version == 0 { [8, 7] } else { [7, 8] };
        let mut bytes: Vec<u8> = ids.into_iter().flat_map(u32::to_le_bytes).collect();
        let pointers = [0x10, 0x20, 0x30, 0x40, 0x50, 0x70 + pointer_size as u64, 0x60];
        for pointer in pointers.iter().take(if version == 0 { 0 } else { 7 }) {
            bytes.extend(&pointer.to_le_bytes()[..pointer_size]);
        }
        // Service tag and priorities, then the name.
        let tail: &[u8] = if version >= 4 { &[1; 14] } else { &[1; 8] };
        bytes.extend(if version == 0 { &[] } else { tail });
        bytes
    }

    fn event(id: EventId, version: u8, time: i64, payload: &[u8]) -> Event<'_> {
        Event { id, version, time, payload, pid: Some(4), tid: Some(5), ..Event::default() }
    }

    fn threads(events: &[(EventId, i64)]) -> Vec<(Option<i64>, Option<i64>)> {
        let (payload, mut threads) = (payload(3, 8), Threads::default());
        for (id, time) in events {
            threads.take(&event(*id, 3, *time, &payload), &mut PassState::default()).unwrap();
        }
        threads.rows.iter().map(|row| (row.is_started.then_some(row.seen), row.end)).collect()
    }

    #[test]
    fn every_version_has_the_ids_and_all_but_the_first_the_start_address() {
        for (version, pointer_size) in (0..=4).flat_map(|version| [(version, 4), (version, 8)]) {
            let bytes = payload(version, pointer_size);
            let row =
                decode_thread(&Event { pointer_size, ..event(THREAD_START, version, 3, &bytes) })
                    .unwrap();
            let expected = if version == 0 { 0 } else { 0x70 + pointer_size as u64 };
            assert_eq!((row.pid, row.tid, row.start_address), (7, 8, expected), "{version}");
            assert_eq!((row.seen, row.creator), (3, Some((4, 5))));
        }
    }

    #[test]
    fn a_payload_may_end_behind_the_ids_and_is_no_thread_before() {
        for version in 0..=4 {
            let bytes = payload(version, 8);
            for end in 0..bytes.len() {
                let row = decode_thread(&event(THREAD_END, version, 3, &bytes[..end]));
                assert_eq!(row.is_some(), end >= 8, "{version}: {end}");
                assert_eq!(
                    row.map_or(0, |row| row.start_address),
                    if version > 0 && end >= 56 { 0x78 } else { 0 }
                );
            }
        }
    }

    #[test]
    fn only_the_event_of_a_start_has_a_creator() {
        let bytes = payload(3, 8);
        for id in [THREAD_END, THREAD_RUNDOWN_START, THREAD_RUNDOWN_END] {
            assert_eq!(decode_thread(&event(id, 3, 3, &bytes)).unwrap().creator, None);
        }
        let unknown = Event { tid: None, ..event(THREAD_START, 3, 3, &bytes) };
        assert_eq!(decode_thread(&unknown).unwrap().creator, None);
    }

    #[test]
    fn starts_and_ends_bound_a_lifetime_and_rundowns_do_not() {
        assert_eq!(threads(&[(THREAD_START, 1), (THREAD_RUNDOWN_END, 9)]), [(Some(1), None)]);
        assert_eq!(threads(&[(THREAD_RUNDOWN_START, 1), (THREAD_END, 5)]), [(None, Some(5))]);
        assert_eq!(threads(&[(THREAD_RUNDOWN_START, 1), (THREAD_RUNDOWN_END, 9)]), [(None, None)]);
        assert_eq!(threads(&[(THREAD_END, 5)]), [(None, Some(5))]);
    }

    #[test]
    fn a_reused_id_is_another_thread() {
        let events = [
            (THREAD_START, 1),
            (THREAD_END, 2),
            (THREAD_START, 3),
            (THREAD_START, 5),
            (THREAD_END, 6),
            (THREAD_END, 7),
        ];
        let expected = [(Some(1), Some(2)), (Some(3), None), (Some(5), Some(6)), (None, Some(7))];
        assert_eq!(threads(&events), expected);
    }
}
