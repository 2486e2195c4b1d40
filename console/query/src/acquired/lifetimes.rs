//! Lifetimes of what one process acquired. An allocation that ended in parts has one lifetime, which ends with its last
//! part.

use std::collections::BTreeMap;

use handlescope_model::AcquisitionIdx;
use handlescope_model::tables::ResourceEnd;
use indicatif::HumanCount;

use crate::acquisition_table::AcquisitionTable;
use crate::amounts::{Amount, ByteAmounts, Counts};
use crate::growth::Lifetime;

/// Sums over some acquisitions.
#[derive(Debug, Clone, Copy, Default)]
pub struct AcquiredSums {
    pub counts: Counts,
    /// The bytes of allocations.
    pub bytes: ByteAmounts,
    /// How the allocations that are not leaked ended.
    pub ends: AllocationEnds,
}

impl AcquiredSums {
    /// Adds the sums over others.
    pub fn add(&mut self, other: &Self) {
        self.counts.add(other.counts);
        self.bytes.add(other.bytes);
        self.ends.add_all(&other.ends);
    }

    /// Returns the amount never freed.
    pub fn leaked(&self) -> Amount {
        Amount { count: self.counts.unreleased(), bytes: self.bytes.unreleased }
    }
}

/// Some acquisitions and what is counted about them.
#[derive(Default)]
pub struct AcquiredLifetimes {
    pub sums: AcquiredSums,
    pub lifetimes: Vec<Lifetime>,
    /// Bytes of each lifetime; for a leak, only those of the parts never freed.
    pub sizes: Vec<u64>,
}

/// The sum of the parts of an allocation that were read so far.
#[derive(Clone, Copy)]
struct PartSum {
    opened_ns: i64,
    /// When the last of its parts ended; `None` if unknown.
    ended_ns: Option<i64>,
    /// How the parts that were never freed ended, if there are any.
    unreleased: Option<ResourceEnd>,
    /// How the other parts ended; if they differ, the end that says least about the program.
    end: Option<ResourceEnd>,
    size: i64,
    /// Bytes of the parts that were never freed.
    unreleased_size: i64,
}

impl AcquiredLifetimes {
    /// Computes the lifetimes of some rows; `None` if the table lacks the time of one.
    pub fn new(table: &AcquisitionTable, rows: &[AcquisitionIdx]) -> Option<Self> {
        let (lifetimes, sizes) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let mut site = Self { lifetimes, sizes, ..Self::default() };
        // Few allocations end in parts.
        let mut sums: BTreeMap<AcquisitionIdx, PartSum> = BTreeMap::new();
        for row in rows.iter().copied() {
            let part = PartSum::new(table, row)?;
            let (allocated, unreleased) = (part.size, part.unreleased_size);
            site.sums.bytes.add(ByteAmounts { unreleased, allocated, per_minute: None });
            match table.first_part(row) {
                None => site.add(part),
                Some(first) => {
                    sums.entry(first).and_modify(|sum| sum.add(part)).or_insert(part);
                }
            }
        }
        sums.into_values().for_each(|sum| site.add(sum));
        Some(site)
    }

    fn add(&mut self, allocation: PartSum) {
        let PartSum { opened_ns, ended_ns, unreleased, end, size, unreleased_size } = allocation;
        let AcquiredSums { counts, ends, .. } = &mut self.sums;
        counts.opened += 1;
        match unreleased {
            Some(ResourceEnd::Open) => counts.leaked += 1,
            Some(_) => counts.closed_at_exit += 1,
            None => end.into_iter().for_each(|end| ends.add(end)),
        }
        if unreleased.is_none() && matches!(end, Some(ResourceEnd::Empty) | None) {
            return;
        }
        self.lifetimes
            .push(Lifetime { opened_ns, closed_ns: ended_ns.filter(|_| unreleased.is_none()) });
        let size = if unreleased.is_some() { unreleased_size } else { size };
        self.sizes.push(u64::try_from(size).unwrap_or_default());
    }
}

impl PartSum {
    /// Makes the sum of one part.
    fn new(table: &AcquisitionTable, row: AcquisitionIdx) -> Option<Self> {
        let (size, unreleased) = (table.bytes(row), table.unreleased(row));
        Some(Self {
            opened_ns: table.opened_ns.get(row.row())?,
            ended_ns: table.ended_ns.get(row.row()),
            unreleased,
            end: table.released(row),
            size,
            unreleased_size: if unreleased.is_some() { size } else { 0 },
        })
    }

