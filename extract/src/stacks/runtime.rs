//! Stacks that the .NET runtime logs itself. They come in an event right after the one they belong to, on the same
//! thread and by the same provider (CLRStackWalk in `ClrEtwAll.man` of dotnet/runtime).

use rustc_hash::FxHashMap;
use uuid::uuid;

use super::parts::{FrameBytes, PartFrames};
use crate::etl::{Event, EventId, Guid};
use crate::payload::Payload;

/// Microsoft-Windows-DotNETRuntime.
pub const RUNTIME: Guid = Guid::from_uuid(uuid!("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"));

/// Microsoft-Windows-DotNETRuntimePrivate.
const PRIVATE: Guid = Guid::from_uuid(uuid!("763fd754-7086-4dfe-95eb-c01a46faf4ca"));

pub const RUNTIME_WALK: EventId = EventId::Manifest { guid: RUNTIME, id: 82 };
pub const PRIVATE_WALK: EventId = EventId::Manifest { guid: PRIVATE, id: 151 };

/// Maximum number of threads with a known last event.
const MAX_THREADS: usize = 1 << 16;

/// What a runtime event means for stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeUse {
    /// The next event of its thread may be its stack.
    HasStack,
    IsStack,
}

/// Thread, with the provider of its events.
pub type RuntimeThread = (Guid, u32, u32);

impl RuntimeUse {
    /// Returns `None` for events of other providers.
    pub fn new(event: &Event<'_>) -> Option<(Self, RuntimeThread)> {
        let EventId::Manifest { guid: guid @ (RUNTIME | PRIVATE), .. } = event.id else {
            return None;
        };
        let is_stack = matches!(event.id, RUNTIME_WALK | PRIVATE_WALK);
        let thread = (guid, event.pid?, event.tid?);
        Some((if is_stack { Self::IsStack } else { Self::HasStack }, thread))
    }
}

/// Last event of each thread. The stack that follows belongs to it.
#[derive(Default)]
pub struct RuntimeStacks {
    /// Rows of the timeline, and numbers of individually kept events.
    last: FxHashMap<RuntimeThread, (Option<u32>, Option<u32>)>,
}

impl RuntimeStacks {
    /// Notes an event with its row and its number, if it has them.
    pub fn note(&mut self, event: &Event<'_>, row: Option<u32>, kept: Option<u32>) {
        let Some((RuntimeUse::HasStack, thread)) = RuntimeUse::new(event) else { return };
        if row.is_none() && kept.is_none() {
            self.last.remove(&thread);
            return;
        }
        if self.last.len() >= MAX_THREADS {
            self.last.clear();
        }
        self.last.insert(thread, (row, kept));
    }

    /// Returns row and number of the event that a stack belongs to, and the frames.
    pub fn stack<'a>(
        &mut self,
        event: &Event<'a>,
    ) -> Option<(Option<u32>, Option<u32>, PartFrames<'a>)> {
        let Some((RuntimeUse::IsStack, thread)) = RuntimeUse::new(event) else { return None };
        let (row, kept) = self.last.remove(&thread)?;
        Some((row, kept, frames(event)?))
    }
}

/// Returns the frames of a stack, innermost first.
fn frames<'a>(event: &Event<'a>) -> Option<PartFrames<'a>> {
    let mut p = Payload::from_event(event);
    let (_runtime, _reserved, count) = (p.u16()?, p.u16()?, p.u32()?);
    // A long stack is cut, but its count is not.
    let size = (count as usize).saturating_mul(event.pointer_size).min(p.rest().len());
    let bytes = p.rest().get(..size)?;
    (!bytes.is_empty()).then_some(PartFrames::Here(FrameBytes { bytes, number: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(guid: Guid, id: u16, tid: u32, payload: &[u8]) -> Event<'_> {
        let id = EventId::Manifest { guid, id };
        Event { id, pid: Some(7), tid: Some(tid), pointer_size: 8, payload, ..Event::default() }
    }

    /// Payload of a stack with two frames that claims to have `count`.
    fn walk(count: u8) -> Vec<u8> {
        [&[9, 0, 0, 0, count, 0, 0, 0][..], &[1; 8], &[2; 8]].concat()
    }

    #[test]
    fn a_stack_is_of_the_event_before_it_of_its_thread_and_provider() {
        let (mut stacks, payload) = (RuntimeStacks::default(), walk(2));
        stacks.note(&event(RUNTIME, 10, 1, &[]), Some(100), None);
        stacks.note(&event(RUNTIME, 10, 2, &[]), Some(200), None);
        stacks.note(&event(PRIVATE, 1, 2, &[]), Some(300), None);
        stacks.note(&event(Guid([1; 16]), 10, 1, &[]), Some(400), None);
        let mut number =
            |guid, id, tid| stacks.stack(&event(guid, id, tid, &payload)).and_then(|(row, ..)| row);
        assert_eq!(number(RUNTIME, 82, 2), Some(200));
        assert_eq!(number(RUNTIME, 82, 2), None, "an event has one stack");
        assert_eq!(number(PRIVATE, 151, 2), Some(300));
        assert_eq!(number(RUNTIME, 82, 1), Some(100));
    }

    #[test]
    fn the_stack_of_an_event_that_is_not_kept_belongs_to_no_event() {
        let (mut stacks, payload) = (RuntimeStacks::default(), walk(2));
        stacks.note(&event(RUNTIME, 10, 1, &[]), Some(100), None);
        stacks.note(&event(RUNTIME, 11, 1, &[]), None, None);
        assert_eq!(stacks.stack(&event(RUNTIME, 82, 1, &payload)), None);
    }

    #[test]
    fn frames_end_with_their_count_or_the_payload() {
        let bytes = |payload: &[u8]| match frames(&event(RUNTIME, 82, 1, payload)) {
            Some(PartFrames::Here(frames)) => frames.bytes.len(),
            _ => 0,
        };
        assert_eq!([0, 1, 2, 200].map(|count| bytes(&walk(count))), [0, 8, 16, 16]);
        assert_eq!(bytes(&walk(2)[..7]), 0);
    }
}
