//! Process lifetimes.

use std::collections::HashMap;

use crate::kernel::{Process, ProcessAction};

/// One lifetime of one pid, times raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRow {
    /// What the events say of it.
    pub process: Process,
    /// Start, if it was seen.
    pub start: Option<i64>,
    /// End, if it was seen.
    pub end: Option<i64>,
}

/// The lifetimes, in the order they were first seen.
///
/// Only a start event begins a lifetime at a known time and only an end event ends one; rundowns
/// say that a process is there. Ends are matched to starts by pid in time order, because process
/// keys are reused too.
#[derive(Debug, Default)]
pub struct Processes {
    /// The lifetimes.
    pub rows: Vec<ProcessRow>,
    live: HashMap<u32, usize>,
}

impl Processes {
    /// Takes one process event.
    pub fn event(&mut self, process: Process, time: i64) {
        let pid = process.pid;
        match process.action {
            ProcessAction::Start => {
                let row = self.add(process, Some(time));
                self.live.insert(pid, row);
            }
            ProcessAction::End => {
                let row = match self.live.remove(&pid) {
                    Some(row) => row,
                    None => self.add(process.clone(), None),
                };
                if let Some(row) = self.rows.get_mut(row) {
                    row.end = Some(time);
                    row.process.exit_status = process.exit_status;
                    complete(&mut row.process, &process);
                }
            }
            ProcessAction::Rundown => {
                let known = self.live.get(&pid).and_then(|row| self.rows.get_mut(*row));
                match known {
                    Some(row) => complete(&mut row.process, &process),
                    None => {
                        let row = self.add(process, None);
                        self.live.insert(pid, row);
                    }
                }
            }
        }
    }

    fn add(&mut self, process: Process, start: Option<i64>) -> usize {
        self.rows.push(ProcessRow { process, start, end: None });
        self.rows.len() - 1
    }
}

/// Fills in what an earlier event of the same process left empty.
fn complete(known: &mut Process, more: &Process) {
    if known.name.is_empty() {
        known.name.clone_from(&more.name);
    }
    if known.command_line.is_empty() {
        known.command_line.clone_from(&more.command_line);
    }
    if known.sid.is_none() {
        known.sid.clone_from(&more.sid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(action: ProcessAction, pid: u32) -> Process {
        Process {
            action,
            key: 0,
            pid,
            parent_pid: 4,
            session_id: 0,
            exit_status: 259,
            sid: None,
            name: "a.exe".into(),
            command_line: String::new(),
        }
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let mut processes = Processes::default();
        processes.event(event(ProcessAction::Rundown, 7), 10);
        processes.event(event(ProcessAction::End, 7), 20);
        processes.event(event(ProcessAction::Start, 7), 30);
        processes.event(event(ProcessAction::Rundown, 7), 40);
        let times: Vec<_> = processes.rows.iter().map(|row| (row.start, row.end)).collect();
        assert_eq!(times, [(None, Some(20)), (Some(30), None)]);
    }

    #[test]
    fn an_end_without_start_is_a_process_from_before_the_trace() {
        let mut processes = Processes::default();
        processes.event(event(ProcessAction::End, 7), 20);
        assert_eq!((processes.rows[0].start, processes.rows[0].end), (None, Some(20)));
    }
}
