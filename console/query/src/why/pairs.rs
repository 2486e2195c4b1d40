//! Causes that involve two handles to one object: one thread opens it twice, or two processes share it.

use handlescope_model::{AcquisitionIdx, EventKind, ProcessIdx};
use indicatif::HumanCount;

use super::causes::{Causes, Diagnosis};
use super::owner_ends::MAX_EVENTS;

impl Causes<'_> {
    pub fn opened_twice(&self) -> Option<Diagnosis> {
        let twice = self.leaked_where(|handle| self.second_open(handle).is_some());
        let first = self.columns.opening(*twice.first()?);
        let second = self.second_open(*twice.first()?)?;
        let time = |event: usize| self.columns.time_ns(event);
        let apart_ns = time(first)?.abs_diff(time(second)?);
        let example = if twice.len() > 1 { "for example " } else { "" };
        let facts = format!(
            "one thread opened the same object twice and closed only one handle ({example}thread {}, {} µs apart)",
            self.columns.tid(first),
            HumanCount(apart_ns / 1000)
        );
        self.diagnosis(&twice, facts)
    }

    /// Finds the nearest other open of the object by the same thread within the race window. Both must have been open
    /// at once, and the program must have closed the other one. Opens that are further apart may be unrelated.
    fn second_open(&self, handle: AcquisitionIdx) -> Option<usize> {
        let (columns, opening) = (self.columns, self.columns.opening(handle));
        let is_of_thread = |event: &usize| columns.tid(*event) == columns.tid(opening);
        let (mut before, mut after) = self.nearby_creates(handle)?;
        let before = before.find(is_of_thread).filter(|event| {
            let close = columns.closed_by_program(*event);
            close.is_some_and(|close| columns.place(close) > columns.place(opening))
        });
        let after =
            || after.find(is_of_thread).filter(|event| columns.closed_by_program(*event).is_some());
        before.or_else(after)
    }

    pub fn other_sides_open(&self) -> Option<Diagnosis> {
        let open = self.leaked_where(|handle| self.other_side(handle).is_some());
        let other = self.other_side(*open.first()?)?;
        let facts = format!(
            "the other process of the duplicate, {}, still has its handle open",
            self.process(Some(other))
        );
        self.diagnosis(&open, facts)
    }

    /// Returns the other process of a duplicate, if its handle was never closed.
    fn other_side(&self, handle: AcquisitionIdx) -> Option<ProcessIdx> {
        let (columns, opening) = (self.columns, self.columns.opening(handle));
        if columns.processes.inherited_by(opening).is_some() {
            return None;
        }
        let owner = columns.processes.owner(opening)?;
        let (before, after) = columns.around(handle);
        let other = match columns.kind(opening)? {
            EventKind::HandleDuplicate => {
                let source = (columns.duplicated(opening).0?, columns.source_slot(opening)?);
                let is_source = |event: &usize| {
                    columns.is_opening(*event)
                        && columns.processes.owner(*event).zip(columns.slot(*event)) == Some(source)
                };
                before.iter().rev().copied().take(MAX_EVENTS).find(is_source)?
            }
            EventKind::HandleCreate => {
                let value = columns.slot(opening)?;
                let is_copy = |event: &usize| {
                    columns.kind(*event) == Some(EventKind::HandleDuplicate)
                        && columns.duplicated(*event).0 == Some(owner)
                        && columns.source_slot(*event) == Some(value)
                };
                after.iter().copied().take(MAX_EVENTS).find(is_copy)?
            }
            _ => return None,
        };
        let process = columns.processes.owner(other)?;
        let is_open = columns.is_open(other) && self.file.processes.get(process).end_ns.is_none();
        (process != owner && is_open).then_some(process)
    }
}
