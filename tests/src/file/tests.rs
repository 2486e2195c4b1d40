//! Tests of the file layer's promises, on the written bytes.

use super::*;
use crate::header::{HeaderKind, KernelEvent, Stamp};

/// The buffer header fields that tests look at.
#[derive(Debug, PartialEq, Eq)]
struct BufferFields {
    at: usize,
    size: usize,
    time: i64,
    sequence: u64,
    cpu: u16,
    filled: usize,
    flags: u16,
    kind: u16,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn buffers(bytes: &[u8]) -> Vec<BufferFields> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() && number(bytes, at, 4) != 0 {
        let size = number(bytes, at, 4) as usize;
        found.push(BufferFields {
            at,
            size,
            time: number(bytes, at + 16, 8) as i64,
            sequence: number(bytes, at + 24, 8),
            cpu: number(bytes, at + 40, 2) as u16,
            filled: number(bytes, at + 48, 4) as usize,
            flags: number(bytes, at + 52, 2) as u16,
            kind: number(bytes, at + 54, 2) as u16,
        });
        at += size;
    }
    found
}

/// Returns the times of the perfinfo events in a buffer.
fn times(bytes: &[u8], buffer: &BufferFields) -> Vec<i64> {
    let mut found = Vec::new();
    let mut at = buffer.at + 72;
    while at < buffer.at + buffer.filled {
        found.push(number(bytes, at + 8, 8) as i64);
        at += (number(bytes, at + 4, 2) as usize).next_multiple_of(8);
    }
    assert_eq!(at, buffer.at + buffer.filled, "the last event ends at Filled");
    found
}

fn event(time: i64, payload: usize) -> Vec<u8> {
    let event = KernelEvent {
        kind: HeaderKind::PerfInfo,
        hook: 0x0b0f,
        stamp: Stamp::new(time, 0, 0),
        payload: vec![0xab; payload],
        ..KernelEvent::default()
    };
    event.encode()
}

/// Builds a file of `count` events that are added from last to first, on processors in turn.
fn file(options: FileOptions, count: i64) -> EtlFile {
    let mut file = EtlFile::new(FileOptions { buffer_size: 4096, ..options });
    for n in (0..count).rev() {
        let time = file.options.base_raw() + n;
        file.push((n % 3) as u16, time, event(time, (n % 50) as usize));
    }
    file
}

/// Returns the offset of a field in the trace header payload.
fn header_field(offset: usize) -> usize {
    72 + 32 + offset
}

#[test]
fn an_empty_file_is_a_header_buffer() {
    let bytes = EtlFile::default().to_bytes();
    let all = buffers(&bytes);
    assert_eq!((all.len(), bytes.len()), (1, 65_536));
    assert_eq!((all[0].kind, all[0].flags, all[0].sequence), (4, 0x21, 0));
    assert_eq!(bytes[72..80], [2, 0, 2, 0xc0, bytes[76], bytes[77], 0, 0]);
    assert_eq!(number(&bytes, header_field(36), 4), 1);
    assert_eq!(all[0].filled, 72 + (number(&bytes, 76, 2) as usize).next_multiple_of(8));
}

#[test]
fn events_are_sorted_per_processor_and_overlap_between_processors() {
    let bytes = file(FileOptions::default(), 500).to_bytes();
    let all = buffers(&bytes);
    assert_eq!(number(&bytes, header_field(36), 4), all.len() as u64);
    let mut sequences: Vec<u64> = all.iter().map(|buffer| buffer.sequence).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, (0..all.len() as u64).collect::<Vec<_>>());
    for cpu in 0..3 {
        let of_cpu: Vec<&BufferFields> =
            all[1..].iter().filter(|buffer| buffer.cpu == cpu).collect();
        let found: Vec<i64> = of_cpu.iter().flat_map(|buffer| times(&bytes, buffer)).collect();
        assert!(found.is_sorted() && found.len() > 160 && of_cpu.len() > 1);
        assert!(of_cpu.iter().map(|buffer| buffer.sequence).is_sorted());
    }
    let in_file: Vec<i64> = all[1..].iter().flat_map(|buffer| times(&bytes, buffer)).collect();
    assert!(!in_file.is_sorted(), "the file as a whole is not in time order");
}

#[test]
fn only_the_header_buffer_and_the_last_one_carry_the_flush_marker() {
    let options = FileOptions { loss_flags: 2, ..FileOptions::default() };
    let all = buffers(&file(options, 500).to_bytes());
    let (last, others) = all[1..].split_last().unwrap();
    assert_eq!(last.flags, 0x23);
    assert!(others.iter().all(|buffer| buffer.flags == 0x20 && buffer.kind == 0));
    assert!(all.iter().map(|buffer| buffer.time).is_sorted());
}

