//! `.diff`: compares two [`points`] of one trace, two [`traces`] or two [sets](samples) of traces.
//!
//! For points, it shows what was acquired between them and is still there. For traces, it shows what the second leaks
//! more or less of than the first: groups of both are [`matched`], their leaks [counted](tally) as chances, and a
//! [`rule`] compares the counts. Handles and allocations are [queried](ComparableAnswer) in different ways and then
//! treated alike.

mod builds;
mod compared;
mod matched;
mod points;
mod rule;
mod samples;
mod tally;
mod traces;

pub use self::compared::ComparableAnswer;
pub use self::points::between_points;
pub use self::points::{OpenedGroup, PointsDiff};
pub use self::samples::{SampledState, TraceLeaks, TraceSetLeaks, compare_samples};
pub use self::traces::compare_traces;
pub use self::traces::{ComparedGroup, GroupState, SideLeaks, TracesDiff};
