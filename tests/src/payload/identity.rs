//! Image identities; a merge inserts them after each image event.

use super::ClassicPayload;
use crate::bytes::{ByteString, Guid, PointerSize};

/// Event class of image identities.
pub const IDENTITY_GUID: Guid = Guid::new(0xb3e675d7_2554_4f18_830b_2762732560de);

/// The PDB an image was built with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DebugId {
    /// PDB name, sometimes a full path.
    pub name: String,
    /// PDB GUID.
    pub guid: Guid,
    /// PDB age.
    pub age: u32,
}

/// Returns `ImageID` (opcode 0): size and time stamp of the file, and the original name in its version resource.
#[must_use]
pub fn image_id(
    ptr: PointerSize,
    (base, size): (u64, u64),
    pid: u32,
    timestamp: u32,
    original_name: &str,
) -> ClassicPayload {
    let bytes = ByteString::new().ptr(ptr, base).ptr(ptr, size).u32(pid).u32(timestamp);
    payload(0, 2, bytes.utf16z(original_name))
}

/// Returns `DbgID_RSDS` (opcode 36): the PDB of an image.
#[must_use]
pub fn rsds(ptr: PointerSize, base: u64, pid: u32, pdb: &DebugId) -> ClassicPayload {
    let bytes = ByteString::new().ptr(ptr, base).u32(pid).guid(pdb.guid).u32(pdb.age);
    payload(36, 2, bytes.ansiz(&pdb.name))
}

/// Returns the event of an image without debug data (opcode 32).
#[must_use]
pub fn no_debug_data(ptr: PointerSize, base: u64, pid: u32) -> ClassicPayload {
    payload(32, 2, ByteString::new().ptr(ptr, base).u32(pid))
}

/// Returns `FileVersion` (opcode 64), which occurs about once per distinct file.
#[must_use]
pub fn file_version(
    size: u32,
    timestamp: u32,
    original_name: &str,
    version: &str,
) -> ClassicPayload {
    let strings = [
        original_name,
        "A module of a fixture",
        version,
        version,
        "English (United States)",
        "Fixture product",
        "Fixture company",
        version,
        "",
        "",
    ];
    let numbers = ByteString::new().u32(size).u32(timestamp);
    payload(64, 0, strings.iter().fold(numbers, |bytes, text| bytes.utf16z(text)))
}

fn payload(opcode: u8, version: u16, bytes: ByteString) -> ClassicPayload {
    ClassicPayload { guid: IDENTITY_GUID, opcode, version, bytes: bytes.into_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_id_has_the_original_name_at_24() {
        let payload = image_id(PointerSize::Eight, (0x10, 0x20), 3, 4, "n");
        assert_eq!((payload.opcode, payload.version), (0, 2));
        let expected = [
            0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, b'n', 0,
            0, 0,
        ];
        assert_eq!(payload.bytes, expected);
    }

    #[test]
    fn rsds_has_the_guid_at_12_and_the_pdb_name_at_32() {
        let pdb = DebugId { name: "a.pdb".into(), guid: IDENTITY_GUID, age: 2 };
        let payload = rsds(PointerSize::Eight, 0x10, 3, &pdb);
        assert_eq!(payload.bytes[8..16], [3, 0, 0, 0, 0xd7, 0x75, 0xe6, 0xb3]);
        assert_eq!(payload.bytes[28..], *b"\x02\0\0\0a.pdb\0");
    }

    #[test]
    fn a_file_version_has_ten_strings() {
        let bytes = file_version(1, 2, "n", "1.2").bytes;
        assert_eq!(bytes[..12], [1, 0, 0, 0, 2, 0, 0, 0, b'n', 0, 0, 0]);
        let zeros = bytes[8..].as_chunks::<2>().0.iter().filter(|unit| **unit == [0, 0]);
        assert_eq!(zeros.count(), 10);
    }
}
