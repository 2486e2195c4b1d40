//! Parses lines about handles in a debugger's text.
//!
//! The forms come from the debuggers' documentation of `!htrace` and from published transcripts:
//! user mode (`Handle = 0x00000034 - OPEN`), kernel mode (`Handle 0x34 - OPEN:`), and variants found on web pages
//! (other dashes, quote marks, comments).

use crate::operations::Operation;

/// Commands at a prompt, which determine the output that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptCommands {
    /// Whether the program may run before the next prompt.
    pub runs: bool,
    /// The requested listing, if there is only one and it is not from `-diff`.
    pub listing: Option<ListingKind>,
    /// Whether `!handle` lists handles of only one type.
    pub is_of_type: bool,
}

/// Kind of an `!htrace` listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingKind {
    All,
    /// Entries of one handle value, possibly limited in number.
    Handle {
        is_limited: bool,
    },
}

/// A line outside of stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement<'a> {
    /// First line of an entry, and what follows the operation.
    Entry { handle: u64, operation: Operation, rest: &'a str },
    /// A malformed line of this kind.
    BadEntry,
    /// Thread and process of an entry; `None` if missing.
    Ids { thread: Option<u32>, process: Option<u32> },
    /// A malformed line of this kind.
    BadIds,
    /// A line of dashes between entries.
    Rule,
    /// Number of entries that tracing holds, printed before the last line of a listing.
    Parsed(u64),
    /// Last lines of a listing: the number of traced entries, if printed, and the number of entries in the listing.
    Count { parsed: Option<u64>, count: u64 },
    /// `!htrace` in the kernel debugger prints the kernel address of the process whose handles follow.
    KernelProcess(u64),
    /// `|` prints the program of a process.
    Program { pid: u32, path: &'a str },
    /// Tracing starts, which takes a snapshot.
    Enabled,
    /// A snapshot was taken: by its own command, at the start of tracing, or by `-diff`.
    Snapshot,
    /// A listing of `-diff` follows, with the number of entries since the previous snapshot if the line has it.
    SincePrevious { new: Option<u64> },
    /// A prompt, and what was typed at it.
    Prompt(PromptCommands),
    /// A line before a listing; it ends any previous listing.
    Break,
}

impl<'a> Statement<'a> {
    /// Parses a line; `None` if it is not about handles.
    pub fn parse(line: &'a str) -> Option<Self> {
        let line = without_quote(line);
        if let Some(statement) = word(line, "Handle").and_then(entry) {
            return Some(statement);
        }
        if line.contains("Thread ID") || line.contains("Process ID") {
            return Some(ids(line));
        }
        if line.len() >= 10 && line.bytes().all(|byte| byte == b'-') {
            return Some(Self::Rule);
        }
        let parsed = count(line, "Parsed");
        if let Some(count) = ["Dumped", "Displayed"].iter().find_map(|name| count(line, name)) {
            return Some(Self::Count { parsed, count });
        }
        if let Some(parsed) = parsed {
            return Some(Self::Parsed(parsed));
        }
        if line.starts_with("Handle tracing enabled") {
            return Some(Self::Enabled);
        }
        if line.starts_with("Handle tracing information snapshot") {
            return Some(Self::Snapshot);
        }
        if let Some(typed) = typed(line) {
            return Some(Self::Prompt(typed));
        }
        if line.contains("since the previous snapshot") {
            let new =
                hex(line).filter(|(_, rest)| rest.trim_start().starts_with("new stack trace"));
            let titles = ["Outstanding handles", "No outstanding handles"];
            let is_title = titles.iter().any(|title| line.starts_with(title));
            return (new.is_some() || is_title)
                .then_some(Self::SincePrevious { new: new.map(|(new, _)| new) });
        }
        if line.starts_with("Handle tracing") || line.starts_with("Outstanding handles") {
            return Some(Self::Break);
        }
        if let Some(rest) = word(line, "Process")
            && let Some((address, "")) = hex(rest)
        {
            return Some(Self::KernelProcess(address));
        }
        program(line)
    }
}

/// Strips the quotation marks that web pages and mail put at the start of a line.
pub fn without_quote(line: &str) -> &str {
    line.trim_start_matches(['>', '#', '\\', ' ', '\t', '\u{FEFF}']).trim_end()
}

/// Returns the rest of a line that starts with a word.
pub fn word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(word)?;
    rest.starts_with([' ', '\t', '=']).then(|| rest.trim_start())
}

