//! `.diff`: compares two [`points`] of one trace, two [`traces`] or two [sets](samples) of traces.
//!
//! For points, it shows what was acquired between them and is still there. For traces, it shows what the second leaks
//! more or less of than the first: groups of both are [`matched`], their leaks [counted](tally) as chances, a [`rule`]
//! compares the counts, and the [`outcome`] says which groups got worse. Handles and allocations are
//! [queried](ComparableAnswer) in different ways and then treated alike.

mod builds;
mod compared;
mod group;
mod matched;
mod outcome;
mod points;
mod rule;
mod samples;
mod tally;
mod traces;

pub use self::compared::ComparableAnswer;
pub use self::group::GroupSite;
pub use self::outcome::{ComparedLeaks, ComparisonTotals, GroupState, SideLeaks};
pub use self::points::{OpenedGroup, PointsDiff, between_points};
pub use self::samples::{SampledGroup, TraceLeaks, compare_samples};
pub use self::traces::{ComparedGroup, TracesDiff, compare_traces};
