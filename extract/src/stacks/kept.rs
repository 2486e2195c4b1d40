//! The stacks that an extract keeps.

use super::{AllStacks, EventStacks, StackSink};
use crate::collect::HandleEvents;
use crate::etl::{Diagnostics, Event};
use crate::kernel::{StackKeyFrames, StackKeyRef, StackWalk};

/// The stacks of handle events and, if asked for, every other one too.
#[derive(Default)]
pub struct KeptStacks {
    /// Those of handle events.
    pub events: EventStacks,
    /// All of them.
    pub all: Option<AllStacks>,
}

impl KeptStacks {
    /// Every stack is kept.
    pub fn all() -> Self {
        Self { all: Some(AllStacks::default()), ..Self::default() }
    }
}

impl StackSink for KeptStacks {
    fn walk(&mut self, walk: &StackWalk<'_>, event: &Event<'_>, events: &mut HandleEvents) {
        self.events.walk(walk, event, events);
        if let Some(all) = &mut self.all {
            all.walk(walk, event, events);
        }
    }

    fn key_reference(
        &mut self,
        reference: &StackKeyRef,
        is_kernel: bool,
        event: &Event<'_>,
        events: &mut HandleEvents,
    ) {
        self.events.key_reference(reference, is_kernel, event, events);
        if let Some(all) = &mut self.all {
            all.key_reference(reference, is_kernel, event, events);
        }
    }

    fn key_frames(&mut self, frames: &StackKeyFrames<'_>, event: &Event<'_>) {
        self.events.key_frames(frames, event);
        if let Some(all) = &mut self.all {
            all.key_frames(frames, event);
        }
    }

    fn finish(&mut self, events: &mut HandleEvents, diagnostics: &mut Diagnostics) {
        self.events.finish(events, diagnostics);
        if let Some(all) = &mut self.all {
            // Its findings are those of the handle events again.
            all.finish(events, &mut Diagnostics::default());
        }
    }
}
