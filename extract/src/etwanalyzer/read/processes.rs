//! Processes by their numbers in the file.

use handlescope_model::ProcessIdx;
use handlescope_model::tables::{Process, Processes};

use super::super::records::{Main, ProcessRecord};
use super::time::Time;
use crate::lifecycle::{Lifetime, ProcessIndex};

/// The processes of an extract. Their numbers are the rows of the processes table.
pub(super) struct ProcessRows {
    lifetimes: Vec<Lifetime>,
    index: ProcessIndex,
}

impl ProcessRows {
    pub(super) fn new(main: &Main, session: Option<Time>) -> Self {
        let since =
            |time: Option<Time>| time.zip(session).and_then(|(time, start)| time.since(start));
        let lifetime = |process: &ProcessRecord| Lifetime {
            pid: process.pid(),
            parent_pid: process.parent_pid(),
            start: since(process.seen_start()),
            end: since(process.seen_end()),
        };
        // Our own rows have times to the nanosecond.
        let own = |process: &Process| Lifetime {
            pid: process.pid,
            parent_pid: process.parent_pid,
            start: process.start_ns,
            end: process.end_ns,
        };
        let lifetimes: Vec<Lifetime> = if main.is_own() {
            main.own.processes.0.iter().map(own).collect()
        } else {
            main.processes().iter().map(lifetime).collect()
        };
        let index = ProcessIndex::of(lifetimes.iter().copied());
        Self { lifetimes, index }
    }

    /// The process of a number, if there is one.
    pub(super) fn row(&self, number: Option<i64>) -> Option<ProcessIdx> {
        let row = ProcessIdx(u32::try_from(number?).ok()?);
        (row.row() < self.lifetimes.len()).then_some(row)
    }

    /// Whether a process had ended at some time.
    pub(super) fn has_ended(&self, process: ProcessIdx, time_ns: i64) -> bool {
        let lifetime = self.lifetimes.get(process.row());
        lifetime.and_then(|lifetime| lifetime.end).is_some_and(|end| end <= time_ns)
    }

    /// The process id of a row; 0 for none.
    pub(super) fn pid(&self, process: ProcessIdx) -> u32 {
        self.lifetimes.get(process.row()).map_or(0, |process| process.pid)
    }

    /// The child that inherits a handle which its parent duplicates at some time.
    pub(super) fn inheriting_child(&self, parent: ProcessIdx, time_ns: i64) -> Option<ProcessIdx> {
        let parent = self.lifetimes.get(parent.row())?;
        self.index
            .inheriting_child(parent.pid, parent.end, time_ns, |_| Some(false))
            .map(ProcessIdx)
    }

    pub(super) fn table(&self, main: &Main) -> Processes {
        if main.is_own() {
            return main.own.processes.0.iter().cloned().collect();
        }
        let row = |(record, lifetime): (&ProcessRecord, &Lifetime)| Process {
            pid: record.pid(),
            parent_pid: record.parent_pid(),
            name: record.name.clone().unwrap_or_default(),
            command_line: record.command_line.clone().unwrap_or_default(),
            session_id: record.session_id.and_then(|id| u32::try_from(id).ok()),
            sid: record.identity.clone().filter(|sid| !sid.is_empty()),
            start_ns: lifetime.start,
            end_ns: lifetime.end,
            exit_code: record.exit_code.map(|code| code as i32),
            ..Process::default()
        };
        main.processes().iter().zip(&self.lifetimes).map(row).collect()
    }
}
