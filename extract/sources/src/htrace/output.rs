//! The output of `!htrace`, by command.

use std::collections::{BTreeMap, BTreeSet};

use crate::operations::OperationEntry;

/// The output of one command.
#[derive(Debug)]
pub struct CommandStep {
    pub output: Output,
    /// Whether the program may have run since the previous step.
    pub may_have_run: bool,
}

/// The content of a command's output; entries are oldest first.
#[derive(Debug)]
pub enum Output {
    /// Tracing starts: earlier events are forgotten, and a first snapshot is taken.
    Enabled,
    Snapshot,
    /// Handles opened since the previous snapshot and still open, with the number of events compared. Also takes a
    /// snapshot.
    Difference {
        new: Option<u64>,
        opens: Vec<OperationEntry>,
    },
    /// All traced entries, `None` for unreadable ones. A cut listing lacks the oldest entries.
    All {
        entries: Vec<Option<OperationEntry>>,
        is_cut: bool,
    },
    /// A part: all entries of each handle value in it, and the number of traced entries if the text has it.
    Some {
        entries: Vec<OperationEntry>,
        traced: Option<u64>,
    },
}

impl Output {
    pub fn entries(&self) -> impl Iterator<Item = &OperationEntry> {
        let (all, some): (&[Option<OperationEntry>], &[OperationEntry]) = match self {
            Self::Enabled | Self::Snapshot => (&[], &[]),
            Self::All { entries, .. } => (entries, &[]),
            Self::Difference { opens: entries, .. } | Self::Some { entries, .. } => (&[], entries),
        };
        all.iter().flatten().chain(some)
    }

    fn entries_mut(&mut self) -> impl Iterator<Item = &mut OperationEntry> {
        let (all, some): (&mut [Option<OperationEntry>], &mut [OperationEntry]) = match self {
            Self::Enabled | Self::Snapshot => (&mut [], &mut []),
            Self::All { entries, .. } => (entries, &mut []),
            Self::Difference { opens: entries, .. } | Self::Some { entries, .. } => {
                (&mut [], entries)
            }
        };
        all.iter_mut().flatten().chain(some)
    }

    /// Returns the part about one process.
    pub fn of_process(&self, process: u32) -> Self {
        let is_of = |entry: &&OperationEntry| entry.process == process;
        let of = |entries: &[OperationEntry]| entries.iter().filter(is_of).copied().collect();
        match self {
            Self::Enabled => Self::Enabled,
            Self::Snapshot => Self::Snapshot,
            // The text does not tell how many of the new events are of this process.
            Self::Difference { opens, .. } => Self::Difference { new: None, opens: of(opens) },
            Self::All { entries, is_cut } => {
                let entries = entries.iter().flatten().filter(is_of).copied().map(Some);
                Self::All { entries: entries.collect(), is_cut: *is_cut }
            }
            Self::Some { entries, .. } => Self::Some { entries: of(entries), traced: None },
        }
    }
}

/// The part of a step about one process.
#[derive(Debug)]
pub struct Fact {
    /// Number of the step.
    pub step: usize,
    /// Whether the program may have run since the previous fact.
    pub may_have_run: bool,
    pub output: Output,
}

/// Assigns the entries of each listing to the process that made most of them. If another process made an entry, it is
/// the caller: it duplicated a handle into the process or closed one there, and the handle is not its own. `is_pid`
/// tells which process numbers are process ids.
pub fn assign_owners<'o>(
    outputs: impl Iterator<Item = &'o mut Output>,
    is_pid: impl Fn(u32) -> bool,
) {
    let mut outputs: Vec<&mut Output> = outputs.collect();
    let mut guests: BTreeMap<u32, u32> = BTreeMap::new();
    let mut hosts: BTreeSet<u32> = BTreeSet::new();
    let owners: Vec<Option<u32>> = outputs.iter().map(|output| owner(output, &is_pid)).collect();
    for (output, owner) in outputs.iter().zip(&owners) {
        let Some(owner) = *owner else { continue };
        let others = output
            .entries()
            .map(|entry| entry.process)
            .filter(|process| *process != owner && is_pid(*process));
        guests.extend(others.map(|process| (process, owner)));
        // A listing of one handle may have only entries of another process.
        if matches!(output, Output::All { .. } | Output::Difference { .. }) {
            hosts.insert(owner);
        }
    }
    for (output, owner) in outputs.iter_mut().zip(owners) {
        for entry in output.entries_mut().filter(|entry| is_pid(entry.process)) {
            let is_guest = !hosts.contains(&entry.process);
            let of_guest = guests.get(&entry.process).copied().filter(|_| is_guest);
            let owner = owner.filter(|owner| hosts.contains(owner)).or(of_guest);
            if let Some(owner) = owner.filter(|owner| *owner != entry.process) {
                entry.caller = Some(entry.process);
                entry.process = owner;
            }
        }
    }
}

/// Returns the process with most entries in a listing; `None` on a tie.
fn owner(output: &Output, is_pid: impl Fn(u32) -> bool) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for entry in output.entries().filter(|entry| is_pid(entry.process)) {
        *counts.entry(entry.process).or_default() += 1;
    }
    let (&owner, &most) = counts.iter().max_by_key(|(_, count)| **count)?;
    let is_only = counts.values().filter(|count| **count == most).count() == 1;
    is_only.then_some(owner)
}
