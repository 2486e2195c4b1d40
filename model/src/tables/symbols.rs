//! Function names that are known without symbols.

use super::declare::table;
use crate::index::FrameIdx;

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
        /// Distance from the start of the function; null where the source does not have it.
        ["bytes"] offset: Option<u64>,
        /// Source file.
        file: Option<String>,
        /// Source line.
        line: Option<u32>,
        /// Where the source file can be got, by the PDB: an address, or the command of a source server.
        source: Option<String>,
    }
}
