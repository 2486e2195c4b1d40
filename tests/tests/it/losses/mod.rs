//! Compares claims about incomplete traces with the truth. Files are cut at and inside every buffer, and single buffers
//! and random sets of buffers are removed. A leak is never reported as closed, and a close by process exit not as one
//! by the program.

mod answer;
mod programs;

use std::collections::BTreeMap;
use std::ops::Range;

use handlescope_tests::corrupt::buffers;
use handlescope_tests::rng::Rng;
use handlescope_tests::thorough::one_of;

use self::answer::{LossAnswer, LossTally};
use self::programs::{TraceChoices, TraceWithTruth};

/// How parts of a file are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LossWay {
    CutAtBuffer,
    CutInBuffer,
    OneBuffer,
    SomeBuffers,
    /// The session counts some buffers as lost instead of written.
    LostBuffers,
}

/// Offsets of counts in the trace header event, from the start of the file.
const BUFFERS_WRITTEN: usize = 72 + 32 + 36;
const BUFFERS_LOST: usize = 72 + 32 + 276;

/// Returns the file without some of its buffers.
fn without(whole: &[u8], places: &[Range<usize>], is_lost: impl Fn(usize) -> bool) -> Vec<u8> {
    places
        .iter()
        .enumerate()
        .filter(|(at, _)| *at == 0 || !is_lost(*at))
        .flat_map(|(_, place)| whole[place.clone()].to_vec())
        .collect()
}

/// Returns the file with a header that counts these buffers as lost instead of written.
fn counted_as_lost(mut etl: Vec<u8>, lost: usize) -> Vec<u8> {
    for (at, change) in [(BUFFERS_WRITTEN, -(lost as i64)), (BUFFERS_LOST, lost as i64)] {
        let field: &mut [u8] = &mut etl[at..at + 4];
        let count = u32::from_le_bytes(field.try_into().unwrap());
        field.copy_from_slice(&((i64::from(count) + change) as u32).to_le_bytes());
    }
    etl
}

/// Calls `check` with each incomplete version of a file to try.
fn for_each_part(
    whole: &[u8],
    seed: u64,
    share: usize,
    mut check: impl FnMut(LossWay, String, Vec<u8>),
) {
    let places = buffers(whole);
    let mut rng = Rng::new(seed);
    for place in &places[1..] {
        if rng.index(share) == 0 {
            check(
                LossWay::CutAtBuffer,
                format!("to {}", place.start),
                whole[..place.start].to_vec(),
            );
        }
        if rng.index(share) == 0 {
            let at = place.start + 72 + rng.index(place.len() - 72);
            check(LossWay::CutInBuffer, format!("to {at}"), whole[..at].to_vec());
        }
    }
    for lost in 1..places.len() {
        if rng.index(share) == 0 {
            let etl = without(whole, &places, |at| at == lost);
            check(LossWay::OneBuffer, format!("without {lost}"), etl);
        }
    }
    for _ in 0..places.len() / share {
        let percent = [3, 10, 40][rng.index(3)];
        let lost: Vec<bool> = places.iter().map(|_| rng.percent(percent)).collect();
        let etl = without(whole, &places, |at| lost[at]);
        let count = lost.iter().skip(1).filter(|is_lost| **is_lost).count();
        let text = |lost: &[bool]| {
            let numbers = (0..lost.len()).filter(|at| lost[*at] && *at > 0);
            format!("without {:?}", numbers.collect::<Vec<_>>())
        };
        if rng.percent(50) {
            check(LossWay::SomeBuffers, text(&lost), etl);
        } else {
            check(LossWay::LostBuffers, text(&lost), counted_as_lost(etl, count));
        }
    }
}

/// Number of processors, how parts are missing, and whether sweeps are logged as Windows does, with stacks.
type LossFamily = (u16, LossWay, bool);

/// Tries incomplete versions of traces; returns counts by family, and the contradictions.
fn tried(seeds: Range<u64>, share: usize) -> (BTreeMap<LossFamily, LossTally>, Vec<String>) {
    let (mut tallies, mut wrong) = (BTreeMap::<_, LossTally>::new(), Vec::new());
    for seed in seeds {
        for processors in [1, 2, 4] {
            for sweeps_after_end in [true, false] {
                // Without stacks, a sweep before ProcessEnd looks like closes by the program.
                let has_stacks = seed % 3 != 2 || !sweeps_after_end;
                let is_stopped = seed % 4 != 3;
                let choices =
                    TraceChoices { seed, processors, sweeps_after_end, has_stacks, is_stopped };
                let programs = TraceWithTruth::new(choices);
                for_each_part(&programs.etl, seed, share, |way, text, etl| {
                    let what = format!("{choices:?}: {way:?} {text}");
                    let tally = LossAnswer::new(&etl).tally(&programs, &mut wrong, &what);
                    let is_as_windows = sweeps_after_end && has_stacks;
                    *tallies.entry((processors, way, is_as_windows)).or_default() += tally;
                });
            }
        }
    }
    (tallies, wrong)
}

#[test]
fn a_whole_trace_has_the_truth() {
    for seed in 0..4 {
        for processors in [1, 2, 4] {
            for sweeps_after_end in [true, false] {
                let (has_stacks, is_stopped) = (seed % 3 != 2 || !sweeps_after_end, true);
                let choices =
                    TraceChoices { seed, processors, sweeps_after_end, has_stacks, is_stopped };
                let programs = TraceWithTruth::new(choices);
                let mut wrong = Vec::new();
                let tally = LossAnswer::new(&programs.etl).tally(&programs, &mut wrong, "whole");
                assert!(wrong.is_empty(), "{choices:?}: {wrong:#?}");
                assert_eq!(tally.leaks, tally.reported);
                assert_eq!((tally.unproven, tally.unseen), (0, 0));
                assert!(tally.leaks > 10 && tally.exits_reported > 10, "{tally:?}");
            }
        }
    }
}

#[test]
fn whatever_is_missing_no_leak_is_called_closed_and_hardly_an_exit_a_close_of_the_program() {
    // Each is an extraction; all of them take ten minutes.
    let share = 3 * one_of(3);
    let (tallies, wrong) = tried(0..4, share);
    for ((processors, way, is_as_windows), tally) in tallies {
        let what = format!("{processors} {way:?} {is_as_windows} {tally:?}");
        println!("{what}");
        assert!(
            tally.leaks > 0 && tally.hidden == 0,
            "{what}: {:#?}",
            &wrong[..wrong.len().min(20)]
        );
        assert_eq!((tally.reported, tally.dropped), (tally.leaks, 0), "{what}");
        // If so much is missing that frames, threads and the rundown are all gone, a process exit leaves no evidence.
        let is_little = !matches!(way, LossWay::SomeBuffers | LossWay::LostBuffers);
        let most_in_thousand = match (way, is_as_windows) {
            (LossWay::OneBuffer, true) => 1,
            _ if is_little => 10,
            (_, true) => 60,
            (_, false) => 90,
        };
        assert!(tally.exits_hidden * 1000 <= tally.exits * most_in_thousand, "{what}");
        assert!(tally.false_exits * 1000 <= tally.exits, "{what}");
        // The rest of the trace proves some of the missing closes.
        assert!(!is_little || way != LossWay::OneBuffer || tally.unproven < tally.unseen, "{what}");
    }
}
