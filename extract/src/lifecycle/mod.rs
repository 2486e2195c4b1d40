//! Events → objects: which process an event belongs to, which object, and what is left open.
//!
//! The rules are ETWAnalyzer's where they are sound:
//!
//! * An object is tracked by its kernel address. Creates, duplicates and object creates open one;
//!   closes, deletes, reference changes and unmaps only continue one.
//! * A handle belongs to the table that Windows puts it in ([`EventOwners`], `objects`): that of System for
//!   kernel handles, that of a child for inherited ones. A close by a thread of another process ends the only handle that it can mean.
//! * It is complete when creates + duplicates = closes, when it is deleted, or when its view is
//!   unmapped; the next event of the address opens another. A close that comes after completion
//!   still belongs to the last completed object of the address.
//! * Where the trace lost events, a close that is missing counts as soon as something shows it ([`UnseenCloses`]).
//! * Objects are numbered in the order of completion, then the open ones by their first event.

mod attribution;
mod close_frames;
mod evidence;
mod exits;
mod inheritance;
mod kinds;
mod lifetimes;
mod lost_ends;
mod lost_starts;
mod missing;
mod objects;
mod open_handles;
mod owners;
mod resources;
mod same_time;
mod shards;
mod unseen;
mod view_exits;

pub use attribution::{Attribution, Lifetime, NONE, ProcessIndex, known};
pub use exits::{ExitCloses, closed_start_handles};
pub use inheritance::DuplicateOwners;
pub use kinds::{event_kind, subject};
pub use lifetimes::Lifetimes;
pub use lost_starts::find_lost_starts;
pub use missing::MissingEvents;
pub use objects::{ObjectRow, Objects};
pub use owners::{EventOwners, unnamed_pids};
pub use resources::{
    AllocationColumns, AllocationStats, AllocatorRow, Miss, Owner, follow_resources,
};
pub use same_time::in_time_order;
pub use shards::{TrackedEvents, track};
pub use unseen::{UnseenClose, UnseenCloses};
