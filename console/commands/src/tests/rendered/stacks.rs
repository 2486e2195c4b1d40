//! Tests of stacks in text.

use super::*;

/// Returns an event on a stack with an inlined function.
fn inlined() -> SavedTrace {
    let mut fixture = Fixture::new();
    let stack = fixture.stack(&["nt.exe!NtCreateEvent", "app.exe!Find < Cache::Open"]);
    fixture.event_object(vec![create(APP, 1, 4).on(stack)]);
    fixture.save()
}

/// Returns the lines of the stack.
fn lines(options: &str) -> Vec<String> {
    let printed = printed(&[&inlined()], &format!(".dump ObjectRef {options}"), Screen::PLAIN);
    let stack = printed.split("Stack: ").nth(1).expect("a stack");
    stack
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.strip_prefix("\t\t").expect("an indented line").to_owned())
        .collect()
}

#[test]
fn an_inlined_function_is_a_frame_of_its_own_without_a_place() {
    let names = ["nt.exe!NtCreateEvent", "app.exe!Find [inlined]", "app.exe!Cache::Open"];
    assert_eq!(lines("-ShowStack"), names);
    let with_addresses = lines("-ShowStack -ShowAddress");
    assert_eq!(with_addresses[1], names[1]);
    assert!(with_addresses[2].starts_with("app.exe!Cache::Open+0x1F"), "{with_addresses:?}");
}

#[test]
fn file_and_line_and_where_the_file_can_be_got_are_printed_where_they_are_known() {
    assert_eq!(
        lines("-ShowStack -ShowLine"),
        [
            "nt.exe!NtCreateEvent",
            r"app.exe!Find [inlined] C:\src\app.cpp:7 (https://git.example/app.cpp)",
            r"app.exe!Cache::Open C:\src\app.cpp:8",
        ]
    );
}

#[test]
fn json_has_inlined_functions_with_the_address_of_their_caller() {
    let document = json_of(&[&inlined()], ".dump ObjectRef -ShowStack -json");
    let frames = &document["stacks"]["0"];
    assert_eq!(frames.as_array().map(Vec::len), Some(3));
    let (inner, outer) = (&frames[1], &frames[2]);
    let source = |line: u32| (json!(r"C:\src\app.cpp"), json!(line));
    assert_eq!((inner["function"].clone(), inner["inlined"].clone()), (json!("Find"), json!(true)));
    assert_eq!((outer["inlined"].clone(), outer["offset"].clone()), (json!(false), json!(0x1F)));
    assert_eq!(
        (inner["rva"].clone(), inner["offset"].clone()),
        (outer["rva"].clone(), Value::Null)
    );
    assert_eq!((inner["file"].clone(), inner["line"].clone()), source(7));
    assert_eq!((outer["file"].clone(), outer["line"].clone()), source(8));
    assert_eq!(
        (&inner["source"], &outer["source"]),
        (&json!("https://git.example/app.cpp"), &Value::Null)
    );
}
