//! Result of one pass over a trace: the columns of each event family, and one timeline for all of
//! them.
//!
//! Raw means: times are ticks, processes are pids, stacks are fragments. What depends on the whole
//! trace, such as a process that only the rundown at the end names, is resolved afterwards.

mod classes;
mod family;
mod list;
mod timeline;

pub use classes::{id_in_file, id_in_session, kernel_classes};
pub(crate) use family::gathered_columns;
pub use family::{Action, EventFamily, GatheredFamily, NameInterner, Shared};
pub use list::RowKind;
pub(crate) use list::event_families;
pub use timeline::{IdSource, Timeline, UNKNOWN_ID};
