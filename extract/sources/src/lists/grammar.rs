//! Parses lines of Sysinternals' `handle.exe`.
//!
//! The forms come from published output of versions 1.11 to 5.0: handles below the line of their process, handles
//! without one (`-p`), a line for each handle found by a search, and counts by type (`-s`).

/// Types that identify a line as a handle without any context.
const TYPES: [&str; 24] = [
    "ALPC Port",
    "Desktop",
    "Device",
    "Directory",
    "EtwConsumer",
    "EtwRegistration",
    "Event",
    "File",
    "IoCompletion",
    "IRTimer",
    "Job",
    "Key",
    "KeyedEvent",
    "Mutant",
    "Port",
    "Process",
    "Section",
    "Semaphore",
    "SymbolicLink",
    "Thread",
    "Timer",
    "Token",
    "TpWorkerFactory",
    "WindowStation",
];

/// What `handle.exe` prints for a type it does not know.
const UNKNOWN_TYPE: &str = "<Unknown type>";

/// Minimum width of the type column, before the space that precedes the name.
const TYPE_WIDTH: usize = 13;

/// A handle: `  48: File  (RW-)   C:\Windows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandleLine<'a> {
    pub handle: u64,
    /// Empty for a type the program does not know.
    pub type_name: &'a str,
    /// Empty for an unnamed object.
    pub name: &'a str,
}

/// A line of the output.
#[derive(Debug, PartialEq, Eq)]
pub enum ListLine<'a> {
    /// The process whose handles follow.
    Process {
        name: &'a str,
        pid: u32,
    },
    Row(HandleLine<'a>),
    /// A handle found by a search, with its process.
    Found {
        name: &'a str,
        pid: u32,
        row: HandleLine<'a>,
    },
    /// Counts follow.
    Summary,
    Count {
        type_name: &'a str,
        count: u64,
    },
    Total(u64),
    /// Name, version and authors of the program, and lines between processes.
    Banner,
    /// The program was asked for handles that do not exist.
    Nothing,
}

impl<'a> ListLine<'a> {
    /// Parses a line; `None` if it is something else.
    pub fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim();
        if is_banner(line) {
            return Some(Self::Banner);
        }
        if line.eq_ignore_ascii_case("Handle type summary:") {
            return Some(Self::Summary);
        }
        if line.eq_ignore_ascii_case("No matching handles found.") {
            return Some(Self::Nothing);
        }
        if let Some(total) = line.strip_prefix("Total handles:") {
            return total.trim().parse().ok().map(Self::Total);
        }
        if let Some((name, rest)) = line.split_once(" pid: ") {
            return process(name.trim(), rest.trim_start());
        }
        row(line).map(Self::Row).or_else(|| count(line))
    }
}

impl HandleLine<'_> {
    /// Whether this is a type of Windows, so that the line is hardly anything else.
    pub fn has_known_type(&self) -> bool {
        TYPES.contains(&self.type_name)
    }
}

/// Whether a line starts the program's output or separates its parts.
fn is_banner(line: &str) -> bool {
    is_title(line)
        || line.ends_with("Mark Russinovich")
        || line.ends_with("www.sysinternals.com")
        || line.ends_with("http://www.ntinternals.com")
        || line.len() >= 20 && line.bytes().all(|byte| byte == b'-')
}

/// Whether a line is like `Nthandle v5.0 - Handle viewer` or `Handle v3.42`.
pub fn is_title(line: &str) -> bool {
    let version =
        ["Nthandle v", "Handle v", "HANDLE V"].iter().find_map(|name| line.strip_prefix(name));
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

/// Parses `notepad.exe pid: 1234 DOMAIN\user`, or a handle found by a search after the name of its process.
fn process<'a>(name: &'a str, rest: &'a str) -> Option<ListLine<'a>> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (pid, rest) = rest.split_at_checked(end)?;
    let pid = pid.parse().ok().filter(|_| !name.is_empty())?;
    let Some(found) = rest.trim_start().strip_prefix("type: ") else {
        return Some(ListLine::Process { name, pid });
    };
    let (type_name, rest) = type_of(found.trim_start())?;
    // The user may precede the handle.
    let row = rest.match_indices(": ").find_map(|(at, _)| {
        let word = rest.get(..at)?.rsplit([' ', '\t']).next()?;
        let name = rest.get(at + 2..)?.trim();
        Some(HandleLine { handle: hex(word)?, type_name, name })
    });
    Some(ListLine::Found { name, pid, row: row? })
}

/// Parses `48: File  (RW-)   C:\Windows`.
fn row(line: &str) -> Option<HandleLine<'_>> {
    let (handle, rest) = line.split_once(':')?;
    let handle = hex(handle)?;
    let (type_name, name) = type_of(rest.strip_prefix(' ')?.trim_start())?;
    let name = name.trim();
    let shared = name.get(..5).filter(|flags| {
        let flags = flags.as_bytes();
        flags.starts_with(b"(")
            && flags.ends_with(b")")
            && flags[1..4].iter().all(|flag| b"RWD-".contains(flag))
    });
    let name = name.get(shared.map_or(0, str::len)..).unwrap_or_default().trim_start();
    Some(HandleLine { handle, type_name, name })
}

