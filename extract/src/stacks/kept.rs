//! The event family of stacks.

use handlescope_model::Table;

use super::all::AllStacks;
use super::events::EventStacks;
use super::walk::{
    KEY_DELETE, KEY_KERNEL, KEY_RUNDOWN, KEY_USER, StackKeyFrames, StackKeyRef, StackWalk, WALK,
};
use crate::etl::{Event, EventId, WarningKind};
use crate::raw::{EventFamily, Shared};

/// The stacks of the timeline's rows and, if asked for, every other one too.
#[derive(Default)]
pub struct KeptStacks {
    pub events: EventStacks,
    pub all: Option<AllStacks>,
}

impl KeptStacks {
    /// The events that carry a stack or a part of one.
    pub const PARTS: [EventId; 3] = [WALK, KEY_KERNEL, KEY_USER];

    /// Every stack is kept.
    pub fn all() -> Self {
        Self { all: Some(AllStacks::default()), ..Self::default() }
    }
}

impl EventFamily for KeptStacks {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (WALK, "StackWalk"),
        (KEY_DELETE, "StackKeyDelete"),
        (KEY_RUNDOWN, "StackKeyRundown"),
        (KEY_KERNEL, "StackKeyKernel"),
        (KEY_USER, "StackKeyUser"),
    ];
    const TABLES: &'static [Table] = &[Table::Stacks, Table::Frames, Table::StackEvents];

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        match event.id {
            WALK => {
                let walk = StackWalk::decode(event)?;
                self.events.walk(&walk, event, &mut shared.timeline);
                if let Some(all) = &mut self.all {
                    all.walk(&walk, event);
                }
            }
            KEY_KERNEL | KEY_USER => {
                let reference = StackKeyRef::decode(event)?;
                self.events.key_reference(&reference, event, &mut shared.timeline);
                if let Some(all) = &mut self.all {
                    all.key_reference(&reference, event);
                }
            }
            KEY_DELETE | KEY_RUNDOWN => {
                let frames = StackKeyFrames::decode(event)?;
                self.events.key_frames(&frames, event);
                if let Some(all) = &mut self.all {
                    all.key_frames(&frames, event);
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn finish(&mut self, shared: &mut Shared) {
        let (early, unresolved) = self.events.finish(&mut shared.timeline);
        shared.diagnostics.add(WarningKind::StackFromFuture, early, None);
        shared.diagnostics.add(WarningKind::UnresolvedStackKey, unresolved, None);
    }
}
