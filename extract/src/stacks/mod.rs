//! Stacks: fragments joined, keys resolved, addresses turned into frames.
//!
//! The kernel part of a stack is logged with its event, the user part when the thread returns to
//! user mode, perhaps much later. Both name their event by raw time and thread. Since Windows 8 a
//! part may be a key whose frames are written when the key leaves a cache, after the references.

mod all;
mod events;
mod fragments;
mod frames;
mod kept;
mod modules;
mod resolver;
mod walk;

pub use all::{AllStacks, JoinedStack};
pub use events::EventStacks;
pub use fragments::{FragmentRef, Fragments};
pub use frames::{FrameInterner, FrameKey};
pub use kept::KeptStacks;
pub use modules::{AddressSpaces, Located, Mapping};
pub use resolver::{StackResolver, StackTable};
pub(crate) use walk::StackUse;