/// Parses ` = 0x34 - OPEN`, or the same without `=`. Other lines that mention a handle do not match.
fn entry(rest: &str) -> Option<Statement<'_>> {
    let has_sign = rest.starts_with('=');
    let rest = rest.trim_start_matches(['=', ' ', '\t']);
    let number = hex(rest);
    let behind = number.map_or(rest, |(_, behind)| behind).trim_start();
    let after_dash = behind.trim_start_matches(|character| {
        // U+FFFD and U+0096 are what remains of code page 1252's en dash.
        matches!(character, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FFFD}' | '\u{96}')
    });
    let has_dash = after_dash.len() < behind.len();
    let operation = after_dash.trim_start();
    // Table rows have no dash.
    match (number, operation_of(operation).filter(|_| has_dash || has_sign)) {
        (Some((handle, _)), Some((operation, rest))) => {
            Some(Statement::Entry { handle, operation, rest })
        }
        _ if has_sign && (has_dash || number.is_none()) => Some(Statement::BadEntry),
        _ => None,
    }
}

/// Returns the operation a text starts with, and what follows it.
fn operation_of(text: &str) -> Option<(Operation, &str)> {
    let bare = text.trim_start_matches(['*', ' ']);
    [
        ("OPEN", Operation::Open),
        ("CLOSE", Operation::Close),
        ("BAD REF", Operation::BadReference),
        ("BADREF", Operation::BadReference),
    ]
    .into_iter()
    .find_map(|(name, operation)| {
        let is_it = bare.get(..name.len())?.eq_ignore_ascii_case(name);
        let rest = bare.get(name.len()..).filter(|_| is_it)?;
        let is_whole = !rest.starts_with(char::is_alphanumeric);
        (is_whole || operation == Operation::BadReference).then_some((operation, rest))
    })
}

/// Parses `Thread ID = 0x17ec, Process ID = 0x17e8`, on one line or two.
fn ids(line: &str) -> Statement<'_> {
    let id = |name: &str| -> Option<Option<u32>> {
        let Some((_, rest)) = line.split_once(name) else { return Some(None) };
        let rest = rest.trim_start().strip_prefix(['=', ':'])?;
        let (id, _) = hex(rest.trim_start())?;
        Some(Some(u32::try_from(id).ok()?))
    };
    match (id("Thread ID"), id("Process ID")) {
        (Some(thread), Some(process)) => Statement::Ids { thread, process },
        _ => Statement::BadIds,
    }
}

/// Parses `NAME 0x5 stack traces`, which may follow another sentence.
fn count(line: &str, name: &str) -> Option<u64> {
    let (_, rest) = line.split_once(name)?;
    let (count, rest) = hex(rest.trim_start())?;
    rest.trim_start().starts_with("stack trace").then_some(count)
}

/// Parses the commands at a prompt: `0:000> `, `0:000:x86> `, `1: kd> ` and the like.
fn typed(line: &str) -> Option<PromptCommands> {
    /// Longest prompt.
    const MAX_LENGTH: usize = 24;
    let (prompt, commands) = line.split_once('>')?;
    let has_thread = prompt.starts_with(|c: char| c.is_ascii_digit()) && prompt.contains(':');
    let is_prompt = prompt.len() <= MAX_LENGTH
        && prompt.bytes().all(|byte| byte.is_ascii_alphanumeric() || b": _".contains(&byte))
        && (has_thread || ["kd", "lkd"].contains(&prompt));
    is_prompt.then(|| PromptCommands::new(commands))
}

