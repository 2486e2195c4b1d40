//! Events that arrive from a session or a replay, for the same families as the events of a file.
//!
//! A thread that receives events puts them into a [`queue`](live_queue), which is bounded and counts what it had no
//! room for. A [`LiveWindow`] keeps them and makes the tables of an extract of them at any time; a [`LiveCounts`]
//! counts open handles while they come.

mod inventory;
mod queue;
mod window;

pub use inventory::{Inventory, LiveCounts, OpenHandles};
pub use queue::{EventReceiver, EventSender, Replay, WhenFull, live_queue};
pub use window::{LiveWindow, PackedEvents};
