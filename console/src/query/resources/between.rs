//! What is counted of allocations at two points of a trace, and between them.

use handlescope_model::ResourceIdx;
use handlescope_model::tables::ResourceEnd;

use super::tables::ResourceTable;
use crate::query::Span;
use crate::query::amounts::Amount;

/// What there is of some allocations at two points of a trace, and between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Between {
    /// What was allocated after the first point, and not after the second.
    pub allocated: Amount,
    /// What of that is allocated at the second.
    pub kept: Amount,
    /// What was allocated in the trace and is allocated at the first point.
    pub at_first: Amount,
    /// The same at the second.
    pub at_second: Amount,
}

/// A figure of [`Between`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Point {
    Allocated,
    Kept,
    AtFirst,
    AtSecond,
}

impl Between {
    pub(super) fn at(&mut self, point: Point) -> &mut Amount {
        match point {
            Point::Allocated => &mut self.allocated,
            Point::Kept => &mut self.kept,
            Point::AtFirst => &mut self.at_first,
            Point::AtSecond => &mut self.at_second,
        }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        for (own, other) in [
            (&mut self.allocated, other.allocated),
            (&mut self.kept, other.kept),
            (&mut self.at_first, other.at_first),
            (&mut self.at_second, other.at_second),
        ] {
            own.add(other);
        }
    }
}

/// The figures that an allocation, or a part of one, counts in.
pub(super) fn points(
    span: Span,
    table: &ResourceTable,
    resource: ResourceIdx,
) -> impl Iterator<Item = Point> + use<> {
    let row = resource.row();
    let Span { after_ns, until_ns } = span;
    let begin_ns = table.time_ns.get(row).unwrap_or_default();
    let end_ns = table.end_time_ns.get(row);
    let is_open = table.end.get(row).and_then(ResourceEnd::from_code) == Some(ResourceEnd::Open);
    // An end whose time is unknown is one nevertheless.
    let outlives = |point: Option<i64>| {
        is_open || point.zip(end_ns).is_some_and(|(point, end_ns)| end_ns > point)
    };
    let is_after = after_ns.is_none_or(|after| begin_ns > after);
    let is_until = until_ns.is_none_or(|until| begin_ns <= until);
    let is_left = is_until && outlives(until_ns);
    let points = [
        (is_after && is_until, Point::Allocated),
        (is_after && is_left, Point::Kept),
        (!is_after && outlives(after_ns), Point::AtFirst),
        (is_left, Point::AtSecond),
    ];
    points.into_iter().filter(|(is, _)| *is).map(|(_, point)| point)
}
