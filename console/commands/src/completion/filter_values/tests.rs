//! Tests of filter values offered from the loaded traces.

use std::sync::Arc;

use handlescope_model::tables::Process;

use super::*;
use handlescope_query::fixture::{Fixture, NewObject};
use handlescope_session::trace::{NamedSuspect, TraceValues};
use handlescope_session::values::SuspectId;

fn known() -> CompletionValues {
    let mut fixture = Fixture::new();
    for name in [r"\Sessions\1\Leaky_A", r"\Sessions\1\Leaky_B", r"\Sessions\2\X", "plain"] {
        fixture.object(NewObject { name, ..NewObject::default() });
    }
    fixture.stack(&["ntdll.dll!NtClose", "app.exe!main"]);
    for (kind, name) in [
        (ResourceKind::User, "Window"),
        (ResourceKind::Reserve, "VirtualAlloc"),
        (ResourceKind::Commit, "VirtualAlloc"),
        (ResourceKind::Resource, "Tiles*"),
    ] {
        fixture.allocator(kind, name);
    }
    let (again, pid) = ("app.exe".to_owned(), 101);
    fixture.processes.push(Process { name: again, pid, ..Process::default() });
    let saved = fixture.save();
    let values = TraceValues::new(Arc::new(saved.trace));
    let loaded = vec!["/t/demo.etl".to_owned()];
    CompletionValues { loaded, values: vec![Arc::new(values)], ..CompletionValues::default() }
}

fn filters(values: Vec<FilterValue>) -> Vec<String> {
    values.into_iter().map(|value| value.filter).collect()
}

