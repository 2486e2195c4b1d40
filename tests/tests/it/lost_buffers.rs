//! Handles with a close in a lost buffer count as closed unseen if something else proves the close, and leak if nothing
//! does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::rules::OPENING;
use handlescope_model::tables::{ClosedUnseen, Events, Losses};
use handlescope_model::{Cancel, Trace};
use handlescope_sources::extract;
use handlescope_tests::binary::run_over;
use handlescope_tests::corrupt::{buffers, without};
use handlescope_tests::file::{FileOptions, RawClock};
use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::rng::Rng;
use handlescope_tests::scenario::{MappedView, TraceBuilder};
use handlescope_tests::thorough::one_of;
use serde_json::Value;

const MS: i64 = 1_000_000;
const EVENT: u16 = 16;
const OBJECT: u64 = 0xffff_8100_0000_1000;

/// The life of a handle or view, according to the extract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExtractedLife {
    is_leaked: bool,
    closed_ns: Option<i64>,
    unseen: Option<(ClosedUnseen, i64, i64)>,
}

/// An extract, by the times at which handles and views were opened.
struct ExtractedLives {
    lives: BTreeMap<i64, ExtractedLife>,
    existing: usize,
    losses: usize,
}

impl ExtractedLives {
    fn new(etl: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
        std::fs::write(&input, etl).unwrap();
        let options = ExtractOptions::default();
        extract(&input, &output, options, &NoObserver, &Cancel::default()).unwrap();
        Self::read(&output)
    }

    fn read(archive: &Path) -> Self {
        let trace = Trace::open(archive).unwrap();
        let (kind, time) =
            (trace.values(Events::kind).unwrap(), trace.values(Events::time_ns).unwrap());
        let leaked = trace.values(Events::leaked).unwrap();
        let closing = trace.values(Events::closing_event).unwrap();
        let unseen = trace.values(Events::closed_unseen).unwrap();
        let after = trace.values(Events::closed_after_ns).unwrap();
        let before = trace.values(Events::closed_before_ns).unwrap();
        let opening = (0..kind.len()).filter(|row| OPENING.contains_code(kind.values()[*row]));
        let life = |row: usize| ExtractedLife {
            is_leaked: leaked.get(row),
            closed_ns: closing.get(row).and_then(|event| time.get(event.row())),
            unseen: unseen.get(row).map(|code| {
                let evidence = ClosedUnseen::from_code(code).unwrap();
                (evidence, after.get(row).unwrap(), before.get(row).unwrap())
            }),
        };
        Self {
            lives: opening.map(|row| (time.get(row).unwrap(), life(row))).collect(),
            existing: trace.event_order().unwrap().listed.len(),
            losses: trace.values(Losses::what).unwrap().len(),
        }
    }

    fn leaked(&self) -> Vec<i64> {
        self.lives.iter().filter(|(_, life)| life.is_leaked).map(|(time, _)| *time).collect()
    }

    fn evidence(&self, opened_ms: i64) -> Option<ClosedUnseen> {
        self.lives[&(opened_ms * MS)].unseen.map(|(evidence, ..)| evidence)
    }
}

/// Allocates handle values and addresses; freed ones are reused first.
#[derive(Default)]
struct Free {
    free: Vec<u64>,
    next: u64,
}

impl Free {
    fn take(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next
        })
    }
}

const PROCESSES: usize = 3;

/// Builds programs that open and close handles; a share of the handles is never closed. The rundown at the end is
/// complete.
fn programs(seed: u64, leaks_percent: u32, clock: RawClock) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut trace = TraceBuilder::with_options(FileOptions {
        buffer_size: 4096,
        clock,
        ..FileOptions::default()
    });
    trace.process(4, "System");
    for process in 0..PROCESSES {
        trace.process(1000 + process as u32, &format!("app{process}.exe"));
    }
    trace.object_type(EVENT, "Event");
    let mut values: [Free; PROCESSES] = Default::default();
    let mut objects = Free::default();
    let mut open: Vec<(usize, u64, u64)> = Vec::new();
    let mut kept = Vec::new();
    for step in 1..2500_i64 {
        let ns = step * MS;
        let cpu = rng.below(4) as u16;
        let caller = |process: usize| (1000 + process as u32, 1, cpu);
        let address = |object: u64| OBJECT + 0x100 * object;
        if open.len() < 20 || rng.percent(50) {
            let process = rng.index(PROCESSES);
            let (value, object) = (values[process].take(), objects.take());
            trace.create_handle(ns, caller(process), address(object), 4 * value as u32, EVENT);
            let is_kept = rng.percent(leaks_percent);
            if is_kept { &mut kept } else { &mut open }.push((process, value, object));
        } else {
            let (process, value, object) = open.swap_remove(rng.index(open.len()));
            values[process].free.push(value);
            objects.free.push(object);
            trace.close_handle(ns, caller(process), address(object), 4 * value as u32, EVENT, "");
        }
    }
    for (process, value, object) in open.into_iter().chain(kept) {
        let address = OBJECT + 0x100 * object;
        trace.handle_rundown_end(1000 + process as u32, address, 4 * value as u32, EVENT, "");
    }
    trace.to_bytes()
}