    /// Adds another part.
    fn add(&mut self, part: Self) {
        self.size = self.size.saturating_add(part.size);
        self.unreleased_size = self.unreleased_size.saturating_add(part.unreleased_size);
        self.opened_ns = self.opened_ns.min(part.opened_ns);
        self.ended_ns = self.ended_ns.zip(part.ended_ns).map(|(one, other)| one.max(other));
        // Parts open at the end of the trace take precedence over parts that ended with the process.
        self.unreleased = self.unreleased.into_iter().chain(part.unreleased).min();
        // An empty part does not decide how the allocation ended.
        let ends = self.end.into_iter().chain(part.end);
        self.end = ends.max_by_key(|end| (*end != ResourceEnd::Empty, *end));
    }
}

/// How many allocations ended in which way, apart from those with a part that was never freed. An allocation with parts
/// that ended in several ways counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocationEnds {
    /// The program freed all of it.
    pub freed: u64,
    /// A reallocation replaced it.
    reallocated: u64,
    /// Its heap was destroyed.
    destroyed: u64,
    /// Another allocation took its place, because a free was lost.
    replaced: u64,
    /// It contains only what was allocated before.
    empty: u64,
}

impl AllocationEnds {
    pub fn add(&mut self, end: ResourceEnd) {
        match end {
            ResourceEnd::Freed => self.freed += 1,
            ResourceEnd::Reallocated => self.reallocated += 1,
            ResourceEnd::Destroyed => self.destroyed += 1,
            ResourceEnd::Replaced => self.replaced += 1,
            ResourceEnd::Empty => self.empty += 1,
            ResourceEnd::Open | ResourceEnd::AtExit => {}
        }
    }

    pub fn add_all(&mut self, ends: &Self) {
        let Self { freed, reallocated, destroyed, replaced, empty } = ends;
        self.freed += freed;
        self.reallocated += reallocated;
        self.destroyed += destroyed;
        self.replaced += replaced;
        self.empty += empty;
    }

    /// Returns words for how they ended, such as "freed or destroyed with the heap".
    pub fn words(&self) -> String {
        let words = [
            (self.freed, "freed"),
            (self.reallocated, "reallocated"),
            (self.replaced, "replaced"),
            (self.destroyed, "destroyed with the heap"),
        ];
        let words: Vec<&str> =
            words.into_iter().filter(|(count, _)| *count > 0).map(|(_, word)| word).collect();
        match words.split_last() {
            None => "freed".to_owned(),
            Some((word, [])) => (*word).to_owned(),
            Some((last, words)) => format!("{} or {last}", words.join(", ")),
        }
    }

    /// Returns how many ended other than by a free, such as "5 reallocated, 1 replaced"; empty if none did.
    pub fn others(&self) -> String {
        let ends = [
            (self.reallocated, "reallocated"),
            (self.replaced, "replaced"),
            (self.destroyed, "destroyed with the heap"),
            (self.empty, "allocated nothing new"),
        ];
        ends.into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, end)| format!("{} {end}", HumanCount(count)))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(counts: &[(ResourceEnd, u64)]) -> AllocationEnds {
        let mut ends = AllocationEnds::default();
        for (end, count) in counts {
            (0..*count).for_each(|_| ends.add(*end));
        }
        ends
    }

    #[test]
    fn ends_that_are_counted_together_are_named() {
        use ResourceEnd::{Destroyed, Empty, Freed, Open, Reallocated, Replaced};
        let freed = ends(&[(Freed, 3), (Open, 2)]);
        assert_eq!((freed.words().as_str(), freed.others().as_str()), ("freed", ""));
        let mixed =
            ends(&[(Freed, 171), (Reallocated, 5), (Destroyed, 1), (Replaced, 1), (Empty, 2)]);
        assert_eq!(mixed.words(), "freed, reallocated, replaced or destroyed with the heap");
        let others =
            "5 reallocated, 1 replaced, 1 destroyed with the heap, 2 allocated nothing new";
        assert_eq!(mixed.others(), others);
        assert_eq!(ends(&[(Reallocated, 11)]).words(), "reallocated");
        assert_eq!(ends(&[]).words(), "freed", "what none of them is");
    }
}
