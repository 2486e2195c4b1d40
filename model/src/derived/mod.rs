//! The events of objects, which follow from the acquisitions and are made when they are read.

mod numbered;
mod order;
mod times;

use std::sync::Arc;

use polars::prelude::Column;

pub use self::numbered::{EventTable, Numbering, Part, State};
pub use self::order::EventOrder;
use self::order::event_kind;
pub use self::times::EventTimes;
use crate::archive::{ArchiveError, Trace};
use crate::column::{Cell, ColumnSpec, Number};
use crate::index::{ObjectIdx, ProcessIdx, StackIdx};
use crate::key::Key;
use crate::table::Table;
use crate::tables::{AcquisitionKind, Acquisitions, End, Objects, Origin, ReferenceChanges};

/// Number of rows of a derived table.
pub fn height(trace: &Trace, table: Table) -> Result<usize, ArchiveError> {
    match table {
        Table::Events => Ok(trace.event_order()?.len()),
        table => trace.height(table),
    }
}

/// A column of a derived table.
pub fn column(trace: &Trace, spec: &ColumnSpec) -> Result<Column, ArchiveError> {
    Derived { trace, order: trace.event_order()?, spec }.event_column()
}

/// A column that is made.
struct Derived<'a> {
    trace: &'a Trace,
    order: Arc<EventOrder>,
    spec: &'a ColumnSpec,
}

