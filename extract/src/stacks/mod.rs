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

pub use all::{AllStacks, JoinedStack};
pub use events::EventStacks;
pub use fragments::{FragmentRef, Fragments};
pub use frames::{FrameInterner, FrameKey};
pub use kept::KeptStacks;
pub use modules::{AddressSpaces, Located, Mapping};
pub use resolver::{StackResolver, StackTable};

use crate::collect::HandleEvents;
use crate::etl::{Diagnostics, Event};
use crate::kernel::{StackKeyFrames, StackKeyRef, StackWalk};

/// Takes the stack events of a trace.
pub trait StackSink {
    /// A stack, or a part of one.
    fn walk(&mut self, walk: &StackWalk<'_>, event: &Event<'_>, events: &mut HandleEvents);
    /// A part of a stack, named by key.
    fn key_reference(
        &mut self,
        reference: &StackKeyRef,
        is_kernel: bool,
        event: &Event<'_>,
        events: &mut HandleEvents,
    );
    /// The frames of a key.
    fn key_frames(&mut self, frames: &StackKeyFrames<'_>, event: &Event<'_>);
    /// The end of the trace.
    fn finish(&mut self, events: &mut HandleEvents, diagnostics: &mut Diagnostics);
}

/// Whether an address belongs to the kernel: the top bit of a pointer is set.
pub(crate) fn is_kernel_address(address: u64, pointer_size: usize) -> bool {
    address >> (pointer_size * 8 - 1) & 1 == 1
}
