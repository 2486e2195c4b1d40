//! The text of `.why`.

use super::printed;
use handlescope_query::fixture::{APP, Fixture, With, create};
use handlescope_session::terminal::Screen;

#[test]
fn handles_that_the_loader_opens_at_process_start_are_counted_in_one_line() {
    let mut fixture = Fixture::new();
    let cache = fixture.stack(&["ntdll.dll!NtCreateEvent", "app.exe!Cache::Get"]);
    for number in 0..60 {
        let handle = 0x100 + 4 * number as u64;
        fixture.event_object(vec![create(APP, 100_000 * number, handle).leaked().on(cache)]);
    }
    let start = "ntdll.dll!LdrpInitializeProcess";
    for stack in [
        &["ntdll.dll!NtOpenKey", "ntdll.dll!LdrpInitializeTls", start][..],
        &["ntdll.dll!NtOpenSection", "ntdll.dll!LdrpFindKnownDll", start],
        &["ntdll.dll!NtCreateEvent", "app.exe!DllMain", start],
    ] {
        let stack = fixture.stack(stack);
        fixture.event_object(vec![create(APP, 10, 0x10).leaked().on(stack)]);
    }
    let saved = fixture.save();
    let text = printed(&[&saved], ".dump Why", Screen::PLAIN);
    let lines = "\nand 1 more suspect with 1 handle; list them with .dump Why -All\n\
                 and 2 more suspects of handles opened at process start; list them with .dump Why -All\n";
    assert!(text.ends_with(lines), "{text}");
    let all = printed(&[&saved], ".dump Why -All", Screen::PLAIN);
    assert!(all.contains("\n4  1 of 1 Event handle leaked") && !all.contains("more"), "{all}");
}