#[test]
fn whatever_buffer_is_lost_the_leaks_of_the_others_are_those_of_the_whole_trace() {
    let (mut was_leaked, mut unseen, mut wrong, mut tried) = (0, 0, 0, 0);
    let mut unproven = BTreeSet::new();
    for (seed, percent) in [(1, 0), (2, 3), (3, 10)] {
        let whole = programs(seed, percent, FileOptions::default().clock);
        let truth = ExtractedLives::new(&whole);
        assert!(truth.losses == 0 && truth.lives.values().all(|life| life.unseen.is_none()));
        let places = buffers(&whole);
        for place in places[1..].iter().step_by(one_of(3)) {
            tried += 1;
            let extract = ExtractedLives::new(&without(&whole, place.clone()));
            assert!(extract.losses > 0, "{place:?} is known to be lost");
            let has_rundown = extract.existing == truth.existing;
            for (opened, life) in &extract.lives {
                let right = truth.lives[opened];
                let known = (seed, place, opened, life, right);
                assert!(life.is_leaked || !right.is_leaked, "a leak is hidden: {known:?}");
                // If both the close and the next open are lost, the next close looks like the handle's own.
                let is_early = life.closed_ns.zip(right.closed_ns).is_some_and(|(a, b)| a < b);
                assert!(!is_early, "closed before it was: {known:?}");
                let is_false = life.is_leaked && !right.is_leaked;
                if is_false && has_rundown {
                    unproven.insert((seed, place.start));
                }
                wrong += usize::from(is_false);
                if let (Some((_, after, before)), Some(closed)) = (life.unseen, right.closed_ns) {
                    assert!((after..=before).contains(&closed), "{known:?}");
                    unseen += 1;
                }
                was_leaked += usize::from(life.is_leaked || life.unseen.is_some());
            }
        }
    }
    // According to the buffer numbers, a lost buffer may have held the beginning of the rundown. That is true for the
    // last buffer of each processor: three of the about thirty buffers in a trace.
    assert!(4 * unproven.len() <= tried, "{unproven:?} of {tried}");
    assert!(unseen > 100 && was_leaked > 2 * unseen / 3, "{unseen} of {was_leaked}");
    assert!(
        wrong < unseen / 4,
        "{wrong} false leaks where the rundown is lost, {unseen} closed unseen"
    );
}

/// Builds System and two programs; a buffer holds only a few events.
fn small(options: FileOptions) -> TraceBuilder {
    let mut trace = TraceBuilder::with_options(FileOptions { cpus: 1, ..options });
    trace.process(4, "System");
    trace.process(700, "app.exe");
    trace.process(800, "child.exe").parent(700).creator_thread(1).started(20 * MS);
    trace.object_type(EVENT, "Event");
    trace
}

/// Opens a handle at 10 ms. Its value is reused for another object at 90 ms, and a handle opened at 95 ms stays open.
fn reused(options: FileOptions) -> TraceBuilder {
    let mut trace = small(options);
    trace.create_handle(10 * MS, (700, 1), OBJECT, 4, EVENT);
    trace.create_handle(90 * MS, (700, 1), OBJECT + 0x100, 4, EVENT);
    trace.close_handle(92 * MS, (700, 1), OBJECT + 0x100, 4, EVENT, "");
    trace.create_handle(95 * MS, (700, 1), OBJECT + 0x200, 8, EVENT);
    trace.handle_rundown_end(700, OBJECT + 0x300, 12, EVENT, "");
    trace
}

#[test]
fn without_a_loss_a_value_that_is_opened_again_and_a_rundown_without_it_close_nothing() {
    let extract = ExtractedLives::new(&reused(FileOptions::default()).to_bytes());
    assert_eq!((extract.leaked(), extract.losses), (vec![10 * MS, 95 * MS], 0));
}

