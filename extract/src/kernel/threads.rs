//! Thread lifetimes (MOF class Thread_TypeGroup1).

use std::collections::HashMap;

use handlescope_model::Table;

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, Shared};

const START: EventId = EventId::Hook(0x0501);
const END: EventId = EventId::Hook(0x0502);
const RUNDOWN_START: EventId = EventId::Hook(0x0503);
const RUNDOWN_END: EventId = EventId::Hook(0x0504);

/// One lifetime of one thread id, times raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRow {
    pub pid: u32,
    pub tid: u32,
    /// Time of its first event: the start, where that was seen.
    pub seen: i64,
    pub is_started: bool,
    /// End, if it was seen.
    pub end: Option<i64>,
    /// Process and thread that logged the start, where it was seen and its header says so.
    pub creator: Option<(u32, u32)>,
    /// Win32 start address; 0 where no event has it.
    pub start_address: u64,
}

/// The lifetimes, in the order they were first seen.
///
/// As with processes, only a start event begins a lifetime and only an end event ends one.
#[derive(Debug, Default)]
pub struct Threads {
    pub rows: Vec<ThreadRow>,
    live: HashMap<(u32, u32), u32>,
}

impl EventFamily for Threads {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (START, "ThreadStart"),
        (END, "ThreadEnd"),
        (RUNDOWN_START, "ThreadDCStart"),
        (RUNDOWN_END, "ThreadDCEnd"),
    ];
    const TABLES: &'static [Table] = &[Table::Threads];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.version {
            0 => &[Field::Bytes(8)],
            _ => &[Field::Bytes(8), Field::Pointers(6)],
        }
    }

    fn take(&mut self, event: &Event<'_>, _: &mut Shared) -> Option<()> {
        let row = decode(event)?;
        let ids = (row.pid, row.tid);
        let known = (event.id != START).then(|| self.live.get(&ids)).flatten().copied();
        let known = known.unwrap_or_else(|| {
            self.rows.push(row);
            self.rows.len() as u32 - 1
        });
        let thread = self.rows.get_mut(known as usize)?;
        if thread.start_address == 0 {
            thread.start_address = row.start_address;
        }
        if event.id == END {
            thread.end = Some(event.time);
            self.live.remove(&ids);
        } else {
            self.live.insert(ids, known);
        }
        Some(())
    }
}

/// Decodes versions 0 to 4 of the event, as the row of a thread that was not seen before.
///
/// Version 0 has the thread id first, and nothing else (Thread_V0_TypeGroup1). Since version 1 four limits of
/// stacks and the start address in the kernel (version 3: the affinity) come before the Win32 start
/// address; events of an end may stop after the ids (Thread_V1_TypeGroup2).
fn decode(event: &Event<'_>) -> Option<ThreadRow> {
    let mut p = Payload::of(event);
    let (first, second) = (p.u32()?, p.u32()?);
    let (pid, tid) = if event.version == 0 { (second, first) } else { (first, second) };
    let mut start_address = || {
        p.skip(5 * p.pointer_size())?;
        p.pointer()
    };
    let start_address = (event.version > 0).then(&mut start_address).flatten().unwrap_or_default();
    let is_started = event.id == START;
    let creator = event.pid.zip(event.tid).filter(|_| is_started);
    Some(ThreadRow { pid, tid, seen: event.time, is_started, end: None, creator, start_address })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload: process 7, thread 8, started at 0x70 + its pointer size.
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
            threads.take(&event(*id, 3, *time, &payload), &mut Shared::default()).unwrap();
        }
        let times = |row: &ThreadRow| (row.is_started.then_some(row.seen), row.end);
        threads.rows.iter().map(times).collect()
    }

    #[test]
    fn every_version_has_the_ids_and_all_but_the_first_the_start_address() {
        for (version, pointer_size) in (0..=4).flat_map(|version| [(version, 4), (version, 8)]) {
            let bytes = payload(version, pointer_size);
            let row = decode(&Event { pointer_size, ..event(START, version, 3, &bytes) }).unwrap();
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
                let row = decode(&event(END, version, 3, &bytes[..end]));
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
        for id in [END, RUNDOWN_START, RUNDOWN_END] {
            assert_eq!(decode(&event(id, 3, 3, &bytes)).unwrap().creator, None);
        }
        let unknown = Event { tid: None, ..event(START, 3, 3, &bytes) };
        assert_eq!(decode(&unknown).unwrap().creator, None);
    }

    #[test]
    fn starts_and_ends_bound_a_lifetime_and_rundowns_do_not() {
        assert_eq!(threads(&[(START, 1), (RUNDOWN_END, 9)]), [(Some(1), None)]);
        assert_eq!(threads(&[(RUNDOWN_START, 1), (END, 5)]), [(None, Some(5))]);
        assert_eq!(threads(&[(RUNDOWN_START, 1), (RUNDOWN_END, 9)]), [(None, None)]);
        assert_eq!(threads(&[(END, 5)]), [(None, Some(5))]);
    }

    #[test]
    fn a_reused_id_is_another_thread() {
        let events = [(START, 1), (END, 2), (START, 3), (START, 5), (END, 6), (END, 7)];
        let expected = [(Some(1), Some(2)), (Some(3), None), (Some(5), Some(6)), (None, Some(7))];
        assert_eq!(threads(&events), expected);
    }
}
