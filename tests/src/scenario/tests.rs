//! Tests of the scenario layer's promises, on the events in the written bytes.

use super::*;
use crate::bytes::{Guid, PointerSize};
use crate::file::{FileOptions, RawClock};

const OBJECT: u64 = 0xffff_8100_0000_1000;
const KERNEL: [u64; 2] = [0xffff_f801_0000_1000, 0xffff_f801_0000_2000];
const USER: [u64; 3] = [0x7ff8_0000_1000, 0x7ff8_0000_2000, 0x7ff6_0000_1000];

/// A kernel event as read back: (hook, time, cpu, payload).
#[derive(Debug, Clone, PartialEq, Eq)]
struct KernelEventRow {
    hook: u16,
    time: i64,
    cpu: u16,
    header: u8,
    payload: Vec<u8>,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Reads the events of all buffers in time order. Provider events get the hook 0xffff, and opcode and id in front of
/// the payload.
fn read(bytes: &[u8]) -> Vec<KernelEventRow> {
    let mut seen = Vec::new();
    for buffer in bytes.chunks(65_536) {
        let (filled, cpu) = (number(buffer, 48, 4) as usize, number(buffer, 40, 2) as u16);
        let mut at = 72;
        while at < filled {
            let event = &buffer[at..filled];
            let (hook, size, header, time) = match (event[3], event[2]) {
                (0x90, _) => (0xffff, number(event, 0, 2), 8, 8),
                (_, 1 | 2) => (number(event, 6, 2) as u16, number(event, 4, 2), 32, 16),
                (_, 3 | 4) => (number(event, 6, 2) as u16, number(event, 4, 2), 24, 16),
                (_, 0x10 | 0x11) => (number(event, 6, 2) as u16, number(event, 4, 2), 16, 8),
                _ => (0xffff, number(event, 0, 2), 4, 16),
            };
            seen.push(KernelEventRow {
                hook,
                time: number(event, time, 8) as i64,
                cpu,
                header: event[2],
                payload: event[header..size as usize].to_vec(),
            });
            at += (size as usize).next_multiple_of(8);
        }
    }
    seen.sort_by_key(|event| event.time);
    seen
}

fn hooks(trace: &TraceBuilder) -> Vec<u16> {
    read(&trace.to_bytes()).iter().map(|event| event.hook).collect()
}

fn of_hook(trace: &TraceBuilder, hook: u16) -> Vec<KernelEventRow> {
    read(&trace.to_bytes()).into_iter().filter(|event| event.hook == hook).collect()
}

fn raw(ns: i64) -> i64 {
    FileOptions::default().raw(ns)
}

/// Creates a trace with only the events that a test adds.
fn bare() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.merge_events(false).rundowns(false, false);
    trace
}

#[test]
fn verbs_become_events_at_their_time_on_their_processor() {
    let mut trace = bare();
    let app = Caller::new(10, 11).on(2);
    trace.close_handle(900, app, OBJECT, 4, 16, "n").create_handle(300, app, OBJECT, 4, 16);
    let events = read(&trace.to_bytes());
    let stated: Vec<_> =
        events.iter().skip(2).map(|seen| (seen.hook, seen.time, seen.cpu, seen.header)).collect();
    assert_eq!(stated, [(0x1120, raw(300), 2, 4), (0x1121, raw(900), 2, 4)]);
}

#[test]
fn the_header_kind_holds_for_the_events_after_it() {
    let mut trace = bare();
    for kind in [HeaderKind::System, HeaderKind::Compact, HeaderKind::PerfInfo] {
        trace.header_kind(kind).create_object(100, (1, 2), OBJECT, 16);
    }
    let kinds: Vec<u8> = of_hook(&trace, 0x1130).iter().map(|seen| seen.header).collect();
    assert_eq!(kinds, [2, 4, 0x11]);
}

