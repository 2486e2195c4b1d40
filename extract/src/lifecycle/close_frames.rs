//! The kernel frames on which handles are closed: those of programs, and those of the ends of processes.

use hashbrown::HashSet;

use crate::collect::Collector;

/// Number of the kernel frames of a stack; equal frames have equal numbers, because closes have their frames from stack
/// events of one pointer size.
pub type KernelPart = u32;

/// Kernel frames of closes in the trace.
pub struct CloseFrames {
    /// Frames of closes after the end events of processes.
    pub of_sweeps: HashSet<KernelPart>,
    /// Frames of closes after which the process went on.
    pub of_programs: HashSet<KernelPart>,
}

/// The kernel frames of a close.
pub fn kernel_part(collected: &Collector, row: usize) -> Option<KernelPart> {
    let stacks = &collected.stacks.events;
    let parts = stacks.parts(row);
    let mut parts = parts.iter().chain(stacks.more_parts(row));
    let kernel = parts.find(|part| !part.is_user())?;
    stacks.fragments().content(*kernel)
}
