//! Archives with traces, written by the libraries that read them.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::Path;

use sevenz_rust::{ArchiveEntry, ArchiveWriter};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::scenario::TraceBuilder;

/// A trace with so many handles, by which it is recognized.
#[must_use]
pub fn trace_of_handles(handles: u32) -> Vec<u8> {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    for n in 0..handles {
        let object = 0xffff_8100_0000_1000 + u64::from(n) * 0x100;
        trace.create_handle(1_000_000 * i64::from(n + 1), (4, 8), object, 4 * n + 4, 16);
    }
    trace.to_bytes()
}

/// Writes a `.zip` of members with these names and contents.
///
/// # Panics
/// When it cannot be written.
pub fn write_zip(path: &Path, members: &[(&str, Vec<u8>)]) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    for (name, content) in members {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap();
}

/// Writes a `.7z` of members with these names and contents, each in a block of its own.
///
/// # Panics
/// When it cannot be written.
pub fn write_7z(path: &Path, members: &[(&str, Vec<u8>)]) {
    let mut archive = ArchiveWriter::create(path).unwrap();
    for (name, content) in members {
        let entry = ArchiveEntry::new_file(name);
        archive.push_archive_entry(entry, Some(Cursor::new(content))).unwrap();
    }
    archive.finish().unwrap();
}
