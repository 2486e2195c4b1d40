//! From events to objects: which process and which object an event belongs to, and what stays open.
//!
//! The rules are ETWAnalyzer's where they are sound:
//!
//! * An object is tracked by its kernel address. Creates, duplicates and object creates open one; closes, deletes,
//!   reference changes and unmaps only continue one.
//! * A handle belongs to the table Windows puts it in ([`EventOwners`], `objects`): System's for kernel handles, the
//!   child's for inherited ones. A close by a thread of another process ends the only handle it can mean.
//! * A close ends the handle it names, even if the object was deleted before. A close that names no known handle closes
//!   one from before the trace: it belongs to the last object at its address, and ends nothing.
//! * An object is complete when the last of its known handles is closed, when it is deleted, or when its view is
//!   unmapped. The next event at the address opens another.
//! * Where the trace lost events, a missing close counts as soon as something shows it ([`UnseenCloses`]).
//! * Objects are numbered in order of completion, then the open ones by their first event.

mod attribution;
mod evidence;
mod exits;
mod inheritance;
mod kinds;
mod lost_ends;
mod lost_starts;
mod objects;
mod open_handles;
mod owners;
mod resources;
mod same_time;
mod shards;
mod unseen;
mod view_exits;

pub use self::attribution::{Attribution, Lifetime, NONE, ProcessIndex, known};
pub use self::exits::{ExitCloses, closed_start_handles};
pub use self::inheritance::DuplicateOwners;
pub use self::kinds::{event_kind, subject};
pub use self::lost_starts::find_lost_starts;
pub use self::objects::{ObjectList, ObjectRow};
pub use self::owners::{EventOwners, unnamed_pids};
pub use self::resources::{
    AllocationColumns, AllocationOwner, AllocationStats, AllocatorRow, Miss, follow_resources,
};
pub use self::same_time::in_time_order;
pub use self::shards::{TrackedEvents, track};
pub use self::unseen::{UnseenClose, UnseenCloses};
use crate::collect::Collector;
use crate::etl::{Clock, EventLoss, LossSpan};
use handlescope_model::Cancel;
use handlescope_model::rules::LossTimes;

/// Inputs for following lifetimes.
#[derive(Clone, Copy)]
pub struct Lifetimes<'a> {
    pub collected: &'a Collector,
    pub index: &'a ProcessIndex,
    pub owners: &'a EventOwners,
    pub missing: &'a MissingEvents,
    pub clock: &'a Clock,
    pub cancel: &'a Cancel,
}

impl Lifetimes<'_> {
    /// Returns the timeline rows in time order. `order` gives that order, or a subset in time order, if it is not
    /// simply all rows in sequence.
    pub fn rows(&self, order: Option<&[u32]>) -> impl DoubleEndedIterator<Item = usize> {
        let count = order.map_or(self.collected.shared.timeline.len(), <[u32]>::len);
        (0..count).map(move |position| order.map_or(position, |order| order[position] as usize))
    }
}

/// Gaps in the events of a trace; times are raw.
pub struct MissingEvents {
    pub times: LossTimes,
    /// Without gaps that probably concern another processor.
    certain: LossTimes,
    /// Without gaps that may be anywhere.
    located: LossTimes,
}

impl MissingEvents {
    pub fn new(losses: &[EventLoss]) -> Self {
        let certain = losses.iter().filter(|loss| !loss.is_doubtful);
        Self {
            times: LossTimes::new(losses.iter().map(bounds)),
            certain: LossTimes::new(certain.map(bounds)),
            located: LossTimes::new(losses.iter().map(bounds).filter(Option::is_some)),
        }
    }

    /// Whether no events are missing.
    pub fn is_none(&self) -> bool {
        self.times.is_empty()
    }

    /// Whether events may be missing between two times (inclusive), counting only gaps with a known time.
    pub fn is_located_between(&self, from: i64, to: i64) -> bool {
        self.located.is_between(from, to)
    }

    /// Whether events are missing between two times (inclusive), leaving out gaps that probably concern another
    /// processor.
    pub fn is_certain_between(&self, from: i64, to: i64) -> bool {
        self.certain.is_between(from, to)
    }
}

fn bounds(loss: &EventLoss) -> Option<(i64, i64)> {
    loss.span.map(LossSpan::bounds)
}
