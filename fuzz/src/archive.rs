//! What is done with any bytes as an extract: every table of it is read.
//!
//! The first byte says what the rest is, as a flipped bit in a packed archive is only found by its
//! checksum:
//!
//! * below 128: the content of a member, of the table with this number; the archive around it is sound;
//! * below 192: the table of contents of a 7z file, after its checksum; two bytes say how much of it is
//!   the packed members;
//! * else: a whole file.

use std::fs::{self, File};
use std::path::Path;
use std::sync::OnceLock;

use handlescope_model::tables::{TraceInfo, TraceInfos};
use handlescope_model::{
    ArchiveLimits, ContainerLimits, SCHEMA_VERSION, Table, Trace, write_parquet,
};
use sevenz_rust::{ArchiveEntry, ArchiveWriter, EncoderConfiguration, EncoderMethod};

/// The first byte of a whole file.
pub const WHOLE: u8 = 255;

/// The first byte of a table of contents.
pub const CONTENTS: u8 = 128;

/// Reads the tables of an extract that is made of these bytes; says how many could be read.
pub fn read(bytes: &[u8]) -> usize {
    let Some((kind, rest)) = bytes.split_first() else { return 0 };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.json7z");
    let mut tables = &Table::ALL[..];
    match kind {
        0..128 => {
            let number = usize::from(*kind) % tables.len();
            tables = &tables[number..=number];
            write(&path, &[(Table::Trace, sound_trace()), (tables[0], rest)]);
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

/// The table `trace` of a sound archive.
fn sound_trace() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let mut info = TraceInfos::default();
        info.push(TraceInfo { schema_version: SCHEMA_VERSION, ..TraceInfo::default() });
        let mut bytes = Vec::new();
        let frame = info.into_frame().expect("a frame");
        write_parquet(Table::Trace, frame, &mut bytes).expect("a table");
        bytes
    })
}

/// Writes an archive of these members; a table that is there twice counts once, the later.
fn write(path: &Path, members: &[(Table, &[u8])]) {
    let file = File::create(path).expect("a file");
    let mut writer = ArchiveWriter::new(file).expect("an archive");
    writer.set_content_methods(vec![EncoderConfiguration::new(EncoderMethod::COPY)]);
    for (place, (table, content)) in members.iter().enumerate() {
        if members[place + 1..].iter().all(|(later, _)| later != table) {
            let entry = ArchiveEntry::new_file(&table.member());
            writer.push_archive_entry(entry, Some(*content)).expect("a member");
        }
    }
    writer.finish().expect("an archive");
}

/// A 7z file with right checksums of its headers, whatever they say.
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
