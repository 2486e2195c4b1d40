//! Allocations that ended in parts count as one.

use handlescope_model::history::Resource;
use handlescope_model::tables::{ResourceEnd, ResourceKind};
use handlescope_model::{AllocatorIdx, StackIdx};

use crate::criteria::WhyCriteria;
use crate::fixture::Fixture;
use crate::fixture::SavedTrace;
use crate::why::{Diagnosis, Suspect, why};
use handlescope_session::cancel::Cancel;

const PAGE: i64 = 4096;

/// One second, in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// A one-minute trace in which a single stack allocates pages.
struct Pages {
    fixture: Fixture,
    commit: AllocatorIdx,
    reserve: AllocatorIdx,
    stack: Option<StackIdx>,
}

/// A part: its pages, how it ended, and the second it ended in.
type Part = (i64, ResourceEnd, i64);

impl Pages {
    fn new() -> Self {
        let mut fixture = Fixture::new();
        let start = fixture.info.session_start_filetime;
        fixture.info.session_end_filetime = Some(start + 60 * 10_000_000);
        let commit = fixture.allocator(ResourceKind::Commit, "VirtualAlloc");
        let reserve = fixture.allocator(ResourceKind::Reserve, "VirtualAlloc");
        let stack = fixture.stack(&["app.exe!Grow"]);
        Self { fixture, commit, reserve, stack }
    }

    /// Adds an allocation at a page, made in the given second, with its parts.
    fn add(&mut self, allocator: AllocatorIdx, page: i64, second: i64, parts: &[Part]) {
        let mut first: Option<u32> = None;
        for (pages, end, end_second) in parts {
            let has_ended = *end != ResourceEnd::Open;
            let part = self.fixture.resource(Resource {
                allocator,
                key: (page * PAGE) as u64,
                size: pages * PAGE,
                part_of: first,
                time_ns: second * SECOND,
                stack: self.stack,
                end: end.code(),
                end_time_ns: has_ended.then_some(end_second * SECOND),
                ..Resource::default()
            });
            first = first.or(Some(part));
        }
    }

    fn suspect(self, kind: ResourceKind) -> Option<Suspect> {
        let saved: SavedTrace = self.fixture.save();
        let (sources, cancel) = ([saved.source()], Cancel::default());
        let answers = why(&sources, &WhyCriteria::default(), &saved, &cancel).expect("an answer");
        let mut suspects = answers.into_iter().flat_map(|answer| answer.suspects);
        suspects.find(|suspect| suspect.type_name == kind.name())
    }
}

fn diagnosis<'a>(suspect: Option<&'a Suspect>, cause: &str) -> Option<&'a Diagnosis> {
    suspect?.diagnoses.iter().find(|diagnosis| diagnosis.cause == cause)
}

use ResourceEnd::{AtExit, Freed, Open};

#[test]
fn an_allocation_in_parts_has_one_life_that_ends_with_the_last_of_them() {
    let mut pages = Pages::new();
    for n in 0..10 {
        let parts = [(1, Freed, n + 2), (1, Freed, n + 3), (2, Open, 0)];
        pages.add(pages.commit, 100 * n, n + 1, &parts);
    }
    // Freed in two steps, the second one five seconds after the allocation.
    pages.add(pages.commit, 5000, 1, &[(1, Freed, 3), (1, Freed, 6)]);
    let suspect = pages.suspect(ResourceKind::Commit).expect("a suspect");
    assert_eq!((suspect.counts.opened, suspect.counts.leaked), (11, 10));
    let evidence = suspect.growth.evidence;
    assert_eq!((evidence.opened, evidence.closed, evidence.unreleased), (11, 1, 10));
    assert_eq!(evidence.mean_lifetime_ns, Some(5 * SECOND));
    let bytes = suspect.bytes.expect("bytes");
    assert_eq!((bytes.unreleased, bytes.allocated), (20 * PAGE, 42 * PAGE));
    let freed = diagnosis(Some(&suspect), "sometimes_freed").expect("some are freed");
    assert_eq!(freed.count, 10);
    assert_eq!(freed.sentence(&[]), "1 of 11 is freed");
}

#[test]
fn an_allocation_freed_in_parts_by_process_exit_counts_once() {
    let mut pages = Pages::new();
    for n in 0..3 {
        let parts = [(1, Freed, n + 2), (1, AtExit, 50), (1, AtExit, 50)];
        pages.add(pages.commit, 100 * n, n + 1, &parts);
    }
    let suspect = pages.suspect(ResourceKind::Commit).expect("a suspect");
    assert_eq!((suspect.counts.opened, suspect.counts.closed_at_exit), (3, 3));
    assert_eq!(suspect.growth.evidence.unreleased, 3);
    let exits = diagnosis(Some(&suspect), "exit_only").expect("ends with the process");
    assert_eq!((exits.count, exits.sentence(&[]).as_str()), (3, "freed only by process exit"));
    let freed = diagnosis(Some(&suspect), "sometimes_freed").expect("some are freed");
    assert_eq!(freed.sentence(&[]), "none freed completely, some in part");
}

#[test]
fn a_reservation_is_used_when_anything_in_it_was_committed_wherever_its_parts_lie() {
    let mut pages = Pages::new();
    for n in 0..4 {
        // The first 12 of 16 pages were released; what remains begins after the first address.
        pages.add(pages.reserve, 100 * n, n + 1, &[(12, Freed, n + 3), (4, Open, 0)]);
        pages.add(pages.commit, 100 * n + 13, n + 2, &[(1, Freed, n + 4)]);
    }
    let suspect = pages.suspect(ResourceKind::Reserve).expect("a suspect");
    assert!(diagnosis(Some(&suspect), "reserve_without_commit").is_none(), "{suspect:?}");
}

#[test]
fn a_reservation_without_commit_counts_once_with_the_bytes_that_are_left() {
    let mut pages = Pages::new();
    for n in 0..4 {
        let parts = [(2, Freed, n + 3), (6, Open, 0), (8, Open, 0)];
        pages.add(pages.reserve, 100 * n, n + 1, &parts);
        // One commit is at a later address, the other was made before the reservation.
        pages.add(pages.commit, 100 * n + 16, n + 2, &[(1, Freed, n + 4)]);
        pages.add(pages.commit, 100 * n + 5, n, &[(1, Freed, n)]);
    }
    let suspect = pages.suspect(ResourceKind::Reserve);
    let unused = diagnosis(suspect.as_ref(), "reserve_without_commit").expect("unused");
    assert_eq!(unused.count, 4);
    assert_eq!(unused.sentence(&[]), "reserved but never committed (224.00 KiB)");
}
