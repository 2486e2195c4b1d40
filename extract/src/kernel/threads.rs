//! Threads (MOF class Thread_TypeGroup1).

use std::collections::HashSet;

use handlescope_model::Table;

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, Shared};

const START: EventId = EventId::Hook(0x0501);
const END: EventId = EventId::Hook(0x0502);
const RUNDOWN_START: EventId = EventId::Hook(0x0503);
const RUNDOWN_END: EventId = EventId::Hook(0x0504);

#[derive(Default)]
pub struct Threads {
    /// Distinct threads, as (pid, tid).
    pub ids: HashSet<(u32, u32)>,
}

impl EventFamily for Threads {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (START, "ThreadStart"),
        (END, "ThreadEnd"),
        (RUNDOWN_START, "ThreadDCStart"),
        (RUNDOWN_END, "ThreadDCEnd"),
    ];
    const TABLES: &'static [Table] = &[];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Bytes(8)]
    }

    fn take(&mut self, event: &Event<'_>, _: &mut Shared) -> Option<()> {
        let mut p = Payload::of(event);
        let (first, second) = (p.u32()?, p.u32()?);
        // Version 0 has the thread id first (MOF class Thread_V0_TypeGroup1).
        self.ids.insert(if event.version == 0 { (second, first) } else { (first, second) });
        Some(())
    }
}
