//! Symbols in local places: beside the trace, in the archive it lies in, in stores and plain folders.

pub(super) mod beside;
pub(super) mod folders;
pub(super) mod locate;
pub(super) mod packed;
