//! The event family that only descriptions distinguish: what the schema of an event, not its id, says to acquire and
//! release something, and the handles of GDI and USER.
//!
//! A description may come after the events that it describes, as the manifest of an EventSource does that is written
//! at the end of a session. Events that nothing describes yet wait for it.

mod family;
mod gui;
mod rules;

pub use family::{AllocatorNames, Described, DescribedProvider, ResourceRow, UndescribedKinds};

pub use gui::{GuiChange, GuiClass, GuiRow};
pub use rules::Interest;
