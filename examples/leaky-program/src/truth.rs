//! The truth: one JSON document per line, one line per call.

use serde::{Deserialize, Serialize};

/// A call of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruthLine {
    /// Microseconds since 1970, UTC, after the call.
    pub at_us: u64,
    /// Process that made the call.
    pub pid: u32,
    /// Thread that made the call.
    pub tid: u32,
    /// Function that made the call, without its module, such as `leak_events`; a frame of the stack contains this name.
    pub function: String,
    /// What was called.
    #[serde(flatten)]
    pub call: CallEffect,
}

/// What a call did; handles and addresses are numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum CallEffect {
    /// A process of the program started; the first line of each process.
    Started {
        /// Executable.
        process: String,
    },
    /// A handle was opened.
    Opened {
        handle: u64,
        /// Type of the object, as the kernel names it.
        object_type: String,
        /// Last part of the object's name; for a file or key, the last part of its path.
        name: Option<String>,
    },
    /// A handle was duplicated into another process. The value is the one in that process.
    Duplicated { into: u32, handle: u64, object_type: String, name: Option<String> },
    /// A child inherited a handle; the value is the same in the child.
    Inherited { by: u32, handle: u64, object_type: String, name: Option<String> },
    /// A handle was closed.
    Closed { handle: u64 },
    /// A view of a section was mapped.
    Mapped { address: u64, size: u64 },
    /// A view was unmapped.
    Unmapped { address: u64 },
    /// A block, pages, or a GDI or USER object was allocated.
    Allocated {
        kind: AllocationKind,
        /// Address, or the handle of a GDI or USER object.
        key: u64,
        /// Bytes; 0 for a GDI or USER object.
        size: u64,
    },
    /// It was freed.
    Freed { kind: AllocationKind, key: u64 },
    /// The process is about to exit without closing what it holds; the last line of each process.
    Exits,
    /// Everything is done. The program waits until its standard input ends, so that the leaks are still open.
    Waits,
}

/// Kind of an allocation, as handlescope names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllocationKind {
    Heap,
    Commit,
    Gdi,
    User,
}

impl AllocationKind {
    /// Returns the name as handlescope shows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Commit => "commit",
            Self::Gdi => "gdi",
            Self::User => "user",
        }
    }
}

/// Parses the lines of a file.
///
/// # Errors
/// The number (from 1) of the first line that cannot be parsed, and why.
pub fn parse(text: &str) -> Result<Vec<TruthLine>, (usize, serde_json::Error)> {
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| serde_json::from_str(line).map_err(|error| (number, error)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_called_what() {
        let line = TruthLine {
            at_us: 7,
            pid: 1,
            tid: 2,
            function: "leak_events".to_owned(),
            call: CallEffect::Opened { handle: 0x40, object_type: "Event".to_owned(), name: None },
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"at_us":7,"pid":1,"tid":2,"function":"leak_events","call":"opened","handle":64,"object_type":"Event","name":null}"#
        );
        assert_eq!(parse(&format!("{text}\n\n{text}\n")).unwrap(), [line.clone(), line]);
        assert_eq!(parse("\n{}").unwrap_err().0, 2);
    }
}
