//! Tests of the generator's promises, on the events in the written bytes.

use std::collections::{HashMap, HashSet};
use std::io::Cursor;

use super::*;

fn write(trace: &LargeTrace) -> (Vec<u8>, LargeTraceCounts) {
    let mut out = Cursor::new(Vec::new());
    let counts = write_large_trace_to(&mut out, trace).unwrap();
    (out.into_inner(), counts)
}

fn small() -> LargeTrace {
    LargeTrace { handle_events: 20_000, distinct_stacks: 300, cpus: 3, ..LargeTrace::default() }
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Returns (hook, raw time, pid in the header, payload) of the kernel events.
fn events(bytes: &[u8]) -> Vec<(u64, u64, u64, &[u8])> {
    let mut found = Vec::new();
    for buffer in bytes.chunks(65_536) {
        let filled = number(buffer, 48, 4) as usize;
        let mut at = 72;
        while at < filled {
            let event = &buffer[at..filled];
            let (size, payload, time) = match event[2] {
                2 => (number(event, 4, 2), 32, 16),
                4 => (number(event, 4, 2), 24, 16),
                0x11 => (number(event, 4, 2), 16, 8),
                _ => (number(event, 0, 2), 0, 16),
            };
            if payload != 0 {
                let pid = if payload > 16 { number(event, 12, 4) } else { 0 };
                let payload = &event[payload..size as usize];
                found.push((number(event, 6, 2), number(event, time, 8), pid, payload));
            }
            at += (size as usize).next_multiple_of(8);
        }
    }
    found.sort_by_key(|(_, time, ..)| *time);
    found
}

#[test]
fn the_counts_are_those_of_the_written_events() {
    let (bytes, counts) = write(&small());
    let mut seen: HashMap<u64, u64> = HashMap::new();
    let mut open: HashSet<(u64, u64)> = HashSet::new();
    let (mut tagged, mut of_kernel) = (0, 0);
    for (hook, _, pid, payload) in events(&bytes) {
        *seen.entry(hook).or_default() += 1;
        // Bit 31 means the handle table of System; the two low bits mean nothing.
        let handle = |pid: u64| {
            let value = number(payload, 8, 4);
            (if value >> 31 == 1 { 4 } else { pid }, value & 0x7fff_fffc)
        };
        match hook {
            0x1120 => assert!(open.insert(handle(pid))),
            0x1121 => {
                tagged += u64::from(number(payload, 8, 4) & 3 != 0);
                of_kernel += u64::from(handle(pid).0 == 4);
                assert!(open.remove(&handle(pid)));
            }
            0x1122 => assert!(open.insert((number(payload, 16, 4), number(payload, 12, 4)))),
            _ => {}
        }
    }
    assert_eq!(seen[&0x1120] + seen[&0x1121] + seen[&0x1122], 20_000);
    assert_eq!(seen[&0x1120], counts.creates);
    assert_eq!(seen[&0x1122], counts.duplicates);
    assert_eq!(seen[&0x1121], counts.closes);
    assert_eq!(seen[&0x1127], counts.leaked);
    assert_eq!(seen[&0x1820], counts.stack_fragments);
    assert_eq!(open.len() as u64, counts.leaked);
    for (pid, leaked) in &counts.leaked_by_process {
        let of_pid = open.iter().filter(|(owner, _)| *owner == u64::from(*pid));
        assert_eq!(of_pid.count() as u64, *leaked);
    }
    assert!(counts.leaked > 50 && counts.duplicates > 500);
    assert!(tagged > 500 && of_kernel > 100, "{tagged} {of_kernel}");
}

#[test]
fn stacks_have_the_depth_and_number_that_were_asked_for() {
    let (bytes, counts) = write(&small());
    let mut stacks: HashMap<(u64, u64), Vec<&[u8]>> = HashMap::new();
    for (_, _, _, payload) in events(&bytes).into_iter().filter(|(hook, ..)| *hook == 0x1820) {
        let key = (number(payload, 0, 8), number(payload, 12, 4));
        stacks.entry(key).or_default().push(&payload[16..]);
    }
    assert_eq!(stacks.len(), 20_000);
    let joined: HashSet<Vec<u8>> = stacks.values().map(|parts| parts.concat()).collect();
    assert_eq!(joined.len() as u64, counts.distinct_stacks);
    assert!(joined.iter().all(|frames| frames.len() == 25 * 8));
}

#[test]
fn equal_seeds_write_equal_files() {
    let trace = LargeTrace { handle_events: 2_000, ..small() };
    assert!(write(&trace).0 == write(&trace).0);
    assert!(write(&trace).0 != write(&LargeTrace { seed: 2, ..trace }).0);
}

#[test]
fn tiny_traces_have_exactly_the_events_asked_for() {
    for handle_events in 0..20 {
        let (_, counts) = write(&LargeTrace { handle_events, leak_percent: 0, ..small() });
        assert_eq!(counts.creates + counts.duplicates + counts.closes, handle_events);
        assert_eq!(counts.leaked, counts.creates + counts.duplicates - counts.closes);
    }
}

#[test]
fn other_events_have_no_stacks_and_come_last() {
    let trace = LargeTrace { handle_events: 50, other_events: 1_000, ..small() };
    let (bytes, counts) = write(&trace);
    let events = events(&bytes);
    let of = |hook: u64| events.iter().filter(move |event| event.0 == hook).count() as u64;
    let (switches, reads) = (of(0x0524), of(0x010a));
    assert_eq!(switches + reads, 1_000);
    assert!((100..300).contains(&reads), "{reads}");
    assert_eq!((of(0x1820), counts.stack_fragments), (100, 100));
    let last_handle = events.iter().rposition(|event| matches!(event.0, 0x1120..=0x1122)).unwrap();
    assert!(events[..last_handle].iter().all(|event| !matches!(event.0, 0x0524 | 0x010a)));
}
