//! The columns of events, read from the rows that the events are derived from.

use std::sync::Arc;

use super::numbered::{EventPart, EventTable, Numbering};
use crate::archive::{ArchiveError, Trace};
use crate::column::{Number, Numbers, RowSet, Sparse};
use crate::index::{ProcessIdx, StackIdx};
use crate::key::Key;
use crate::table::Table;
use crate::tables::{Acquisitions, Objects, Origin, ReferenceChanges};

/// Reads columns of some events.
pub struct EventColumns<'a> {
    trace: &'a Trace,
    table: Arc<EventTable>,
    /// Acquisitions whose events are to be read.
    rows: Arc<RowSet>,
}

/// A value per event, from the openings and ends of acquisitions, object events and reference changes.
pub struct EventValues<T: Number> {
    numbering: Numbering,
    opened: Sparse<Numbers<T>>,
    ended: Sparse<Numbers<T>>,
    created: Numbers<T>,
    deleted: Numbers<T>,
    changed: Numbers<T>,
}

impl<T: Number> EventValues<T> {
    /// Iterates over the values of all events except those of acquisitions.
    pub fn others(&self) -> impl Iterator<Item = T> + '_ {
        [&self.created, &self.deleted, &self.changed].into_iter().flat_map(Numbers::iter).flatten()
    }

    /// Returns the value of the end of an acquisition.
    #[inline]
    pub fn ended(&self, acquisition: usize) -> Option<T> {
        self.ended.get(acquisition)
    }

    /// Returns the value of the opening of an acquisition.
    #[inline]
    pub fn opened(&self, acquisition: usize) -> Option<T> {
        self.opened.get(acquisition)
    }

    /// Returns the value of an event.
    #[inline]
    pub fn get(&self, event: usize) -> Option<T> {
        match self.numbering.part(event) {
            (EventPart::Opened, row) => self.opened.get(row),
            (EventPart::Ended, row) => self.ended.get(row),
            (EventPart::Created, row) => self.created.get(row),
            (EventPart::Deleted, row) => self.deleted.get(row),
            (EventPart::Changed, row) => self.changed.get(row),
        }
    }
}

/// Values of the acquisitions that events open.
pub struct OpenedValues<T: Number> {
    numbering: Numbering,
    values: Sparse<Numbers<T>>,
}

impl<T: Number> OpenedValues<T> {
    /// Returns the value of an event; `None` if it opens nothing.
    #[inline]
    pub fn get(&self, event: usize) -> Option<T> {
        match self.numbering.part(event) {
            (EventPart::Opened, row) => self.values.get(row),
            _ => None,
        }
    }
}

/// The processes that events belong to. A handle inherited by a child belongs to the parent.
pub struct EventProcesses {
    table: Arc<EventTable>,
    process: EventValues<ProcessIdx>,
    source: OpenedValues<ProcessIdx>,
    caller: EventValues<ProcessIdx>,
}

impl EventProcesses {
    #[inline]
    pub fn get(&self, event: usize) -> Option<ProcessIdx> {
        if self.is_inherited(event) {
            return self.source.get(event).or_else(|| self.caller.get(event));
        }
        self.process.get(event)
    }

    /// Returns the owner of the handle that an event opened: the child that inherited it, or else the process of the
    /// event.
    pub fn owner(&self, event: usize) -> Option<ProcessIdx> {
        self.process.get(event)
    }

    /// Returns the child that inherited the handle of a duplicate.
    pub fn inherited_by(&self, event: usize) -> Option<ProcessIdx> {
        if self.is_inherited(event) { self.process.get(event) } else { None }
    }

    /// Returns the process whose thread made the call: always for duplicates, otherwise only if it is not the owner.
    pub fn caller(&self, event: usize) -> Option<ProcessIdx> {
        match self.process.numbering.part(event).0 {
            EventPart::Opened | EventPart::Ended => self.caller.get(event),
            _ => None,
        }
    }

    #[inline]
    fn is_inherited(&self, event: usize) -> bool {
        let (part, row) = self.process.numbering.part(event);
        part == EventPart::Opened && self.table.origin(row) == Some(Origin::Inherit)
    }
}

/// The handle value of the opening and of the close; the latter may have other tag bits.
pub struct EventHandles {
    table: Arc<EventTable>,
    key: Sparse<Numbers<u64>>,
    ended_key: Sparse<Numbers<u64>>,
}

impl EventHandles {
    pub fn get(&self, event: usize) -> Option<u64> {
        let (part, row) = self.table.numbering.part(event);
        let key = || self.key.get(row).filter(|_| !self.table.state(row).is_view());
        match part {
            EventPart::Opened => key(),
            EventPart::Ended => self.ended_key.get(row).or_else(key),
            EventPart::Created | EventPart::Deleted | EventPart::Changed => None,
        }
    }
}