#[test]
fn the_unused_tail_of_a_buffer_is_filler() {
    let bytes = file(FileOptions::default(), 1).to_bytes();
    let all = buffers(&bytes);
    assert_eq!(all[1].filled, 72 + 16);
    assert!(bytes[all[1].at + 88..all[1].at + 4096].iter().all(|byte| *byte == 0xff));
}

#[test]
fn raw_flush_times_are_never_earlier_than_the_events_of_the_buffer() {
    let options = FileOptions { merged: false, wide_cpu_index: false, ..FileOptions::default() };
    let bytes = file(options, 500).to_bytes();
    for buffer in &buffers(&bytes)[1..] {
        assert!(times(&bytes, buffer).last().unwrap() <= &buffer.time);
        assert_eq!(buffer.cpu >> 8, 8, "the old form has the alignment in the second byte");
    }
}

#[test]
fn compressed_buffers_have_their_own_size_and_a_small_header_buffer() {
    let options = FileOptions { compressed: true, ..FileOptions::default() };
    let bytes = file(options, 500).to_bytes();
    let all = buffers(&bytes);
    assert_eq!((all[0].size, all[0].flags), (512, 0x21));
    assert_eq!(number(&bytes, header_field(32), 4), 0x0401_0001);
    assert!(all[1..].iter().all(|buffer| buffer.flags & 0x40 != 0 && buffer.filled <= 4096));
    assert_eq!(all.last().map(|buffer| buffer.at + buffer.size), Some(bytes.len()));
    let plain = buffers(&file(FileOptions::default(), 500).to_bytes());
    let filled = |all: &[BufferFields]| all.iter().map(|buffer| buffer.filled).collect::<Vec<_>>();
    assert_eq!(filled(&all), filled(&plain));
}

#[test]
fn circular_files_overwrite_the_oldest_buffers_behind_the_header() {
    let layout = BufferOrder::Circular { max_buffers: 4 };
    let bytes = file(FileOptions { layout, ..FileOptions::default() }, 1000).to_bytes();
    let all = buffers(&bytes);
    assert_eq!((all.len(), bytes.len()), (5, 5 * 4096));
    assert_eq!(number(&bytes, header_field(32), 4), 0x1_0002);
    assert_eq!((all[0].kind, all[0].sequence), (4, 0));
    let starts: Vec<i64> = all[1..].iter().map(|buffer| times(&bytes, buffer)[0]).collect();
    assert!(!starts.is_sorted(), "the newest buffers come before the oldest");
    assert!(starts.iter().all(|time| *time > FileOptions::default().base_raw() + 400));
}

#[test]
fn preallocated_buffers_are_zeros_behind_the_last_one() {
    let bytes = file(FileOptions { preallocated: 2, ..FileOptions::default() }, 10).to_bytes();
    let used = buffers(&bytes).len() * 4096;
    assert_eq!(bytes.len(), used + 2 * 4096);
    assert!(bytes[used..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_session_that_was_not_closed_has_no_end_and_too_few_buffers() {
    let options = FileOptions { end: SessionEnd::NotClosed, ..FileOptions::default() };
    let bytes = file(options, 500).to_bytes();
    assert_eq!(number(&bytes, header_field(16), 8), 0);
    assert_eq!(number(&bytes, header_field(36), 4), 1);
}

#[test]
fn extra_buffers_come_before_the_last_one_with_their_own_type() {
    let extra = ExtraBuffer { buffer_type: 3, flags: 0, content: event(1, 0) };
    let options = FileOptions { extra_buffers: vec![extra], ..FileOptions::default() };
    let all = buffers(&file(options, 10).to_bytes());
    assert_eq!(all[all.len() - 2].kind, 3);
}

#[test]
fn a_streamed_file_is_the_same_as_one_made_in_memory() {
    let path = tempfile::NamedTempFile::new().unwrap();
    let summary = file(FileOptions::default(), 300).write(path.path()).unwrap();
    let bytes = file(FileOptions::default(), 300).to_bytes();
    assert!(std::fs::read(path.path()).unwrap() == bytes);
    assert_eq!((summary.events, summary.bytes), (301, bytes.len() as u64));
    assert_eq!(summary.buffers, buffers(&bytes).len() as u64);
}

#[test]
#[should_panic(expected = "does not fit a buffer")]
fn an_event_larger_than_a_buffer_is_a_mistake_of_the_test() {
    let mut file = file(FileOptions::default(), 0);
    file.push(0, file.options.base_raw(), event(0, 5000));
    let _ = file.to_bytes();
}
