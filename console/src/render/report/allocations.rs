//! What a page says of allocations, as its script reads it.

use handlescope_model::Untrusted;

use super::pictures::{PARTS, PROCESSES, flame, timeline};
use crate::query::{AllocatedKind, AllocationsOverview, ResourceGroup};
use crate::render::json::Document;
use crate::render::pictures::{Measure, PlaceTable, Timeline, folded_leaks};

/// The allocations of one kind; the pictures count `unit`, bytes or allocations.
pub(super) fn kind<'a>(
    overview: &AllocationsOverview<'_>,
    kind: &AllocatedKind,
    places: &mut PlaceTable,
) -> Document<'a> {
    let AllocatedKind { name, figures } = *kind;
    let measure = Measure::of_bytes(kind.has_bytes());
    let over_time = overview.over_time(kind);
    let allocated = Timeline::of_kind(over_time, name, measure, (PARTS, PROCESSES));
    let stacks = folded_leaks(&overview.groups, overview.groups.groups_of(name), measure);
    Document::default()
        .with("kind", name)
        .with("unit", measure.unit())
        .with("allocated", figures.allocs)
        .with("allocated_bytes", figures.alloc_bytes)
        .with("outstanding", figures.outstanding)
        .with("outstanding_bytes", figures.outstanding_bytes)
        .with("at_exit", figures.at_exit)
        .with("at_exit_bytes", figures.at_exit_bytes)
        .with("timeline", allocated.filter(|timeline| !timeline.is_empty()).map(timeline))
        .with("flame", flame(stacks, places))
}

/// The groups of all kinds, so many of those that lose most, and how many are left out.
pub(super) fn allocated<'a>(
    overview: &AllocationsOverview<'_>,
    most: usize,
) -> (Vec<Document<'a>>, usize) {
    let groups = overview.groups.groups.iter().flat_map(|groups| &groups.rows);
    // What only frees were found of is not an allocation.
    let mut groups = groups.filter(|group| group.figures.allocs > 0);
    let shown = groups.by_ref().take(most).map(|group| group_of(overview, group)).collect();
    (shown, groups.count())
}

fn group_of<'a>(overview: &AllocationsOverview<'_>, group: &ResourceGroup) -> Document<'a> {
    let (answer, figures) = (&overview.groups, &group.figures);
    let text = |text: Option<String>| Untrusted(&text.unwrap_or_default()).to_string();
    let function = group.create_stack().and_then(|stack| answer.function(stack));
    Document::default()
        .with("process", text(answer.process(group).map(|process| process.shown_label(false))))
        .with("kind", answer.kind(group).unwrap_or_default())
        .with("allocator", text(answer.allocator(group).map(str::to_owned)))
        .with("function", text(function))
        .with("outstanding", figures.outstanding)
        .with("at_exit", figures.at_exit)
        .with("bytes", figures.lost_bytes())
        .with("allocated", figures.allocs)
        .with("allocated_bytes", figures.alloc_bytes)
}
