//! The event family that only descriptions distinguish: events that acquire or release a resource by the names in their
//! schemas, not by their ids, and the handles of GDI and USER.
//!
//! A description may come after the events that it describes: an EventSource writes its manifest also at the end of a
//! session. Events without description wait for it.

mod family;
mod gui;
mod rules;

pub use family::{AllocatorNames, Described, DescribedProvider, ResourceRow, UndescribedKinds};

pub use gui::{GuiChange, GuiClass, GuiRow, PUBLIC};
pub use rules::Interest;