#[test]
fn names_are_completed_level_by_level_and_their_last_parts_anywhere() {
    let known = known();
    let of = |filter| filters(texts(filter, FilterTextKind::ObjectNames, &known));
    let names = [r"\Sessions\1\Leaky_A", r"\Sessions\1\Leaky_B", r"\Sessions\2\X"];
    assert_eq!(of(""), [&[r"\Sessions\"][..], &names, &["plain"]].concat());
    assert_eq!(of(r"\sess"), [&[r"\Sessions\"][..], &names].concat());
    let (one, two) = (r"\Sessions\1\", r"\Sessions\2\");
    assert_eq!(of(r"\Sessions\"), [&[one, two], &names[..], &[r"\Sessions\*"]].concat());
    assert_eq!(of(r"\Sessions\2\"), [r"\Sessions\2\X"]);
    assert_eq!(of(r"\Sessions\1\l"), [r"\Sessions\1\Leaky_A", r"\Sessions\1\Leaky_B"]);
    assert_eq!(of("*leaky"), ["*Leaky_A", "*Leaky_B"]);
    assert_eq!(of("x;!leaky_b"), ["x;!*Leaky_B"]);
}

#[test]
fn processes_are_completed_by_program_then_one_by_one_or_by_pid() {
    let known = known();
    let of = |filter| filters(processes(filter, &known));
    assert_eq!(of("ap"), ["app.exe"]);
    assert_eq!(of("app.exe"), ["app.exe", "app.exe(100)", "app.exe(101)"]);
    assert_eq!(of("app.exe(1"), ["app.exe(100)", "app.exe(101)"]);
    assert_eq!(of("10"), ["100", "101"]);
    assert_eq!(of("app;!Sy"), ["app;!System"]);
}

#[test]
fn types_and_loaded_files_are_completed() {
    let known = known();
    assert_eq!(filters(texts("ev", FilterTextKind::ObjectTypes, &known)), ["Event"]);
    assert_eq!(filters(texts("de", FilterTextKind::LoadedFiles, &known)), ["demo.etl"]);
    assert_eq!(filters(texts("", FilterTextKind::Other, &known)), Vec::<String>::new());
}

#[test]
fn modules_stand_for_all_of_their_functions() {
    let known = known();
    let of = |filter| filters(texts(filter, FilterTextKind::Frames, &known));
    assert_eq!(of("nt"), ["ntdll.dll!*"]);
    assert_eq!(of("*ap"), ["*app.exe!*"]);
}

#[test]
fn only_the_part_behind_the_last_semicolon_and_exclamation_mark_is_completed() {
    let typed = PartialFilter::new("a;!b");
    assert_eq!((typed.fixed, typed.pattern), ("a;!", "b"));
    let typed = PartialFilter::new("!b;c");
    assert_eq!((typed.fixed, typed.pattern), ("!b;", "c"));
    let typed = PartialFilter::new("");
    assert_eq!((typed.fixed, typed.pattern), ("", ""));
}

#[test]
fn many_names_make_a_short_menu_that_says_so() {
    let mut fixture = Fixture::new();
    let names: Vec<String> = (0..300).map(|n| format!(r"\Many\Name {n:03}")).collect();
    for name in &names {
        fixture.object(NewObject { name, ..NewObject::default() });
    }
    let values = TraceValues::new(Arc::new(fixture.save().trace));
    let known = CompletionValues { values: vec![Arc::new(values)], ..CompletionValues::default() };
    for typed in [r"\Many\", "name"] {
        let offered = texts(typed, FilterTextKind::ObjectNames, &known);
        assert_eq!(offered.len(), MAX_VALUES, "{typed}");
        assert!(offered.last().is_some_and(|last| last.description.contains("more")), "{typed}");
    }
    assert_eq!(
        filters(texts("", FilterTextKind::ObjectNames, &known)),
        [r"\Many\"],
        "no whole names"
    );
}

#[test]
fn kinds_of_allocations_that_are_loaded_come_first() {
    let known = known();
    let of = |filter| filters(texts(filter, FilterTextKind::AllocationKinds, &known));
    assert_eq!(of(""), ["commit", "reserve", "resource", "user", "heap", "gdi"]);
    assert_eq!(of("heap;!RE"), ["heap;!reserve", "heap;!resource"]);
    let described = texts("", FilterTextKind::AllocationKinds, &known);
    assert_eq!(described[0].description, "committed pages");
    assert_eq!(described[4].description, "blocks of heaps; none is loaded");
    let of_nothing = texts("", FilterTextKind::AllocationKinds, &CompletionValues::default());
    assert_eq!(of_nothing[0].description, "blocks of heaps");
    let known_kinds = ["heap", "commit", "reserve", "resource", "gdi", "user"];
    assert_eq!(filters(of_nothing), known_kinds, "the known ones, in their order");
}

#[test]
fn allocators_are_completed_once_each_with_what_they_allocate() {
    let known = known();
    let of = |filter| filters(texts(filter, FilterTextKind::Allocators, &known));
    assert_eq!(of("wi"), ["Window"]);
    assert_eq!(of("Window;!v"), ["Window;!VirtualAlloc"]);
    assert_eq!(
        of("t"),
        [handlescope_session::filter::literal("Tiles*")],
        "a star of a name is not a wildcard"
    );
    let offered = texts("v", FilterTextKind::Allocators, &known);
    assert_eq!(offered[0].description, "committed pages, reserved addresses");
    assert_eq!(texts("", FilterTextKind::Allocators, &known).len(), 3);
    assert_eq!(
        filters(texts("", FilterTextKind::Allocators, &CompletionValues::default())),
        Vec::<String>::new()
    );
}

#[test]
fn suspects_are_those_that_answers_named_the_last_ones_first_and_each_once() {
    let known = known();
    let of = |id| -> Vec<(String, String)> {
        suspects(id, &known).into_iter().map(|value| (value.filter, value.description)).collect()
    };
    assert_eq!(of(""), [], "no answer named any");
    let named = |id: &str, leaked: u64| NamedSuspect {
        id: SuspectId::new(id).expect("an id"),
        description: format!("Event, app.exe(100), {leaked} leaked"),
    };
    let pair = |id: &str, leaked: u64| (id.to_owned(), named(id, leaked).description);
    let values = &known.values[0];
    values.note_suspects(vec![named("33434dfa4c", 8), named("774d09aefa", 6)]);
    assert_eq!(of(""), [pair("33434dfa4c", 8), pair("774d09aefa", 6)]);
    assert_eq!(of("77"), [pair("774d09aefa", 6)]);
    values.note_suspects(vec![named("dc070df8cf", 1), named("774d09aefa", 5)]);
    let expected = [pair("dc070df8cf", 1), pair("774d09aefa", 5), pair("33434dfa4c", 8)];
    assert_eq!(of(""), expected);
    let twice =
        CompletionValues { values: vec![Arc::clone(values); 2], ..CompletionValues::default() };
    assert_eq!(suspects("", &twice).len(), 3);
    assert_eq!(of("33434DFA"), [pair("33434dfa4c", 8)]);
    values.note_suspects((0..1_000).map(|n| named(&format!("{n:010x}"), n)).collect());
    assert_eq!(suspects("", &known).len(), MAX_VALUES);
    values.forget_suspects();
    assert_eq!(of(""), []);
}

#[test]
fn views_of_the_user_are_offered_with_their_columns_and_broken_ones_hide_no_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect(name);
    file(
        "by_type.sql",
        "-- Leaks by type.\nSELECT type, count(*) AS how_many FROM leaks GROUP BY type",
    );
    let offered = |head: &str| -> Vec<(String, String)> {
        let known = CompletionValues {
            views: KnownViews::new(Some(folder.path())),
            ..CompletionValues::default()
        };
        crate::completion::complete(head, &known)
            .into_iter()
            .map(|found| (found.value, found.description.unwrap_or_default()))
            .collect()
    };
    let by_type = ("by_type".to_owned(), "Leaks by type.".to_owned());
    assert_eq!(offered(".schema by"), std::slice::from_ref(&by_type));
    assert_eq!(offered(".sql SELECT * FROM by_"), [by_type]);
    let columns = offered(".sql SELECT * FROM by_type WHERE how");
    assert!(columns.iter().any(|(value, _)| value == "how_many"));
    file("broken.sql", "SELECT FROM");
    assert_eq!(offered(".schema by"), []);
    assert_eq!(offered(".schema lea").len(), 1);
}
