//! The events of objects. They follow from the acquisitions and are derived when they are read.

mod columns;
mod numbered;
mod order;
mod times;

use polars::prelude::Column;

pub use self::columns::{
    EventColumns, EventHandles, EventProcesses, EventValues, OpenedValues, ViewValues,
};
pub use self::numbered::{AcquisitionState, EventPart, EventTable, Numbering};
pub use self::order::EventOrder;
pub use self::times::EventTimes;
use crate::archive::{ArchiveError, Trace};
use crate::column::{Cell, ColumnSpec, Number};
use crate::index::{ObjectIdx, ProcessIdx};
use crate::tables::{Acquisitions, EventKind};

/// Derives a column of the table of events.
pub fn event_column(trace: &Trace, spec: &ColumnSpec) -> Result<Column, ArchiveError> {
    let (order, times) = (trace.event_order()?, trace.event_times()?);
    let (table, columns) = (&times.table, EventColumns::with_all(trace)?);
    let made = MadeColumn { spec, events: &order.events };
    Ok(match spec.name {
        "object" => {
            let mut objects = Vec::with_capacity(order.events.len());
            for (object, ends) in (0..).zip(order.first.windows(2)) {
                objects.extend((ends[0]..ends[1]).map(|_| ObjectIdx(object)));
            }
            ObjectIdx::column(spec.name, objects)
        }
        "kind" => made.of_all(|event| table.kind(event).unwrap_or(EventKind::Reference).code()),
        "time_ns" => made.of_all(|event| times.get(event).unwrap_or_default()),
        "process" => {
            let processes = columns.processes()?;
            made.of_all(|event| processes.get(event).unwrap_or(ProcessIdx::NONE))
        }
        "tid" => {
            let tids = columns.tids()?;
            made.of_all(|event| tids.get(event).unwrap_or_default())
        }
        "stack" => {
            let stacks = columns.stacks()?;
            made.of_some(|event| stacks.get(event))
        }
        "handle" => {
            let handles = columns.handles()?;
            made.of_some(|event| handles.get(event))
        }
        "leaked" => made.of_all(|event| table.is_leaked(event)),
        "closed_at_exit" => made.of_all(|event| table.is_closed_at_exit(event)),
        "closing_event" => made.of_some(|event| order.closing(table, event)),
        "closed_unseen" => made.of_some(|event| Some(table.closed_unseen(event)?.code())),
        "closed_after_ns" => {
            let after_ns = columns.of_opened(Acquisitions::ended_after_ns)?;
            made.of_some(|event| table.closed_unseen(event).and_then(|_| after_ns.get(event)))
        }
        "closed_before_ns" => made.of_some(|event| times.closed_before_ns(event)),
        "ref_delta" => made.of_some(|event| table.delta(event)),
        "source_process" => made.of_opened(&columns.of_opened(Acquisitions::source_process)?),
        "source_pid" => made.of_opened(&columns.of_opened(Acquisitions::source_pid)?),
        "source_handle" => made.of_opened(&columns.of_opened(Acquisitions::source_key)?),
        "caller_process" => {
            let processes = columns.processes()?;
            made.of_some(|event| processes.caller(event))
        }
        "inherited_by" => {
            let processes = columns.processes()?;
            made.of_some(|event| processes.inherited_by(event))
        }
        "view_base" => made.of_views(&columns.view_bases()?),
        "view_size" => {
            let sizes = columns.of_views(Acquisitions::size)?;
            made.of_some(|event| sizes.get(event).map(|size| size as u64))
        }
        "byte_offset" => made.of_views(&columns.of_views(Acquisitions::byte_offset)?),
        _ => made.of_views(&columns.of_views(Acquisitions::file_object)?),
    })
}

/// A column built from event numbers.
struct MadeColumn<'a> {
    spec: &'a ColumnSpec,
    events: &'a [u32],
}

impl MadeColumn<'_> {
    fn of_all<T: Cell>(&self, value: impl Fn(usize) -> T) -> Column {
        let values = self.events.iter().map(|event| value(*event as usize));
        T::column(self.spec.name, values.collect())
    }

    /// Builds a column of numbers; if all are null, it costs nothing.
    fn of_some<T: Number>(&self, value: impl Fn(usize) -> Option<T>) -> Column {
        let values: Vec<Option<T>> =
            self.events.iter().map(|event| value(*event as usize)).collect();
        if values.iter().any(Option::is_some) {
            Option::<T>::column(self.spec.name, values)
        } else {
            self.spec.nulls(values.len())
        }
    }

    fn of_opened<T: Number>(&self, values: &OpenedValues<T>) -> Column {
        self.of_some(|event| values.get(event))
    }

    fn of_views<T: Number>(&self, values: &ViewValues<T>) -> Column {
        self.of_some(|event| values.get(event))
    }
}
