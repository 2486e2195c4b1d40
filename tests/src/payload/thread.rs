//! Thread events.

use super::KernelPayload;
use crate::bytes::{ByteString, PointerSize};

/// Kind of thread event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadEvent {
    /// Start (0x0501).
    Start,
    /// End (0x0502).
    End,
    /// Rundown at the start (0x0503).
    RundownStart,
    /// Rundown at the end (0x0504).
    RundownEnd,
}

impl ThreadEvent {
    /// Returns the hook id.
    #[must_use]
    pub fn hook(self) -> u16 {
        match self {
            Self::Start => 0x0501,
            Self::End => 0x0502,
            Self::RundownStart => 0x0503,
            Self::RundownEnd => 0x0504,
        }
    }
}

/// Fields of a thread event that fixtures choose; all other fields have usual values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadRecord {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Thread name; if missing it is not written at all, as on older systems.
    pub name: Option<String>,
}

impl ThreadRecord {
    /// Returns the payload in version 3.
    #[must_use]
    pub fn payload(&self, event: ThreadEvent, ptr: PointerSize) -> KernelPayload {
        let stack = 0xffff_d78a_0000_0000 + u64::from(self.tid) * 0x1_0000;
        let user_stack = 0x42_0000_0000 + u64::from(self.tid) * 0x1_0000;
        let bytes = ByteString::new()
            .u32(self.pid)
            .u32(self.tid)
            .ptrs(ptr, &[stack, stack - 0x7000, user_stack, user_stack - 0x2000])
            .ptrs(ptr, &[0xfff, 0x7ff8_bf15_21f0, 0x42_3640_0000]) // affinity, start, TEB
            .u32(0) // service tag
            .raw(&[8, 5, 2, 0]); // base, page and I/O priority, flags
        let bytes = match &self.name {
            Some(name) => bytes.utf16z(name),
            None => bytes,
        };
        KernelPayload { hook: event.hook(), version: 3, bytes: bytes.into_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_event_has_72_bytes_and_the_name_behind() {
        let mut record = ThreadRecord { pid: 1, tid: 2, name: None };
        let payload = record.payload(ThreadEvent::RundownEnd, PointerSize::Eight);
        assert_eq!((payload.hook, payload.bytes.len()), (0x0504, 72));
        assert_eq!(payload.bytes[..8], [1, 0, 0, 0, 2, 0, 0, 0]);
        record.name = Some(String::new());
        assert_eq!(record.payload(ThreadEvent::Start, PointerSize::Eight).bytes.len(), 74);
    }
}