impl PromptCommands {
    fn new(commands: &str) -> Self {
        let mut typed = Self { runs: false, listing: None, is_of_type: false };
        let mut listings = 0;
        for command in commands.split(';').map(str::trim) {
            typed.runs |= !is_known_to_stay(command);
            let words = || command.split_whitespace();
            typed.is_of_type |= words().next() == Some("!handle") && words().count() > 3;
            let Some(arguments) = command.strip_prefix("!htrace") else { continue };
            let mut arguments = arguments.split_whitespace();
            let argument = arguments.next().unwrap_or_default();
            if argument.starts_with('-') {
                continue;
            }
            listings += 1;
            // Handle 0 means all handles.
            let is_handle = hex(argument).is_some_and(|(handle, _)| handle != 0);
            typed.listing = Some(if is_handle {
                ListingKind::Handle { is_limited: arguments.next().is_some() }
            } else {
                ListingKind::All
            });
        }
        typed.listing = typed.listing.filter(|_| listings == 1);
        typed
    }
}

/// Whether a command is known to leave the program stopped. An empty line repeats the last command.
fn is_known_to_stay(command: &str) -> bool {
    const STAY: [&str; 11] =
        ["q", "!htrace", "!handle", "|", "||", "k", "kn", "lm", "~", "r", "vertarget"];
    let name = command.split_whitespace().next().unwrap_or_default();
    name.is_empty()
        || name.starts_with('*')
        || [".log", ".echo", ".sym", ".reload", ".time"].iter().any(|start| name.starts_with(start))
        || STAY.contains(&name)
}

/// Parses `.  0 id: 17e8 create name: C:\leaky.exe`, a line of `|`.
fn program(line: &str) -> Option<Statement<'_>> {
    let (before, rest) = line.split_once("id: ")?;
    let (pid, rest) = hex(rest).filter(|_| {
        before.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || ".#".contains(c))
    })?;
    let (_, path) = rest.split_once("name: ")?;
    let pid = u32::try_from(pid).ok()?;
    (!path.trim().is_empty()).then_some(Statement::Program { pid, path: path.trim() })
}

