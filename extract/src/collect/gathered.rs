//! Gathers rows of events that do not depend on others into batches, on several threads.

use std::ops::Range;

use super::Collector;
use super::index::{FamilyId, FamilyIndex};
use crate::etl::{Event, EventId, Gatherer, Sink, Spare};
use crate::kernel::{Duplicates, Handles, Heaps, Objects, References, VirtualMemory};
use crate::number_set::NumberSet;
use crate::raw::{EventFamily, GatheredFamily, PassState};
use crate::stacks::{GatheredStacks, has_numbered_stack};

macro_rules! gathered_families {
    ($($field:ident: $family:ident,)*) => {
        /// Batch of rows in the order of their events.
        #[derive(Default)]
        pub struct GatheredRows {
            $($field: $family,)*
            shared: PassState,
            stacks: GatheredStacks,
            /// Rows that a collector already has.
            appended: FamilyRowCounts,
        }

        /// Number of rows of each family.
        #[derive(Default)]
        struct FamilyRowCounts {
            $($field: usize,)*
        }

        impl Spare for GatheredRows {
            fn clear(&mut self) {
                $(self.$field.clear();)*
                self.shared.timeline.clear();
                self.stacks.clear();
                self.appended = FamilyRowCounts::default();
            }
        }

        impl GatheredRows {
            /// Adds the row of an event; `None` if it cannot be gathered or is too short.
            fn take(&mut self, family: FamilyId, event: &Event<'_>) -> Option<()> {
                let Self { shared, .. } = self;
                match family {
                    $(FamilyId::$family if $family::is_gathered(event.id) => {
                        self.$field.take(event, shared)
                    })*
                    _ => None,
                }
            }

            /// Appends timeline rows, and those of their families, to a collector.
            fn append_to(&mut self, collector: &mut Collector, rows: Range<usize>) {
                let Self { shared, appended, .. } = self;
                // Next row of each family.
                $(let mut $field = collector.$field.rows();)*
                collector.shared.timeline.append(&shared.timeline, rows, |kind| {
                    let next = match FamilyId::from_row(kind) {
                        $(FamilyId::$family => &mut $field,)*
                        _ => return 0,
                    };
                    *next += 1;
                    (*next - 1) as u32
                });
                $(
                    let count = $field - collector.$field.rows();
                    if count > 0 {
                        let start = appended.$field;
                        appended.$field += count;
                        collector.$field.append(&self.$field, start..start + count);
                    }
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

/// Gathers rows for a [`Collector`].
#[derive(Default)]
pub struct RowGatherer {
    /// Numbers of the address lists already passed on.
    known: NumberSet,
}

impl Gatherer for RowGatherer {
    type Batch = GatheredRows;

    fn gather(&mut self, event: &Event<'_>, rows: &mut GatheredRows) -> bool {
        // Other events may carry stacks, and what they mean depends on a mapping or the description of a provider.
        let EventId::Hook(hook) = event.id else { return false };
        let Some(family) = FamilyIndex::of_hook(hook) else { return false };
        if !event.extended.is_empty() || !has_numbered_stack(event) {
            return false;
        }
        let taken = rows.take(family, event);
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

    fn append(&mut self, batch: &mut GatheredRows, rows: Range<usize>) {
        let times = batch.shared.timeline.time.get(rows.clone());
        let Some(last) = times.and_then(|times| times.last()).copied() else { return };
        // None of these rows refers to a key.
        self.forget_keys_at(last);
        let row = self.shared.timeline.len();
        batch.append_to(self, rows.clone());
        let Self { stacks, shared, .. } = self;
        stacks.events.append(row, &mut batch.stacks, rows, &mut shared.timeline);
    }

    /// Returns a gatherer, unless all stacks are kept. In that case stack events come between the others, so only few
    /// rows could be appended at once.
    fn gatherer(&self) -> Option<RowGatherer> {
        self.stacks.all.is_none().then(RowGatherer::default)
    }
}
