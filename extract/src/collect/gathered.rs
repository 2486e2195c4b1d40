//! Rows of events that need no others, gathered from parts of the trace by further threads.

use std::ops::Range;

use super::collector::Collector;
use super::index::{Family, FamilyIndex};
use crate::etl::{Event, EventId, Gatherer, Sink, Spare};
use crate::kernel::{Duplicates, Handles, Heaps, Objects, References, VirtualMemory};
use crate::number_set::NumberSet;
use crate::raw::{EventFamily, GatheredFamily, Shared};
use crate::stacks::{GatheredStacks, has_gathered_stack};

macro_rules! gathered_families {
    ($($field:ident: $family:ident,)*) => {
        /// Rows of a part of the trace, in the order of their events.
        #[derive(Default)]
        pub struct GatheredRows {
            $($field: $family,)*
            shared: Shared,
            stacks: GatheredStacks,
            /// Number of rows that were appended to those before.
            appended: Appended,
        }

        /// A number for each family.
        #[derive(Default)]
        struct Appended {
            $($field: usize,)*
        }

        impl Spare for GatheredRows {
            fn clear(&mut self) {
                $(self.$field.clear();)*
                self.shared.timeline.clear();
                self.stacks.clear();
                self.appended = Appended::default();
            }
        }

        impl GatheredRows {
            /// Adds the row of an event; `None` if it cannot be gathered, or is too short.
            fn take(&mut self, family: Family, event: &Event<'_>) -> Option<()> {
                let Self { shared, .. } = self;
                match family {
                    $(Family::$family if $family::is_gathered(event.id) => {
                        self.$field.take(event, shared)
                    })*
                    _ => None,
                }
            }

            /// Adds rows of the timeline, and those of their families, to what was collected before them.
            fn append_to(&mut self, collector: &mut Collector, rows: Range<usize>) {
                let Self { shared, appended, .. } = self;
                // The row of each family that comes next.
                $(let mut $field = collector.$field.rows();)*
                collector.shared.timeline.append(&shared.timeline, rows, |kind| {
                    let next = match Family::of_row(kind) {
                        $(Family::$family => &mut $field,)*
                        _ => return 0,
                    };
                    *next += 1;
                    (*next - 1) as u32
                });
                $(
                    let count = $field - collector.$field.rows();
                    let start = appended.$field;
                    appended.$field += count;
                    collector.$field.append(&self.$field, start..start + count);
                )*
            }
        }
    };
}

gathered_families! {
    handles: Handles,
    duplicates: Duplicates,
    objects: Objects,
    references: References,
    heaps: Heaps,
    virtual_memory: VirtualMemory,
}

/// Gathers rows of parts of the trace.
#[derive(Default)]
pub struct RowGatherer {
    index: FamilyIndex,
    /// Numbers of the lists of addresses in the rows.
    known: NumberSet,
}

impl Gatherer for RowGatherer {
    type Part = GatheredRows;

    fn gather(&mut self, event: &Event<'_>, rows: &mut GatheredRows) -> bool {
        // Others may carry a stack or be what a mapping or a provider's description makes of them.
        let is_of_kernel = matches!(event.id, EventId::Hook(_)) && event.extended.is_empty();
        if !is_of_kernel || !has_gathered_stack(event) {
            return false;
        }
        let taken = self.index.family(event.id).and_then(|family| rows.take(family, event));
        if taken.is_some() {
            rows.stacks.take(event, &mut rows.shared.timeline, &mut self.known);
        }
        taken.is_some()
    }
}

impl Sink for Collector {
    type Gatherer = RowGatherer;

    fn take(&mut self, event: &Event<'_>) {
        self.event(event);
    }

    fn append(&mut self, part: &mut GatheredRows, rows: Range<usize>) {
        let times = part.shared.timeline.time.get(rows.clone());
        let Some(last) = times.and_then(|times| times.last()).copied() else { return };
        let row = self.shared.timeline.len();
        self.stacks.append(row, &mut part.stacks, rows.clone(), last);
        part.append_to(self, rows);
    }

    fn gatherer(&self) -> Option<RowGatherer> {
        Some(RowGatherer::default())
    }
}
