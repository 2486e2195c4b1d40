//! Treats any bytes as an extract and reads every table of it.
//!
//! The first byte says what the rest is. Whole files alone would not do, because the checksum of a packed archive finds
//! any flipped bit:
//!
//! * below 128: the content of the table with this number; the archive around it is sound;
//! * below 192: the table of contents of a 7z file, whose checksum is then set right; two bytes say how much of the
//!   input is the packed members;
//! * else: a whole file.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Cursor;
use std::path::Path;
use std::sync::OnceLock;

use handlescope_model::guard::quietly;
use handlescope_model::tables::{SCHEMA_VERSION, TraceInfo, TraceInfos};
use handlescope_model::{ArchiveLimits, ContainerLimits, Table, Trace};
use polars::prelude::{ParquetReader, SerReader};
use sevenz_rust::{
    ArchiveEntry, ArchiveReader, ArchiveWriter, EncoderConfiguration, EncoderMethod, Password,
};

/// First byte of input that is a whole file.
pub const WHOLE: u8 = 255;

/// First byte of input that is a table of contents.
pub const CONTENTS: u8 = 128;

/// Reads the tables of an extract made from these bytes; returns how many could be read.
pub fn read(bytes: &[u8]) -> usize {
    let Some((kind, rest)) = bytes.split_first() else { return 0 };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.json7z");
    let mut tables = &Table::ALL[..];
    match kind {
        0..128 => {
            let number = usize::from(*kind) % tables.len();
            tables = &tables[number..=number];
            let sound = sound_tables().iter().map(|(table, content)| (*table, &content[..]));
            write(&path, &sound.chain([(tables[0], rest)]).collect::<Vec<_>>());
        }
        128..192 => fs::write(&path, with_contents(rest)).expect("a file"),
        192.. => fs::write(&path, rest).expect("a file"),
    }
    let limits = ArchiveLimits {
        container: ContainerLimits {
            decoder_bytes: 64 << 20,
            ..ContainerLimits::for_members_of(16 << 20)
        },
        values: 1 << 20,
        ..ArchiveLimits::default()
    };
    let Ok(trace) = Trace::open_within(&path, limits) else { return 0 };
    let read = |table: &&Table| {
        let height = trace.height(**table);
        let frame = trace.frame(**table);
        if let (Ok(height), Ok(frame)) = (&height, &frame) {
            assert_eq!(*height, frame.height(), "{}", table.name());
        }
        frame.is_ok()
    };
    tables.iter().filter(read).count()
}

/// Returns the tables of a sound archive; the input replaces one of them.
fn sound_tables() -> &'static [(Table, Vec<u8>)] {
    static TABLES: OnceLock<Vec<(Table, Vec<u8>)>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let info = TraceInfo { schema_version: SCHEMA_VERSION, ..TraceInfo::default() };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json7z");
        let mut writer = handlescope_model::ArchiveWriter::create(&path).expect("an archive");
        let info = TraceInfos::from_iter([info]).into_frame();
        writer.table(Table::Trace, info).expect("a table");
        writer.finish().expect("an archive");
        let mut archive = ArchiveReader::open(&path, Password::empty()).expect("an archive");
        Table::ALL
            .map(|table| (table, archive.read_file(&table.member()).expect("a table")))
            .to_vec()
    })
}

/// Writes an archive of these members and a manifest. If a table occurs twice, the later one counts.
fn write(path: &Path, members: &[(Table, &[u8])]) {
    let file = File::create(path).expect("a file");
    let mut writer = ArchiveWriter::new(file).expect("an archive");
    writer.set_content_methods(vec![EncoderConfiguration::new(EncoderMethod::COPY)]);
    let mut push = |name: &str, content: &[u8]| {
        let entry = ArchiveEntry::new_file(name);
        writer.push_archive_entry(entry, Some(content)).expect("a member");
    };
    let mut manifest = "table\trows\tbytes\tcrc32\n".to_owned();
    for (place, (table, content)) in members.iter().enumerate() {
        if members[place + 1..].iter().all(|(later, _)| later != table) {
            push(&table.member(), content);
            let (name, rows, bytes) = (table.name(), rows(content), content.len());
            writeln!(manifest, "{name}\t{rows}\t{bytes}\t{:08x}", crc32(content)).expect("text");
        }
    }
    push("tables.tsv", manifest.as_bytes());
    writer.finish().expect("an archive");
}

/// Returns the number of rows a table claims, or 0 if it is damaged.
fn rows(content: &[u8]) -> usize {
    let rows = || ParquetReader::new(Cursor::new(content)).num_rows();
    quietly(rows).ok().and_then(Result::ok).unwrap_or_default()
}

/// Builds a 7z file with correct header checksums, whatever the headers say.
fn with_contents(bytes: &[u8]) -> Vec<u8> {
    let (length, rest) = bytes.split_at(bytes.len().min(2));
    let length = length.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (members, contents) = rest.split_at(length.min(rest.len()));
    let start = [
        &(members.len() as u64).to_le_bytes()[..],
        &(contents.len() as u64).to_le_bytes(),
        &crc32(contents).to_le_bytes(),
    ];
    let start = start.concat();
    let checksum = crc32(&start).to_le_bytes();
    [b"7z\xBC\xAF\x27\x1C\x00\x04", &checksum[..], &start, members, contents].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
    }
    !crc
}
