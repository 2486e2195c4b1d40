//! The loaded session: its traces, how they are found and opened, and typed access to
//! their columns.

mod caveats;
mod error;
pub mod extraction;
mod frame_name_cache;
mod load;
mod loaded;
mod losses;
mod resource_caveats;
mod session;
mod stack_verdicts;
mod values;

pub use crate::paths::Access;
pub use caveats::{Caveat, CaveatKind};
pub use caveats::{has_handle_events, warn_of};
pub use error::{LoadError, NoFile};
pub use extraction::MappingsError;
pub use frame_name_cache::FrameNameCache;
pub use frame_name_cache::{KnownNames, StoredNames, is_still_loaded};
pub use load::LoadArgs;
pub use load::Loading;
pub use loaded::{LoadedTrace, Snapshot};
pub use loaded::{choose, filter_of, passes};
pub use losses::has_end_rundown;
pub use losses::lists_open_handles;
pub use losses::{
    knows_losses, loss_times, most_lost_events, unseen_closes, unseen_values, unseen_values_at,
};
pub use resource_caveats::{KindCounts, ResourceFacts};
pub use session::Session;
pub use stack_verdicts::{StackSet, StackVerdicts};
pub use values::programs;
pub use values::{NamedSuspect, TraceValues};
