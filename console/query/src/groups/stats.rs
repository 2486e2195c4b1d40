//! Stats of a group.

use super::counted::CompactHandle;
use crate::criteria::Stat;

/// Maximum number of objects named as examples of a group.
const SAMPLES: usize = 3;

/// Stats of a group.
///
/// Counts are 32 bits wide, like row numbers of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupStats {
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
    /// Handles open at the end: those in the final rundown or, without one, those opened and not closed.
    pub open_at_end: u32,
    /// Handles and views that nothing closed.
    pub leaked: u32,
    /// Handles that only process exit closed.
    pub closed_at_exit: u32,
    /// Handles and views with closes that the trace lost.
    pub closed_unseen: u32,
    /// Times of the first and last counted event, nanoseconds since session start; `None` if there are no events.
    pub span_ns: Option<(i64, i64)>,
    /// Handles and views, whatever is known about them.
    pub handles: u32,
    /// Ids of up to three objects; 0 for none.
    samples: [u32; SAMPLES],
    /// Id of the object counted last.
    last_object: u32,
}

impl GroupStats {
    /// Returns a figure; `None` for the times of a group without events.
    pub fn get(&self, stat: Stat) -> Option<i64> {
        let count = match stat {
            Stat::Leaked => self.leaked,
            Stat::ClosedAtExit => self.closed_at_exit,
            Stat::ClosedUnseen => self.closed_unseen,
            Stat::OpenAtEnd => self.open_at_end,
            Stat::Created => self.created,
            Stat::Duplicated => self.duplicated,
            Stat::Closed => self.closed,
            Stat::Mapped => self.mapped,
            Stat::Unmapped => self.unmapped,
            Stat::Objects => self.objects,
            Stat::First => return self.span_ns.map(|(first, _)| first),
            Stat::Last => return self.span_ns.map(|(_, last)| last),
        };
        Some(i64::from(count))
    }

    /// Returns the number of handles and views that the program did not close.
    pub fn unreleased(&self) -> u32 {
        self.leaked.saturating_add(self.closed_at_exit)
    }

    /// Returns the number of handles and views that were opened.
    pub fn opened(&self) -> u32 {
        self.created.saturating_add(self.duplicated).saturating_add(self.mapped)
    }

    /// Returns the ids of up to three objects of the group; leaking ones if any leak.
    pub fn sample_ids(&self) -> impl Iterator<Item = u64> {
        self.samples.into_iter().filter(|id| *id != 0).map(u64::from)
    }

    /// Counts a handle with its first and last event times.
    pub fn add(&mut self, handle: CompactHandle, span_ns: Option<(i64, i64)>) {
        let count = |flag: u16| u32::from(handle.has(flag));
        let id = handle.object.0.saturating_add(1);
        if handle.has(CompactHandle::BESIDE) {
            self.closed_at_exit += 1;
            return;
        }
        if self.last_object != id {
            self.last_object = id;
            self.objects += 1;
        }
        self.sample(id, handle.is_unreleased());
        self.handles += 1 - count(CompactHandle::BARE);
        self.created += count(CompactHandle::CREATED);
        self.duplicated += count(CompactHandle::DUPLICATED);
        self.mapped += count(CompactHandle::MAPPED);
        self.closed += count(CompactHandle::CLOSED);
        self.unmapped += count(CompactHandle::UNMAPPED);
        self.open_at_end += count(CompactHandle::OPEN_AT_END);
        self.leaked += count(CompactHandle::LEAKED);
        self.closed_at_exit += count(CompactHandle::AT_EXIT);
        self.closed_unseen += count(CompactHandle::UNSEEN);
        self.add_span(span_ns);
    }

    fn add_span(&mut self, span_ns: Option<(i64, i64)>) {
        let (Some((from, to)), known) = (span_ns, self.span_ns) else { return };
        let (first, last) = known.unwrap_or((from, to));
        self.span_ns = Some((first.min(from), last.max(to)));
    }

    /// Adds the stats of other objects, which must come later.
    pub fn add_all(&mut self, other: &GroupStats) {
        // Without objects, only closes at exit are counted.
        if other.objects > 0 {
            if self.unreleased() == 0 && other.unreleased() > 0 {
                self.samples = [0; SAMPLES];
            }
            if self.unreleased() == 0 || other.unreleased() > 0 {
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
        self.closed_unseen += other.closed_unseen;
        self.add_span(other.span_ns);
    }

    fn sample(&mut self, id: u32, is_unreleased: bool) {
        if is_unreleased && self.unreleased() == 0 {
            // Objects that leak are better examples.
            self.samples = [0; SAMPLES];
        }
        let is_example = is_unreleased || self.unreleased() == 0;
        if !is_example || self.samples.contains(&id) {
            return;
        }
        if let Some(free) = self.samples.iter_mut().find(|sample| **sample == 0) {
            *free = id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes five objects with up to three handles each; which of them leak differs from case to case.
    fn handles(case: u32) -> Vec<(CompactHandle, Option<(i64, i64)>)> {
        let mut bits = case.wrapping_mul(0x9E37_79B9);
        let mut next = || {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bits >> 16
        };
        let mut handles = Vec::new();
        for object in 0..5 {
            for _ in 0..1 + next() % 3 {
                let kinds = [
                    CompactHandle::CREATED,
                    CompactHandle::CREATED | CompactHandle::CLOSED,
                    CompactHandle::LEAKED,
                ];
                let flags = kinds[next() as usize % kinds.len()];
                let time = i64::from(next());
                let span = (flags != CompactHandle::LEAKED).then_some((time, time + 5));
                handles.push((CompactHandle::with_flags(object, flags), span));
            }
        }
        handles
    }

    fn counted<'a>(
        handles: impl Iterator<Item = &'a (CompactHandle, Option<(i64, i64)>)>,
    ) -> GroupStats {
        let mut stats = GroupStats::default();
        handles.for_each(|(handle, span)| stats.add(*handle, *span));
        stats
    }

    #[test]
    fn figures_of_parts_add_up_to_those_of_all_handles_with_the_same_samples() {
        for case in 0..200 {
            let handles = handles(case);
            let whole = counted(handles.iter());
            for cut in 0..=5 {
                let mut sum = counted(handles.iter().filter(|(handle, _)| handle.object.0 < cut));
                sum.add_all(&counted(handles.iter().filter(|(handle, _)| handle.object.0 >= cut)));
                let last_object = whole.last_object;
                assert_eq!(GroupStats { last_object, ..sum }, whole, "case {case}, cut at {cut}");
            }
        }
    }
}
