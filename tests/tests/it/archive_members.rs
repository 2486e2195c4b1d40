//! Extracts that are not what was written: tables that are missing, empty or of another trace, and damage of each
//! part of the archive. They have the right answer or an error, and never another answer.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_model::{ArchiveError, Table, Trace, write_parquet};
use handlescope_tests::allocations;
use handlescope_tests::binary::{Run, Shell, examples};
use handlescope_tests::containers::{
    Claimed, contents_7z, members_of, stored_7z, with_contents_7z,
};
use handlescope_tests::foreign::{Members, pack_with};
use handlescope_tests::thorough::one_of;
use polars::prelude::{Column, DataFrame};
use sevenz_rust::EncoderMethod;

const MANIFEST: &str = "tables.tsv";

/// The sample as an extract, and the extract of another trace with allocations.
fn extracts() -> (Shell, PathBuf, PathBuf) {
    let shell = Shell::new();
    allocations::trace().write(shell.path("memory.etl")).unwrap();
    let _ = shell.run(&["extract", "leaky.etl", "memory.etl", "-o", "."]).ok();
    let [sample, other] = ["leaky.json7z", "memory.json7z"].map(|name| shell.path(name));
    fs::remove_file(shell.path("leaky.etl")).unwrap();
    (shell, sample, other)
}

fn golden(layout: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/layout-{layout}.json7z"))
}

fn ask(shell: &Shell, members: &[Claimed]) -> Run {
    fs::write(shell.path("asked.json7z"), stored_7z(members)).unwrap();
    let questions = [".why", ".dump ObjectRef -ShowStack -ShowRef", ".dump Process"];
    let mut arguments = vec!["asked.json7z"];
    arguments.extend(questions.iter().flat_map(|question| ["-c", question]));
    shell.run(&arguments)
}

#[track_caller]
fn assert_refused(run: &Run, member: &str) {
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{member}: {run:?}");
    assert!(run.stderr.contains("asked.json7z: member "), "{member}: {run:?}");
    assert!(run.stderr.contains(member), "{run:?}");
    assert!(run.stderr.contains("extract the trace again"), "{member}: {run:?}");
}

fn without(members: &[Claimed], name: &str) -> Vec<Claimed> {
    members.iter().filter(|member| member.name != name).cloned().collect()
}

fn with(members: &[Claimed], name: &str, content: Vec<u8>) -> Vec<Claimed> {
    let mut members = members.to_vec();
    let member = members.iter_mut().find(|member| member.name == name).unwrap();
    *member = Claimed::sound(name, content);
    members
}

fn empty(table: Table) -> Vec<u8> {
    let columns = table
        .columns()
        .iter()
        .map(|spec| Column::new_empty(spec.name.into(), &spec.dtype.dtype()))
        .collect();
    member(table, DataFrame::new(0, columns).unwrap())
}

fn member(table: Table, rows: DataFrame) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_parquet(table, rows, &mut bytes).unwrap();
    bytes
}

fn content<'a>(members: &'a [Claimed], name: &str) -> &'a [u8] {
    &members.iter().find(|member| member.name == name).unwrap().content
}

#[test]
fn every_table_has_to_be_there_with_its_rows_and_of_the_same_trace() {
    let (shell, sample, other) = extracts();
    let (sound, other) = (members_of(&sample), members_of(&other));
    let _ = ask(&shell, &sound).ok();
    let names = Table::ALL.map(Table::member).into_iter().chain([MANIFEST.to_owned()]);
    for (place, name) in names.enumerate() {
        assert_refused(&ask(&shell, &without(&sound, &name)), &name);
        let exchanged = content(&other, &name);
        if exchanged != content(&sound, &name) {
            let run = ask(&shell, &with(&sound, &name, exchanged.to_vec()));
            // Another manifest does not fit the first table.
            assert_refused(&run, if name == MANIFEST { ".parquet" } else { &name });
        }
        if let Some(table) = Table::ALL.get(place)
            && empty(*table) != content(&sound, &name)
        {
            assert_refused(&ask(&shell, &with(&sound, &name, empty(*table))), &name);
        }
    }
}

