//! What processes acquired, in groups of one process, type and stack. Handles and allocations are grouped differently;
//! after that, `.why`, `.diff` and datasets treat both the same.

mod alike;
mod allocations;
mod between;
mod by_id;
mod callers;
mod group;
mod handles;
mod heaps;
mod lifetimes;
mod list;
mod owners;
mod program_groups;
mod programs;
mod sites;

pub use self::alike::CallerLeaks;
pub use self::between::{PointAmounts, PointSpan};
pub use self::by_id::{allocations_of_suspect, handles_of_suspect};
pub use self::callers::{Caller, SharedFunction};
pub use self::group::{AcquisitionGroup, AcquisitionOwner, PRIVATE_HEAP, ProcessShare, kind_of};
pub use self::lifetimes::{AcquiredSums, AllocationEnds};
pub use self::list::AcquisitionGroups;
pub use self::program_groups::{ProgramGroup, SuspectScope};
pub use self::sites::KeptSites;
