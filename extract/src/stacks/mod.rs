//! Stacks: fragments joined, keys resolved, addresses turned into frames.
//!
//! The kernel part of a stack is logged with its event, the user part when the thread returns to
//! user mode, perhaps much later. Both name their event by raw time and thread. Since Windows 8 a
//! part may be a key whose frames are written when the key leaves a cache, after the references.
//!
//! Events of providers carry their stacks themselves. Where only the kernel part fits, the user part is that of a
//! later event of the same thread, which has the same match id.

mod all;
mod carried;
mod events;
mod fragments;
mod frames;
mod kept;
mod kept_rows;
mod matches;
mod modules;
mod of_event;
mod resolver;
mod uses;
mod walk;

pub use all::{AllStacks, JoinedStack};
pub(crate) use carried::{carried_names, item_fields};
pub use events::EventStacks;
pub use fragments::{FragmentRef, Fragments};
pub use frames::{FrameInterner, FrameKey};
pub use kept::KeptStacks;
pub use kept_rows::KeptRows;
pub use modules::{AddressSpaces, Located, Mapping};
pub use of_event::CarriedStacks;
pub use resolver::{StackResolver, StackTable};
pub(crate) use uses::StackUse;