#[test]
fn a_process_lifetime_brackets_its_modules() {
    let mut trace = TraceBuilder::new();
    trace.rundowns(false, false);
    trace.process(10, "app.exe").started(1_000).exited(5_000, 3);
    trace.module(10, r"C:\app.exe", 0x1_0000, 0x1000).pdb("app.pdb", Guid::new(1), 1);
    trace.create_handle(5_000, (10, 11), OBJECT, 4, 16);
    let events = read(&trace.to_bytes());
    let hooks: Vec<u16> = events.iter().skip(2).map(|seen| seen.hook).collect();
    // Two identity events with the same time follow each image event. Images are unloaded once the handles are closed.
    let expected = [0x0301, 0x030a, 0xffff, 0xffff, 0x1120, 0x0302, 0x1121, 0x1402, 0xffff, 0xffff];
    assert_eq!(hooks[..10], expected);
    let times: Vec<i64> = events.iter().skip(2).map(|seen| seen.time).collect();
    assert_eq!(times[..6], [1_000, 1_000, 1_000, 1_000, 5_000, 5_000].map(raw));
    assert!(times[6] >= raw(305_000) && times[7] == times[9], "{times:?}");
}

#[test]
fn the_end_rundown_lists_what_is_still_there() {
    let mut trace = TraceBuilder::new();
    trace.merge_events(false).object_type(16, "Event");
    trace.process(4, "System");
    trace.process(10, "gone.exe").ended(100);
    trace.module(0, r"C:\Windows\system32\ntoskrnl.exe", 0xffff_f801_0000_0000, 0x1_0000);
    trace.module(10, r"C:\gone.exe", 0x1_0000, 0x1000);
    trace.create_handle(50, (4, 8), OBJECT, 4, 16).handle_rundown_end(4, OBJECT, 4, 16, "n");
    let expected = [0x1120, 0x0302, 0x1402, 0x1127, 0x1125, 0x0304, 0x0504, 0x1404, 0x0008];
    assert_eq!(hooks(&trace)[2..], expected);
    let image = &of_hook(&trace, 0x1404)[0].payload;
    assert_ne!(number(image, 24, 4), 0, "kernel images have their time stamp in the rundown");
    assert_eq!(image[56..58], *b"\\\0");
}

#[test]
fn user_images_have_no_time_stamp_in_the_rundown_and_nt_paths() {
    let mut trace = TraceBuilder::new();
    trace.process(10, "app.exe");
    trace.module(10, r"C:\app.exe", 0x1_0000, 0x1000).timestamp(7);
    let image = &of_hook(&trace, 0x1404)[0].payload;
    assert_eq!(number(image, 24, 4), 0);
    let path: Vec<u16> =
        image[56..].as_chunks::<2>().0.iter().map(|u| u16::from_le_bytes(*u)).collect();
    let path = String::from_utf16(&path).unwrap();
    assert_eq!(path, "\\Device\\HarddiskVolume3\\app.exe\0");
}

#[test]
fn fragments_come_after_their_event_the_user_part_last() {
    let mut trace = bare();
    trace.create_handle(1_000, (10, 11, 1), OBJECT, 4, 16).stack(&KERNEL, &USER);
    trace.stack_mode(StackMode::UserOn(3));
    trace.create_handle(9_000, (10, 11, 1), OBJECT, 8, 16).stack(&[], &USER);
    trace.stack_mode(StackMode::Single);
    trace.create_handle(20_000, (10, 11, 1), OBJECT, 8, 16).stack(&KERNEL, &USER);
    let found: Vec<_> = of_hook(&trace, 0x1820)
        .iter()
        .map(|seen| {
            let frames = (seen.payload.len() - 16) / 8;
            (number(&seen.payload, 0, 8) as i64, seen.time, seen.cpu, frames)
        })
        .collect();
    let expected = [
        (raw(1_000), raw(1_300), 1, 2),
        (raw(1_000), raw(6_000), 1, 3),
        (raw(9_000), raw(14_000), 3, 3),
        (raw(20_000), raw(20_300), 1, 5),
    ];
    assert_eq!(found, expected);
}

