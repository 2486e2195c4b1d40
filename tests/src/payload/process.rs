//! Process events.

use super::KernelPayload;
use crate::bytes::{ByteString, PointerSize};

/// Kind of process event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEvent {
    /// Start (0x0301).
    Start,
    /// End (0x0302).
    End,
    /// Rundown at the start (0x0303).
    RundownStart,
    /// Rundown at the end (0x0304).
    RundownEnd,
    /// An exited process with open handles (0x0327).
    Defunct,
}

impl ProcessEvent {
    /// Returns the hook id.
    #[must_use]
    pub fn hook(self) -> u16 {
        match self {
            Self::Start => 0x0301,
            Self::End => 0x0302,
            Self::RundownStart => 0x0303,
            Self::RundownEnd => 0x0304,
            Self::Defunct => 0x0327,
        }
    }
}

/// A security identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sid {
    /// Identifier authority, e.g. 5 for `S-1-5-...`.
    pub authority: u64,
    /// Sub authorities, at most 15.
    pub sub: Vec<u32>,
}

impl Sid {
    /// Returns `S-1-5-18`, the local system.
    #[must_use]
    pub fn system() -> Self {
        Self { authority: 5, sub: vec![18] }
    }

    fn append(&self, bytes: ByteString) -> ByteString {
        let head = bytes.u8(1).u8(self.sub.len() as u8).raw(&self.authority.to_be_bytes()[2..]);
        self.sub.iter().fold(head, |bytes, value| bytes.u32(*value))
    }
}

/// Fields of a process event; each version of the event writes some of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessRecord {
    /// Unique process key (version 2 and later).
    pub key: u64,
    /// Process id.
    pub pid: u32,
    /// Id of the parent process.
    pub parent: u32,
    /// Session (version 1 and later).
    pub session: u32,
    /// Exit status, 0x103 while running (version 1 and later).
    pub exit_status: i32,
    /// Page directory base (version 1, and 3 and later).
    pub page_directory: u64,
    /// Flags (version 4 and later).
    pub flags: u32,
    /// User; `None` is written as a null SID.
    pub sid: Option<Sid>,
    /// File name of the image without path.
    pub name: String,
    /// Command line (version 2 and later).
    pub command_line: String,
    /// Package name and application id (version 4 and later).
    pub package: (String, String),
    /// Exit time as FILETIME (version 5).
    pub exit_time: i64,
}

impl ProcessRecord {
    /// Returns the payload of this event in a version from 0 to 5.
    #[must_use]
    pub fn payload(&self, event: ProcessEvent, version: u8, ptr: PointerSize) -> KernelPayload {
        let bytes = self.append_sid(self.numbers(version, ptr), ptr).ansiz(&self.name);
        let bytes = if version >= 2 { bytes.utf16z(&self.command_line) } else { bytes };
        let bytes = if version >= 4 {
            bytes.utf16z(&self.package.0).utf16z(&self.package.1)
        } else {
            bytes
        };
        let bytes = if version >= 5 { bytes.i64(self.exit_time) } else { bytes };
        KernelPayload { hook: event.hook(), version, bytes: bytes.into_vec() }
    }

    fn numbers(&self, version: u8, ptr: PointerSize) -> ByteString {
        if version == 0 {
            return ByteString::new().ptr(ptr, self.pid.into()).ptr(ptr, self.parent.into());
        }
        let first = if version == 1 { self.page_directory } else { self.key };
        let bytes = ByteString::new()
            .ptr(ptr, first)
            .u32(self.pid)
            .u32(self.parent)
            .u32(self.session)
            .i32(self.exit_status);
        let bytes = if version >= 3 { bytes.ptr(ptr, self.page_directory) } else { bytes };
        if version >= 4 { bytes.u32(self.flags) } else { bytes }
    }

    fn append_sid(&self, bytes: ByteString, ptr: PointerSize) -> ByteString {
        match &self.sid {
            None => bytes.u32(0),
            // TOKEN_USER: pointer and attributes, padded to two pointers. The pointer must not be 0, or readers take
            // the SID as missing.
            Some(sid) => sid.append(bytes.ptr(ptr, 0xffff_b481_ae0f_2000).ptr(ptr, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> ProcessRecord {
        ProcessRecord {
            key: 0x1111,
            pid: 2,
            parent: 3,
            session: 4,
            exit_status: 0x103,
            page_directory: 0x2222,
            flags: 5,
            sid: Some(Sid::system()),
            name: "a".into(),
            command_line: "b".into(),
            package: ("c".into(), "d".into()),
            exit_time: 6,
        }
    }

    fn bytes(version: u8, ptr: PointerSize) -> Vec<u8> {
        record().payload(ProcessEvent::Start, version, ptr).bytes
    }

    const SID: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];

    #[test]
    fn version_4_has_the_user_at_36() {
        let bytes = bytes(4, PointerSize::Eight);
        assert_eq!(bytes[..16], [0x11, 0x11, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[16..26], [4, 0, 0, 0, 3, 1, 0, 0, 0x22, 0x22]);
        assert_eq!(bytes[32..36], [5, 0, 0, 0]);
        assert_eq!(bytes[52..64], SID);
        assert_eq!(bytes[64..], [b'a', 0, b'b', 0, 0, 0, b'c', 0, 0, 0, b'd', 0, 0, 0]);
    }

    #[test]
    fn version_3_has_the_user_at_32_and_no_package() {
        let bytes = bytes(3, PointerSize::Eight);
        assert_eq!(bytes[48..60], SID);
        assert_eq!(bytes[60..], [b'a', 0, b'b', 0, 0, 0]);
    }

    #[test]
    fn version_5_ends_with_the_exit_time() {
        let bytes = bytes(5, PointerSize::Eight);
        assert_eq!(bytes[bytes.len() - 8..], [6, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn old_versions_lack_key_and_command_line() {
        let (v0, v1) = (bytes(0, PointerSize::Eight), bytes(1, PointerSize::Eight));
        let v2 = bytes(2, PointerSize::Eight);
        assert_eq!(v0[..16], [2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(v0[32..], [&SID[..], &[b'a', 0]].concat());
        assert_eq!(v1[..12], [0x22, 0x22, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(v1[40..], [&SID[..], &[b'a', 0]].concat());
        assert_eq!(v2[..2], [0x11, 0x11]);
        assert_eq!(v2[52..], [b'a', 0, b'b', 0, 0, 0]);
    }

    #[test]
    fn a_missing_user_takes_4_bytes_and_32_bit_pointers_8() {
        let record = ProcessRecord { sid: None, ..record() };
        let wide = record.payload(ProcessEvent::End, 3, PointerSize::Eight);
        assert_eq!((wide.hook, &wide.bytes[32..38]), (0x0302, &[0, 0, 0, 0, b'a', 0][..]));
        assert_eq!(bytes(4, PointerSize::Four)[36..48], SID);
    }
}
