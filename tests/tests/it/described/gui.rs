//! GDI and USER handles.

use handlescope_model::TableRows;
use handlescope_model::tables::Warnings;

use super::{DescribedTrace, assert_same_lines, gui_events, win32k, win32k_info};

const GUI_LINES: [&str; 9] = [
    "user window app.exe 0x20010 0 open",
    "user window other.exe 0x20010 0 freed",
    "gdi bitmap app.exe 0x20010 0 replaced",
    "gdi 99 other.exe 0x30010 0 open by csrss.exe",
    "gdi brush app.exe 0x50010 0 freed",
    "gdi region app.exe 0x20010 0 open",
    "gdi brush app.exe 0x40010 0 orphan_free",
    "gdi region app.exe 0x0 0 ignored",
    "user window other.exe 0x77 0 ignored",
];

#[test]
fn handles_of_gdi_and_user_are_followed_by_session_class_and_value() {
    let mut described = DescribedTrace::new();
    gui_events(&mut described, |id| id);
    let tables = described.tables();
    assert_same_lines(&tables.lines(), &GUI_LINES);
    let provider = tables.allocators()[0].provider.clone();
    assert_eq!(provider.as_deref(), Some("Microsoft-Windows-Win32k"));
}

#[test]
fn metadata_says_what_an_event_of_win32k_is_whatever_its_id() {
    let mut described = DescribedTrace::new();
    for (id, task, opcode) in [
        (452, "UserHandleOperation", "CreateHandle"),
        (453, "UserHandleOperation", "DestroyHandle"),
        (454, "UserHandleOperation", "UpdateHandleOwner"),
        (455, "GdiHandleOperation", "CreateHandle"),
        (456, "GdiHandleOperation", "DestroyHandle"),
        (457, "GdiHandleOperation", "UpdateHandleOwner"),
    ] {
        described.describe(&win32k_info(id + 1000, task, opcode, &["HandleValue"]));
    }
    let values = ["PreviousHandleValue", "NewHandleValue"];
    described.describe(&win32k_info(1458, "GdiHandleOperation", "TransformHandle", &values));
    gui_events(&mut described, |id| id + 1000);
    // An id that now belongs to another event.
    described.describe(&win32k_info(452, "WindowUpdate", "Info", &["HandleValue"]));
    described.event(30, 700, win32k(452, &[0x60010], 1, 1, 700));
    assert_same_lines(&described.tables().lines(), &GUI_LINES);
}

#[test]
fn cut_payloads_of_win32k_are_counted() {
    let mut described = DescribedTrace::new();
    let mut event = win32k(455, &[0x20010], 5, 1, 700);
    event.payload.truncate(19);
    described.event(10, 700, event);
    let tables = described.tables();
    assert!(tables.lines().is_empty());
    let warnings: Vec<_> = Warnings::read(&tables.0).unwrap().rows().collect();
    assert!(warnings.iter().any(|row| row.kind == "undecodable event" && row.count == 1));
}
