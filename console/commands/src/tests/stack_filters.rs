//! Tests of stack filters.

use super::{Ask as _, arguments};
use std::sync::Mutex;

use handlescope_model::guard::lock;
use handlescope_model::tables::Event;

use handlescope_symbols::{CodeAddress, FrameChain, ModuleIdentity, ResolvedFrame};

use handlescope_query::ModuleCriteria;
use handlescope_query::fixture::{APP, CHILD, Fixture, SavedTrace, With, close, create};
use handlescope_query::{ExitStacks, FrameNames, QueryError, object_ref};
use handlescope_session::cancel::Cancel;
use handlescope_session::trace::CaveatKind;

/// Creates one object for each pair of stacks: created on the first, closed on the second.
fn trace(pairs: &[(&[&str], &[&str])]) -> SavedTrace {
    let mut fixture = Fixture::new();
    let events: Vec<Vec<Event>> = pairs
        .iter()
        .map(|(first, last)| {
            let (first, last) = (fixture.stack(first), fixture.stack(last));
            vec![create(APP, 1, 4).on(first), close(APP, 2, 4).on(last)]
        })
        .collect();
    for events in events {
        fixture.event_object(events);
    }
    fixture.save()
}

const OPEN: &[&str] = &["nt.exe!NtCreateEvent", "app.exe!Cache::Open", "app.exe!main"];
const CLOSE: &[&str] = &["nt.exe!NtClose", "app.exe!Cache::Close", "app.exe!main"];
const EXIT: &[&str] = &["nt.exe!NtTerminateProcess"];

#[test]
fn stacks_are_matched_line_by_line() {
    let saved = trace(&[(OPEN, CLOSE), (CLOSE, EXIT)]);
    assert_eq!(saved.ids("-CreateStack *Cache::Open"), [1]);
    assert_eq!(saved.ids("-CreateStack app.exe!main"), [1, 2]);
    assert_eq!(saved.ids("-CreateStack *NtCreate*main*"), [0_u64; 0]);
    assert_eq!(saved.ids("-CreateStack !*Open"), [2]);
    assert_eq!(saved.ids("-DestroyStack *NtTerminateProcess*"), [2]);
}

#[test]
fn a_stack_filter_removes_events_and_objects_without_any() {
    let saved = trace(&[(OPEN, CLOSE), (OPEN, EXIT)]);
    assert_eq!(saved.kinds("-StackFilter *NtClose"), [(1, vec!["handle_close"])]);
    let (created, destroyed) = saved.ask("-StackFilter *NtClose", |answer| {
        (answer.totals().objects_created, answer.totals().objects_destroyed)
    });
    assert_eq!((created, destroyed), (0, 1));
}

#[test]
fn a_filter_asked_again_has_the_same_answer_with_other_filters_too() {
    let pairs: &[(&[&str], &[&str])] =
        &[(OPEN, CLOSE), (&["app.exe+0x10"], EXIT), (CLOSE, &["a.dll+0x1"])];
    let saved = trace(pairs);
    let texts = |saved: &SavedTrace, options: &str| {
        saved.ask(options, |answer| {
            answer.files[0]
                .about
                .caveats
                .iter()
                .map(|caveat| caveat.text.clone())
                .collect::<Vec<_>>()
        })
    };
    for filter in ["-StackFilter *Open", "-CreateStack *Open", "-StackFilter !*Open"] {
        for more in ["", "-MinMaxId 2 2", "-MinMaxId 1 2", ""] {
            let options = format!("{more} {filter}");
            let fresh = trace(pairs);
            assert_eq!(saved.kinds(&options), fresh.kinds(&options), "{options}");
            assert_eq!(texts(&saved, &options), texts(&fresh, &options), "{options}");
        }
    }
}

#[test]
fn inlined_functions_are_matched_as_lines_of_their_own() {
    let saved = trace(&[(&["app.exe!Find < Cache::Open", "app.exe!main"], CLOSE)]);
    for filter in ["app.exe!Find", "app.exe!Cache::Open", "app.exe!main", "!app.exe!Close"] {
        assert_eq!(saved.ids(&format!("-CreateStack {filter}")), [1], "{filter}");
    }
    for filter in ["!*Find*", "!*Open", "*inlined*", "*<*"] {
        assert_eq!(saved.ids(&format!("-CreateStack {filter}")), [0_u64; 0], "{filter}");
    }
}

