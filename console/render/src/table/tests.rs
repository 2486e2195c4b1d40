//! Tests of rows in every format and order.

use std::io;

use handlescope_model::FrameIdx;
use handlescope_model::tables::{Module, Modules, Stack, Stacks};
use polars::prelude::{ParquetReader, SerReader};

use super::*;
use crate::{json::Hex, write_frame};
use handlescope_session::settings::DisplayArgs;
use handlescope_session::terminal::Screen;
use handlescope_session::values::{ColumnChoice, CsvText, JsonMode, RequestedFormat, TopN};

fn text_of(format: Format, frame: &DataFrame) -> String {
    let mut bytes = Vec::new();
    write_frame(frame.clone(), format, &Cancel::default(), &mut bytes).expect("written");
    String::from_utf8(bytes).expect("text")
}

#[test]
fn lists_are_written_as_in_json() {
    let mut stacks = Stacks::default();
    stacks.push(Stack { frames: [1, 2, 3].map(FrameIdx).to_vec() });
    stacks.push(Stack { frames: Vec::new() });
    let frame = stacks.into_frame().expect("a frame");
    assert_eq!(text_of(Format::Csv(CsvText::default()), &frame), "frames\n\"[1,2,3]\"\n[]\n");
    assert_eq!(text_of(Format::NdJson, &frame), "{\"frames\":[1,2,3]}\n{\"frames\":[]}\n");
}

#[test]
fn an_unknown_value_is_empty_or_null_and_text_is_quoted_where_it_must_be() {
    let mut modules = Modules::default();
    let name = "a \"b\", c\nd;e".to_owned();
    modules.push(Module { name, size: u64::MAX, ..Module::default() });
    let frame = modules.into_frame().expect("a frame");
    let text = text_of(Format::Csv(CsvText::default()), &frame);
    assert!(text.contains("\"a \"\"b\"\", c\nd;e\",,18446744073709551615,,0,"), "{text}");
    let text = text_of(Format::NdJson, &frame);
    let row: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(row["name"], "a \"b\", c\nd;e");
    assert_eq!(row["size"], u64::MAX);
    assert!(row["timestamp"].is_null());
}

#[test]
fn it_stops_when_asked_to() {
    let mut modules = Modules::default();
    modules.push(Module::default());
    let table = AnswerTable::from_frame(modules.into_frame().expect("a frame"));
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(table.csv(CsvText::Raw, &cancel, &mut io::sink()).is_err());
    assert!(table.ndjson(&cancel, &mut io::sink()).is_err());
    assert!(table.json(JsonMode::Lines, &cancel, &mut io::sink()).is_err());
}

/// Name, address and count of things in two files.
const THINGS: [(&str, Option<u64>, i32); 5] = [
    ("b", Some(u64::MAX), 1),
    ("A", None, 3),
    ("c", Some(1), 3),
    ("=x", Some(2), -7),
    ("y", None, 0),
];

fn table() -> AnswerTable<'static> {
    table_of(columns())
}

/// Declares the columns of a thing.
fn columns() -> Columns<'static, (&'static str, Option<u64>, i32)> {
    let mut columns = Columns::<(&str, Option<u64>, i32)>::default();
    columns.add("name", "its name", |(name, ..)| *name).title("Name");
    columns.add("address", "its address", |(_, address, _)| address.map(Hex));
    columns.add("count", "how many", |(.., count)| *count).title("How many").rank(-1);
    columns.add("label", "its label", |(name, ..)| format!("<{name}>")).title("Label").text_only();
    columns
}

fn table_of(columns: Columns<'static, (&'static str, Option<u64>, i32)>) -> AnswerTable<'static> {
    let files = [
        FileRows::new(Path::new("one"), 3).below("three".into()),
        FileRows::new(Path::new("two"), 2).counted("of 2".into()),
    ];
    let mut document = Columns::default();
    document.rows("things", "the things");
    let table = AnswerTable::new(columns, THINGS.to_vec(), files).expect("a table");
    table.within(document, ())
}

