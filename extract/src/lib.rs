//! Extracts handle trace tables from `.etl` files.
//!
//! Data flows one way, one module per stage:
//!
//! 1. [`etl`]: bytes → buffers → events in time order; does not look into payloads.
//! 2. `payload`: the fields of payloads.
//! 3. `raw`: the trait and the list of event families; `kernel`, `managed` and [`stacks`] contain the families.
//! 4. [`collect`]: events → raw columns, in one pass.
//! 5. `lifecycle`: raw columns → objects, owners, leaks.
//! 6. `assemble`: all of this → tables → archive.
//!
//! [`extract_recording`] runs all of them. [`OpenRecording`] with a [`collect::Collector`] of your own runs the first
//! four, for every stack or every event. [`live`] does the same for events from a session.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod assemble;
pub mod collect;
mod complete;
pub mod described;
mod error;
pub mod etl;
mod extraction;
pub mod filetime;
mod input;
pub mod intern;
pub mod kernel;
pub mod lifecycle;
pub mod live;
pub mod managed;
mod mapping;
pub mod metadata;
mod number_set;
mod options;
pub mod payload;
mod prefetch;
pub mod raw;
mod recorded;
mod recording;
mod redact;
mod side_by_side;
mod source;
mod spill;
pub mod stacks;

pub use collect::check_mappings;
pub use complete::{AdditionCounts, CompleteError, complete, image_file_name};
pub use error::ExtractError;
pub use etl::{finding_nouns, is_loss, is_loss_of_provider};
pub use extraction::extract_recording;
pub use input::{Input, MINIDUMP_MAGIC};
pub use mapping::{MappingError, ResourceMapping};
pub use options::{
    EventChoice, ExtractObserver, ExtractOptions, ExtractSummary, NoObserver, StackChoice,
};
pub use recording::{OpenRecording, Recording, is_trace};
pub use redact::{RedactError, redact};
pub use source::SourceIdentity;
pub use spill::{Spill, SpillingAllocator};
