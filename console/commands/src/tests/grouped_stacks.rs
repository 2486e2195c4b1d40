//! Tests of which stacks form one group.

use super::Ask as _;
use handlescope_query::fixture::{APP, CHILD, Fixture, OTHER, SavedTrace, With, create};
use handlescope_query::{GroupKey, Inventory};
use handlescope_session::cancel::Cancel;

/// Returns the number of handles in each group by create stack.
fn counts(saved: &SavedTrace) -> Vec<u32> {
    saved.ask("-GroupBy createstack", |answer| {
        let groups = answer.files[0].groups.as_ref().unwrap();
        let shown =
            groups.tree.shown().filter(|node| matches!(groups.key(*node), GroupKey::Stack(_)));
        let mut counts: Vec<u32> = shown.map(|node| groups.tree.stats(node).handles).collect();
        counts.sort_unstable();
        counts
    })
}

/// Creates a trace with a handle for each process and stack.
fn trace(opened: &[(u32, &[&str])]) -> SavedTrace {
    let mut fixture = Fixture::new();
    for (number, (process, stack)) in (1..).zip(opened) {
        let stack = fixture.stack(stack);
        fixture.event_object(vec![create(*process, number, 4).leaked().on(stack)]);
    }
    fixture.save()
}

const MAIN: &str = "app.exe!main";

#[test]
fn unknown_code_is_equal_at_one_address_of_one_process() {
    let (here, there) = (["0x1F4B0000123", MAIN], ["0x1F4B0000456", MAIN]);
    assert_eq!(counts(&trace(&[(APP, &here), (APP, &here), (APP, &there)])), [1, 2]);
    assert_eq!(counts(&trace(&[(APP, &here), (OTHER, &here), (APP, &here)])), [1, 2]);
    // The fixture only has modules of APP, so the other two share their code.
    assert_eq!(counts(&trace(&[(APP, &here), (OTHER, &here), (CHILD, &here)])), [1, 2]);
}

#[test]
fn the_kernel_and_code_with_a_name_are_the_same_in_every_process() {
    let kernel = ["0xFFFFF80000001000", MAIN];
    assert_eq!(counts(&trace(&[(APP, &kernel), (OTHER, &kernel)])), [2]);
    let other = ["0xFFFFF80000002000", MAIN];
    assert_eq!(counts(&trace(&[(APP, &kernel), (OTHER, &other)])), [1, 1]);
    let known = ["app.exe+0x10", MAIN];
    assert_eq!(counts(&trace(&[(APP, &known), (OTHER, &known)])), [2]);
}

#[test]
fn datasets_tell_stacks_through_unknown_code_apart() {
    let (here, there) = (["0x1F4B0000123", MAIN], ["0x1F4B0000456", MAIN]);
    let saved = trace(&[(APP, &here), (OTHER, &here), (APP, &there), (APP, &[MAIN])]);
    let (source, cancel) = (saved.source(), Cancel::default());
    let inventory = Inventory::new(&source, &saved, &cancel).unwrap();
    let mut ids: Vec<String> = inventory.stacks().into_iter().map(|(_, stack)| stack.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[test]
fn the_function_of_a_stack_is_that_of_the_program_else_what_says_most() {
    for (stack, expected) in [
        (
            &[
                "ntoskrnl.exe!ObpCreateHandle",
                "ntdll.dll!NtCreateThreadEx",
                "ucrtbase.dll!_beginthreadex",
                "app.exe!_beginthreadex",
                "app.exe!Server::Start",
                "app.exe!main",
            ][..],
            "app.exe!Server::Start",
        ),
        (&["ntoskrnl.exe!ObpCreateHandle", "combase.dll!Open", "0x1234"], "combase.dll!Open"),
        (
            &["ntoskrnl.exe!ObpCreateHandle", "ntoskrnl.exe!NtOpenFile", "0x1234"],
            "ntoskrnl.exe!NtOpenFile",
        ),
        (&["ntoskrnl.exe!ObpCreateHandle", "ntoskrnl.exe!ObOpen"], "ntoskrnl.exe!ObpCreateHandle"),
        (&["0x1234", "app.exe+0x10"], "app.exe+0x10"),
        (&["0x1234"], "<UnknownMethod>"),
    ] {
        let mut fixture = Fixture::new();
        let stack = fixture.stack(stack);
        fixture.event_object(vec![create(APP, 1, 4).on(stack)]);
        let saved = fixture.save();
        let functions = saved.ask("-GroupBy function", |answer| {
            let groups = answer.files[0].groups.as_ref().unwrap();
            format!("{:?}", groups.key(groups.tree.shown().next().unwrap()))
        });
        assert!(functions.contains(expected), "{functions} instead of {expected}");
    }
}
