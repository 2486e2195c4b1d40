//! Recognizes files that are neither an archive nor a trace by their start, and says what to do with them.

/// Number of bytes examined at the start of a file.
pub const START: u64 = 512;

/// The kind of a file that is neither an archive nor a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignContent {
    Empty,
    /// Text of no particular kind.
    Text,
    /// HTML, as a server answers instead of a file.
    WebPage,
    /// The placeholder in a Git LFS repository that stays until the file is fetched.
    LfsPointer,
    /// A log of the Event Viewer.
    EventLog,
    /// A trace as converted by PerfView.
    Etlx,
    /// Events of the .NET runtime from one process.
    NetTrace,
    /// Another file in PerfView's object format.
    PerfViewObjects,
    /// A dump of the whole system.
    KernelDump,
}

/// Start of a log of the Event Viewer.
const EVENT_LOG_MAGIC: &[u8] = b"ElfFile\0";
/// Magics of 32-bit and 64-bit kernel dumps.
const KERNEL_DUMP_MAGICS: [&[u8]; 2] = [b"PAGEDUMP", b"PAGEDU64"];
const NET_TRACE_MAGIC: &[u8] = b"Nettrace";
/// Start of a file of objects as PerfView writes it: the length of a text, then the text.
const OBJECTS_MAGIC: &[u8] = b"\x14\0\0\0!FastSerialization.1";
/// Class of the first object in an `.etlx`.
const ETLX_CLASS: &[u8] = b"Etlx.TraceLog";
const LFS_POINTER: &str = "version https://git-lfs.github.com/spec/";
const PAGE_STARTS: [&str; 2] = ["<!doctype html", "<html"];

impl ForeignContent {
    /// Recognizes a file by its start; returns `None` for one that may be an archive or a trace.
    pub fn from_start(start: &[u8]) -> Option<Self> {
        let start = start.get(..start.len().min(START as usize)).unwrap_or_default();
        let content = if start.is_empty() {
            Self::Empty
        } else if start.starts_with(EVENT_LOG_MAGIC) {
            Self::EventLog
        } else if KERNEL_DUMP_MAGICS.iter().any(|magic| start.starts_with(magic)) {
            Self::KernelDump
        } else if start.starts_with(NET_TRACE_MAGIC) {
            Self::NetTrace
        } else if start.starts_with(OBJECTS_MAGIC) {
            let is_etlx = start.windows(ETLX_CLASS.len()).any(|part| part == ETLX_CLASS);
            if is_etlx { Self::Etlx } else { Self::PerfViewObjects }
        } else {
            return Self::from_text(start);
        };
        Some(content)
    }

    fn from_text(start: &[u8]) -> Option<Self> {
        if start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF") {
            return Some(Self::Text);
        }
        let text = text_of(start)?;
        let first = text.trim_start_matches('\u{FEFF}').trim_start();
        let is_page = PAGE_STARTS.iter().any(|page| {
            first.get(..page.len()).is_some_and(|start| start.eq_ignore_ascii_case(page))
        });
        Some(match () {
            () if is_page => Self::WebPage,
            () if first.starts_with(LFS_POINTER) => Self::LfsPointer,
            () => Self::Text,
        })
    }

    /// Whether the format of the file is known, so that it cannot be anything else.
    pub fn is_known_format(self) -> bool {
        !matches!(self, Self::Empty | Self::Text)
    }

    /// Says what the file is instead of `expected`, and what to do about it.
    pub fn instead_of(self, expected: &str) -> String {
        let description = self.description();
        match self.remedy() {
            Some(remedy) => format!("{description}, not {expected}; {remedy}"),
            None => format!("{description}, not {expected}"),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Empty => "is empty (0 bytes)",
            Self::Text => "is a text file",
            Self::WebPage => "is a web page (HTML)",
            Self::LfsPointer => "is a pointer of Git LFS",
            Self::EventLog => "is a Windows event log (.evtx)",
            Self::Etlx => "is PerfView's copy of a trace (.etlx)",
            Self::NetTrace => "is a recording of the .NET runtime (.nettrace)",
            Self::PerfViewObjects => "is a file of PerfView or dotnet-gcdump",
            Self::KernelDump => "is a kernel dump, not a process dump",
        }
    }

    fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Empty | Self::Text => None,
            Self::WebPage => Some("download the file that the page offers, or save its text"),
            Self::LfsPointer => Some("fetch the file with git lfs pull"),
            Self::Etlx => Some("load the .etl that it was made from"),
            Self::EventLog | Self::NetTrace | Self::PerfViewObjects => {
                Some("it has no handles; record them with handlescope record or wprp")
            }
            Self::KernelDump => Some("write one of the process with procdump -ma"),
        }
    }
}

/// Returns the start of a file as text: UTF-8 without control characters, line breaks and tabs excepted. The last
/// character may be cut off.
fn text_of(start: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            let whole = start.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(whole).unwrap_or_default()
        }
        Err(_) => return None,
    };
    let is_text =
        !text.is_empty() && !text.chars().any(|c| c.is_control() && !"\t\r\n\x0C".contains(c));
    is_text.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_in_any_encoding_and_nothing_else_is() {
        assert_eq!(ForeignContent::from_start(b""), Some(ForeignContent::Empty));
        let long = "ä".repeat(300);
        for text in [&b"a,b\r\n1,2\r\n"[..], b"\xFF\xFEa\0", b"\xEF\xBB\xBF{}", long.as_bytes()] {
            assert_eq!(ForeignContent::from_start(text), Some(ForeignContent::Text), "{text:?}");
        }
        assert_eq!(ForeignContent::from_start(&[0x58, 0x61, 0xC3]), Some(ForeignContent::Text));
        for binary in [&b"7z\xBC\xAF\x27\x1C"[..], b"PK\x03\x04", b"\0\0\x01", b"\x80abc", b"\xC3"]
        {
            assert_eq!(ForeignContent::from_start(binary), None, "{binary:?}");
        }
    }

    #[test]
    fn files_of_other_programs_are_known_by_their_start() {
        let etlx = [OBJECTS_MAGIC, b"\x05\x2b\0\0\0Microsoft.Diagnostics.Tracing.Etlx.TraceLog"];
        for (start, expected) in [
            (&etlx.concat()[..], ForeignContent::Etlx),
            (b"\x14\0\0\0!FastSerialization.1\x05Trace", ForeignContent::PerfViewObjects),
            (b"Nettrace\x14\0\0\0!FastSerialization.1", ForeignContent::NetTrace),
            (b"ElfFile\0\0\0", ForeignContent::EventLog),
            (b"PAGEDU64", ForeignContent::KernelDump),
            (b"\xEF\xBB\xBF\r\n<!DOCTYPE html>", ForeignContent::WebPage),
            (b"<HTML lang='en'>", ForeignContent::WebPage),
            (b"version https://git-lfs.github.com/spec/v1\noid", ForeignContent::LfsPointer),
        ] {
            assert_eq!(ForeignContent::from_start(start), Some(expected));
            assert!(expected.is_known_format() && expected.remedy().is_some(), "{expected:?}");
        }
    }
}