#[test]
fn a_loss_that_may_be_anywhere_makes_reuse_evidence_but_the_rundown_none() {
    for options in [
        FileOptions { events_lost: 3, ..FileOptions::default() },
        FileOptions { buffers_lost: 1, ..FileOptions::default() },
    ] {
        let extract = ExtractedLives::new(&reused(options).to_bytes());
        assert_eq!(extract.evidence(10), Some(ClosedUnseen::Reused));
        assert_eq!(extract.lives[&(10 * MS)].unseen.unwrap().1, 10 * MS, "it may be anywhere");
        assert_eq!(extract.leaked(), [95 * MS], "it may be the rundown that is incomplete");
    }
}

#[test]
fn a_marked_buffer_lost_events_between_the_one_before_and_its_end() {
    for flags in [2, 4] {
        // The only buffer of events is marked.
        let extract = ExtractedLives::new(
            &reused(FileOptions { loss_flags: flags, ..FileOptions::default() }).to_bytes(),
        );
        assert_eq!(extract.evidence(10), Some(ClosedUnseen::Reused));
        assert_eq!(extract.leaked(), [95 * MS]);
    }
}

/// Builds a trace on one processor and removes a buffer that has only irrelevant events from 40 to 60 ms.
fn with_hole(add: impl FnOnce(&mut TraceBuilder)) -> Vec<u8> {
    let mut trace = small(FileOptions { buffer_size: 1024, ..FileOptions::default() });
    // A buffer full of these lasts six milliseconds.
    for quarter in 1..400 {
        trace.reference(quarter * MS / 4 + 1000, (4, 9), OBJECT + 0xFF00, b"Dflt", 1);
    }
    add(&mut trace);
    let whole = trace.to_bytes();
    let raw = |ms: i64| trace.options().raw(ms * MS);
    let first_time = |place: &std::ops::Range<usize>| {
        // The time is at offset 8 in the short headers of rundowns (types 0x10 and 0x11), otherwise at 16.
        let is_short = matches!(whole[place.start + 72 + 2], 0x10 | 0x11);
        let at = place.start + 72 + if is_short { 8 } else { 16 };
        i64::from_le_bytes(whole[at..at + 8].try_into().unwrap())
    };
    let places = buffers(&whole);
    let lost = places[1..].iter().find(|place| first_time(place) > raw(40)).unwrap();
    assert!(first_time(lost) < raw(60));
    without(&whole, lost.clone())
}

#[test]
fn a_handle_is_closed_unseen_only_where_the_loss_lies_between_its_open_and_the_evidence() {
    let open = |trace: &mut TraceBuilder, ms: i64, value: u32| {
        trace.create_handle(ms * MS, (700, 1), OBJECT + 0x100 * ms as u64, value, EVENT);
    };
    let extract = ExtractedLives::new(&with_hole(|trace| {
        open(trace, 10, 4);
        open(trace, 20, 4); // before the loss
        open(trace, 80, 4); // after the loss
        open(trace, 85, 4);
        open(trace, 15, 8); // not in the rundown
        open(trace, 16, 12); // in the rundown
        open(trace, 17, 16); // in the rundown, but for another object
        open(trace, 86, 20); // not in the rundown, opened after the loss
        for (value, ms) in [(4, 85), (12, 16), (16, 99)] {
            trace.handle_rundown_end(700, OBJECT + 0x100 * ms, value, EVENT, "");
        }
    }));
    use ClosedUnseen::{NotInRundown, Reused};
    let evidence = [10, 20, 80, 85, 15, 16, 17, 86].map(|ms| extract.evidence(ms));
    let expected =
        [None, Some(Reused), None, None, Some(NotInRundown), None, Some(NotInRundown), None];
    assert_eq!(evidence, expected);
    assert_eq!(extract.leaked(), [10, 16, 80, 85, 86].map(|ms| ms * MS));
    let (_, after, before) = extract.lives[&(20 * MS)].unseen.unwrap();
    assert!(after > 30 * MS && before < 70 * MS, "{after} to {before} is when the buffer was lost");
}

