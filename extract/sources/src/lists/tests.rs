//! Tests whole lists, also damaged ones.

use super::*;

/// Returns what was read: process, handle, type and name of each handle, and the warnings.
fn read(text: &str) -> (Vec<String>, Vec<String>) {
    let mut parser = ListParser::default();
    for (number, text) in (1..).zip(text.lines()) {
        parser.line(&TextLine { text: text.into(), number, is_ended: true, is_long: false });
    }
    let parser = parser.finish();
    let (types, names) = (parser.open.types(), parser.open.names());
    let row = |handle: &ListedHandle| {
        let (program, pid) = &parser.processes[handle.process as usize];
        let type_row = (handle.type_id.0 as usize).checked_sub(1);
        let type_name = type_row.map_or("?", |row| types.name.get(row).map_or("?", |name| name));
        let name =
            handle.name.map_or("-", |name| names.name.get(name.0 as usize).map_or("-", |n| n));
        format!("{program}/{pid} {:x} {type_name} {name}", handle.handle)
    };
    let rows = parser.open.handles.iter().map(row).collect();
    let warnings = parser.findings.warnings();
    (rows, warnings.into_iter().map(|warning| warning.kind).collect())
}

const BANNER: &str = "\nNthandle v5.0 - Handle viewer\nCopyright (C) 1997-2022 Mark Russinovich\n\
                      Sysinternals - www.sysinternals.com\n\n";

#[test]
fn handles_belong_to_the_process_above_them() {
    let rule = "-".repeat(78);
    let text = format!(
        "{BANNER}{rule}\nSystem pid: 4 \\<unable to open process>\n    8: Process       System(4)\n{rule}\n\
         notepad.exe pid: 1234 ME\\user\n    4: Event         \n   48: File  (RW-)   C:\\Windows\n"
    );
    let expected = [
        "System/4 8 Process System(4)",
        "notepad.exe/1234 4 Event -",
        r"notepad.exe/1234 48 File C:\Windows",
    ];
    assert_eq!(read(&text), (expected.map(str::to_owned).to_vec(), Vec::new()));
}

#[test]
fn handles_without_a_process_are_of_an_unknown_one_or_of_that_of_the_command() {
    let rows = "   48: File  (RW-)   C:\\a\n   50: NewType       x\n";
    assert_eq!(read(&format!("{BANNER}{rows}")).0, [r"/0 48 File C:\a", "/0 50 NewType x"]);
    assert_eq!(read(rows).0, [r"/0 48 File C:\a"], "nothing says that the second is a handle");
    let asked = format!("C:\\Tools> handle64.exe -a -p 77\n{BANNER}{rows}");
    assert_eq!(read(&asked).0[0], r"/77 48 File C:\a");
    let asked = format!("PS C:\\> .\\handle.exe -p a.exe -a\n{BANNER}{rows}");
    assert_eq!(read(&asked).0[0], r"a.exe/0 48 File C:\a");
}

#[test]
fn counts_are_handles_without_values_and_names() {
    let summary = "Handle type summary:\n  <Unknown type>  : 1\n  Event           : 2\n  Event           : 1\n\
                   Total handles: 4\n";
    let (rows, warnings) = read(&format!("{BANNER}{summary}"));
    assert_eq!(rows, ["/0 0 ? -", "/0 0 Event -", "/0 0 Event -", "/0 0 Event -"]);
    assert_eq!(warnings, [] as [&str; 0]);
    let (_, warnings) = read(&summary.replace(": 4", ": 5"));
    assert_eq!(warnings, [WarningKind::ListCountMismatch.text()]);
    let (rows, _) = read(&format!("a.exe pid: 8 ME\n    4: Event         \n{summary}"));
    assert_eq!(rows, ["a.exe/8 4 Event -"], "the counts are of the handles that are listed");
}

#[test]
fn no_count_takes_all_memory() {
    let mut parser = ListParser::default();
    parser.read("Handle type summary:");
    parser.read("  File : 99999999999");
    parser.read("  Event : 18446744073709551615");
    let parser = parser.finish();
    assert_eq!(parser.open.handles.len(), 1 << 20);
    assert_eq!(parser.findings.of(WarningKind::TooManyListed), u64::MAX);
    assert!(parser.findings.warnings().len() == 1);
}

#[test]
fn a_table_may_have_lines_that_are_none_of_it() {
    let text = "Process,PID,User,Handle,Type,Share Flags,Name\na.exe,7,ME,0x4,Event,,\n\
                Error obtaining handle information: Access denied\na.exe,7,ME,0x4,Event,,\n\
                a.exe,7,ME,0x8,File,RW-,C:\\a\n";
    let (rows, warnings) = read(text);
    assert_eq!(rows, ["a.exe/7 4 Event -", r"a.exe/7 8 File C:\a"]);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

#[test]
fn other_texts_have_no_handles() {
    for text in [
        "0:000> !htrace\nHandle = 0x34 - OPEN\n0x77ca310c: ntdll!NtClose+0xc\n",
        "77ca310c: ntdll!NtClose+0xC\ndead: beef\nTotal handles: 5\nFile : 7\n",
        "a pid: x\npid: 5\n",
    ] {
        assert_eq!(read(text).0, [] as [&str; 0], "{text}");
    }
}

#[test]
fn any_part_and_any_damage_of_a_list_is_read_without_a_panic() {
    let text = format!(
        "{BANNER}a.exe pid: 8 ME\n   48: File  (RW-)   C:\\ä\nb.exe pid: 9 type: File ME 6D4: C:\\x\n\
         Handle type summary:\n  Event : 2\nTotal handles: 2\nProcess,PID,Type,Handle,Name\na,1,File,0x4,n\n"
    );
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        read(&text[..end]);
        let (before, after) = text.split_at(end);
        let damaged: String = after.chars().skip(1).collect();
        read(&format!("{before}\u{FFFD}{damaged}"));
    }
}
