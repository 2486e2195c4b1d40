//! The event family of stacks.

use handlescope_model::Table;

use super::all::AllStacks;
use super::carried::USER_PART;
use super::events::EventStacks;
use super::walk::{KEY_DELETE, KEY_KERNEL, KEY_RUNDOWN, KEY_USER, Part, WALK, key_frames};
use crate::etl::{Event, EventId, WarningKind};
use crate::payload::Field;
use crate::raw::{EventFamily, Shared};

/// The stacks of the timeline's rows and, if asked for, every other one too.
#[derive(Default)]
pub struct KeptStacks {
    pub events: EventStacks,
    pub all: Option<AllStacks>,
    /// Raw time before which the frames of keys may have been overwritten, until that is reached.
    known_from: Option<i64>,
}

impl KeptStacks {
    /// The events that carry a stack or a part of one.
    pub const PARTS: [EventId; 3] = [WALK, KEY_KERNEL, KEY_USER];

    pub fn all() -> Self {
        Self { all: Some(AllStacks::default()), ..Self::default() }
    }

    /// The same for a trace that has all events from this raw time on only.
    #[must_use]
    pub fn known_from(self, time: Option<i64>) -> Self {
        Self { known_from: time, ..self }
    }

    fn forget_keys(&mut self) {
        self.known_from = None;
        self.events.forget_keys();
        if let Some(all) = &mut self.all {
            all.forget_keys();
        }
    }
}

impl EventFamily for KeptStacks {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (WALK, "StackWalk"),
        (KEY_DELETE, "StackKeyDelete"),
        (KEY_RUNDOWN, "StackKeyRundown"),
        (KEY_KERNEL, "StackKeyKernel"),
        (KEY_USER, "StackKeyUser"),
        (USER_PART, "StackUserPart"),
    ];
    const TABLES: &'static [Table] = &[Table::Stacks, Table::Frames, Table::StackEvents];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.id {
            WALK => &[Field::Bytes(16), Field::Addresses],
            KEY_KERNEL | KEY_USER => &[Field::Bytes(16), Field::Pointers(1)],
            KEY_DELETE | KEY_RUNDOWN => &[Field::Pointers(1), Field::Addresses],
            // Of the event that carries a part, the payload has none of it.
            _ => &[],
        }
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        if self.known_from.is_some_and(|from| event.time >= from) {
            self.forget_keys();
        }
        match event.id {
            WALK | KEY_KERNEL | KEY_USER => {
                let (part, frames) = Part::decode(event)?;
                self.events.offer(part, frames, event, &mut shared.timeline);
                if let Some(all) = &mut self.all {
                    all.add(part, frames, event.pointer_size);
                }
            }
            KEY_DELETE | KEY_RUNDOWN => {
                let (key, frames) = key_frames(event)?;
                self.events.define_key(key, frames, event.pointer_size);
                if let Some(all) = &mut self.all {
                    all.define_key(key, frames, event.pointer_size);
                }
            }
            USER_PART => self.events.finish_carried(event),
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
