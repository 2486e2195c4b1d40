//! Sizes claimed by compressed buffers are believed only within limits.

use std::fs;

use handlescope_tests::binary::{ProgramRun, Shell};
use handlescope_tests::containers::write_zip;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::file::FileOptions;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::TraceBuilder;

const OVERSIZED: &str = "larger than the session's buffers, skipped";

/// Builds a compressed trace of several buffers.
fn trace() -> Vec<u8> {
    let options = FileOptions { buffer_size: 4096, compressed: true, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.noise(3_000, 5);
    for step in 0..100u32 {
        let object = 0xffff_8100_0000_1000 + u64::from(step) * 0x100;
        trace.create_handle(1_000_000 * i64::from(step + 1), (4, 8), object, 4 * step + 4, 16);
    }
    trace.to_bytes()
}

/// Returns the offsets of the compressed buffers in a file.
fn compressed(bytes: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(size) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        if bytes[at + 52] & 0x40 != 0 {
            places.push(at);
        }
        at += u32::from_le_bytes(*size) as usize;
    }
    places
}

/// Makes the buffer at an offset claim this many bytes.
fn claim(bytes: &mut [u8], place: usize, filled: u32) {
    bytes[place + 48..place + 52].copy_from_slice(&filled.to_le_bytes());
}

fn extract(shell: &Shell, file: &str) -> ProgramRun {
    shell.run(&["extract", file])
}

#[test]
fn a_buffer_that_claims_more_than_those_of_the_session_is_left_out_and_counted() {
    let shell = Shell::new();
    let mut bytes = trace();
    let places = compressed(&bytes);
    fs::write(shell.path("a.etl"), &bytes).unwrap();
    assert!(!extract(&shell, "a.etl").ok().stderr.contains(OVERSIZED));
    claim(&mut bytes, places[1], 4097);
    claim(&mut bytes, places[3], 60 << 20);
    fs::write(shell.path("a.etl"), &bytes).unwrap();
    let run = extract(&shell, "a.etl").ok();
    let said = format!("2 compressed buffers {OVERSIZED}, first at offset 0x{:X}", places[1]);
    assert!(run.stderr.contains(&said), "{run:?}");
    let run = shell.run(&["a.etl", "-c", ".dump Stats"]).ok();
    assert!(run.stdout.contains("INCOMPLETE"), "{run:?}");
}

#[test]
fn buffers_that_claim_too_much_in_all_are_refused_also_in_an_archive() {
    let shell = Shell::new();
    let mut bytes = trace();
    // The session claims the largest possible buffers, in the first field of its header.
    bytes[72 + 32..][..4].copy_from_slice(&(16u32 << 20).to_le_bytes());
    for place in compressed(&bytes) {
        claim(&mut bytes, place, 16 << 20);
    }
    fs::write(shell.path("a.etl"), &bytes).unwrap();
    write_zip(&shell.path("b.zip"), &[("a.etl", bytes)]);
    for file in ["a.etl", "b.zip"] {
        let run = extract(&shell, file);
        assert_eq!(run.status, Some(1), "{run:?}");
        let said = format!("{file}: ");
        assert!(run.stderr.contains(&said), "{run:?}");
        assert!(run.stderr.contains("bytes claim to unpack to"), "{run:?}");
        assert!(run.stderr.contains("-MaxSize"), "{run:?}");
    }
}

#[needs_data]
#[test]
fn a_published_bomb_is_a_counted_warning_also_in_an_archive() {
    let shell = Shell::new();
    let bytes = fs::read(SharedTrace::open("hostile/lz77bomb").etl()).unwrap();
    fs::write(shell.path("bomb.etl"), &bytes).unwrap();
    write_zip(&shell.path("zipped.zip"), &[("bomb.etl", bytes)]);
    for file in ["bomb.etl", "zipped.zip"] {
        let run = extract(&shell, file);
        assert!(run.stderr.contains(OVERSIZED), "{run:?}");
    }
}
