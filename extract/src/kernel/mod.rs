//! The event families of the kernel: payload layouts, and raw columns.

mod handles;
mod image_paths;
mod images;
mod memory;
mod processes;
mod system;

pub use handles::{
    DuplicateRow, Duplicates, Handles, ObjectTypes, Objects, References, StartHandle,
};
pub use image_paths::{ImagePath, ImagePaths};
pub use images::Image;
pub use images::{FileVersion, IDENTITY_GUID, ImageRow, Images};
pub use memory::{HeapMove, Heaps, RangeRow, ViewRow, Views, VirtualMemory};
pub use processes::Sid;
pub use processes::{EventPosition, Process, ProcessRow, Processes, ThreadRow, Threads};
pub use system::{FACTS_GUID, Losses, System};
