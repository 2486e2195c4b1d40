//! Tests of the bounds of exports.

use super::*;

fn range(start: u32, end: u32) -> Range {
    Range { start, end }
}

fn whole(start: u32, end: u32) -> UnwindFunction {
    UnwindFunction { range: range(start, end), main: range(start, end) }
}

fn table(exports: &[(u32, &str)], functions: &[UnwindFunction]) -> ExportTable {
    ExportTable {
        exports: exports
            .iter()
            .map(|(start, name)| Export { start: *start, end: start + 0x90, name: (*name).into() })
            .collect(),
        code: vec![range(0x1000, 0x2000), range(0x5000, 0x6000)],
        functions: functions.to_vec(),
    }
}

fn name(table: &ExportTable, rva: u64) -> String {
    let frame = table.function(rva);
    frame.map_or("-".to_owned(), |frame| format!("{}+{:#x}", frame.function, frame.offset))
}

#[test]
fn an_export_names_its_function_only() {
    let functions = [whole(0x1000, 0x1040), whole(0x1040, 0x1080), whole(0x1080, 0x1100)];
    let table = table(&[(0x1000, "A"), (0x1080, "C"), (0x1090, "C2")], &functions);
    let expected = [
        (0xfff, "-"),
        (0x1000, "A+0x0"),
        (0x103f, "A+0x3f"),
        (0x1040, "-"),
        (0x107f, "-"),
        (0x1081, "C+0x1"),
        (0x10ff, "C2+0x6f"),
        (0x1100, "-"),
        (u64::MAX, "-"),
        (0x1_0000_1000, "-"),
    ];
    for (rva, text) in expected {
        assert_eq!(name(&table, rva), text, "{rva:#x}");
    }
}

#[test]
fn functions_without_a_frame_are_named_within_their_gap() {
    let functions = [whole(0x1000, 0x1040), whole(0x1100, 0x1140)];
    let table = table(&[(0x1000, "A"), (0x1050, "NtClose"), (0x1070, "NtOpen")], &functions);
    let expected = [
        (0x1048, "-"),
        (0x1052, "NtClose+0x2"),
        (0x10ff, "NtOpen+0x8f"),
        (0x1100, "-"),
        (0x113f, "-"),
        (0x1150, "-"),
    ];
    for (rva, text) in expected {
        assert_eq!(name(&table, rva), text, "{rva:#x}");
    }
}

#[test]
fn a_chained_part_has_the_name_of_the_main_part() {
    let main = range(0x1100, 0x1140);
    let part = |start| UnwindFunction { range: range(start, start + 0x20), main };
    let functions = [part(0x1000), whole(0x1100, 0x1140), whole(0x1200, 0x1300), part(0x5000)];
    let table = table(&[(0x1100, "A"), (0x1200, "B")], &functions);
    assert_eq!(name(&table, 0x5004), "A+0x3f04");
    assert_eq!(name(&table, 0x1004), "-", "a distance below zero");
}

#[test]
fn without_a_list_of_functions_an_export_reaches_to_the_next_or_to_padding() {
    let table = table(&[(0x1010, "A"), (0x1050, "B")], &[]);
    let expected =
        [(0x100f, "-"), (0x104f, "A+0x3f"), (0x10df, "B+0x8f"), (0x10e0, "-"), (0x5000, "-")];
    for (rva, text) in expected {
        assert_eq!(name(&table, rva), text, "{rva:#x}");
    }
}
