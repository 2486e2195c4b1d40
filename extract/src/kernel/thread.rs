//! Thread events (MOF class Thread_TypeGroup1).

use super::Payload;
use crate::etl::Event;

/// A thread event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

impl Thread {
    /// Decodes the event; version 0 has the thread id first (MOF class Thread_V0_TypeGroup1).
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        let (first, second) = (p.u32()?, p.u32()?);
        Some(if event.version == 0 {
            Self { pid: second, tid: first }
        } else {
            Self { pid: first, tid: second }
        })
    }
}
