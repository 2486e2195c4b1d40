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

pub use self::allocations::Allocations;
pub use self::between::{Between, Span};
pub use self::by_id::{allocations_of_suspect, events_of_suspect};
pub use self::group::PRIVATE_HEAP;
pub use self::group::{Acquired, Group, Share};
pub use self::handles::Handles;
pub use self::lifetimes::Ends;
pub use self::program_groups::ProgramGroup;
pub use self::sites::Kept;
