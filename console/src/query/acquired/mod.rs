//! Groups of what processes acquired, each of one process, type and stack: of [`Handles`] or of [`Allocations`]. After
//! these two producers `.why` and `.diff` are the same for both.

mod allocations;
mod between;
mod by_id;
mod group;
mod handles;
mod heaps;
mod lifetimes;
mod owners;
mod program_groups;
mod programs;
mod sites;

pub(crate) use self::allocations::Allocations;
pub use self::between::{Between, Span};
pub(crate) use self::by_id::{allocations_of_suspect, events_of_suspect};
pub use self::group::PRIVATE_HEAP;
pub(crate) use self::group::{Acquired, Group, Share};
pub(crate) use self::handles::Handles;
pub(crate) use self::lifetimes::Ends;
pub(crate) use self::program_groups::ProgramGroup;
pub(crate) use self::sites::Kept;
