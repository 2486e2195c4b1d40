//! Recorded stacks, their frames, and the names of the frames.

use polars::prelude::{DataFrame, PolarsResult};

use super::declare::table;
use crate::column::flat_lists;
use crate::index::{FrameIdx, MethodIdx, ModuleIdx, ProcessIdx, StackIdx};

table! {
    /// Columns of the stacks table: every distinct stack once, compared by content.
    ///
    /// A flat list of frames, not a prefix tree: the zstd of the Parquet member finds shared
    /// prefixes as well, SQL can unnest a list, and reading one stack touches one place.
    Stacks => Stacks,
    /// One call stack.
    Stack {
        /// Frames, innermost first: the kernel part, then the user part.
        frames: Vec<FrameIdx>,
    }
}

/// Rows of the stacks table with all frames in one vector, for extractions of millions of stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackRows {
    /// Rows of the frames table, stack by stack.
    frames: Vec<u32>,
    /// Start of each stack in `frames`, and the end of the last.
    offsets: Vec<i64>,
}

impl Default for StackRows {
    fn default() -> Self {
        Self { frames: Vec::new(), offsets: vec![0] }
    }
}

impl StackRows {
    /// Allocates memory for as many stacks and frames as these rows have.
    #[must_use]
    pub fn as_large(&self) -> Self {
        let (frames, mut offsets) =
            (Vec::with_capacity(self.frames.len()), Vec::with_capacity(self.offsets.len()));
        offsets.push(0);
        Self { frames, offsets }
    }

    /// Adds a stack made of these rows of the frames table, innermost first.
    pub fn push(&mut self, frames: &[u32]) {
        self.frames.extend_from_slice(frames);
        self.offsets.push(self.frames.len() as i64);
    }

    /// Adds a stack made of the iterator's rows of the frames table.
    pub fn push_from(&mut self, frames: impl Iterator<Item = u32>) {
        self.frames.extend(frames);
        self.offsets.push(self.frames.len() as i64);
    }

    /// Returns the frames of all stacks, one stack after the other.
    pub fn frames_mut(&mut self) -> &mut [u32] {
        &mut self.frames
    }

    /// Removes all stacks but keeps their memory.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.offsets.truncate(1);
    }

    /// Number of stacks.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the stacks in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.offsets.windows(2).map(|ends| &self.frames[ends[0] as usize..ends[1] as usize])
    }

    /// Returns the stacks as a frame with the columns of [`Stacks`], without copying.
    ///
    /// # Errors
    /// If polars refuses the lists, which it does not.
    pub fn into_frame(self) -> PolarsResult<DataFrame> {
        let height = self.len();
        let lists = flat_lists(Stacks::frames.spec().name, self.offsets, self.frames)?;
        DataFrame::new(height, vec![lists])
    }
}

table! {
    /// Columns of the stack events table; empty unless every stack is kept.
    StackEvents => StackEvents,
    /// One stack that was recorded, with the event it belongs to: a CPU sample, a context switch,
    /// a disk access, a handle event or any other.
    StackEvent {
        /// Time of the event.
        ["ns since session start"] time_ns: i64,
        /// The process; null when no process of this id is known.
        process: Option<ProcessIdx>,
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// The stack; null if the trace has no frame of it.
        stack: Option<StackIdx>,
    }
}

table! {
    /// Columns of the frames table: every distinct code location once.
    Frames => Frames,
    /// A code location: a place in a module, or an address outside of all modules.
    Frame {
        /// The module; null if the address is in none.
        module: Option<ModuleIdx>,
        /// Offset from the module's base (relative virtual address); null if the source has only a name.
        ["bytes"] rva: Option<u64>,
        /// The raw address, for frames without a module and in text of !htrace that has it.
        ["hex"] address: Option<u64>,
        /// The managed method, in or outside of a module; null for native code.
        method: Option<MethodIdx>,
    }
}

table! {
    /// Columns of the methods table: methods of the .NET runtime, compiled at run time or before.
    Methods => Methods,
    /// A method.
    Method {
        /// File name of the assembly, as in `System.Core.dll`; null if unknown.
        module: Option<String>,
        /// Namespace and type, as in `System.Collections.Hashtable`; empty for global methods.
        type_name: String,
        /// Name, as in `Insert`.
        name: String,
        /// Signature in the notation of the runtime.
        signature: String,
        /// The native image with its code; null if it was compiled at run time.
        image: Option<ModuleIdx>,
        /// Offset of its code in that image.
        ["bytes"] rva: Option<u64>,
        /// The process its code is in; null for code in an image, which processes share.
        process: Option<ProcessIdx>,
        /// First address of code that was compiled at run time.
        ["hex"] address: Option<u64>,
        /// Size of the code.
        ["bytes"] size: u32,
        /// Load time of code compiled at run time; null if it was loaded before the trace.
        ["ns since session start"] load_ns: Option<i64>,
        /// Unload time; null if it stayed loaded.
        ["ns since session start"] unload_ns: Option<i64>,
    }
}

table! {
    /// Columns of the symbols table; empty unless names came with the source or were resolved when
    /// the extract was made.
    Symbols => Symbols,
    /// One function at one frame; a frame with inlined calls has several.
    Symbol {
        /// The frame.
        frame: FrameIdx,
        /// 0 for the function itself, 1 and up for calls inlined into it.
        depth: u32,
        /// Demangled name.
        function: String,
        /// Distance from the start of the function; null if the source lacks it.
        ["bytes"] offset: Option<u64>,
        /// Source file.
        file: Option<String>,
        /// Source line.
        line: Option<u32>,
        /// Location of the source file according to the PDB: an address, or the command of a source server.
        source: Option<String>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_added_filled_in_and_removed() {
        let mut rows = StackRows::default();
        rows.push(&[1, 2]);
        rows.push_from([3, 0, 5].into_iter());
        rows.frames_mut()[3] = 4;
        assert!(rows.iter().eq([&[1, 2][..], &[3, 4, 5]]));
        rows.clear();
        assert!(rows.is_empty());
        rows.push(&[6]);
        assert!(rows.iter().eq([[6]]));
    }
}