/// Resolves stack keys as the format requires: the first definition at or after the reference.
fn resolved(trace: &TraceBuilder) -> Vec<Vec<u64>> {
    let events = read(&trace.to_bytes());
    let references = events.iter().filter(|seen| matches!(seen.hook, 0x1825 | 0x1826));
    references
        .map(|reference| {
            let key = number(&reference.payload, 16, 8);
            let definition = events.iter().find(|seen| {
                matches!(seen.hook, 0x1823 | 0x1824)
                    && seen.time >= reference.time
                    && number(&seen.payload, 0, 8) == key
            });
            let frames = &definition.expect("every reference is defined").payload[8..];
            frames.as_chunks::<8>().0.iter().map(|frame| u64::from_le_bytes(*frame)).collect()
        })
        .collect()
}

#[test]
fn keys_used_again_still_resolve_to_their_own_frames() {
    let mut trace = bare();
    trace.stack_mode(StackMode::Keys).stack_key_slots(3);
    let mut expected = Vec::new();
    for n in 0..40u64 {
        let (kernel, user) = ([KERNEL[0] + n % 7], [USER[0] + n % 5]);
        trace.create_handle(n as i64 * 10_000, (10, 11), OBJECT, 4, 16).stack(&kernel, &user);
        expected.extend([kernel.to_vec(), user.to_vec()]);
    }
    assert_eq!(resolved(&trace), expected);
    assert!(of_hook(&trace, 0x1823).len() > 10, "keys were thrown out");
}

#[test]
fn a_context_switch_precedes_the_events_of_another_thread() {
    let mut trace = bare();
    trace.context_switches(true).header_kind(HeaderKind::PerfInfo);
    trace
        .create_handle(100, (10, 11), OBJECT, 4, 16)
        .create_handle(200, (10, 11), OBJECT, 8, 16)
        .create_handle(300, (10, 12), OBJECT, 12, 16);
    let switches: Vec<(u64, u64)> = of_hook(&trace, 0x0524)
        .iter()
        .map(|seen| (number(&seen.payload, 0, 4), number(&seen.payload, 4, 4)))
        .collect();
    assert_eq!(switches, [(11, 0), (12, 11)]);
    assert_eq!(hooks(&trace)[2..], [0x0524, 0x1120, 0x1120, 0x0524, 0x1120]);
}

#[test]
fn both_rundowns_list_handles_processes_and_images() {
    let mut trace = TraceBuilder::new();
    trace.rundowns(true, true).object_type(16, "Event");
    trace.process(4, "System");
    trace.module(4, r"C:\a.dll", 0x1_0000, 0x1000);
    trace.handle_rundown_start(4, OBJECT, 4, 16, "");
    let found = hooks(&trace);
    for (start, end) in [(0x0303, 0x0304), (0x1403, 0x1404), (0x1124, 0x1125)] {
        assert!(found.contains(&start) && found.contains(&end), "{start:x}");
    }
    assert!(found.contains(&0x1126));
}

