//! Events that come one by one, from a session or a replay, into the same families as those of a file.
//!
//! A thread that receives events puts them into a [`queue`](live_queue), which is bounded and counts what it had no
//! room for. A [`LiveWindow`] keeps them and makes the tables of an extract of them at any time; a [`LiveCounts`]
//! counts open handles while they come.

mod counts;
mod inventory;
mod packed;
mod prune;
mod queue;
mod replay;
mod window;

pub use counts::{LiveCounts, OpenHandles};
pub use inventory::Inventory;
pub use packed::PackedEvents;
pub use queue::{EventReceiver, EventSender, WhenFull, live_queue};
pub use replay::Replay;
pub use window::LiveWindow;