/// Returns the type a text starts with, and what follows it. The type is padded to a width; only `ALPC Port` contains a
/// space.
fn type_of(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix(UNKNOWN_TYPE) {
        return Some(("", rest));
    }
    let padded = text.find("  ").filter(|end| *end < TYPE_WIDTH);
    let whole = TYPES.iter().filter(|name| name.contains(' ')).find(|name| text.starts_with(*name));
    let end = padded.or(whole.map(|name| name.len()));
    let end = end.unwrap_or_else(|| text.find([' ', '\t']).unwrap_or(text.len()));
    let (name, rest) = text.split_at_checked(end)?;
    is_type(name).then_some((name, rest))
}

/// Parses `  ALPC Port       : 2`.
fn count(line: &str) -> Option<ListLine<'_>> {
    let (type_name, count) = line.rsplit_once(':')?;
    let (type_name, count) = (type_name.trim(), count.trim().parse().ok()?);
    let type_name = if type_name == UNKNOWN_TYPE { "" } else { type_name };
    (type_name.is_empty() || is_type(type_name)).then_some(ListLine::Count { type_name, count })
}

/// Whether a word may be the name of an object type.
pub fn is_type(name: &str) -> bool {
    const MAX_LENGTH: usize = 40;
    name.len() <= MAX_LENGTH
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || " _-".contains(c))
}

/// Parses a handle value, with or without `0x`.
pub fn hex(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_row<'a>(handle: u64, type_name: &'a str, name: &'a str) -> Option<ListLine<'a>> {
        Some(ListLine::Row(HandleLine { handle, type_name, name }))
    }

    #[test]
    fn handles_have_their_types_and_names_in_every_form() {
        for (line, handle, type_name, name) in [
            (r"   48: File  (RW-)   C:\Windows\System32", 0x48, "File", r"C:\Windows\System32"),
            (r"   1C: File          C:\pagefile.sys", 0x1C, "File", r"C:\pagefile.sys"),
            (r"  1D0: Thread        a.exe(1234): 5678", 0x1D0, "Thread", "a.exe(1234): 5678"),
            (r"  2E8: Section       \Sessions\1\a  b", 0x2E8, "Section", r"\Sessions\1\a  b"),
            (r"  1C8: ALPC Port     \RPC Control\OLE", 0x1C8, "ALPC Port", r"\RPC Control\OLE"),
            (r"  1C8: ALPC Port \RPC Control\OLE", 0x1C8, "ALPC Port", r"\RPC Control\OLE"),
            (r"   90: WindowStation \Windows\WinSta0", 0x90, "WindowStation", r"\Windows\WinSta0"),
            ("    4: Event         ", 4, "Event", ""),
            ("    8: WaitCompletionPacket ", 8, "WaitCompletionPacket", ""),
            ("   10: <Unknown type> ", 0x10, "", ""),
            (r"  3E4: Key HKLM\SOFTWARE\A B", 0x3E4, "Key", r"HKLM\SOFTWARE\A B"),
        ] {
            assert_eq!(ListLine::parse(line), of_row(handle, type_name, name), "{line}");
        }
    }

    #[test]
    fn processes_and_what_a_search_finds_are_read() {
        let process = |name, pid| Some(ListLine::Process { name, pid });
        assert_eq!(
            ListLine::parse(r"notepad.exe pid: 1234 DESKTOP\user"),
            process("notepad.exe", 1234)
        );
        assert_eq!(
            ListLine::parse(r"System pid: 4 \<unable to open process>"),
            process("System", 4)
        );
        assert_eq!(ListLine::parse("a b.exe pid: 12"), process("a b.exe", 12));
        let row = |handle, type_name, name| HandleLine { handle, type_name, name };
        assert_eq!(
            ListLine::parse(r"explorer.exe       pid: 6088   type: File           6D4: C:\a b"),
            Some(ListLine::Found {
                name: "explorer.exe",
                pid: 6088,
                row: row(0x6D4, "File", r"C:\a b")
            })
        );
        assert_eq!(
            ListLine::parse(r"a.exe  pid: 8  type: ALPC Port  ME\my user   1F4: \RPC Control\x: y"),
            Some(ListLine::Found {
                name: "a.exe",
                pid: 8,
                row: row(0x1F4, "ALPC Port", r"\RPC Control\x: y")
            })
        );
    }

    #[test]
    fn counts_are_read_and_other_lines_are_not() {
        let count = |type_name, count| Some(ListLine::Count { type_name, count });
        assert_eq!(ListLine::parse("  ALPC Port       : 2"), count("ALPC Port", 2));
        assert_eq!(
            ListLine::parse("  WaitCompletionPacket: 166"),
            count("WaitCompletionPacket", 166)
        );
        assert_eq!(ListLine::parse("  <Unknown type>  : 1"), count("", 1));
        assert_eq!(ListLine::parse("Total handles: 238"), Some(ListLine::Total(238)));
        assert_eq!(ListLine::parse("Handle type summary:"), Some(ListLine::Summary));
        assert_eq!(ListLine::parse("Nthandle v5.0 - Handle viewer"), Some(ListLine::Banner));
        for line in [
            "",
            "word",
            "Handle valve",
            "0x77ca310c: ntdll!NtClose+0xc",
            "x: y",
            " pid: x",
            ":",
            "5:",
        ] {
            assert_eq!(ListLine::parse(line), None, "{line}");
        }
    }
}
