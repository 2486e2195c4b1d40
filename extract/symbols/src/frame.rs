//! The functions at an address.

use std::sync::Arc;

/// The functions at an address, innermost first: inlined functions, and last
/// the function whose machine code it is. Empty where no function is known.
pub type FrameChain = Arc<[ResolvedFrame]>;

/// An address in a module whose functions are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeAddress {
    /// Relative virtual address.
    pub rva: u64,
    /// Whether a call returns to it: it belongs to the function of the instruction in front of it. Else it may be an
    /// instruction pointer, and where a function starts it belongs to that.
    pub is_return: bool,
}

impl From<u64> for CodeAddress {
    /// An RVA that may be an instruction pointer.
    fn from(rva: u64) -> Self {
        Self { rva, is_return: false }
    }
}

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedFrame {
    /// Demangled name without parameters, shared by all frames of the function.
    pub function: Arc<str>,
    /// Distance of the address from the start of the function whose machine code it is, in bytes;
    /// the same for all functions of a chain, as an inlined one has no start.
    pub offset: u64,
    /// Full path of the source file, if the PDB has it.
    pub file: Option<Arc<str>>,
    /// Location that the file can be fetched from, if the PDB has it: its address, or the command
    /// of a source server.
    pub source: Option<Arc<str>>,
    /// Line in that file, counted from 1: that of the instruction in front of the address, which is
    /// the call in all frames but the innermost one.
    pub line: Option<u32>,
    /// Whether the function is inlined into the next one of the chain.
    pub inlined: bool,
}