#[test]
fn other_members_may_be_added_and_removed() {
    let (shell, sample, _) = extracts();
    let mut members = members_of(&sample);
    let answer = ask(&shell, &members).ok().stdout;
    members.push(Claimed::sound("notes.txt", b"of a reader".to_vec()));
    assert_eq!(ask(&shell, &members).ok().stdout, answer);
}

/// Tables with rows that others count or refer to.
const COUNTED: [Table; 10] = [
    Table::Trace,
    Table::Objects,
    Table::Events,
    Table::ExistingHandles,
    Table::Names,
    Table::ObjectTypes,
    Table::Stacks,
    Table::Frames,
    Table::Processes,
    Table::Modules,
];

/// Asks an archive in which a table has no rows, for each table that has some.
#[track_caller]
fn assert_no_table_can_be_empty(shell: &Shell, sound: &[Claimed], what: &str) {
    let answer = ask(shell, sound).ok().stdout;
    for table in COUNTED {
        if content(sound, &table.member()) == empty(table) {
            continue;
        }
        let run = ask(shell, &with(sound, &table.member(), empty(table)));
        assert_ne!(run.status, Some(0), "{what}, {}: {run:?}", table.name());
        assert!(run.stderr.contains("extract the trace again"), "{run:?}");
        assert_ne!(run.stdout, answer);
    }
}

#[test]
fn an_older_layout_has_all_its_tables_and_rows_that_others_refer_to() {
    let shell = Shell::new();
    fs::remove_file(shell.path("leaky.etl")).unwrap();
    for layout in 1..=6 {
        let sound = members_of(&golden(layout));
        for member in &sound {
            assert_refused(&ask(&shell, &without(&sound, &member.name)), &member.name);
        }
        assert_no_table_can_be_empty(&shell, &sound, &format!("layout {layout}"));
    }
}

/// The rows of a table of an archive.
fn rows(archive: &Path, table: Table) -> DataFrame {
    Trace::open(archive).unwrap().frame(table).unwrap()
}

#[test]
fn members_of_other_programs_keep_their_rows_after_conversion_to_an_older_layout() {
    let shell = Shell::new();
    Members::default().pack(&shell.path("demo.json7z"), "demo");
    fs::copy(examples().join("htrace.log"), shell.path("htrace.log")).unwrap();
    for source in ["demo.json7z", "htrace.log"] {
        let converted = shell.path("converted.json7z");
        let _ = shell.run(&[source, "-c", ".save converted.json7z"]).ok();
        let mut trace = rows(&converted, Table::Trace);
        trace.with_column(Column::new("schema_version".into(), [6_u32])).unwrap();
        let trace_member = Table::Trace.member();
        let sound = with(&members_of(&converted), &trace_member, member(Table::Trace, trace));
        let sound = without(&without(&sound, MANIFEST), &Table::Losses.member());
        for table in COUNTED {
            assert_refused(&ask(&shell, &without(&sound, &table.member())), &table.member());
        }
        assert_no_table_can_be_empty(&shell, &sound, source);
        fs::remove_file(converted).unwrap();
    }
}

#[test]
fn tables_of_a_larger_trace_do_not_fit_an_older_layout() {
    let shell = Shell::new();
    fs::remove_file(shell.path("leaky.etl")).unwrap();
    for layout in 1..=6 {
        let sound = members_of(&golden(layout));
        for table in [Table::Names, Table::Stacks, Table::Frames] {
            let rows = rows(&golden(layout), table);
            let larger = member(table, rows.vstack(&rows.slice(0, 1)).unwrap());
            assert_refused(&ask(&shell, &with(&sound, &table.member(), larger)), &table.member());
        }
        let mut modules = rows(&golden(layout), Table::Modules);
        let sizes = vec![16_u64; modules.height()];
        modules.with_column(Column::new("size".into(), sizes)).unwrap();
        let name = Table::Modules.member();
        let smaller = with(&sound, &name, member(Table::Modules, modules));
        assert_refused(&ask(&shell, &smaller), &name);
    }
}