#[test]
fn an_event_without_stack_has_the_empty_text() {
    let mut fixture = Fixture::new();
    fixture.event_object(vec![create(APP, 1, 4)]);
    let saved = fixture.save();
    assert_eq!(saved.ids("-CreateStack *x*"), [0_u64; 0]);
    assert_eq!(saved.ids("-CreateStack !*x*"), [1]);
    assert_eq!(saved.ids("-StackFilter *"), [1]);
    // It never ended, so it has no stack to compare.
    assert_eq!(saved.ids("-DestroyStack !*x*"), [0_u64; 0]);
}

#[test]
fn frames_without_a_name_are_matched_by_place_and_those_outside_of_modules_by_a_word() {
    let saved = trace(&[(&["nosym.dll+0x1a2b"], CLOSE), (&["0x1F4B0000123"], CLOSE)]);
    assert_eq!(saved.ids("-CreateStack nosym.dll+0x1A2B"), [1]);
    assert_eq!(saved.ids("-CreateStack <UnknownMethod>"), [2]);
    assert_eq!(saved.ids("-CreateStack *1F4B*"), [0_u64; 0]);
}

#[test]
fn a_module_is_asked_once_with_ascending_addresses_and_never_again() {
    let saved = trace(&[(OPEN, CLOSE), (OPEN, EXIT)]);
    assert_eq!(saved.ids("-CreateStack *Open"), [1, 2]);
    let asked = saved.take_requests();
    let modules: Vec<_> =
        asked.iter().map(|(module, rvas)| (module.as_str(), rvas.len())).collect();
    assert_eq!(modules, [("nt.exe", 1), ("app.exe", 2)]);
    assert!(asked.iter().all(|(_, rvas)| rvas.is_sorted()));
    assert_eq!(saved.ids("-CreateStack *main"), [1, 2]);
    assert!(saved.take_requests().is_empty());
}

#[test]
fn only_stacks_of_objects_that_passed_the_other_filters_are_resolved() {
    let saved = trace(&[(OPEN, CLOSE), (EXIT, &["far.dll!Away"])]);
    assert_eq!(saved.ids("-MinMaxId 1 1 -StackFilter *NtClose"), [1]);
    assert_eq!(saved.ids("-pn absent -StackFilter *NtClose"), [0_u64; 0]);
    let asked = saved.take_requests();
    assert!(asked.iter().all(|(module, _)| module != "far.dll"), "{asked:?}");
}

#[test]
fn a_filter_that_passes_everything_needs_no_names() {
    let saved = trace(&[(OPEN, CLOSE)]);
    assert_eq!(saved.ids("-CreateStack * -StackFilter *"), [1]);
    assert!(saved.take_requests().is_empty());
}

/// Creates a handle that only process exit closes, on this stack; child.exe ends at 9,000 µs.
fn closed_at_exit(at: i64, stack: &[&str]) -> SavedTrace {
    let mut fixture = Fixture::new();
    let stack = fixture.stack(stack);
    let mut events = vec![create(CHILD, 1, 4), close(CHILD, at, 4).on(stack)];
    events.iter_mut().for_each(|event| event.closed_at_exit = true);
    fixture.event_object(events);
    fixture.save()
}

#[test]
fn stacks_confirm_closes_at_exit_or_speak_against_them() {
    let asked = |at, stack| {
        closed_at_exit(at, stack).ask("-LeakAtExit -ShowStack", |answer| {
            let ExitStacks { closes, confirmed, doubtful } = answer.exit_stacks().expect("names");
            let doubts = answer.files[0]
                .about
                .caveats
                .iter()
                .filter(|caveat| caveat.kind == CaveatKind::ExitsDoubtful)
                .count();
            assert_eq!(doubts as u64, doubtful);
            (closes, confirmed, doubtful)
        })
    };
    assert_eq!(asked(3, &["nt.exe!ObClose", "nt.exe!ExSweepHandleTable"]), (1, 1, 0));
    assert_eq!(asked(3, &["nt.exe!ObClose", "app.exe!main"]), (1, 0, 1));
    assert_eq!(asked(3, &["nt.exe!ObClose", "app.exe!ObKillProcess"]), (1, 0, 1));
    assert_eq!(asked(3, &["nt.exe!ObClose", "nt.exe+0x1234"]), (1, 0, 0), "not all have names");
    assert_eq!(asked(3, &[]), (1, 0, 0), "no stack");
    assert_eq!(asked(9_000, &["nt.exe!ObClose"]), (1, 0, 0), "after the end");
}

