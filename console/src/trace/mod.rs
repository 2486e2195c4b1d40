//! What is loaded: the session with its traces, how they are found and opened, and typed access to
//! their columns.

mod access;
mod caveats;
mod chosen;
mod error;
pub(crate) mod extraction;
mod frame_name_cache;
mod load;
mod loaded;
mod losses;
mod resource_caveats;
mod rundown;
mod session;
mod stored_names;
mod symbol_notes;
mod values;

pub use access::Access;
pub use caveats::{Caveat, CaveatKind};
pub(crate) use chosen::{choose, filter_of};
pub use error::{LoadError, NoFile};
pub use extraction::MappingsError;
pub use frame_name_cache::FrameNameCache;
pub(crate) use frame_name_cache::KnownNames;
pub use load::LoadArgs;
pub(crate) use load::Loading;
pub use loaded::{LoadedTrace, Snapshot};
pub(crate) use losses::{knows_losses, loss_times, most_lost_events, unseen_closes, unseen_values};
pub(crate) use resource_caveats::{KindCounts, ResourceFacts};
pub use rundown::has_end_rundown;
pub(crate) use rundown::knows_exits;
pub use session::Session;
pub(crate) use stored_names::{StoredNames, is_still_loaded};
pub use values::TraceValues;
pub(crate) use values::programs;