/// Returns the output for some options.
fn written(options: &OutputOptions) -> Result<String, OutputError> {
    on_screen(Screen::PLAIN, table(), options)
}

fn on_screen(
    screen: Screen,
    table: AnswerTable<'_>,
    options: &OutputOptions,
) -> Result<String, OutputError> {
    let display = DisplayArgs::default().display(&Default::default(), screen);
    let mut out = Vec::new();
    table.write(options, &display, &Overwrite::default(), &Cancel::default(), &mut out)?;
    Ok(String::from_utf8(out).expect("text"))
}

fn of_columns(text: &str) -> OutputOptions {
    OutputOptions { columns: ColumnChoice::parse(text), ..OutputOptions::default() }
}

fn by(column: &str) -> OutputOptions {
    OutputOptions { sort_by: Some(column.to_owned()), ..OutputOptions::default() }
}

#[test]
fn text_has_the_titled_columns_of_each_file() {
    insta::assert_snapshot!(written(&OutputOptions::default()).expect("text"), @r"
    one
    How many  Name  Label
           1  b     <b>
           3  A     <A>
           3  c     <c>
    three
    two
    How many  Name  Label
          -7  =x    <=x>
           0  y     <y>
    2 of 2
    ");
}

#[test]
fn each_file_is_sorted_and_cut_by_itself() {
    let top = Some(TopN { take: 1, skip: 1 });
    insta::assert_snapshot!(written(&OutputOptions { top, ..by("NAME") }).expect("text"), @r"
    one
    How many  Name  Label
           1  b     <b>
    + 2 more
    three
    two
    How many  Name  Label
           0  y     <y>
    1 of 2
    ");
    let names = |options: OutputOptions| {
        let formats = vec![RequestedFormat::new("-csv", None).expect("a format")];
        let text = written(&OutputOptions { formats, ..options }).expect("text");
        let names = text.lines().skip(1).map(|line| line.split(',').next().unwrap_or_default());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(OutputOptions::default()), "b A c '=x y");
    assert_eq!(names(by("how many")), "A c b y '=x", "equal ones stay in order");
    assert_eq!(names(by("address")), "b c A '=x y", "unknown ones come last");
    assert_eq!(names(by("Label")), "A b c '=x y");
    let top = Some(TopN { take: 9, skip: 2 });
    assert_eq!(names(OutputOptions { top, ..OutputOptions::default() }), "c");
}

#[test]
fn an_unknown_column_is_an_error_that_names_all() {
    let error = written(&by("coutn")).expect_err("no such column").to_string();
    assert_eq!(
        error,
        "-SortBy: no column 'coutn', did you mean count? The columns are name, address, count, label"
    );
}

#[test]
fn chosen_columns_stand_in_their_order_under_their_names_or_headings() {
    let named = OutputOptions {
        top: Some(TopN { take: 1, skip: 0 }),
        ..of_columns("Label,address,COUNT,label")
    };
    insta::assert_snapshot!(written(&named).expect("text"), @r"
    one
    Label             address  How many
    <b>    0xFFFFFFFFFFFFFFFF         1
    + 2 more
    three
    two
    Label  address  How many
    <=x>       0x2        -7
    1 of 2
    ");
    let formats = vec![RequestedFormat::new("-csv", None).expect("a format")];
    let csv = OutputOptions { formats: formats.clone(), ..of_columns("how many,name") };
    assert_eq!(written(&csv).expect("text").lines().nth(1), Some("1,b"));
    let sorted = OutputOptions {
        formats: formats.clone(),
        sort_by: Some("count".into()),
        ..of_columns("name")
    };
    assert_eq!(written(&sorted).expect("text").lines().nth(1), Some("A"));
    let of_text = OutputOptions { formats, ..of_columns("label") };
    assert_eq!(
        written(&of_text).expect_err("only for text").to_string(),
        "-Columns: no column 'label'; the columns are name, address, count"
    );
    let json = OutputOptions {
        formats: vec![RequestedFormat::new("-json", None).expect("a format")],
        ..of_columns("nonsense")
    };
    assert_eq!(
        written(&json).expect("text"),
        written(&OutputOptions { columns: ColumnChoice::Fitting, ..json }).expect("text")
    );
}

#[test]
fn rows_that_are_several_lines_are_a_table_where_columns_are_chosen() {
    let table = || {
        let mut columns = columns();
        columns.row_text(|(name, ..), out| writeln!(out, "row {name}"));
        table_of(columns)
    };
    let named = on_screen(Screen::PLAIN, table(), &of_columns("name")).expect("text");
    assert_eq!(named, written(&of_columns("name")).expect("text"));
    let wide = on_screen(Screen::PLAIN, table(), &of_columns("all")).expect("text");
    assert_eq!(wide, on_screen(Screen::PLAIN, table(), &OutputOptions::default()).expect("text"));
}

#[test]
fn spare_columns_are_left_out_of_a_narrow_screen() {
    let narrow = |width: usize, options: &OutputOptions| {
        let screen = Screen { width: Some(width), color: false };
        let table = table().with_spare(["Label", "Name"]);
        let text = on_screen(screen, table, options).expect("text");
        let first_file = text.lines().skip(1).take_while(|line| *line != "three");
        first_file.collect::<Vec<_>>().join("\n")
    };
    let (fitting, wide) = (OutputOptions::default(), of_columns("all"));
    assert_eq!(narrow(27, &fitting), narrow(27, &wide));
    insta::assert_snapshot!(narrow(26, &fitting), @r"
    How many  Name
    ───────────────
           1  b
           3  A
           3  c
    Not shown at 26 columns:
      Label (-Columns all)
    ");
    insta::assert_snapshot!(narrow(17, &fitting), @r"
    How many
    ─────────
           1
           3
           3
    Not shown at
      17 columns:
      Label, Name
      (-Columns all)
    ");
    let by_label = narrow(26, &by("label"));
    assert!(by_label.ends_with("\n  Name (-Columns all)"), "{by_label}");
    assert!(narrow(26, &wide).starts_with("row 1\n How many  1\n"));
    assert_eq!(narrow(8, &fitting), narrow(8, &wide));
}

#[test]
fn programs_get_the_same_rows_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let as_format = |option, file| OutputOptions {
        formats: vec![RequestedFormat::new(option, file).expect("a format")],
        ..by("name")
    };
    let ndjson = written(&as_format("-ndjson", None)).expect("text");
    assert_eq!(
        ndjson.lines().next(),
        Some(r#"{"name":"A","address":null,"count":3}"#),
        "without what is only for text"
    );
    let json = written(&as_format("-json", None)).expect("text");
    let rows: Vec<String> = ndjson.lines().map(str::to_owned).collect();
    assert_eq!(json, format!("{{\"things\":[\n{}\n]}}\n", rows.join(",\n")));
    let path = folder.path().join("things.parquet");
    let message = written(&as_format("-parquet", Some(path.clone()))).expect("text");
    assert!(message.starts_with("Parquet export was successful. File is: "), "{message}");
    let file = std::fs::File::open(path).expect("the file");
    let frame = ParquetReader::new(file).finish().expect("Parquet");
    assert_eq!(text_of(Format::NdJson, &frame), ndjson);
}

#[test]
fn two_formats_cannot_be_had_together() {
    let with_formats = |options: &[&str]| {
        let mut output = OutputOptions::default();
        options.iter().for_each(|o| {
            RequestedFormat::new(o, None).expect("a format").add_to(&mut output.formats);
        });
        output
    };
    assert_eq!(with_formats(&["-csv"]).conflict(), None);
    assert_eq!(with_formats(&["-csv", "-ndjson"]).conflict(), Some(("-csv", "-ndjson")));
    let again = with_formats(&["-json-pretty", "-csv", "-csv", "-json"]);
    assert_eq!(again.conflict(), Some(("-csv", "-json")), "the last option of a format counts");
    let json = with_formats(&["-json-pretty", "-json"]);
    assert_eq!((json.conflict(), json.format()), (None, Format::Json(JsonMode::Lines)));
}