#[test]
fn a_handle_that_is_closed_unseen_leaves_the_later_close_of_the_value_to_the_later_handle() {
    let extract = ExtractedLives::new(&with_hole(|trace| {
        for ms in [10, 80] {
            trace.create_handle(ms * MS, (700, 1), OBJECT, 4, EVENT);
        }
        trace.create_handle(12 * MS, (800, 1), OBJECT, 4, EVENT);
        trace.close_handle(90 * MS, (700, 1), OBJECT, 4, EVENT, "");
    }));
    assert_eq!(extract.evidence(10), Some(ClosedUnseen::Reused));
    assert_eq!(extract.lives[&(80 * MS)].closed_ns, Some(90 * MS));
    assert_eq!(extract.leaked(), [12 * MS], "no rundown of its process: it may be open");
}

#[test]
fn a_close_of_another_object_shows_that_the_value_was_closed_before() {
    let extract = ExtractedLives::new(&with_hole(|trace| {
        trace.create_handle(10 * MS, (700, 1), OBJECT, 4, EVENT);
        trace.create_handle(11 * MS, (700, 1), OBJECT + 0x100, 8, EVENT);
        // Its create was lost, too.
        trace.close_handle(90 * MS, (700, 1), OBJECT + 0x100, 4, EVENT, "");
    }));
    assert_eq!(extract.evidence(10), Some(ClosedUnseen::Reused));
    assert_eq!(extract.leaked(), [11 * MS]);
}

#[test]
fn a_child_reuses_the_handle_it_inherited_and_not_that_of_its_parent() {
    let duplicate = DuplicateRecord {
        object: OBJECT,
        source_handle: 4,
        target_handle: 4,
        target_pid: 700,
        type_id: EVENT,
        source_pid: Some(700),
    };
    let extract = ExtractedLives::new(&with_hole(|trace| {
        trace.create_handle(10 * MS, (700, 1), OBJECT, 4, EVENT);
        trace.duplicate_handle(11 * MS, (700, 1), duplicate);
        trace.create_handle(80 * MS, (800, 1), OBJECT + 0x100, 4, EVENT);
    }));
    assert_eq!(extract.evidence(11), Some(ClosedUnseen::Reused));
    assert_eq!(extract.leaked(), [10 * MS, 80 * MS]);
}

#[test]
fn a_view_at_the_address_of_another_and_the_end_of_a_process_are_evidence_too() {
    let view = |base| MappedView { base, size: 0x1000, pid: 700, ..MappedView::default() };
    let end_of_sweep = 90 * MS + 1000;
    let extract = |last_ms: i64| {
        ExtractedLives::new(&with_hole(|trace| {
            trace.map(10 * MS, (700, 1), view(0x1000_0000));
            trace.map(11 * MS, (700, 1), view(0x2000_0000));
            trace.map(last_ms * MS, (700, 1), view(0x4000_0000));
            trace.map(80 * MS, (700, 1), view(0x1000_0000));
            // Its handles are swept when it exits; of the two opened before the loss, one is still there.
            trace.process(900, "swept.exe").started(5 * MS).ended(90 * MS).unswept();
            trace.create_handle(12 * MS, (900, 1), OBJECT, 4, EVENT);
            trace.create_handle(13 * MS, (900, 1), OBJECT + 0x100, 8, EVENT);
            trace.create_handle(85 * MS, (900, 1), OBJECT + 0x200, 12, EVENT);
            trace.close_handle(end_of_sweep, (900, 1), OBJECT + 0x100, 8, EVENT, "");
            trace.map(14 * MS, (900, 1), MappedView { pid: 900, ..view(0x3000_0000) });
            // No close belongs to its exit: it may have left everything open.
            trace.process(910, "killed.exe").started(5 * MS).ended(91 * MS).unswept();
            trace.create_handle(15 * MS, (910, 1), OBJECT + 0x300, 4, EVENT);
        }))
    };
    // The trace may end in the middle of the sweep.
    assert_eq!(extract(92).evidence(12), None);
    let extract = extract(150);
    assert_eq!(extract.evidence(10), Some(ClosedUnseen::Reused));
    assert_eq!(extract.evidence(12), Some(ClosedUnseen::ProcessEnded));
    let exit = extract.lives[&(13 * MS)];
    assert_eq!((exit.closed_ns, exit.unseen), (Some(end_of_sweep), None));
    assert_eq!(extract.leaked(), [11, 14, 15, 80, 85, 150].map(|ms| ms * MS));
}

