//! The event families of the kernel: payload layout, raw columns and what is gathered in them.

mod duplicates;
mod handles;
mod heap;
mod images;
mod losses;
mod object_types;
mod objects;
mod processes;
mod references;
mod system;
mod threads;
mod views;
mod virtual_memory;

pub use duplicates::{DuplicateRow, Duplicates};
pub use handles::{Handles, StartHandle};
pub use heap::{HeapMove, Heaps};
pub(crate) use images::Image;
pub use images::{FileVersion, IDENTITY_GUID, ImageRow, Images};
pub use losses::Losses;
pub use object_types::ObjectTypes;
pub use objects::Objects;
pub(crate) use processes::Sid;
pub use processes::{EventPlace, Process, ProcessRow, Processes};
pub use references::References;
pub use system::{FACTS_GUID, System};
pub use threads::{ThreadRow, Threads};
pub use views::{ViewRow, Views};
pub use virtual_memory::{RangeRow, VirtualMemory};