#[test]
fn without_names_or_closes_at_exit_no_stack_is_asked() {
    let saved = closed_at_exit(3, &["nt.exe!ObClose"]);
    for options in ["-LeakAtExit", "-Leak -ShowStack", "-ShowStack"] {
        assert!(saved.ask(options, |answer| answer.exit_stacks().is_none()), "{options}");
    }
}

/// Names the frames of the first module, and then asks to stop.
struct Impatient(Cancel);

impl FrameNames for Impatient {
    fn resolve(&self, requests: &[(ModuleIdentity, Vec<CodeAddress>)]) -> Vec<Vec<FrameChain>> {
        self.0.cancel();
        let function = "f".into();
        let frame = ResolvedFrame {
            source: None,
            function,
            offset: 0,
            file: None,
            line: None,
            inlined: false,
        };
        let chain = |at: usize| match at {
            0 => FrameChain::from([frame.clone()]),
            _ => FrameChain::default(),
        };
        requests.iter().enumerate().map(|(at, (_, rvas))| vec![chain(at); rvas.len()]).collect()
    }
}

#[test]
fn a_cancelled_search_for_names_goes_on_where_it_stopped() {
    let saved = trace(&[(OPEN, CLOSE)]);
    let sources = [saved.source()];
    let args = arguments("-ShowStack");
    let cancel = Cancel::default();
    let impatient = Impatient(cancel.clone());
    let answer = object_ref(&sources, &args, &impatient, &cancel);
    assert!(matches!(answer, Err(QueryError::Cancelled(_))));
    cancel.reset();
    object_ref(&sources, &args, &saved, &cancel).expect("an answer");
    // nt.exe came first and is known.
    let asked: Vec<String> = saved.take_requests().into_iter().map(|(module, _)| module).collect();
    assert_eq!(asked, ["app.exe"]);
}

/// Names nothing, but records the modules, and which addresses are return addresses.
#[derive(Default)]
struct AddressNotes(Mutex<Vec<(String, Vec<bool>)>>);

impl FrameNames for AddressNotes {
    fn resolve(&self, requests: &[(ModuleIdentity, Vec<CodeAddress>)]) -> Vec<Vec<FrameChain>> {
        lock(&self.0).extend(requests.iter().map(|(module, addresses)| {
            (module.name.clone(), addresses.iter().map(|address| address.is_return).collect())
        }));
        let none = |addresses: &Vec<CodeAddress>| vec![FrameChain::default(); addresses.len()];
        requests.iter().map(|(_, addresses)| none(addresses)).collect()
    }
}

#[test]
fn calls_return_to_every_frame_that_is_not_the_innermost_one_of_all_its_stacks() {
    let saved = trace(&[(OPEN, CLOSE), (&OPEN[1..], EXIT)]);
    let (notes, cancel) = (AddressNotes::default(), Cancel::default());
    object_ref(&[saved.source()], &arguments("-ShowStack"), &notes, &cancel).expect("an answer");
    let asked = [("app.exe", vec![true; 3]), ("nt.exe", vec![false; 3])];
    let mut noted = lock(&notes.0).clone();
    noted.sort();
    assert_eq!(noted, asked.map(|(module, returns)| (module.to_owned(), returns)));
}

#[test]
fn a_cancelled_query_has_no_answer() {
    let saved = trace(&[(OPEN, CLOSE)]);
    let sources = [saved.source()];
    let cancel = Cancel::default();
    cancel.cancel();
    for options in ["", "-Leak", "-ShowTotal Total", "-CreateStack *x*"] {
        let answer = object_ref(&sources, &arguments(options), &saved, &cancel);
        assert!(matches!(answer, Err(QueryError::Cancelled(_))), "{options}");
    }
    assert!(saved.take_requests().is_empty());
    assert!(handlescope_query::stats(&sources, &cancel).is_err());
    assert!(handlescope_query::processes(&sources, &Default::default(), &cancel).is_err());
    assert!(handlescope_query::modules(&sources, &ModuleCriteria::default(), &cancel).is_err());
}

#[test]
fn frames_that_match_in_one_trace_do_not_count_in_another() {
    let (one, two) = (trace(&[(&["a.dll+0x1"], EXIT)]), trace(&[(&["b.dll+0x1"], EXIT)]));
    let sources = [one.source(), two.source()];
    let args = arguments("-CreateStack a.dll*");
    let cancel = Cancel::default();
    let answer = object_ref(&sources, &args, &one, &cancel).expect("an answer");
    let counts: Vec<_> = answer.files.iter().map(|f| f.selection.objects().len()).collect();
    assert_eq!(counts, [1, 0]);
}
