//! Causes that lie in the end of the process that has the handles.

use handlescope_model::{EventKind, ProcessIdx};
use indicatif::HumanCount;

use super::causes::{Causes, Diagnosis};
use crate::query::groups::Opened;
use crate::query::tables::ProcessInfo;

/// The reason why a handle of a process that ended is leaked all the same.
const COUNTED: &str = "counted as leaked, because the trace has no close";

impl Causes<'_> {
    fn owner(&self, handle: Opened) -> Option<(ProcessIdx, &ProcessInfo)> {
        let owner = self.columns.owners.of(handle.opened.row())?;
        Some((owner, self.file.processes.get(owner)))
    }

    /// Leaked handles with the owner that ended, if `is_meant` is true.
    fn of_ended(&self, is_meant: impl Fn(Opened, ProcessIdx, i64) -> bool) -> Vec<Opened> {
        self.leaked_where(|handle| {
            let owner = self.owner(handle).and_then(|(row, owner)| Some((row, owner.end_ns?)));
            owner.is_some_and(|(owner, end_ns)| is_meant(handle, owner, end_ns))
        })
    }

    pub(super) fn crashes(&self, cause: &'static str) -> Option<Diagnosis> {
        let crashed = self.of_ended(|_, owner, _| self.ends.crash(owner).is_some());
        let (row, owner) = self.owner(*crashed.first()?)?;
        let (status, meaning) = self.ends.crash(row)?;
        let end_ns = owner.end_ns?;
        let is_closed = |handle: &&Opened| {
            handle.closed().is_some() || self.close_after_end(**handle, end_ns).is_some()
        };
        let closed = crashed.iter().filter(is_closed).count();
        let counted = match crashed.len() - closed {
            0 => "closed by process exit, so not counted as leaked".to_owned(),
            _ if closed == 0 => COUNTED.to_owned(),
            open => format!(
                "{} closed by process exit, {} counted as leaked",
                HumanCount(closed as u64),
                HumanCount(open as u64)
            ),
        };
        let facts = format!(
            "the process crashed at {} (exit status 0x{status:X}, {meaning}): {counted}",
            at(end_ns)
        );
        self.diagnosis(cause, &crashed, facts)
    }

    pub(super) fn owners_ended(&self, cause: &'static str) -> Option<Diagnosis> {
        let ended = self.of_ended(|handle, owner, end_ns| {
            handle.closed().is_none()
                && self.ends.crash(owner).is_none()
                && self.close_after_end(handle, end_ns).is_none()
        });
        let (row, owner) = self.owner(*ended.first()?)?;
        let code = self.ends.exit_code.get(row.row());
        let code = code.map_or_else(String::new, |code| format!(" with exit code {code}"));
        let facts = format!("the process ended at {}{code}: {COUNTED}", at(owner.end_ns?));
        self.diagnosis(cause, &ended, facts)
    }

    pub(super) fn pids_reused(&self, cause: &'static str) -> Option<Diagnosis> {
        let next = |owner: ProcessIdx| self.ends.next.get(owner.row()).copied().flatten();
        let is_open = |handle: Opened, end_ns| {
            handle.closed().is_none() && self.close_after_end(handle, end_ns).is_none()
        };
        let reused =
            self.of_ended(|handle, owner, end_ns| next(owner).is_some() && is_open(handle, end_ns));
        let later = next(self.owner(*reused.first()?)?.0)?;
        let later_process = self.file.processes.get(later);
        let closes = |handle: &Opened| {
            let close = self
                .unmatched_closes(*handle)
                .find(|event| self.columns.owners.process(*event) == Some(later))?;
            self.columns.time_ns.get(close)
        };
        let closes: Vec<i64> = reused.iter().filter_map(closes).collect();
        let close = closes.iter().min().map(|ns| match closes.len() {
            1 => format!(", which closed a handle with the same value at {}", at(*ns)),
            _ => format!(
                ", which closed {} handles with the same values, the first at {}",
                HumanCount(closes.len() as u64),
                at(*ns)
            ),
        });
        let facts = format!(
            "the pid was reused after the process ended, by {} at {}{}",
            later_process.shown_label(false),
            at(later_process.start_ns?),
            close.unwrap_or_default()
        );
        self.diagnosis(cause, &reused, facts)
    }

    /// Leaked handles that the exit of their process closed, after its end event.
    fn late_closes(&self) -> Vec<Opened> {
        self.of_ended(|handle, _, end_ns| self.close_after_end(handle, end_ns).is_some())
    }

    /// Their owners, one for each.
    pub(super) fn owners_of_late_closes(&self) -> Vec<ProcessIdx> {
        let closed = self.late_closes().into_iter();
        closed.filter_map(|handle| Some(self.owner(handle)?.0)).collect()
    }

    pub(super) fn closed_after_exit(&self, cause: &'static str) -> Option<Diagnosis> {
        let closed = self.late_closes();
        let first = *closed.first()?;
        let end_ns = self.owner(first)?.1.end_ns?;
        let close = self.close_after_end(first, end_ns)?;
        let after_ns = self.columns.time_ns.get(close)?.saturating_sub(end_ns);
        let facts = format!(
            "closed by process exit on thread {}, {:.1} ms after the process ended: not counted as leaked",
            self.columns.tid.get(close)?,
            after_ns as f64 / 1e6
        );
        self.diagnosis(cause, &closed, facts)
    }

    /// The close of a handle by the thread that opened it, after the end of its process: the exit continues after the
    /// event of the process's end, and so late that the close counts as another process's.
    fn close_after_end(&self, handle: Opened, end_ns: i64) -> Option<usize> {
        let tid = self.columns.tid.get(handle.opened.row())?;
        self.unmatched_closes(handle).find(|event| {
            self.columns.tid.get(*event) == Some(tid)
                && self.columns.time_ns.get(*event).is_some_and(|ns| ns >= end_ns)
        })
    }

    /// Closes of the value of a leaked handle in other processes, after it was opened.
    fn unmatched_closes(&self, handle: Opened) -> impl Iterator<Item = usize> {
        let opened = handle.opened.row();
        let (owner, value) = (self.columns.owners.of(opened), self.columns.slot(opened));
        let later = (opened + 1..self.file.objects.events(handle.object).end).take(MAX_EVENTS);
        later.filter(move |event| {
            self.columns.kind(*event) == Some(EventKind::HandleClose)
                && self.columns.slot(*event) == value
                && self.columns.owners.process(*event) != owner
                && handle.closed().is_none()
        })
    }
}

/// Events of an object that are searched for each leaked handle, so that the search stays linear.
pub(super) const MAX_EVENTS: usize = 64;

/// A time as the text of causes has it.
fn at(ns: i64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}
