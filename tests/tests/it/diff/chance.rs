//! How often two traces differ by chance, and how often a leak is found: the tables of `docs/statistics.md` with fewer
//! pairs.

use handlescope_tests::binary::handlescope_path;
use handlescope_tests::pairs::{TracePair, leaking_anew, unchanged};
use handlescope_tests::thorough::one_of;

/// Counts how many of the pairs got worse.
fn worse(pair: &TracePair, pairs: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let status = |seed| pair.status(seed, &handlescope_path(), folder.path());
    let statuses: Vec<Option<i32>> = (1..=pairs).map(status).collect();
    assert!(statuses.iter().all(|own| matches!(own, Some(0 | 1))), "{}: {statuses:?}", pair.name);
    statuses.iter().filter(|status| **status == Some(1)).count() as u64
}

#[test]
fn chance_makes_hardly_any_pair_of_an_unchanged_program_worse() {
    let (rows, pairs) = (unchanged(), 10 / one_of(3) as u64);
    let worse: Vec<u64> = rows.iter().map(|row| worse(row, pairs)).collect();
    let counts: Vec<(&str, u64)> = rows.iter().map(|row| row.name.as_str()).zip(worse).collect();
    // With a probability of 5 % each, three of ten pairs in a row of the table happen with a probability of 1 %.
    assert!(counts.iter().all(|(_, worse)| *worse <= 2), "{counts:?}");
    // A bug that makes many rows slightly worse shows in their sum.
    let all: u64 = counts.iter().map(|(_, worse)| worse).sum();
    assert!(all * 20 <= rows.len() as u64 * pairs, "{all} of {pairs} each: {counts:?}");
}

#[test]
fn a_new_leak_is_seen() {
    for pair in leaking_anew().iter().filter(|pair| pair.new >= 20).step_by(one_of(2)) {
        assert!(worse(pair, 4) == 4, "{}", pair.name);
    }
}
