//! The allocations of a trace: their columns, their allocators and kinds, and which of them pass.

mod selection;
mod tables;

pub use self::selection::{Origin, PART, ResourceSelection, choose, no_match, unreleased};
pub use self::tables::{AllocatorList, MissTable, Tables, allocated_kinds, stacks_of_processes};