impl Derived<'_> {
    fn made<T: Cell>(&self, values: Vec<T>) -> Result<Column, ArchiveError> {
        Ok(T::column(self.spec.name, values))
    }

    /// A column of the events: from the openings and ends of acquisitions, and from other events.
    fn events<T: Copy>(
        &self,
        opened: impl Fn(usize) -> T,
        ended: impl Fn(usize) -> T,
        other: impl Fn(Part, usize) -> T,
    ) -> Vec<T> {
        let events = self.order.parts.iter().zip(&self.order.rows);
        let value = |(part, row): (&Part, &u32)| match part {
            Part::Opened => opened(*row as usize),
            Part::Ended => ended(*row as usize),
            part => other(*part, *row as usize),
        };
        events.map(value).collect()
    }

    fn event_column(&self) -> Result<Column, ArchiveError> {
        let trace = self.trace;
        match self.spec.name {
            "object" => {
                let mut objects = Vec::with_capacity(self.order.len());
                for (object, ends) in (0..).zip(self.order.first.windows(2)) {
                    objects.extend((ends[0]..ends[1]).map(|_| ObjectIdx(object)));
                }
                self.made(objects)
            }
            "kind" => {
                let origin = trace.values(Acquisitions::origin)?;
                let kind = trace.values(Acquisitions::kind)?;
                let delta = trace.values(ReferenceChanges::delta)?;
                let view = AcquisitionKind::View.code();
                let code = |part, row| {
                    let origin = origin.get(row).and_then(Origin::from_code);
                    let is_view = kind.get(row) == Some(view);
                    event_kind(part, origin, is_view, delta.get(row).unwrap_or_default()).code()
                };
                self.made(self.events(
                    |row| code(Part::Opened, row),
                    |row| code(Part::Ended, row),
                    code,
                ))
            }
            "time_ns" => {
                let changed = trace.values(ReferenceChanges::time_ns)?;
                let times = self.of_all(
                    (Acquisitions::opened_ns, Acquisitions::ended_ns),
                    (Objects::created_ns, Objects::deleted_ns),
                    |row| changed.get(row),
                )?;
                self.made(times.into_iter().map(Option::unwrap_or_default).collect::<Vec<i64>>())
            }
            "process" => self.event_processes(),
            "tid" => {
                let changed = trace.values(ReferenceChanges::tid)?;
                let tids = self.of_all(
                    (Acquisitions::opened_tid, Acquisitions::ended_tid),
                    (Objects::created_tid, Objects::deleted_tid),
                    |row| changed.get(row),
                )?;
                self.made(tids.into_iter().map(Option::unwrap_or_default).collect::<Vec<u32>>())
            }
            "stack" => {
                let changed = trace.values(ReferenceChanges::stack)?;
                let stacks: Vec<Option<StackIdx>> = self.of_all(
                    (Acquisitions::opened_stack, Acquisitions::ended_stack),
                    (Objects::created_stack, Objects::deleted_stack),
                    |row| changed.get(row),
                )?;
                self.made(stacks)
            }
            "handle" => {
                let key = trace.values(Acquisitions::key)?;
                let ended_key = trace.values(Acquisitions::ended_key)?;
                let is_handle = self.is_kind(AcquisitionKind::Handle)?;
                let opened = |row| key.get(row).filter(|_| is_handle(row));
                self.made(self.events(
                    opened,
                    |row| ended_key.get(row).or_else(|| opened(row)),
                    |_, _| None,
                ))
            }
            "leaked" => {
                let end = trace.values(Acquisitions::end)?;
                let is_open = |row| end.get(row) == Some(End::Open.code());
                self.made(self.events(is_open, |_| false, |_, _| false))
            }
            "closed_at_exit" => {
                let end = trace.values(Acquisitions::end)?;
                let origin = trace.values(Acquisitions::origin)?;
                let at_exit = |row| end.get(row) == Some(End::AtExit.code());
                let opened = |row| at_exit(row) && origin.get(row) != Some(Origin::Inherit.code());
                self.made(self.events(opened, at_exit, |_, _| false))
            }
            "closing_event" => {
                self.made(self.events(|row| self.order.ended(row), |_| None, |_, _| None))
            }
            "closed_unseen" => {
                let end = trace.values(Acquisitions::end)?;
                let unseen = |row| Some(End::from_code(end.get(row)?)?.unseen()?.code());
                self.made_if_any(self.events(unseen, |_| None, |_, _| None))
            }
            "closed_after_ns" => self.of_unseen(Acquisitions::ended_after_ns),
            "closed_before_ns" => self.of_unseen(Acquisitions::ended_ns),
            "ref_delta" => {
                let delta = trace.values(ReferenceChanges::delta)?;
                let changed = |part, row| delta.get(row).filter(|_| part == Part::Changed);
                self.made_if_any(self.events(|_| None, |_| None, changed))
            }
            "source_process" => self.of_opened(Acquisitions::source_process),
            "source_pid" => self.of_opened(Acquisitions::source_pid),
            "source_handle" => self.of_opened(Acquisitions::source_key),
            "caller_process" => self.event_callers(),
            "inherited_by" => {
                let origin = trace.values(Acquisitions::origin)?;
                let process = trace.values(Acquisitions::process)?;
                let is_inherited = |row: &usize| origin.get(*row) == Some(Origin::Inherit.code());
                let child = |row: usize| process.get(row).filter(|_| is_inherited(&row));
                self.made_if_any(self.events(child, |_| None, |_, _| None))
            }
            "view_base" => {
                let key = trace.values(Acquisitions::key)?;
                self.of_views(|row| key.get(row))
            }
            "view_size" => {
                let size = trace.values(Acquisitions::size)?;
                self.of_views(|row| size.get(row).map(|size| size as u64))
            }
            "byte_offset" => {
                let offset = trace.values(Acquisitions::byte_offset)?;
                self.of_views(|row| offset.get(row))
            }
            _ => {
                let file = trace.values(Acquisitions::file_object)?;
                self.of_views(|row| file.get(row))
            }
        }
    }

    /// Values of openings, ends, object events and reference changes.
    fn of_all<T: Number>(
        &self,
        (opened, ended): (Key<Acquisitions, Option<T>>, Key<Acquisitions, Option<T>>),
        (created, deleted): (Key<Objects, Option<T>>, Key<Objects, Option<T>>),
        changed: impl Fn(usize) -> Option<T>,
    ) -> Result<Vec<Option<T>>, ArchiveError> {
        let (opened, ended) = (self.trace.values(opened)?, self.trace.values(ended)?);
        let (created, deleted) = (self.trace.values(created)?, self.trace.values(deleted)?);
        Ok(self.events(
            |row| opened.get(row),
            |row| ended.get(row),
            |part, row| match part {
                Part::Created => created.get(row),
                Part::Deleted => deleted.get(row),
                _ => changed(row),
            },
        ))
    }

    /// Values that openings have, and no other events.
    fn of_opened<T: Number>(
        &self,
        key: Key<Acquisitions, Option<T>>,
    ) -> Result<Column, ArchiveError> {
        let values = self.trace.values(key)?;
        if !values.has_any() {
            return Ok(self.spec.nulls(self.order.len()));
        }
        self.made_if_any(self.events(|row| values.get(row), |_| None, |_, _| None))
    }

    /// Times of the openings whose closes the trace lost.
    fn of_unseen(&self, key: Key<Acquisitions, Option<i64>>) -> Result<Column, ArchiveError> {
        let (end, times) = (self.trace.values(Acquisitions::end)?, self.trace.values(key)?);
        let is_unseen = |row: &usize| {
            end.get(*row).and_then(End::from_code).is_some_and(|end| end.unseen().is_some())
        };
        let time = |row: usize| times.get(row).filter(|_| is_unseen(&row));
        self.made_if_any(self.events(time, |_| None, |_, _| None))
    }

    /// Values of maps and unmaps.
    fn of_views<T: Number>(
        &self,
        value: impl Fn(usize) -> Option<T>,
    ) -> Result<Column, ArchiveError> {
        let is_view = self.is_kind(AcquisitionKind::View)?;
        let of_view = |row: usize| value(row).filter(|_| is_view(row));
        self.made_if_any(self.events(of_view, of_view, |_, _| None))
    }

    /// A column of numbers, which costs nothing where there are none.
    fn made_if_any<T: Number>(&self, values: Vec<Option<T>>) -> Result<Column, ArchiveError> {
        match values.iter().any(Option::is_some) {
            true => self.made(values),
            false => Ok(self.spec.nulls(values.len())),
        }
    }

    fn is_kind(&self, kind: AcquisitionKind) -> Result<impl Fn(usize) -> bool, ArchiveError> {
        let (kinds, code) = (self.trace.values(Acquisitions::kind)?, kind.code());
        Ok(move |row: usize| kinds.get(row) == Some(code))
    }

    /// The processes that events belong to: of a handle that a child inherited the parent.
    fn event_processes(&self) -> Result<Column, ArchiveError> {
        let trace = self.trace;
        let process = trace.values(Acquisitions::process)?;
        let origin = trace.values(Acquisitions::origin)?;
        let source = trace.values(Acquisitions::source_process)?;
        let caller = trace.values(Acquisitions::opened_by)?;
        let created = trace.values(Objects::created_process)?;
        let deleted = trace.values(Objects::deleted_process)?;
        let changed = trace.values(ReferenceChanges::process)?;
        let or_none = |process: Option<ProcessIdx>| process.unwrap_or(ProcessIdx::NONE);
        let opened = |row: usize| match origin.get(row) == Some(Origin::Inherit.code()) {
            true => or_none(source.get(row).or_else(|| caller.get(row))),
            false => or_none(process.get(row)),
        };
        self.made(self.events(
            opened,
            |row| or_none(process.get(row)),
            |part, row| match part {
                Part::Created => or_none(created.get(row)),
                Part::Deleted => or_none(deleted.get(row)),
                _ => or_none(changed.get(row)),
            },
        ))
    }

    /// The processes whose threads made the calls: of duplicates always, else where these are not the owners.
    fn event_callers(&self) -> Result<Column, ArchiveError> {
        let trace = self.trace;
        let opened_by = trace.values(Acquisitions::opened_by)?;
        let ended_by = trace.values(Acquisitions::ended_by)?;
        self.made_if_any(self.events(
            |row| opened_by.get(row),
            |row| ended_by.get(row),
            |_, _| None,
        ))
    }
}
