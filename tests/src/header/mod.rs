//! Event headers: every kind a trace file may hold.
//!
//! Kernel events ([`KernelEvent`]) are distinguished by a hook id, provider events by a GUID
//! ([`ClassicEvent`], [`InstanceEvent`], [`ManifestEvent`]) and old software tracing by a message
//! number ([`TraceMessage`]). All of them turn into the bytes of one event, header included;
//! [`crate::file`] does the 8-byte alignment.

mod kernel;
mod provider;

pub use kernel::{HeaderKind, KernelEvent};
pub use provider::{ClassicEvent, ExtendedItem, InstanceEvent, ManifestEvent, TraceMessage};

/// Time and place at which an event was logged, as its header states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Raw clock value.
    pub time: i64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

impl Stamp {
    /// A time stamp of this thread.
    #[must_use]
    pub fn new(time: i64, pid: u32, tid: u32) -> Self {
        Self { time, pid, tid }
    }
}

/// The size field of an event.
fn event_size(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("an event has at most 65535 bytes")
}
