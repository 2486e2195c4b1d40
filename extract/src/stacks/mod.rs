//! Stacks: fragments joined, keys resolved, addresses turned into frames.
//!
//! The kernel part of a stack is logged with its event, the user part when the thread returns to
//! user mode, perhaps much later. Both name their event by raw time and thread. Since Windows 8 a
//! part may be a key whose frames are written when the key leaves a cache, after the references.
//!
//! Events of providers carry their stacks themselves. Where only the kernel part fits, a later event of the same thread
//! with the same match id carries the user part. The .NET runtime logs the stack of an event in the next one of its thread.

mod events;
mod fragments;
mod frames;
mod gathered;
mod kept;
mod modules;
mod parts;
mod resolver;
mod runtime;
mod shard;
mod stays;

pub use events::EventStacks;
pub use fragments::{FragmentRef, Fragments, KeyKind};
pub use frames::{FrameInterner, FrameKey, StackTable};
pub use gathered::{GatheredStacks, has_numbered_stack};
pub use kept::{AllStacks, JoinedStack, KeptStacks};
pub use modules::{AddressSpaces, Located, Mapping};
pub use parts::{StackUse, carried_names, item_fields, repeated_frames, stack_part};
pub use resolver::{KeptRows, LookedUp, StackLookUp, StackNumbers, StackResolver};
pub use runtime::{RUNTIME, RuntimeThread, RuntimeUse};