/// All tables of an archive, or the error.
fn tables(folder: &Path, archive: &[u8]) -> Result<Vec<DataFrame>, ArchiveError> {
    let path = folder.join("damaged.json7z");
    fs::write(&path, archive).unwrap();
    let trace = Trace::open(&path)?;
    Table::ALL.iter().map(|table| trace.frame(*table)).collect()
}

#[track_caller]
fn assert_same_or_refused(folder: &Path, archive: &[u8], sound: &[DataFrame], what: &str) {
    match tables(folder, archive) {
        // What claims to be too large can be read with a higher limit, which the console names.
        Err(error) if error.is_about_size() => {}
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("damaged.json7z: "), "{what}: {error}");
            assert!(error.ends_with("; extract the trace again"), "{what}: {error}");
        }
        Ok(tables) => {
            let is_same = tables.iter().zip(sound).all(|(now, before)| now.equals_missing(before));
            assert!(is_same, "{what}: other tables");
        }
    }
}

/// Archives of the current layout and the one before, with the tables that they have.
fn archives(folder: &Path) -> Vec<(Vec<Claimed>, Vec<DataFrame>)> {
    let (_shell, sample, _) = extracts();
    let archives = [members_of(&sample), members_of(&golden(6))];
    let with_tables = |members: Vec<Claimed>| {
        let tables = tables(folder, &stored_7z(&members)).unwrap();
        (members, tables)
    };
    archives.map(with_tables).into()
}

#[test]
fn no_bit_of_an_archive_changes_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    for (members, sound) in archives(folder.path()) {
        let archive = stored_7z(&members);
        let contents = archive.len() - contents_7z(&members).len();
        // The signature, version, checksum and header at the start; members; the table of contents.
        let places = (0..32)
            .chain((32..contents).step_by(61 * one_of(16)))
            .chain((contents..archive.len()).step_by(one_of(8)));
        for place in places {
            let mut bad = archive.clone();
            bad[place] ^= 1 << (place % 8);
            assert_same_or_refused(folder.path(), &bad, &sound, &format!("byte {place}"));
        }
    }
}

#[test]
fn no_bit_of_a_packed_archive_changes_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("packed.json7z");
    let members = members_of(&golden(7)).into_iter().map(|member| (member.name, member.content));
    pack_with(&packed, &members.collect::<Vec<_>>(), EncoderMethod::LZMA2);
    let archive = fs::read(packed).unwrap();
    let sound = tables(folder.path(), &archive).unwrap();
    for place in (0..archive.len()).step_by(7 * one_of(64)) {
        let mut bad = archive.clone();
        bad[place] ^= 1 << (place % 8);
        assert_same_or_refused(folder.path(), &bad, &sound, &format!("byte {place}"));
    }
}

#[test]
fn a_table_of_contents_that_says_something_else_changes_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    for (members, sound) in archives(folder.path()) {
        let contents = contents_7z(&members);
        for place in (0..contents.len()).step_by(one_of(8)) {
            for change in [0x01, 0x80, 0xFF] {
                let mut bad = contents.clone();
                bad[place] ^= change;
                let archive = with_contents_7z(&members, &bad);
                let what = format!("byte {place} ^ {change:#x} of the table of contents");
                assert_same_or_refused(folder.path(), &archive, &sound, &what);
            }
        }
    }
}

#[test]
fn sizes_that_are_off_by_one_and_missing_checksums_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    for (members, _) in archives(folder.path()) {
        let refused = |changed: &[Claimed], what: &str, member: &str| {
            let error = tables(folder.path(), &stored_7z(changed)).expect_err(what).to_string();
            assert!(error.contains(&format!("member {member}")), "{what}: {error}");
            assert!(error.contains("extract the trace again"), "{what}: {error}");
        };
        for place in 0..members.len() {
            let name = &members[place].name;
            let size = members[place].size;
            for claimed in [size + 1, size - 1] {
                let mut changed = members.clone();
                changed[place].size = claimed;
                refused(&changed, &format!("{name} claims {claimed} of {size} bytes"), name);
            }
        }
        let mut changed = members.clone();
        changed.iter_mut().for_each(|member| member.checksum = None);
        refused(&changed, "no checksums", "");
    }
}
