//! Single events, for the row formats for programs and for ETWAnalyzer's CSV.

use std::collections::HashSet;

use handlescope_model::rules::{Kinds, OPENING, REFERENCE_CHANGES, VIEWS};
use handlescope_model::{EventKind, ProcessIdx, StackIdx};

use super::text::StackStyle;
use handlescope_query::{
    EventListing, FileAnswer, ListedDuplicate, ListedEvent, ListedUnseenClose, ListedView,
    ProcessInfo, SelectedObject,
};
use handlescope_session::settings::StackDisplayArgs;

pub const DUPLICATES: Kinds = Kinds::new(&[EventKind::HandleDuplicate]);

/// An event of an object, or a handle to it that was open at the end.
pub struct EventItem<'a> {
    answer: &'a FileAnswer<'a>,
    listing: &'a EventListing,
    entry: EventEntry,
}

enum EventEntry {
    /// An event and its row number.
    Event(usize, ListedEvent),
    Existing {
        owner: ProcessIdx,
        handle: Option<u64>,
    },
}

impl<'a> EventItem<'a> {
    /// Returns the object's events that passed the filters, then its handles that were open at the end. Leaves out
    /// these handles if only leaks were asked for, because the rundown also lists leaked handles.
    pub fn from_object(
        answer: &'a FileAnswer<'a>,
        listing: &'a EventListing,
        object: SelectedObject,
    ) -> impl Iterator<Item = EventItem<'a>> {
        let events = answer.events(object);
        let events = events.filter_map(|row| Some(EventEntry::Event(row, listing.event(row)?)));
        let handles = listing.existing(object.object());
        let handles = handles.filter(|_| !answer.is_of_leaks);
        let handles = handles.map(|(owner, handle)| EventEntry::Existing { owner, handle });
        events.chain(handles).map(move |entry| EventItem { answer, listing, entry })
    }

    /// Returns the event, unless this is a handle.
    pub fn event(&self) -> Option<&ListedEvent> {
        match &self.entry {
            EventEntry::Event(_, event) => Some(event),
            EventEntry::Existing { .. } => None,
        }
    }

    /// Returns the row of the event if it is of one of these kinds.
    pub fn event_of(&self, kinds: Kinds) -> Option<usize> {
        match &self.entry {
            EventEntry::Event(row, event) if kinds.contains(event.kind) => Some(*row),
            _ => None,
        }
    }

    /// Returns the process that acted, or that has the handle.
    pub fn process(&self) -> &'a ProcessInfo {
        self.answer.file.processes.get(self.process_row())
    }

    /// Returns the process that logged the event, or that has the handle.
    pub fn actor_row(&self) -> ProcessIdx {
        match &self.entry {
            EventEntry::Event(row, event) => self.listing.actor(*row, event),
            EventEntry::Existing { owner, .. } => *owner,
        }
    }

    pub fn process_row(&self) -> ProcessIdx {
        match &self.entry {
            EventEntry::Event(_, event) => event.process,
            EventEntry::Existing { owner, .. } => *owner,
        }
    }

    pub fn handle(&self) -> Option<u64> {
        match &self.entry {
            EventEntry::Event(_, event) => event.handle,
            EventEntry::Existing { handle, .. } => *handle,
        }
    }

    pub fn duplicate(&self) -> Option<ListedDuplicate> {
        Some(self.listing.duplicate(self.event_of(DUPLICATES)?))
    }

    pub fn unseen_close(&self) -> Option<ListedUnseenClose> {
        self.listing.unseen_close(self.event_of(OPENING)?)
    }

    pub fn view(&self) -> Option<ListedView> {
        Some(self.listing.view(self.event_of(VIEWS)?))
    }

    pub fn ref_delta(&self) -> Option<i32> {
        self.listing.ref_delta(self.event_of(REFERENCE_CHANGES)?)
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
