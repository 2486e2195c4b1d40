//! Plan of a recording of handle events as plain data: [`SessionPlan`] for a session of our own, and its equivalents
//! for the Windows tools, a [WPR profile](wpr_profile) and [command lines](xperf_commands).
//!
//! This crate depends on no other crate of the workspace, so that its Windows part can be checked from anywhere in
//! seconds.
//!
//! Sources of facts:
//! * `learn`: <https://learn.microsoft.com>, the page of the named structure or element
//! * `ntwmi.h`: <https://github.com/winsiderss/systeminformer>, `phnt/include/ntwmi.h`
//! * `MSO`: <https://github.com/microsoft/MSO-Scripts>, `src/WPRP`, file `Handles.wprp` unless another is named
//! * `etwcontroller`: <https://github.com/Alois-xx/etwcontroller>, `ETWController/ETW/MultiProfile.wprp`
//! * `ETWAnalyzer`: <https://github.com/Siemens-Healthineers/ETWAnalyzer>, `ETWAnalyzer/Documentation`

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

#[cfg(windows)]
mod consumer;
mod dot_net;
mod error;
mod family;
mod header;
#[cfg(windows)]
mod merge;
mod object_type;
mod options;
mod plan;
mod profile;
#[cfg(windows)]
mod providers;
mod recorder;
#[cfg(windows)]
mod session;
mod xperf;

pub use self::dot_net::{Begin, Provider};
pub use self::error::{MergeError, OptionError, SessionError};
pub use self::family::{Guid, StackEvent};
pub use self::object_type::{ObjectType, ObjectTypes};
pub use self::options::{BufferCount, BufferSize, Events, RecordOptions, StopCondition, Target};
pub use self::plan::{NamedBits, SessionPlan};
pub use self::profile::{PROFILE_NAME, ProviderSelection, wpr_profile};
pub use self::recorder::{
    EventSink, FurtherTraces, Recorder, RecordingEnd, Running, SessionEvent, SessionHeader,
    SessionStats, recorder,
};
pub use self::xperf::{REPRODUCE, quoted, xperf_commands};
