//! Extracts that differ from what was written: missing or empty tables, tables of another trace, and damage to each
//! part of the archive. Each gives the right answer or an error, never a wrong answer.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_model::{ArchiveError, ParquetFile, Table, Trace, write_parquet};
use handlescope_tests::allocations;
use handlescope_tests::binary::{ProgramRun, Shell};
use handlescope_tests::containers::{
    MemberClaim, contents_7z, members_of, stored_7z, with_contents_7z,
};
use handlescope_tests::foreign::pack_with;
use handlescope_tests::thorough::one_of;
use polars::prelude::{Column, DataFrame};
use sevenz_rust::EncoderMethod;

use crate::golden::golden;

const MANIFEST: &str = "tables.tsv";

/// Makes an extract of the sample, and one of another trace with allocations.
fn extracts() -> (Shell, PathBuf, PathBuf) {
    let shell = Shell::new();
    allocations::trace().write(shell.path("memory.etl")).unwrap();
    let _ = shell.run(&["extract", "leaky.etl", "memory.etl", "-o", "."]).ok();
    let [sample, other] = ["leaky.json7z", "memory.json7z"].map(|name| shell.path(name));
    fs::remove_file(shell.path("leaky.etl")).unwrap();
    (shell, sample, other)
}

fn ask(shell: &Shell, members: &[MemberClaim]) -> ProgramRun {
    fs::write(shell.path("asked.json7z"), stored_7z(members)).unwrap();
    let questions = [".why", ".dump ObjectRef -ShowStack -ShowRef", ".dump Process"];
    let mut arguments = vec!["asked.json7z"];
    arguments.extend(questions.iter().flat_map(|question| ["-c", question]));
    shell.run(&arguments)
}

#[track_caller]
fn assert_refused(run: &ProgramRun, member: &str) {
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{member}: {run:?}");
    assert!(run.stderr.contains("asked.json7z: member "), "{member}: {run:?}");
    assert!(run.stderr.contains(member), "{run:?}");
    assert!(run.stderr.contains("extract the trace again"), "{member}: {run:?}");
}

fn without(members: &[MemberClaim], name: &str) -> Vec<MemberClaim> {
    members.iter().filter(|member| member.name != name).cloned().collect()
}

fn with(members: &[MemberClaim], name: &str, content: Vec<u8>) -> Vec<MemberClaim> {
    let mut members = members.to_vec();
    let member = members.iter_mut().find(|member| member.name == name).unwrap();
    *member = MemberClaim::sound(name, content);
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

fn content<'a>(members: &'a [MemberClaim], name: &str) -> &'a [u8] {
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
            // Another trace's manifest does not match the first table.
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
    members.push(MemberClaim::sound("notes.txt", b"of a reader".to_vec()));
    assert_eq!(ask(&shell, &members).ok().stdout, answer);
}

/// Reads all tables of an archive.
fn tables(folder: &Path, archive: &[u8]) -> Result<Vec<DataFrame>, ArchiveError> {
    let path = folder.join("damaged.json7z");
    fs::write(&path, archive).unwrap();
    let trace = Trace::open(&path)?;
    Table::ALL.iter().map(|table| trace.frame(*table)).collect()
}

#[track_caller]
fn assert_same_or_refused(folder: &Path, archive: &[u8], sound: &[DataFrame], what: &str) {
    match tables(folder, archive) {
        // If a table claims to be too large, a higher limit lets it be read; the console names the option.
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

/// Returns the members of the sample's extract, and its tables.
fn sample(folder: &Path) -> (Vec<MemberClaim>, Vec<DataFrame>) {
    let (_shell, sample, _) = extracts();
    let members = members_of(&sample);
    let tables = tables(folder, &stored_7z(&members)).unwrap();
    (members, tables)
}

#[test]
fn no_bit_of_an_archive_changes_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (members, sound) = sample(folder.path());
    let archive = stored_7z(&members);
    let contents = archive.len() - contents_7z(&members).len();
    // Covers the signature, version, checksum and header at the start, then members, then the table of contents.
    let places = (0..32)
        .chain((32..contents).step_by(61 * one_of(16)))
        .chain((contents..archive.len()).step_by(one_of(8)));
    for place in places {
        let mut bad = archive.clone();
        bad[place] ^= 1 << (place % 8);
        assert_same_or_refused(folder.path(), &bad, &sound, &format!("byte {place}"));
    }
}

#[test]
fn no_bit_of_a_packed_archive_changes_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("packed.json7z");
    let members = members_of(&golden()).into_iter().map(|member| (member.name, member.content));
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
    let (members, sound) = sample(folder.path());
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

#[test]
fn sizes_that_are_off_by_one_and_missing_checksums_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (members, _) = sample(folder.path());
    let refused = |changed: &[MemberClaim], what: &str, member: &str| {
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

/// Replaces a table's content, and lists it in the manifest as if it had been written that way.
fn with_listed(members: &[MemberClaim], table: Table, bytes: Vec<u8>) -> Vec<MemberClaim> {
    let member = MemberClaim::sound(&table.member(), bytes.clone());
    let (size, checksum) = (member.size, member.checksum.unwrap());
    let manifest = str::from_utf8(content(members, MANIFEST)).unwrap();
    let lines = manifest.lines().map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
        [name, rows, ..] if name == table.name() => {
            format!("{name}\t{rows}\t{size}\t{checksum:08x}\n")
        }
        _ => format!("{line}\n"),
    });
    let manifest: String = lines.collect();
    with(&with(members, &table.member(), bytes), MANIFEST, manifest.into_bytes())
}

#[test]
fn a_table_has_all_its_columns_whatever_the_manifest_lists() {
    let folder = tempfile::tempdir().unwrap();
    let (members, sound) = sample(folder.path());
    for (table, rows) in Table::ALL.into_iter().zip(&sound).filter(|(_, rows)| rows.width() > 1) {
        for column in table.columns() {
            let rest = rows.drop(column.name).unwrap();
            let mut bytes = Vec::new();
            let mut file = ParquetFile::new(rest.schema(), |_| true, &mut bytes).unwrap();
            file.write(&rest).unwrap();
            file.finish(Vec::new()).unwrap();
            let archive = stored_7z(&with_listed(&members, table, bytes));
            let error = tables(folder.path(), &archive).unwrap_err().to_string();
            let said = format!(
                "damaged.json7z: member {} is damaged: it has no column {}; extract the trace again",
                table.member(),
                column.name
            );
            assert!(error.ends_with(&said), "{error}");
        }
    }
}
