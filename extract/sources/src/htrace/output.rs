//! The output of `!htrace`, command by command.

use crate::operations::Entry;

/// The output of one command.
#[derive(Debug)]
pub struct Step {
    pub output: Output,
    /// Whether the program may have run since the step before.
    pub may_have_run: bool,
}

/// The content of a command's output; of entries, the oldest first.
#[derive(Debug)]
pub enum Output {
    /// Tracing begins: what was traced before is forgotten, and a first snapshot is taken.
    Enabled,
    Snapshot,
    /// Handles opened since the previous snapshot and still open, with the number of events
    /// compared; takes a snapshot.
    Difference {
        new: Option<u64>,
        opens: Vec<Entry>,
    },
    /// All traced entries, `None` for an entry that cannot be read. A cut listing lacks the oldest entries.
    All {
        entries: Vec<Option<Entry>>,
        is_cut: bool,
    },
    /// A part: all entries of each handle value in it, and the number of traced entries, if the text has it.
    Some {
        entries: Vec<Entry>,
        traced: Option<u64>,
    },
}

impl Output {
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        let (all, some): (&[Option<Entry>], &[Entry]) = match self {
            Self::Enabled | Self::Snapshot => (&[], &[]),
            Self::All { entries, .. } => (entries, &[]),
            Self::Difference { opens: entries, .. } | Self::Some { entries, .. } => (&[], entries),
        };
        all.iter().flatten().chain(some)
    }

    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let (all, some): (&mut [Option<Entry>], &mut [Entry]) = match self {
            Self::Enabled | Self::Snapshot => (&mut [], &mut []),
            Self::All { entries, .. } => (entries, &mut []),
            Self::Difference { opens: entries, .. } | Self::Some { entries, .. } => {
                (&mut [], entries)
            }
        };
        all.iter_mut().flatten().chain(some)
    }

    /// Extracts the part of one process from an output about several.
    pub fn of_process(&self, process: u32) -> Self {
        let is_of = |entry: &&Entry| entry.process == process;
        let of = |entries: &[Entry]| entries.iter().filter(is_of).copied().collect();
        match self {
            Self::Enabled => Self::Enabled,
            Self::Snapshot => Self::Snapshot,
            // The text does not say how many of the new events are of this process.
            Self::Difference { opens, .. } => Self::Difference { new: None, opens: of(opens) },
            Self::All { entries, is_cut } => {
                let entries = entries.iter().flatten().filter(is_of).copied().map(Some);
                Self::All { entries: entries.collect(), is_cut: *is_cut }
            }
            Self::Some { entries, .. } => Self::Some { entries: of(entries), traced: None },
        }
    }
}

/// The part of a step that is about one process.
#[derive(Debug)]
pub struct Fact {
    /// Number of the step.
    pub step: usize,
    /// Whether the program may have run since the fact before.
    pub may_have_run: bool,
    pub output: Output,
}