#[test]
fn a_32_bit_system_writes_the_narrow_kinds() {
    let options = FileOptions { pointer: PointerSize::Four, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.create_handle(100, (4, 8), 0x8100_1000, 4, 16).stack(&[0x8010_0000], &[]);
    let bytes = trace.to_bytes();
    assert_eq!(bytes[74], 1);
    let events = read(&bytes);
    assert!(
        events
            .iter()
            .filter(|seen| seen.hook != 0xffff)
            .all(|seen| [1, 3, 0x10].contains(&seen.header))
    );
    assert_eq!(of_hook(&trace, 0x1820)[0].payload.len(), 20);
}

#[test]
fn other_clocks_give_the_same_nanoseconds() {
    for clock in [RawClock::SystemTime, RawClock::CpuCycles { mhz: 3000 }] {
        let options = FileOptions { clock, ..FileOptions::default() };
        let mut trace = TraceBuilder::with_options(options.clone());
        trace.create_object(12_300, (1, 2), OBJECT, 16);
        let time = of_hook(&trace, 0x1130)[0].time;
        assert_eq!(options.nanoseconds(time), 12_300);
    }
}

#[test]
fn noise_of_every_kind_keeps_the_file_readable() {
    let mut trace = bare();
    trace.noise(100, 1).create_object(1_000_000, (1, 2), OBJECT, 16);
    assert_eq!(read(&trace.to_bytes()).len(), 2 + 100 + 1);
}

#[test]
fn the_end_of_a_process_closes_its_handles_within_50_ms_and_then_unmaps_its_views() {
    let mut trace = bare();
    trace.process(4, "System");
    trace.process(10, "app.exe").ended(10_000_000);
    trace.handle_rundown_start(10, OBJECT, 4, 16, "");
    for number in 1..200 {
        trace.create_handle(1_000 * number, (10, 11), OBJECT, 4 + 4 * number as u32, 16);
    }
    trace.create_handle(300_000, (10, 11), OBJECT, 4 | KERNEL_HANDLE, 16);
    trace.close_tagged(400_000, (10, 11), OBJECT, 8, 16, "");
    trace.map(500_000, (10, 12), MappedView { base: 0x1_0000, pid: 10, ..MappedView::default() });
    let events = read(&trace.to_bytes());
    let after: Vec<&KernelEventRow> =
        events.iter().filter(|seen| seen.time > raw(10_000_000)).collect();
    let closes = after.iter().filter(|seen| seen.hook == 0x1121).count();
    assert_eq!(closes, 199, "the one of System stays, and one was closed before");
    let times =
        |hook: u16| after.iter().filter(move |seen| seen.hook == hook).map(|seen| seen.time);
    let ns = |time: i64| FileOptions::default().nanoseconds(time) - 10_000_000;
    assert!(times(0x1121).all(|time| (300_000..50_000_000).contains(&ns(time))));
    assert!(times(0x0426).min() > times(0x1121).max() && times(0x0426).count() == 1);
    let end = events.iter().find(|seen| seen.hook == 0x0302).unwrap();
    assert_eq!(end.time, raw(10_000_000));
}

#[test]
fn a_child_closes_what_it_inherits_and_its_creator_starts_it() {
    let mut trace = bare();
    trace.process(10, "parent.exe");
    trace.process(20, "first.exe").parent(10).creator(30, 32).started(3_000).ended(9_000);
    trace.process(24, "second.exe").parent(10).creator(30, 31).started(4_000).ended(9_000);
    let duplicate =
        DuplicatedHandle { object: OBJECT, source_handle: 4, ..DuplicatedHandle::default() };
    let duplicate = DuplicatedHandle { target_handle: 4, source_pid: Some(10), ..duplicate };
    trace.inherit_handle(1_000, (30, 31), duplicate).inherit_handle(2_000, (30, 32), duplicate);
    trace.inherit_handle(2_100, (30, 32), DuplicatedHandle { target_handle: 8, ..duplicate });
    let events = read(&trace.to_bytes());
    let closes = events.iter().filter(|seen| seen.hook == 0x1121);
    assert_eq!(closes.count(), 3);
    let targets: Vec<u64> =
        of_hook(&trace, 0x1122).iter().map(|seen| number(&seen.payload, 16, 4)).collect();
    assert_eq!(targets, [0, 0, 0]);
}

#[test]
fn an_unswept_process_and_a_pid_that_is_given_again_at_once_are_possible() {
    let mut trace = bare();
    trace.process(10, "lost.exe").ended(5_000).unswept();
    trace.create_handle(1_000, (10, 11), OBJECT, 4, 16);
    assert!(of_hook(&trace, 0x1121).is_empty());
    let mut trace = bare();
    trace.process(10, "first.exe").ended(5_000);
    trace.process(10, "second.exe").started(8_000);
    trace.create_handle(1_000, (10, 11), OBJECT, 4, 16).create_handle(
        2_000,
        (10, 11),
        OBJECT,
        8,
        16,
    );
    let closes = of_hook(&trace, 0x1121);
    assert_eq!(closes.len(), 2);
    assert!(closes.iter().all(|close| (raw(5_000)..raw(8_000)).contains(&close.time)));
}
