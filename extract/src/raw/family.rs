//! What an event family is.

use handlescope_model::Table;

use super::Timeline;
use crate::etl::{Diagnostics, Event, EventId};
use crate::payload::Field;

/// All that is known of a family of events. The implementing type holds the raw columns.
pub trait EventFamily: Default {
    /// The events that are decoded, with the names under which they are counted.
    const EVENTS: &'static [(EventId, &'static str)];

    /// The tables of an extract that are made of the columns.
    const TABLES: &'static [Table];

    /// Decodes one event of [`Self::EVENTS`] into the columns and, if it can have a stack or belongs
    /// to a process, into a row of the timeline. `None` when the payload is too short.
    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()>;

    /// The fields of the payload of one of these events, for a copy without texts. Bytes after them
    /// are not known to be without.
    fn fields(event: &Event<'_>) -> &'static [Field];

    /// Takes the end of the trace.
    fn finish(&mut self, _shared: &mut Shared) {}
}

/// What an event says of a process, an image or a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It began: it started, it was loaded.
    Begin,
    End,
    /// It is there, says a rundown.
    Rundown,
}

/// What the families have in common.
#[derive(Default)]
pub struct Shared {
    pub timeline: Timeline,
    /// What went wrong.
    pub diagnostics: Diagnostics,
}
