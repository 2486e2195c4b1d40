//! Recognizes what a text contains: output of a debugger, a list of handles, or neither.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use handlescope_extract::{ExtractError, NoObserver};
use handlescope_model::{Cancel, open_file};

use crate::htrace::{HandleOutput, Statement};
use crate::lists::ListParser;
use crate::operations::OpenHandleList;
use crate::text::{
    ReadProgress, TextLine, lines, may_be_text, opened, tidy, unreadable, without_marks,
};

/// Bytes at the start that tell a text from other files.
const START: u64 = 1 << 10;

/// Lines between two checks for cancellation.
const LINES_PER_CHECK: u64 = 1 << 10;

/// Characters of a line shown in a message.
const MAX_SHOWN: usize = 80;

/// What a file contains, if it is text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextContent {
    /// Output of `!htrace` or `!handle`.
    Debugger,
    /// A list of open handles.
    List,
    /// Text of a program that lists handles, but no line was understood.
    NotUnderstood(StrangeLine),
    /// Other text.
    NoHandles,
    /// Not text, or an empty file.
    Other,
}

/// The first line of a program's output that was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrangeLine {
    /// The program it is output of.
    pub of: &'static str,
    /// Number of the line, from 1.
    pub line: u64,
    /// How it starts.
    pub text: String,
}

/// Recognizes what a text contains. One without handles is read to its end.
///
/// # Errors
/// If it cannot be read, or `cancel` is set.
pub fn recognize(path: &Path, cancel: &Cancel) -> Result<TextContent, ExtractError> {
    let file = open_file(path).map_err(|source| opened(path, source))?;
    content(file, cancel).map_err(|source| unreadable(path, source, cancel))
}

fn content(mut file: File, cancel: &Cancel) -> io::Result<TextContent> {
    let mut start = Vec::new();
    (&mut file).take(START).read_to_end(&mut start)?;
    if start.is_empty() || !may_be_text(&start) {
        return Ok(TextContent::Other);
    }
    file.seek(SeekFrom::Start(0))?;
    let progress = Rc::new(ReadProgress::new(&NoObserver, cancel));
    let mut lines = lines(file, &progress)?;
    let mut recognizer = Recognizer::default();
    while let Some((line, _)) = lines.next()? {
        if let Some(content) = recognizer.line(&line) {
            return Ok(content);
        }
        if line.number.is_multiple_of(LINES_PER_CHECK) {
            progress.check()?;
        }
    }
    Ok(recognizer.strange.map_or(TextContent::NoHandles, TextContent::NotUnderstood))
}

/// Reads lines until one tells what the text contains.
#[derive(Default)]
struct Recognizer {
    handles: HandleOutput,
    open: OpenHandleList,
    list: ListParser,
    /// The program that the last lines seem to be output of.
    of: Option<&'static str>,
    strange: Option<StrangeLine>,
}

impl Recognizer {
    /// Takes the next line; returns what the text contains once a line tells.
    fn line(&mut self, line: &TextLine<'_>) -> Option<TextContent> {
        let text = tidy(&line.text);
        if text.trim().is_empty() {
            return None;
        }
        let mut is_known = false;
        for text in [Some(&*text), without_marks(&text)].into_iter().flatten() {
            let statement = Statement::parse(text);
            match statement {
                Some(Statement::Entry { .. } | Statement::SincePrevious { .. }) => {
                    return Some(TextContent::Debugger);
                }
                // A break may be a message that tracing is off.
                Some(Statement::BadEntry | Statement::BadIds | Statement::Break) => {
                    self.of = Some("!htrace");
                }
                Some(Statement::Prompt(_)) => {
                    let command = text.split_once('>').map_or("", |(_, command)| command.trim());
                    let commands = ["!htrace", "!handle"];
                    self.of =
                        commands.into_iter().find(|name| command.starts_with(name)).or(self.of);
                    is_known = true;
                }
                Some(_) => is_known = true,
                None if text.trim_start().starts_with("Handle tracing") => {
                    self.of = Some("!htrace");
                }
                None => {}
            }
            is_known |= self.handles.line(text, &line.text, &mut self.open);
            if self.handles.has_found() {
                return Some(TextContent::Debugger);
            }
        }
        if self.list.line(line) {
            is_known = true;
            self.of = self.of.or(Some(self.list.subject()));
        }
        if self.list.has_found() {
            return Some(TextContent::List);
        }
        if let Some(of) = self.of.filter(|_| !is_known && self.strange.is_none()) {
            let text = line.text.trim().chars().take(MAX_SHOWN).collect();
            self.strange = Some(StrangeLine { of, line: line.number, text });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn of(text: &str) -> TextContent {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        content(file, &Cancel::default()).unwrap()
    }

    #[test]
    fn a_text_is_known_by_its_lines() {
        for text in [
            "Handle = 0x34 - OPEN",
            "<pre>Handle = 0x34 - OPEN<br>",
            "[10:32 AM] Bob: Handle = 0x34 - OPEN",
            "0:000> !handle 34\nHandle 34\n  Type         \tEvent\n",
            "No outstanding handles opened since the previous snapshot were detected.",
        ] {
            assert_eq!(of(text), TextContent::Debugger, "{text}");
        }
        for text in [
            "a.exe pid: 4 ME\n  48: File  (RW-)   C:\\a\n",
            "Handle type summary:\n  File : 3\n",
            "Process,PID,Type,Handle,Name\na.exe,4,File,0x4,C:\\a\n",
            "a.exe  pid: 4  type: File  4: C:\\a\n",
        ] {
            assert_eq!(of(text), TextContent::List, "{text}");
        }
        for text in ["Handle 34 - what is it?\n", "a: b\n", "use !htrace\nand see\n", "\n"] {
            assert_eq!(of(text), TextContent::NoHandles, "{text}");
        }
        assert_eq!(of(""), TextContent::Other);
        assert_eq!(of("\0\u{1}Handle = 0x34 - OPEN"), TextContent::Other);
    }

    #[test]
    fn the_first_line_that_is_not_understood_is_named() {
        for (text, of_program, line, strange) in [
            (
                "0:000> !htrace\n\nHandle tracing is not enabled for this process.\nx\n",
                "!htrace",
                3,
                "Handle tracing is not enabled for this process.",
            ),
            ("x\nHandle = 0xQQ - OPEN\n", "!htrace", 2, "Handle = 0xQQ - OPEN"),
            ("0:000> !handle\nUnable to read\n", "!handle", 2, "Unable to read"),
            (
                "Nthandle v5.0 - Handle viewer\nNo matching handles found.\n",
                "handle.exe",
                2,
                "No matching handles found.",
            ),
            ("Process,PID,Type,Handle,Name\nnothing\n", "the table of handles", 2, "nothing"),
        ] {
            let expected = StrangeLine { of: of_program, line, text: strange.to_owned() };
            assert_eq!(of(text), TextContent::NotUnderstood(expected), "{text}");
        }
    }
}