#[test]
fn a_view_that_the_rundown_at_its_end_does_not_list_was_unmapped() {
    let view = |base, pid| MappedView { base, size: 0x1000, pid, ..MappedView::default() };
    let add = |trace: &mut TraceBuilder| {
        trace.map(10 * MS, (700, 1), view(0x1000_0000, 700));
        trace.map(11 * MS, (700, 1), view(0x2000_0000, 700));
        trace.map(22 * MS, (800, 1), view(0x1000_0000, 800));
        trace.map(80 * MS, (700, 1), view(0x3000_0000, 700));
    };
    let extract = ExtractedLives::new(&with_hole(|trace| {
        add(trace);
        trace.view_rundown_end(view(0x2000_0000, 700));
    }));
    assert_eq!(extract.evidence(10), Some(ClosedUnseen::NotInRundown));
    assert_eq!(extract.leaked(), [11, 22, 80].map(|ms| ms * MS), "800 is not listed");
    let without_rundown = ExtractedLives::new(&with_hole(add));
    assert_eq!(without_rundown.leaked(), [10, 11, 22, 80].map(|ms| ms * MS));
}

#[test]
fn a_rundown_of_which_something_is_missing_shows_nothing() {
    let mut trace = small(FileOptions { buffer_size: 1024, ..FileOptions::default() });
    trace.create_handle(10 * MS, (700, 1), OBJECT, 4, EVENT);
    for value in 0..100 {
        trace.handle_rundown_end(
            700,
            OBJECT + 0x100 * u64::from(value + 1),
            4 * value + 8,
            EVENT,
            "",
        );
    }
    let whole = trace.to_bytes();
    let rundown = ExtractedLives::new(&whole).existing;
    let mut is_partial = 0;
    for place in &buffers(&whole)[1..] {
        let extract = ExtractedLives::new(&without(&whole, place.clone()));
        if extract.existing < rundown && extract.lives.contains_key(&(10 * MS)) {
            assert_eq!(extract.leaked(), [10 * MS], "{place:?}");
            is_partial += 1;
        }
    }
    assert!(is_partial > 2);
}

#[test]
fn answers_count_what_was_closed_unseen_by_itself_and_say_why() {
    let trace = reused(FileOptions { events_lost: 3, ..FileOptions::default() });
    let run = run_over(
        &trace,
        ".dump ObjectRef -json\n.dump ObjectRef -Leak -ShowTotal Total -json\n\
         .dump ObjectRef -GroupBy process -json\n.dump Stats -json\n\
         .sql SELECT leaked, \"end\" AS end_, ended_ns, ended_after_ns FROM handles WHERE ended_after_ns IS NOT NULL -json\n\
         .dump ObjectRef -Leak\n.dump ObjectRef\n",
    )
    .ok();
    let mut documents = serde_json::Deserializer::from_str(&run.stdout).into_iter::<Value>();
    let mut next = || documents.next().unwrap().unwrap();
    let objects = next();
    let event = &objects["objects"]
        .as_array()
        .unwrap()
        .iter()
        .find(|o| o["pointer"] == "0xFFFF810000001000");
    let event = &event.unwrap()["events"][0];
    assert_eq!(
        (event["closed_unseen"].as_str(), event["leaked"].as_bool()),
        (Some("reused"), Some(false))
    );
    assert_eq!(
        (event["closed_after_ns"].as_i64(), event["closed_before_ns"].as_i64()),
        (Some(10 * MS), Some(90 * MS))
    );
    assert_eq!(objects["totals"]["closed_unseen"], 1);
    assert_eq!(objects["caveats"][1]["kind"], "closed_unseen", "{}", objects["caveats"]);
    let leaks = next();
    assert_eq!(
        (&leaks["totals"]["closed_unseen"], &leaks["totals"]["leaked_handles"]),
        (&1.into(), &1.into())
    );
    assert_eq!(leaks["not_closed"]["sum"], 1);
    assert_eq!(next()["groups"][0]["closed_unseen"], 1);
    let stats = next();
    assert_eq!(stats["files"][0]["closed_unseen"], 1);
    assert_eq!(stats["files"][0]["losses"][0]["what"], "events_lost");
    let row = &next()["rows"][0];
    assert_eq!((&row["end_"], &row["leaked"]), (&"reused".into(), &false.into()));
    assert_eq!((&row["ended_after_ns"], &row["ended_ns"]), (&(10 * MS).into(), &(90 * MS).into()));
    assert!(run.stdout.contains("1 handle or view was closed unseen"), "{}", run.stdout);
    assert!(run.stdout.contains("closed unseen between"), "{}", run.stdout);
    assert!(run.stderr.contains("1 handle or view was closed unseen"), "{}", run.stderr);
}
