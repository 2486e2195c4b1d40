//! Event families, and the state they share.

use std::ops::Range;

use handlescope_model::Table;

use super::Timeline;
use crate::etl::{Diagnostics, Event, EventId};
use crate::intern::ByteInterner;
use crate::payload::{Field, utf16_text};

/// Family of events. The implementing type has the raw columns.
pub trait EventFamily: Default {
    /// Events that are decoded, with the names under which they are counted.
    const EVENTS: &'static [(EventId, &'static str)];

    /// Tables of an extract that are made from the columns.
    const TABLES: &'static [Table];

    /// Decodes one event of [`Self::EVENTS`] into the columns and, if it can have a stack or belongs to a process, into
    /// a timeline row. Returns `None` if the payload is too short.
    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()>;

    /// Returns the payload fields of an event, for a copy without texts. Bytes after the fields may contain texts.
    fn fields(event: &Event<'_>) -> &'static [Field];

    /// Finishes the columns at the end of the trace.
    fn finish(&mut self, _shared: &mut PassState) {}
}

/// Family with events that do not depend on others, so that threads can gather their rows in batches.
///
/// For each event selected by [`Self::is_gathered`], [`EventFamily::take`] adds one row to the family and one to the
/// timeline, for the process in the event's header. If it returns `None`, it has changed nothing.
pub trait GatheredFamily: EventFamily {
    /// Whether events with this id are gathered.
    fn is_gathered(_id: EventId) -> bool {
        true
    }

    /// Returns the number of rows.
    fn rows(&self) -> usize;

    /// Appends rows of a batch.
    fn append(&mut self, batch: &Self, rows: Range<usize>);

    /// Removes all rows.
    fn clear(&mut self);
}

/// Implements [`GatheredFamily`] for a family with only these columns and only gathered events.
macro_rules! gathered_columns {
    ($family:ident { $first:ident $(, $further:ident)* }) => {
        impl $crate::raw::GatheredFamily for $family {
            fn rows(&self) -> usize {
                self.$first.len()
            }

            fn append(&mut self, batch: &Self, rows: std::ops::Range<usize>) {
                $(self.$further.extend_from_slice(&batch.$further[rows.clone()]);)*
                self.$first.extend_from_slice(&batch.$first[rows]);
            }

            fn clear(&mut self) {
                self.$first.clear();
                $(self.$further.clear();)*
            }
        }
    };
}

pub(crate) use gathered_columns;

/// What an event says about a process, image or method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifeEvent {
    /// It started, or was loaded.
    Begin,
    End,
    /// A rundown lists it.
    Rundown,
}

/// State shared by the families.
#[derive(Default)]
pub struct PassState {
    pub timeline: Timeline,
    /// Diagnostics of the pass.
    pub diagnostics: Diagnostics,
}

/// Interns UTF-16 names without decoding them; id 0 is the empty name.
pub struct NameInterner(ByteInterner);

impl Default for NameInterner {
    fn default() -> Self {
        let mut names = ByteInterner::default();
        names.intern(b"");
        Self(names)
    }
}

impl NameInterner {
    /// Returns the id of a name, given as UTF-16 bytes without terminator.
    pub fn intern(&mut self, name: &[u8]) -> u32 {
        // Most events have no name and need no lookup.
        if name.is_empty() { 0 } else { self.0.intern(name) }
    }

    /// Returns the UTF-16 bytes of a name.
    pub fn bytes(&self, id: u32) -> &[u8] {
        self.0.get(id)
    }

    /// Forgets all names.
    pub fn clear(&mut self) {
        self.0.clear();
        self.0.intern(b"");
    }

    pub fn text(&self, id: u32) -> String {
        utf16_text(self.0.get(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_an_id_and_keep_their_text() {
        let mut names = NameInterner::default();
        let a = names.intern(b"a\0b\0");
        let b = names.intern(b"c\0");
        assert_eq!(names.intern(b"a\0b\0"), a);
        assert_eq!(names.intern(b""), 0);
        assert_eq!(
            (names.text(a), names.text(b), names.text(0)),
            ("ab".into(), "c".into(), String::new())
        );
    }
}
