//! How the allocations of a site ended that were not lost.

use handlescope_model::tables::ResourceEnd;
use indicatif::HumanCount;

/// Allocations by how they ended, those aside of which something was never freed; parts of one that ended in several
/// ways count once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::query) struct Ends {
    /// The program freed all of them.
    pub(in crate::query) freed: u64,
    /// A reallocation took their place.
    reallocated: u64,
    /// Their heap was destroyed.
    destroyed: u64,
    /// Another allocation came in their place, because a free was lost.
    replaced: u64,
    /// They have nothing that was not allocated before.
    empty: u64,
}

impl Ends {
    pub(in crate::query) fn add(&mut self, end: ResourceEnd) {
        match end {
            ResourceEnd::Freed => self.freed += 1,
            ResourceEnd::Reallocated => self.reallocated += 1,
            ResourceEnd::Destroyed => self.destroyed += 1,
            ResourceEnd::Replaced => self.replaced += 1,
            ResourceEnd::Empty => self.empty += 1,
            ResourceEnd::Open | ResourceEnd::AtExit => {}
        }
    }

    pub(in crate::query) fn add_all(&mut self, ends: &Self) {
        let Self { freed, reallocated, destroyed, replaced, empty } = ends;
        self.freed += freed;
        self.reallocated += reallocated;
        self.destroyed += destroyed;
        self.replaced += replaced;
        self.empty += empty;
    }

    /// What became of those that ended, as in "freed or destroyed with their heap".
    pub(in crate::query) fn words(&self) -> String {
        let words = [
            (self.freed, "freed"),
            (self.reallocated, "reallocated"),
            (self.replaced, "replaced"),
            (self.destroyed, "destroyed with their heap"),
        ];
        let words = words.into_iter().filter(|(count, _)| *count > 0).map(|(_, word)| word);
        let words: Vec<&str> = words.collect();
        match words.split_last() {
            None => "freed".to_owned(),
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
        }
    }

    /// How many ended otherwise than by a free, as in ", 5 are reallocated"; nothing where none did.
    pub(in crate::query) fn others(&self) -> String {
        let others = [
            (self.reallocated, "is reallocated", "are reallocated"),
            (self.replaced, "is replaced", "are replaced"),
            (self.destroyed, "is destroyed with its heap", "are destroyed with their heap"),
            (self.empty, "allocated nothing new", "allocated nothing new"),
        ];
        let others = others.into_iter().filter(|(count, ..)| *count > 0);
        let text = |(count, one, more)| {
            format!(", {} {}", HumanCount(count), if count == 1 { one } else { more })
        };
        others.map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(all: &[(ResourceEnd, u64)]) -> Ends {
        let mut ends = Ends::default();
        for (end, count) in all {
            (0..*count).for_each(|_| ends.add(*end));
        }
        ends
    }

    #[test]
    fn ends_that_are_counted_together_are_named() {
        use ResourceEnd::{Destroyed, Empty, Freed, Open, Reallocated, Replaced};
        let freed = ends(&[(Freed, 3), (Open, 2)]);
        assert_eq!((freed.words().as_str(), freed.others().as_str()), ("freed", ""));
        let all =
            ends(&[(Freed, 171), (Reallocated, 5), (Destroyed, 1), (Replaced, 1), (Empty, 2)]);
        assert_eq!(all.words(), "freed, reallocated, replaced or destroyed with their heap");
        let others = ", 5 are reallocated, 1 is replaced, 1 is destroyed with its heap, 2 allocated nothing new";
        assert_eq!(all.others(), others);
        assert_eq!(ends(&[(Reallocated, 11)]).words(), "reallocated");
        assert_eq!(ends(&[]).words(), "freed", "what none of them is");
    }
}
