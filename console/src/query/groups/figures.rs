//! What is counted of a group.

use super::counted::Handle;
use super::lives::Times;
use crate::query::criteria::Figure;

/// Objects named as examples of a group.
const SAMPLES: usize = 3;

/// What is counted of a group.
///
/// Handles and views are 32 bits, as rows of events are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Distinct objects.
    pub objects: u32,
    /// Handles made by creating or opening.
    pub created: u32,
    /// Handles made by duplicating.
    pub duplicated: u32,
    /// Handles closed.
    pub closed: u32,
    /// Views mapped.
    pub mapped: u32,
    /// Views unmapped.
    pub unmapped: u32,
    /// Handles open at the end: those that the rundown lists or, in a trace without, those opened and not
    /// closed.
    pub open_at_end: u32,
    /// Handles and views that nothing closed.
    pub leaked: u32,
    /// Handles that only the end of their process closed.
    pub closed_at_exit: u32,
    /// Times of the first and last event counted, nanoseconds since session start; `None` where the group
    /// has none.
    pub span_ns: Option<(i64, i64)>,
    /// Handles and views, whatever is known of them.
    pub handles: u32,
    /// Ids of up to three objects; 0 for none.
    samples: [u32; SAMPLES],
    /// The id of the object that was counted last.
    last_object: u32,
}

impl Figures {
    /// A figure; `None` for the times of a group without events.
    pub fn get(&self, figure: Figure) -> Option<i64> {
        let count = match figure {
            Figure::Leaked => self.leaked,
            Figure::ClosedAtExit => self.closed_at_exit,
            Figure::OpenAtEnd => self.open_at_end,
            Figure::Created => self.created,
            Figure::Duplicated => self.duplicated,
            Figure::Closed => self.closed,
            Figure::Mapped => self.mapped,
            Figure::Unmapped => self.unmapped,
            Figure::Objects => self.objects,
            Figure::First => return self.span_ns.map(|(first, _)| first),
            Figure::Last => return self.span_ns.map(|(_, last)| last),
        };
        Some(i64::from(count))
    }

    /// Handles and views that the program did not close.
    pub fn lost(&self) -> u32 {
        self.leaked.saturating_add(self.closed_at_exit)
    }

    /// Handles and views that were opened.
    pub fn opened(&self) -> u32 {
        self.created.saturating_add(self.duplicated).saturating_add(self.mapped)
    }

    /// Ids of up to three objects of the group, of those that lose something if any does.
    pub fn sample_ids(&self) -> impl Iterator<Item = u64> {
        self.samples.into_iter().filter(|id| *id != 0).map(u64::from)
    }

    pub(super) fn add(&mut self, handle: Handle, times: &Times) {
        let is = |flag: u16| u32::from(handle.has(flag));
        let id = handle.object.saturating_add(1);
        if handle.has(Handle::BESIDE) {
            self.closed_at_exit += 1;
            return;
        }
        if self.last_object != id {
            self.last_object = id;
            self.objects += 1;
        }
        self.sample(id, handle.is_lost());
        self.handles += 1 - is(Handle::BARE);
        self.created += is(Handle::CREATED);
        self.duplicated += is(Handle::DUPLICATED);
        self.mapped += is(Handle::MAPPED);
        self.closed += is(Handle::CLOSED);
        self.unmapped += is(Handle::UNMAPPED);
        self.open_at_end += is(Handle::OPEN_AT_END);
        self.leaked += is(Handle::LEAKED);
        self.closed_at_exit += is(Handle::AT_EXIT);
        for time in handle.events().filter_map(|event| times.of(event)) {
            let (first, last) = self.span_ns.unwrap_or((time, time));
            self.span_ns = Some((first.min(time), last.max(time)));
        }
    }

    /// Counts what is counted of other objects, which come later.
    pub(super) fn add_all(&mut self, other: &Figures) {
        // Only at exit of them closed: that is all that counts.
        if other.objects > 0 {
            if self.lost() == 0 && other.lost() > 0 {
                self.samples = [0; SAMPLES];
            }
            if self.lost() == 0 || other.lost() > 0 {
                let free = self.samples.iter_mut().filter(|sample| **sample == 0);
                free.zip(other.samples).for_each(|(free, id)| *free = id);
            }
        }
        self.objects += other.objects;
        self.handles += other.handles;
        self.created += other.created;
        self.duplicated += other.duplicated;
        self.mapped += other.mapped;
        self.closed += other.closed;
        self.unmapped += other.unmapped;
        self.open_at_end += other.open_at_end;
        self.leaked += other.leaked;
        self.closed_at_exit += other.closed_at_exit;
        let spans = self.span_ns.into_iter().chain(other.span_ns);
        self.span_ns = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    }

    fn sample(&mut self, id: u32, is_lost: bool) {
        if is_lost && self.lost() == 0 {
            // Better examples than those which lose nothing.
            self.samples = [0; SAMPLES];
        }
        let is_wanted = is_lost || self.lost() == 0;
        if !is_wanted || self.samples.contains(&id) {
            return;
        }
        if let Some(free) = self.samples.iter_mut().find(|sample| **sample == 0) {
            *free = id;
        }
    }
}
