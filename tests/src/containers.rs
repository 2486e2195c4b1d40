//! Archives with traces, written by the libraries that read them, and archives that make false claims about their
//! members.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::Path;

use sevenz_rust::{ArchiveEntry, ArchiveReader, ArchiveWriter, Password};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::scenario::TraceBuilder;

/// Builds a trace with this many handles, which make it recognizable.
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

/// A function that writes an archive with these members.
pub type ContainerWriter = fn(&Path, &[(&str, Vec<u8>)]);

/// Writes a `.zip` of members with these names and contents.
///
/// # Panics
/// If it cannot be written.
pub fn write_zip(path: &Path, members: &[(&str, Vec<u8>)]) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    for (name, content) in members {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap();
}

/// Writes a `.7z` of members with these names and contents, each in its own block.
///
/// # Panics
/// If it cannot be written.
pub fn write_7z(path: &Path, members: &[(&str, Vec<u8>)]) {
    let mut archive = ArchiveWriter::create(path).unwrap();
    for (name, content) in members {
        let entry = ArchiveEntry::new_file(name);
        archive.push_archive_entry(entry, Some(Cursor::new(content))).unwrap();
    }
    archive.finish().unwrap();
}

/// Writes a `.cab` of members with these names and contents in one folder, as `makecab` packs files.
///
/// # Panics
/// If it cannot be written.
pub fn write_cab(path: &Path, members: &[(&str, Vec<u8>)]) {
    let mut builder = cab::CabinetBuilder::new();
    let folder = builder.add_folder(cab::CompressionType::MsZip);
    for (name, _) in members {
        folder.add_file(*name);
    }
    let mut archive = builder.build(File::create(path).unwrap()).unwrap();
    for (_, content) in members {
        archive.next_file().unwrap().unwrap().write_all(content).unwrap();
    }
    archive.finish().unwrap();
}

/// A member of a `.7z` and what the archive claims about it.
#[derive(Debug, Clone)]
pub struct MemberClaim {
    pub name: String,
    pub content: Vec<u8>,
    /// Claimed size, bytes.
    pub size: u64,
    /// Claimed CRC-32, if there is one.
    pub checksum: Option<u32>,
}

impl MemberClaim {
    /// Makes a member that the archive describes correctly.
    #[must_use]
    pub fn sound(name: &str, content: Vec<u8>) -> Self {
        let (size, checksum) = (content.len() as u64, Some(crc32(&content)));
        Self { name: name.to_owned(), content, size, checksum }
    }
}

/// Returns the members of a `.7z`.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn members_of(path: &Path) -> Vec<MemberClaim> {
    let mut archive = ArchiveReader::open(path, Password::empty()).unwrap();
    let names: Vec<_> = archive.archive().files.iter().map(|file| file.name.clone()).collect();
    let content = |name: String| MemberClaim::sound(&name, archive.read_file(&name).unwrap());
    names.into_iter().map(content).collect()
}

/// Builds a `.7z` of stored members, each in its own block, with an uncompressed table of contents (7zFormat.txt of
/// 7-Zip). Either all members have checksums or none.
#[must_use]
pub fn stored_7z(members: &[MemberClaim]) -> Vec<u8> {
    with_contents_7z(members, &contents_7z(members))
}

/// Builds the table of contents of [`stored_7z`].
#[must_use]
pub fn contents_7z(members: &[MemberClaim]) -> Vec<u8> {
    let count = number(members.len() as u64);
    let packed = members.iter().flat_map(|member| number(member.content.len() as u64));
    // The header, its streams and their packed sizes; then folders with one coder each, which copies.
    let mut bytes = [&[0x01, 0x04, 0x06, 0x00], &count[..], &[0x09]].concat();
    bytes.extend(packed);
    bytes.extend([&[0x00, 0x07, 0x0B], &count[..], &[0x00]].concat());
    bytes.extend([0x01, 0x01, 0x00].repeat(members.len()));
    bytes.push(0x0C);
    bytes.extend(members.iter().flat_map(|member| number(member.size)));
    // Each folder has one member. The checksums go here, as 7-Zip writes them.
    bytes.extend([0x00, 0x08]);
    let checksums: Option<Vec<u32>> = members.iter().map(|member| member.checksum).collect();
    if let Some(checksums) = checksums {
        bytes.extend([0x0A, 0x01]);
        bytes.extend(checksums.into_iter().flat_map(u32::to_le_bytes));
    }
    let name = |member: &MemberClaim| member.name.encode_utf16().chain([0]).collect::<Vec<_>>();
    let names: Vec<u8> = members.iter().flat_map(name).flat_map(u16::to_le_bytes).collect();
    bytes.extend([&[0x00, 0x00, 0x05], &count[..], &[0x11]].concat());
    bytes.extend(number(names.len() as u64 + 1));
    bytes.push(0x00);
    bytes.extend(names);
    bytes.extend([0x00, 0x00]);
    bytes
}

/// Builds an archive of the members with any table of contents, and sets its checksum right.
#[must_use]
pub fn with_contents_7z(members: &[MemberClaim], contents: &[u8]) -> Vec<u8> {
    let packed: Vec<u8> = members.iter().flat_map(|member| member.content.clone()).collect();
    let start = [
        &(packed.len() as u64).to_le_bytes()[..],
        &(contents.len() as u64).to_le_bytes(),
        &crc32(contents).to_le_bytes(),
    ];
    let start = start.concat();
    let checksum = crc32(&start).to_le_bytes();
    [b"7z\xBC\xAF\x27\x1C\x00\x04", &checksum[..], &start, &packed, contents].concat()
}

/// Encodes a number as the format does: the leading ones of the first byte count the bytes that follow.
fn number(value: u64) -> Vec<u8> {
    let following = (0..8).find(|following| value >> (7 * (following + 1)) == 0).unwrap_or(8);
    let high = if following < 8 { (value >> (8 * following)) as u8 } else { 0 };
    let ones = !(0xFF_u16 >> following) as u8;
    let low = value.to_le_bytes().into_iter().take(following as usize);
    [ones | high].into_iter().chain(low).collect()
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(u32::MAX, byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_as_they_were_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.7z");
        let sizes = [1, 0x7F, 0x80, 0x3FFF, 0x4000, 0x1F_FFFF, 0x20_0000];
        let member = |(n, size)| MemberClaim::sound(&format!("{n}.bin"), vec![n as u8; size]);
        let members: Vec<_> = sizes.into_iter().enumerate().map(member).collect();
        std::fs::write(&path, stored_7z(&members)).unwrap();
        let read = members_of(&path);
        assert_eq!(read.len(), members.len());
        for (read, member) in read.iter().zip(&members) {
            assert!(read.name == member.name && read.content == member.content, "{}", read.name);
        }
    }
}
