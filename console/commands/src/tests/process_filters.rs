//! Tests of filters about the creator: its names, its command line, its start and end.

use super::Ask as _;
use handlescope_model::ProcessIdx;
use handlescope_model::tables::{Event, Process};

use handlescope_query::fixture::{
    APP, CHILD, Fixture, NewObject, OTHER, SYSTEM, SavedTrace, close, create,
};

/// Row of the process that [`services`] adds.
const TERMINAL_SERVER: u32 = 4;

/// A row that no process has.
const UNKNOWN: u32 = 99;

/// Creates one object for each process of the fixture, for two services, and for an unknown process.
fn services() -> SavedTrace {
    let mut fixture = Fixture::new();
    for (pid, command_line) in
        [(500, "svchost.exe -k net -s TermService"), (600, "svchost.exe -k net -s Themes")]
    {
        let (name, command_line) = ("svchost.exe".to_owned(), command_line.to_owned());
        fixture.processes.push(Process { pid, name, command_line, ..Process::default() });
    }
    fixture.processes.command_line[APP as usize] = r#""C:\app.exe" /Worker 7"#.to_owned();
    for process in [SYSTEM, APP, CHILD, OTHER, TERMINAL_SERVER, TERMINAL_SERVER + 1, UNKNOWN] {
        fixture.event_object(vec![create(process, 1, 4)]);
    }
    fixture.save()
}

#[test]
fn a_service_is_found_by_both_of_its_names() {
    let saved = services();
    assert_eq!(saved.ids("-pn svchost"), [5, 6]);
    assert_eq!(saved.ids(r#"-pn "svchost RDP*""#), [5]);
    assert_eq!(saved.ids(r#"-pn "svchost RDP Service(500)""#), [5]);
    assert_eq!(saved.ids(r#"-pn "svchost*;!svchost RDP*""#), [6]);
    assert_eq!(saved.ids("-pn svchost*;!*.exe"), [0_u64; 0]);
    assert_eq!(saved.ids(r#"-RelatedProcess "svchost RDP*""#), [5]);
}

#[test]
fn with_plain_names_a_service_is_its_executable() {
    let saved = services();
    assert_eq!(saved.ids("-pn svchost -PlainProcessNames"), [5, 6]);
    assert_eq!(saved.ids(r#"-pn "svchost RDP*" -PlainProcessNames"#), [0_u64; 0]);
    assert_eq!(saved.ids(r#"-pn "svchost*;!svchost RDP*" -PlainProcessNames"#), [5, 6]);
    assert_eq!(saved.ids(r#"-RelatedProcess "svchost RDP*" -PlainProcessNames"#), [0_u64; 0]);
}

#[test]
fn the_creator_is_found_by_its_command_line() {
    let saved = services();
    assert_eq!(saved.ids("-CmdLine */worker*"), [2]);
    assert_eq!(saved.ids("-CmdLine *Themes;*TermService*"), [5, 6]);
    assert_eq!(saved.ids("-CmdLine !*"), [0_u64; 0]);
    // System, child, other and the unknown process have none.
    assert_eq!(saved.ids("-CmdLine !*svchost*;!*app*"), [1, 3, 4, 7]);
}

#[test]
fn the_creator_is_found_by_its_start_and_end() {
    let mut fixture = Fixture::new();
    let lifetimes = [(Some(1), None), (None, Some(9)), (Some(1), Some(9)), (None, None)];
    for (row, (start_ns, end_ns)) in lifetimes.into_iter().enumerate() {
        fixture.processes.start_ns[row] = start_ns;
        fixture.processes.end_ns[row] = end_ns;
    }
    for process in [SYSTEM, APP, CHILD, OTHER, UNKNOWN] {
        fixture.event_object(vec![create(process, 1, 4)]);
    }
    let saved = fixture.save();
    assert_eq!(saved.ids("-NewProcess -2"), [2]);
    assert_eq!(saved.ids("-NewProcess -1"), [2, 3]);
    assert_eq!(saved.ids("-NewProcess 0"), [4, 5]);
    assert_eq!(saved.ids("-NewProcess 1"), [1, 3]);
    assert_eq!(saved.ids("-NewProcess 2"), [1]);
}

#[test]
fn one_owner_has_to_pass_all_filters_over_the_creator() {
    let mut fixture = Fixture::new();
    fixture.processes.command_line[APP as usize] = "app /a".to_owned();
    let (owners, events) = (vec![(APP, 4), (CHILD, 4)], vec![close(APP, 1, 4)]);
    fixture.object(NewObject { existing: owners, events, ..NewObject::default() });
    let saved = fixture.save();
    assert_eq!(saved.ids("-pn app -CmdLine */a"), [1]);
    assert_eq!(saved.ids("-pn child -NewProcess 1"), [1]);
    // App has the command line, but only the child is new.
    assert_eq!(saved.ids("-CmdLine */a -NewProcess 1"), [0_u64; 0]);
    assert_eq!(saved.ids("-pn child -CmdLine */a"), [0_u64; 0]);
}

#[test]
fn an_unknown_creator_is_invalid_without_command_line_start_and_end() {
    let mut fixture = Fixture::new();
    let unknown = Event { process: ProcessIdx(UNKNOWN), ..create(APP, 1, 4) };
    fixture.event_object(vec![unknown]);
    let saved = fixture.save();
    assert_eq!(saved.ids("-pn Invalid(0) -CmdLine ! -NewProcess 0"), [0_u64; 0]);
    assert_eq!(saved.ids("-pn Invalid(0) -CmdLine !?* -NewProcess 0"), [1]);
    assert_eq!(saved.ids("-NewProcess 1"), [0_u64; 0]);
}
