//! The function of a stack.

use super::Ask as _;
use handlescope_query::fixture::{APP, Fixture, With, create};

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
