//! Single events, for the row formats for programs and for ETWAnalyzer's CSV.

use std::collections::HashSet;

use handlescope_model::rules::Kinds;
use handlescope_model::{EventKind, ProcessIdx, StackIdx};

use super::text::StackStyle;
use handlescope_query::{FileAnswer, ListedEvent, ListedObject, ProcessInfo};
use handlescope_session::settings::StackDisplayArgs;

pub const DUPLICATES: Kinds = Kinds::new(&[EventKind::HandleDuplicate]);

/// An event of an object, or a handle to it that was open at the end.
pub struct EventItem<'a> {
    pub object: ListedObject<'a>,
    entry: EventEntry<'a>,
}

enum EventEntry<'a> {
    Event(ListedEvent<'a>),
    Existing { owner: ProcessIdx, handle: Option<u64> },
}

impl<'a> EventItem<'a> {
    /// Returns the object's events that passed the filters, then its handles that were open at the end. Leaves out
    /// these handles if only leaks were asked for, because the rundown also lists leaked handles.
    pub fn from_object(object: ListedObject<'a>) -> impl Iterator<Item = EventItem<'a>> {
        let handles = object.existing().filter(move |_| !object.file.is_of_leaks);
        let handles = handles.map(|(owner, handle)| EventEntry::Existing { owner, handle });
        let entries = object.events().map(EventEntry::Event).chain(handles);
        entries.map(move |entry| EventItem { object, entry })
    }

    /// Returns the event, unless this is a handle.
    pub fn event(&self) -> Option<&ListedEvent<'a>> {
        match &self.entry {
            EventEntry::Event(event) => Some(event),
            EventEntry::Existing { .. } => None,
        }
    }

    /// Returns the event if it is of one of these kinds.
    pub fn event_of(&self, kinds: Kinds) -> Option<&ListedEvent<'a>> {
        self.event().filter(|event| kinds.contains(event.kind))
    }

    /// Returns the process that owns the handle or acted, or that has the handle.
    pub fn process(&self) -> &'a ProcessInfo {
        self.object.file.file.processes.get(match &self.entry {
            EventEntry::Event(event) => event.process,
            EventEntry::Existing { owner, .. } => *owner,
        })
    }

    /// Returns the process that logged the event, or that has the handle.
    pub fn actor(&self) -> ProcessIdx {
        match &self.entry {
            EventEntry::Event(event) => event.actor(),
            EventEntry::Existing { owner, .. } => *owner,
        }
    }

    pub fn handle(&self) -> Option<u64> {
        match &self.entry {
            EventEntry::Event(event) => event.handle,
            EventEntry::Existing { handle, .. } => *handle,
        }
    }
}

/// The stacks of one trace.
pub struct TraceStackTexts<'a> {
    seen: HashSet<StackIdx>,
    style: StackStyle<'a>,
}

impl<'a> TraceStackTexts<'a> {
    pub fn new(file: &'a FileAnswer<'_>, stacks: StackDisplayArgs) -> Self {
        Self { seen: HashSet::new(), style: StackStyle::for_answer(file, stacks) }
    }

    /// Returns the frames of an event's stack the first time the stack occurs, if frames are shown.
    pub fn show(&mut self, item: &EventItem<'_>) -> Option<String> {
        let stack = item.event()?.stack?;
        if self.style.frames.is_none() || !self.seen.insert(stack) {
            return None;
        }
        self.style.text(Some(stack))
    }
}
