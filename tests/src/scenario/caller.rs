//! Thread that logs an event, and its processor.

/// A thread on a processor; also made from `(pid, tid)` and `(pid, tid, cpu)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caller {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Processor.
    pub cpu: u16,
}

impl Caller {
    /// A thread on processor 0.
    #[must_use]
    pub fn new(pid: u32, tid: u32) -> Self {
        Self { pid, tid, cpu: 0 }
    }

    /// Moves the thread to another processor.
    #[must_use]
    pub fn on(self, cpu: u16) -> Self {
        Self { cpu, ..self }
    }
}

impl From<(u32, u32)> for Caller {
    fn from((pid, tid): (u32, u32)) -> Self {
        Self::new(pid, tid)
    }
}

impl From<(u32, u32, u16)> for Caller {
    fn from((pid, tid, cpu): (u32, u32, u16)) -> Self {
        Self { pid, tid, cpu }
    }
}
