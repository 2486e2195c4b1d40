//! What a page says of allocations, as its script reads it.

use handlescope_model::Untrusted;
use serde::Serialize;

use super::pictures::{FlameData, PARTS, PROCESSES, TimelineData};
use crate::query::{AllocatedKind, AllocationsOverview, ResourceGroup};
use crate::render::pictures::{Measure, PlaceTable, Timeline, folded_leaks};

/// The allocations of one kind.
#[derive(Serialize)]
pub(super) struct KindData {
    kind: &'static str,
    /// What the pictures count: bytes or allocations.
    unit: &'static str,
    allocated: u64,
    allocated_bytes: i64,
    outstanding: u64,
    outstanding_bytes: i64,
    at_exit: u64,
    at_exit_bytes: i64,
    timeline: Option<TimelineData>,
    flame: Vec<FlameData>,
}

/// A group of allocations in the table.
#[derive(Serialize)]
pub(super) struct AllocatedData {
    process: String,
    kind: &'static str,
    allocator: String,
    function: String,
    outstanding: u64,
    at_exit: u64,
    bytes: i64,
    allocated: u64,
    allocated_bytes: i64,
}

impl KindData {
    /// Every kind of a trace.
    pub(super) fn all(overview: &AllocationsOverview<'_>, places: &mut PlaceTable) -> Vec<Self> {
        overview.kinds.iter().map(|kind| Self::of(overview, kind, places)).collect()
    }

    fn of(
        overview: &AllocationsOverview<'_>,
        kind: &AllocatedKind,
        places: &mut PlaceTable,
    ) -> Self {
        let AllocatedKind { name, figures } = *kind;
        let measure = Measure::of_bytes(kind.has_bytes());
        let over_time = overview.over_time(kind);
        let timeline = Timeline::of_kind(over_time, name, measure, (PARTS, PROCESSES));
        let timeline = timeline.filter(|own| !own.is_empty());
        let stacks = folded_leaks(&overview.groups, overview.groups.groups_of(name), measure);
        Self {
            kind: name,
            unit: measure.unit(),
            allocated: figures.allocs,
            allocated_bytes: figures.alloc_bytes,
            outstanding: figures.outstanding,
            outstanding_bytes: figures.outstanding_bytes,
            at_exit: figures.at_exit,
            at_exit_bytes: figures.at_exit_bytes,
            timeline: timeline.map(TimelineData::of),
            flame: FlameData::all(stacks, places),
        }
    }
}

impl AllocatedData {
    /// The groups of all kinds, so many of those that lose most, and how many are left out.
    pub(super) fn all(overview: &AllocationsOverview<'_>, most: usize) -> (Vec<Self>, usize) {
        let groups = overview.groups.groups.iter().flat_map(|groups| &groups.rows);
        // What only frees were found of is not an allocation.
        let mut groups = groups.filter(|group| group.figures.allocs > 0);
        let shown = groups.by_ref().take(most).map(|group| Self::of(overview, group)).collect();
        (shown, groups.count())
    }

    fn of(overview: &AllocationsOverview<'_>, group: &ResourceGroup) -> Self {
        let (answer, figures) = (&overview.groups, &group.figures);
        let text = |text: Option<String>| Untrusted(&text.unwrap_or_default()).to_string();
        Self {
            process: text(answer.process(group).map(|own| own.shown_label(false))),
            kind: answer.kind(group).unwrap_or_default(),
            allocator: text(answer.allocator(group).map(str::to_owned)),
            function: text(group.create_stack().and_then(|stack| answer.function(stack))),
            outstanding: figures.outstanding,
            at_exit: figures.at_exit,
            bytes: figures.lost_bytes(),
            allocated: figures.allocs,
            allocated_bytes: figures.alloc_bytes,
        }
    }
}
