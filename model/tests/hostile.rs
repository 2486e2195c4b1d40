//! Untrusted archives are refused with a reason, before they cost anything.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use handlescope_model::tables::{Name, Names, Object, Objects, TraceInfo, TraceInfos};
use handlescope_model::{
    ArchiveLimits, ArchiveWriter, ContainerLimits, RowCount, SCHEMA_VERSION, Table, Trace,
};
use sevenz_rust::{ArchiveEntry, ArchiveReader, EncoderConfiguration, EncoderMethod, Password};
use tempfile::TempDir;

/// Returns the members of a sound archive with this many names.
fn members(names: u32) -> Vec<(String, Vec<u8>)> {
    members_with(Objects::default(), names)
}

/// Returns the members of an archive with these objects, whatever they claim.
fn members_with(objects: Objects, names: u32) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json7z");
    let mut info = TraceInfos::default();
    info.push(TraceInfo { schema_version: SCHEMA_VERSION, ..TraceInfo::default() });
    let names: Names = (0..names).map(|_| Name { name: "x".into() }).collect();
    let mut writer = ArchiveWriter::create(&path).unwrap();
    writer.table(Table::Trace, info.into_frame()).unwrap();
    writer.table(Table::Objects, objects.into_frame()).unwrap();
    writer.table(Table::Names, names.into_frame()).unwrap();
    writer.finish().unwrap();
    let mut archive = ArchiveReader::open(&path, Password::empty()).unwrap();
    let names: Vec<_> = archive.archive().files.iter().map(|file| file.name.clone()).collect();
    names.into_iter().map(|name| (name.clone(), archive.read_file(&name).unwrap())).collect()
}

struct Built {
    _folder: TempDir,
    path: PathBuf,
}

/// Builds an archive of these members.
fn built(method: EncoderMethod, members: &[(String, Vec<u8>)]) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json7z");
    let mut writer = sevenz_rust::ArchiveWriter::new(File::create(&path).unwrap()).unwrap();
    writer.set_content_methods(vec![EncoderConfiguration::new(method)]);
    for (name, bytes) in members {
        writer.push_archive_entry(ArchiveEntry::new_file(name), Some(&bytes[..])).unwrap();
    }
    writer.finish().unwrap();
    Built { _folder: folder, path }
}

fn refusal(path: &Path) -> String {
    let error = Trace::open(path).map(drop).unwrap_err().to_string();
    assert!(error.contains("a.json7z"), "{error}");
    error
}

#[test]
fn an_archive_packed_by_another_program_is_read() {
    for method in [EncoderMethod::COPY, EncoderMethod::LZMA, EncoderMethod::LZMA2] {
        let built = built(method, &members(3));
        assert_eq!(Trace::open(&built.path).unwrap().height(Table::Names).unwrap(), 3);
    }
}

#[test]
fn names_that_lead_out_of_the_archive_or_come_twice_are_refused() {
    for (name, reason) in [
        ("../x.parquet", "leads out of the archive"),
        ("/etc/x", "has an absolute name"),
        ("C:\\x", "has an absolute name"),
        ("names.parquet", "occurs twice"),
    ] {
        let mut members = members(1);
        members.push((name.to_owned(), vec![1, 2, 3]));
        let error = refusal(&built(EncoderMethod::COPY, &members).path);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_member_that_unpacks_to_a_thousand_times_the_file_is_refused_unread() {
    let mut members = members(1);
    members.push(("zeros.bin".into(), vec![0; 80 << 20]));
    let built = built(EncoderMethod::LZMA2, &members);
    assert!(built.path.metadata().unwrap().len() < 1 << 20);
    let error = refusal(&built.path);
    assert!(error.contains("claim to unpack to 839"), "{error}");
}

#[test]
fn a_member_larger_than_the_limit_is_refused() {
    let limits = ArchiveLimits {
        container: ContainerLimits::for_members_of(100),
        ..ArchiveLimits::default()
    };
    let built = built(EncoderMethod::COPY, &members(1));
    let error = Trace::open_within(&built.path, limits).map(drop).unwrap_err().to_string();
    assert!(
        error.contains("member trace.parquet has") && error.contains("limit of 100"),
        "{error}"
    );
}

#[test]
fn a_column_of_more_values_than_its_bytes_can_hold_is_refused() {
    let built = built(EncoderMethod::COPY, &members(2_000_000));
    let usual = ArchiveLimits::default();
    let trusted = usual.trusted_with(1 << 30);
    let names = |limits| Trace::open_within(&built.path, limits).unwrap().frame(Table::Names);
    assert_eq!(names(trusted).unwrap().height(), 2_000_000);
    for limits in [usual, ArchiveLimits { values: 1_000_000, ..trusted }] {
        let error = names(limits).unwrap_err().to_string();
        assert!(error.contains("names.parquet") && error.contains("2000000 values"), "{error}");
    }
}

#[test]
fn objects_that_share_more_acquisitions_than_there_are_are_refused() {
    let mut objects = Objects::default();
    for _ in 0..2 {
        objects.push(Object { acquisition_count: RowCount::new(u32::MAX), ..Object::default() });
    }
    let built = built(EncoderMethod::COPY, &members_with(objects, 1));
    let trace = Trace::open(&built.path).unwrap();
    let error = trace.values(Objects::acquisition_count).map(drop).unwrap_err().to_string();
    assert!(error.contains("adds up to 8589934590, but acquisitions has 0 rows"), "{error}");
}

#[test]
fn a_flipped_byte_in_a_member_is_noticed() {
    let built = built(EncoderMethod::COPY, &members(1000));
    let mut bytes = std::fs::read(&built.path).unwrap();
    let names = ArchiveReader::new(Cursor::new(&bytes), Password::empty())
        .unwrap()
        .read_file("names.parquet")
        .unwrap();
    let start = bytes.windows(names.len()).position(|window| window == names).unwrap();
    let mut unnoticed = 0;
    for offset in (0..names.len()).step_by(11) {
        bytes[start + offset] ^= 0x10;
        std::fs::write(&built.path, &bytes).unwrap();
        bytes[start + offset] ^= 0x10;
        let read = Trace::open(&built.path).and_then(|trace| trace.frame(Table::Names).map(drop));
        unnoticed += u32::from(read.is_ok());
    }
    assert_eq!(unnoticed, 0, "the archive has a checksum of every member");
}

#[test]
fn a_cut_archive_is_refused_wherever_it_is_cut() {
    let built = built(EncoderMethod::LZMA2, &members(1000));
    let mut bytes = Vec::new();
    File::open(&built.path).unwrap().read_to_end(&mut bytes).unwrap();
    for length in 0..bytes.len() {
        std::fs::write(&built.path, &bytes[..length]).unwrap();
        let _ = refusal(&built.path);
    }
}

#[test]
fn every_member_has_to_be_there_as_it_was_written() {
    let sound = members(1);
    for method in [EncoderMethod::COPY, EncoderMethod::LZMA] {
        assert!(Trace::open(&built(method, &sound).path).is_ok(), "packed by another program");
    }
    for member in 0..sound.len() {
        let name = &sound[member].0;
        let mut members = sound.clone();
        members.remove(member);
        let error = refusal(&built(EncoderMethod::COPY, &members).path);
        let said = format!("member {name} is missing; extract the trace again");
        assert!(error.contains(&said), "{error}");
        let mut members = sound.clone();
        members[member].1.push(0);
        let error = refusal(&built(EncoderMethod::COPY, &members).path);
        assert!(
            error.contains(name.as_str()) && error.contains("extract the trace again"),
            "{error}"
        );
    }
}