/// Parses the hexadecimal number of up to 64 bits that a text starts with, and returns what follows it. The number may
/// have a `0x` prefix, and a grave accent between the halves of 64 bits.
pub fn hex(text: &str) -> Option<(u64, &str)> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_hexdigit() && c != '`').unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    if rest.starts_with(char::is_alphanumeric) {
        return None;
    }
    let mut value: Option<u64> = None;
    for digit in number.chars().filter_map(|c| c.to_digit(16)) {
        let before = value.unwrap_or_default();
        value = Some(before.checked_mul(16)? | u64::from(digit));
    }
    Some((value?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> (Option<u64>, Option<Operation>) {
        match Statement::parse(line) {
            Some(Statement::Entry { handle, operation, .. }) => (Some(handle), Some(operation)),
            _ => (None, None),
        }
    }

    #[test]
    fn entries_are_read_in_every_form() {
        use Operation::{BadReference, Close, Open};
        for (line, handle, operation) in [
            ("Handle = 0x00000034 - OPEN", 0x34, Open),
            ("Handle = 0x00000000000007cc - CLOSE", 0x7CC, Close),
            ("Handle = 0x00000000`000007cc \u{2013} OPEN", 0x7CC, Open),
            ("Handle 0x7CC - CLOSE:", 0x7CC, Close),
            ("Handle 0x7CC - *** BAD REFERENCE ***:", 0x7CC, BadReference),
            ("Handle = 0x34 - BAD REF", 0x34, BadReference),
            ("Handle = 0x34 \u{2014} BADREF", 0x34, BadReference),
            ("Handle=34-OPEN", 0x34, Open),
            ("  > Handle = 0x34 - open, Thread ID = 0x1", 0x34, Open),
            ("Handle = 0x34 \u{FFFD} OPEN", 0x34, Open),
        ] {
            assert_eq!(parsed(line), (Some(handle), Some(operation)), "{line}");
        }
    }

    #[test]
    fn text_without_an_entry_is_none_and_a_damaged_entry_is_reported() {
        for line in ["Handle a44", "Handle 00000004", "Handles: 7", "Handle 34 has no name", "x"] {
            assert_eq!(Statement::parse(line), None, "{line}");
        }
        for line in
            ["Handle = 0xQQ - OPEN", "Handle = 0x34 - OPN", "Handle = 0x1ffffffffffffffff0 - OPEN"]
        {
            assert_eq!(Statement::parse(line), Some(Statement::BadEntry), "{line}");
        }
    }

    #[test]
    fn ids_are_hexadecimal_in_a_single_line_or_in_two() {
        let ids = |thread, process| Some(Statement::Ids { thread, process });
        assert_eq!(
            Statement::parse("Thread ID = 0x000017ec, Process ID = 0x000017e8"),
            ids(Some(0x17ec), Some(0x17e8))
        );
        assert_eq!(Statement::parse("Thread ID = 10"), ids(Some(16), None));
        assert_eq!(Statement::parse("Process ID = 0x0000000000000010"), ids(None, Some(16)));
        assert_eq!(
            Statement::parse("Thread ID = 0xQQ, Process ID = 0x10"),
            Some(Statement::BadIds)
        );
    }

    #[test]
    fn counts_prompts_and_programs_are_recognized() {
        let count = |parsed, count| Some(Statement::Count { parsed, count });
        assert_eq!(Statement::parse("Parsed 0x6 stack traces."), Some(Statement::Parsed(6)));
        assert_eq!(Statement::parse("Dumped 0xC stack traces."), count(None, 12));
        let both = "Parsed 0x6 stack traces. Dumped 0x5 stack traces.";
        assert_eq!(Statement::parse(both), count(Some(6), 5));
        let displayed = "Displayed 0x13 stack traces for outstanding handles opened since the previous snapshot.";
        assert_eq!(Statement::parse(displayed), count(None, 0x13));
        for (line, runs, listing) in [
            ("0:000> !htrace", false, Some(ListingKind::All)),
            ("0:000> !htrace 0", false, Some(ListingKind::All)),
            ("0:000> !htrace 7CC", false, Some(ListingKind::Handle { is_limited: false })),
            ("0:000> !htrace 7CC 2", false, Some(ListingKind::Handle { is_limited: true })),
            ("0:000> !htrace -diff; !handle 0 f", false, None),
            ("0:000> !htrace; !htrace 4", false, None),
            ("0:000> !htrace -snapshot; g", true, None),
            ("0:000> |", false, None),
            ("0:000>", false, None),
            ("0:000:x86> g", true, None),
            ("kd> p", true, None),
            ("1: kd> g", true, None),
            ("0: kd:x86> g", true, None),
            ("lkd> !process", true, None),
        ] {
            let typed = PromptCommands { runs, listing, is_of_type: false };
            assert_eq!(Statement::parse(line), Some(Statement::Prompt(typed)), "{line}");
        }
        for (line, expected) in [
            ("Handle tracing enabled.", Statement::Enabled),
            ("Handle tracing disabled.", Statement::Break),
            ("Handle tracing information snapshot successfully taken.", Statement::Snapshot),
            (
                "0x1F new stack traces since the previous snapshot.",
                Statement::SincePrevious { new: Some(31) },
            ),
            (
                "Outstanding handles opened since the previous snapshot:",
                Statement::SincePrevious { new: None },
            ),
            ("Outstanding handles:", Statement::Break),
        ] {
            assert_eq!(Statement::parse(line), Some(expected), "{line}");
        }
        for line in [
            "a <b> c",
            "std::vector<int>",
            "0 -> 1",
            "kdx>",
            "What changed since the previous snapshot",
        ] {
            assert_eq!(Statement::parse(line), None, "{line}");
        }
        let program = ".  0\tid: 17e8\tcreate\tname: C:\\a b\\leaky.exe";
        for line in [program, &program.replace('\t', " ")] {
            let path = "C:\\a b\\leaky.exe";
            assert_eq!(Statement::parse(line), Some(Statement::Program { pid: 0x17e8, path }));
        }
        assert_eq!(
            Statement::parse("Process 0x81400300"),
            Some(Statement::KernelProcess(0x8140_0300))
        );
    }
}
