//! The content of a large trace: the options to write it, and the counts of what was written.

use crate::file::FileSummary;

/// Options of the trace to write; equal options give equal files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeTrace {
    /// Number of create, duplicate and close events.
    pub handle_events: u64,
    /// Number of heap block events after them; allocations have stacks, frees do not.
    pub heap_events: u64,
    /// Number of context switches and disk reads after them; a reader keeps none of them.
    pub other_events: u64,
    /// Number of processors.
    pub cpus: u16,
    /// Number of distinct stacks to choose from.
    pub distinct_stacks: usize,
    /// Frames per stack, at least 4; about a third of them in the kernel.
    pub stack_depth: usize,
    /// Percentage of created handles that are never closed.
    pub leak_percent: u32,
    /// Number of processes.
    pub processes: u32,
    /// Seed of all choices.
    pub seed: u64,
    /// Write compressed buffers.
    pub compressed: bool,
}

impl Default for LargeTrace {
    fn default() -> Self {
        Self {
            handle_events: 5_000_000,
            heap_events: 0,
            other_events: 0,
            cpus: 8,
            distinct_stacks: 20_000,
            stack_depth: 25,
            leak_percent: 2,
            processes: 20,
            seed: 1,
            compressed: false,
        }
    }
}

/// Counts that a reader should find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeTraceCounts {
    /// Created handles, each with a new object.
    pub creates: u64,
    /// Duplicated handles.
    pub duplicates: u64,
    /// Closed handles.
    pub closes: u64,
    /// Handles never closed, all of them created ones; they are in the rundown at the end.
    pub leaked: u64,
    /// Leaked handles per process, as (pid, leaked handles).
    pub leaked_by_process: Vec<(u32, u64)>,
    /// Blocks that were allocated, whether freed or not.
    pub block_allocs: u64,
    /// Blocks that were freed.
    pub block_frees: u64,
    /// Stack events: two per handle event and per allocated block.
    pub stack_fragments: u64,
    /// Distinct stacks that occur.
    pub distinct_stacks: u64,
    /// Sizes of the file.
    pub file: FileSummary,
}