/// Values of maps and unmaps.
pub struct ViewValues<T: Number> {
    table: Arc<EventTable>,
    values: Sparse<Numbers<T>>,
}

impl<T: Number> ViewValues<T> {
    pub fn get(&self, event: usize) -> Option<T> {
        let row = self.table.numbering.acquisition(event)?.row();
        self.values.get(row).filter(|_| self.table.state(row).is_view())
    }
}

impl<'a> EventColumns<'a> {
    /// Reads columns of all events.
    pub fn with_all(trace: &'a Trace) -> Result<Self, ArchiveError> {
        let rows = Arc::new(RowSet::all(trace.height(Table::Acquisitions)?));
        Self::for_rows(trace, rows)
    }

    /// Reads columns of the events of some acquisitions.
    pub fn for_rows(trace: &'a Trace, rows: Arc<RowSet>) -> Result<Self, ArchiveError> {
        Ok(Self { trace, table: trace.event_table()?, rows })
    }

    pub fn stacks(&self) -> Result<EventValues<StackIdx>, ArchiveError> {
        self.stacks_of((true, true))
    }

    /// Reads the stacks of openings, of ends, or of both; stacks of other events are always read.
    pub fn stacks_of(
        &self,
        (opened, ended): (bool, bool),
    ) -> Result<EventValues<StackIdx>, ArchiveError> {
        self.of_each(
            (
                opened.then_some(Acquisitions::opened_stack),
                ended.then_some(Acquisitions::ended_stack),
            ),
            (Objects::created_stack, Objects::deleted_stack),
            ReferenceChanges::stack,
        )
    }

    pub fn tids(&self) -> Result<EventValues<u32>, ArchiveError> {
        self.of_each(
            (Some(Acquisitions::opened_tid), Some(Acquisitions::ended_tid)),
            (Objects::created_tid, Objects::deleted_tid),
            ReferenceChanges::tid,
        )
    }

    pub fn processes(&self) -> Result<EventProcesses, ArchiveError> {
        let others = (Objects::created_process, Objects::deleted_process);
        let changed = ReferenceChanges::process;
        let process = (Some(Acquisitions::process), Some(Acquisitions::process));
        let caller = (Some(Acquisitions::opened_by), Some(Acquisitions::ended_by));
        Ok(EventProcesses {
            process: self.of_each(process, others, changed)?,
            table: Arc::clone(&self.table),
            source: self.of_opened(Acquisitions::source_process)?,
            caller: self.of_each(caller, others, changed)?,
        })
    }

    pub fn handles(&self) -> Result<EventHandles, ArchiveError> {
        Ok(EventHandles {
            table: Arc::clone(&self.table),
            key: self.trace.values_at(Acquisitions::key, &self.rows)?,
            ended_key: self.trace.values_at(Acquisitions::ended_key, &self.rows)?,
        })
    }

    /// Reads a value of acquisitions for the events that open them.
    pub fn of_opened<T: Number>(
        &self,
        key: Key<Acquisitions, Option<T>>,
    ) -> Result<OpenedValues<T>, ArchiveError> {
        let values = self.trace.values_at(key, &self.rows)?;
        Ok(OpenedValues { numbering: self.table.numbering, values })
    }

    /// Reads the first addresses of views.
    pub fn view_bases(&self) -> Result<ViewValues<u64>, ArchiveError> {
        Ok(ViewValues {
            table: Arc::clone(&self.table),
            values: self.trace.values_at(Acquisitions::key, &self.rows)?,
        })
    }

    /// Reads a value of views.
    pub fn of_views<T: Number>(
        &self,
        key: Key<Acquisitions, Option<T>>,
    ) -> Result<ViewValues<T>, ArchiveError> {
        Ok(ViewValues {
            table: Arc::clone(&self.table),
            values: self.trace.values_at(key, &self.rows)?,
        })
    }

    /// Reads a value of events of all kinds; openings or ends without a column have none.
    fn of_each<T: Number>(
        &self,
        (opened, ended): (OfAcquisitions<T>, OfAcquisitions<T>),
        (created, deleted): (Key<Objects, Option<T>>, Key<Objects, Option<T>>),
        changed: Key<ReferenceChanges, Option<T>>,
    ) -> Result<EventValues<T>, ArchiveError> {
        let read = |key: OfAcquisitions<T>| {
            key.map_or_else(|| Ok(Sparse::default()), |key| self.trace.values_at(key, &self.rows))
        };
        Ok(EventValues {
            numbering: self.table.numbering,
            opened: read(opened)?,
            ended: read(ended)?,
            created: self.trace.values(created)?,
            deleted: self.trace.values(deleted)?,
            changed: self.trace.changes(changed)?,
        })
    }
}

/// A column of the acquisitions, if any.
type OfAcquisitions<T> = Option<Key<Acquisitions, Option<T>>>;
