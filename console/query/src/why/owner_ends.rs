//! Causes that come from the end of the owner process.

use handlescope_model::{AcquisitionIdx, EventKind, ProcessIdx};
use indicatif::HumanCount;

use super::causes::{Causes, Diagnosis};
use super::target_groups::seconds;
use crate::tables::ProcessInfo;

/// Why a handle of an ended process counts as leaked all the same.
const COUNTED: &str = "counted as leaked, because the trace has no close";

impl Causes<'_> {
    fn owner(&self, handle: AcquisitionIdx) -> Option<(ProcessIdx, &ProcessInfo)> {
        let owner = self.columns.owner(handle)?;
        Some((owner, self.file.processes.get(owner)))
    }

    /// Returns leaked handles of ended owners for which `is_meant` is true.
    fn of_ended(
        &self,
        is_meant: impl Fn(AcquisitionIdx, ProcessIdx) -> bool,
    ) -> Vec<AcquisitionIdx> {
        self.leaked_where(|handle| {
            let owner = self.owner(handle).filter(|(_, owner)| owner.end_ns.is_some());
            owner.is_some_and(|(owner, _)| is_meant(handle, owner))
        })
    }

    pub fn crashes(&self) -> Option<Diagnosis> {
        let crashed = self.of_ended(|_, owner| self.ends.crash(owner).is_some());
        let (row, owner) = self.owner(*crashed.first()?)?;
        let (status, meaning) = self.ends.crash(row)?;
        let end_ns = owner.end_ns?;
        let closed =
            crashed.iter().filter(|handle| self.columns.closing(**handle).is_some()).count();
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
            seconds(end_ns)
        );
        self.diagnosis(&crashed, facts)
    }

    pub fn owners_ended(&self) -> Option<Diagnosis> {
        let ended = self.of_ended(|handle, owner| {
            self.columns.closing(handle).is_none() && self.ends.crash(owner).is_none()
        });
        let (row, owner) = self.owner(*ended.first()?)?;
        let code = self.ends.exit_code.get(row.row());
        let code = code.map_or_else(String::new, |code| format!(" with exit code {code}"));
        let facts = format!("the process ended at {}{code}: {COUNTED}", seconds(owner.end_ns?));
        self.diagnosis(&ended, facts)
    }

    pub fn pids_reused(&self) -> Option<Diagnosis> {
        let next = |owner: ProcessIdx| self.ends.next.get(owner.row()).copied().flatten();
        let reused = self.of_ended(|handle, owner| {
            next(owner).is_some() && self.columns.closing(handle).is_none()
        });
        let later = next(self.owner(*reused.first()?)?.0)?;
        let later_process = self.file.processes.get(later);
        let closes = |handle: &AcquisitionIdx| {
            let close = self
                .unmatched_closes(*handle)
                .find(|event| self.columns.processes.get(*event) == Some(later))?;
            self.columns.time_ns(close)
        };
        let closes: Vec<i64> = reused.iter().filter_map(closes).collect();
        let close = closes.iter().min().map(|ns| match closes.len() {
            1 => format!(", which closed a handle with the same value at {}", seconds(*ns)),
            _ => format!(
                ", which closed {} handles with the same values, the first at {}",
                HumanCount(closes.len() as u64),
                seconds(*ns)
            ),
        });
        let facts = format!(
            "the pid was reused after the process ended, by {} at {}{}",
            later_process.shown_label(false),
            seconds(later_process.start_ns?),
            close.unwrap_or_default()
        );
        self.diagnosis(&reused, facts)
    }

    /// Returns closes of a leaked handle's value in other processes after it was opened.
    fn unmatched_closes(&self, handle: AcquisitionIdx) -> impl Iterator<Item = usize> {
        let opened = self.columns.opening(handle);
        let (owner, value) = (self.columns.processes.owner(opened), self.columns.slot(opened));
        self.columns.around(handle).1.iter().copied().take(MAX_EVENTS).filter(move |event| {
            self.columns.kind(*event) == Some(EventKind::HandleClose)
                && self.columns.slot(*event) == value
                && self.columns.processes.get(*event) != owner
                && self.columns.closing(handle).is_none()
        })
    }
}

/// Maximum number of events of an object searched per leaked handle, so that the search stays linear.
pub const MAX_EVENTS: usize = 64;
