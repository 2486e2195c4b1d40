//! The allocations of a trace: their tables, allocators and kinds, and which of them pass.

mod selection;
mod tables;

pub use self::selection::{PART, ResourceSelection, unreleased};
pub use self::tables::{AllocationOrMiss, AllocationSource, AllocatorList, FilteredTables};
pub use self::tables::{allocated_kinds, stacks_of_processes};
