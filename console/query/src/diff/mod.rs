//! `.diff`: what was acquired between two points of a trace and is still there ([`points`]), and what the
//! second of two traces leaks more or less of than the first ([`traces`]), or the second of two [sets](samples) of them: groups of both are [`matched`], of each it is
//! [counted](tally) on how many chances it leaks, and a [`rule`] compares them. Handles and allocations are
//! [asked](Compared) for each in their way, and then the same.

mod builds;
mod compared;
mod matched;
mod points;
mod rule;
mod samples;
mod tally;
mod traces;

pub use self::compared::Compared;
pub use self::points::between_points;
pub use self::points::{OpenedGroup, PointsDiff};
pub use self::samples::{Sampled, SampledState, TraceLeaks, compare_samples};
pub use self::traces::compare_traces;
pub use self::traces::{ComparedGroup, Side, State, TracesDiff};
