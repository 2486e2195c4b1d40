//! The lives of the allocations of a site: one that ended in parts has one life, which ends with the last of them.

use std::collections::BTreeMap;

use handlescope_model::ResourceIdx;
use handlescope_model::tables::ResourceEnd;

use super::ends::Ends;
use super::tables::ResourceTable;
use crate::query::amounts::{Amount, Bytes, Counts};
use crate::query::growth::Life;

/// The allocations of a site, and what there is to count of them.
#[derive(Default)]
pub(in crate::query) struct SiteLives {
    pub(in crate::query) counts: Counts,
    pub(in crate::query) bytes: Bytes,
    /// How those ended that are not lost.
    pub(in crate::query) ends: Ends,
    pub(in crate::query) lives: Vec<Life>,
    /// Bytes of each of these: of one that leaks, those of the parts that were never freed.
    pub(in crate::query) sizes: Vec<u64>,
}

/// An allocation, or as much of one as was seen so far.
#[derive(Clone, Copy)]
struct Whole {
    opened_ns: i64,
    /// When the last of its parts ended; `None` where that is not known.
    ended_ns: Option<i64>,
    /// How the parts that were never freed ended, if there are any.
    lost: Option<ResourceEnd>,
    /// How the others ended: where that differs, what says least of the program.
    end: Option<ResourceEnd>,
    size: i64,
    /// Of the parts that were never freed.
    lost_size: i64,
}

impl SiteLives {
    /// Of some rows; `None` where the table has no time for one.
    pub(in crate::query) fn of(table: &ResourceTable, rows: &[ResourceIdx]) -> Option<Self> {
        let (lives, sizes) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let mut site = Self { lives, sizes, ..Self::default() };
        // Few allocations end in parts.
        let mut wholes: BTreeMap<ResourceIdx, Whole> = BTreeMap::new();
        for row in rows.iter().copied() {
            let part = Whole::of(table, row)?;
            site.bytes.allocated = site.bytes.allocated.saturating_add(part.size);
            site.bytes.lost = site.bytes.lost.saturating_add(part.lost_size);
            match table.first_part(row) {
                None => site.add(part),
                Some(first) => {
                    wholes.entry(first).and_modify(|whole| whole.add(part)).or_insert(part);
                }
            }
        }
        wholes.into_values().for_each(|whole| site.add(whole));
        Some(site)
    }

    /// What was never freed.
    pub(in crate::query) fn leaked(&self) -> Amount {
        Amount { count: self.counts.lost(), bytes: self.bytes.lost }
    }

    /// Adds what there is to count of those of another process, without their times.
    pub(in crate::query) fn add_all(&mut self, site: &Self) {
        let Self { counts, bytes, ends, .. } = site;
        self.counts.add(*counts);
        self.bytes.lost = self.bytes.lost.saturating_add(bytes.lost);
        self.bytes.allocated = self.bytes.allocated.saturating_add(bytes.allocated);
        self.ends.add_all(ends);
    }

    fn add(&mut self, whole: Whole) {
        let Whole { opened_ns, ended_ns, lost, end, size, lost_size } = whole;
        self.counts.opened += 1;
        if lost.is_none() && matches!(end, Some(ResourceEnd::Empty) | None) {
            end.into_iter().for_each(|end| self.ends.add(end));
            return;
        }
        match lost {
            Some(ResourceEnd::Open) => self.counts.leaked += 1,
            Some(_) => self.counts.closed_at_exit += 1,
            None => end.into_iter().for_each(|end| self.ends.add(end)),
        }
        self.lives.push(Life { opened_ns, closed_ns: ended_ns.filter(|_| lost.is_none()) });
        let size = if lost.is_some() { lost_size } else { size };
        self.sizes.push(u64::try_from(size).unwrap_or_default());
    }
}

impl Whole {
    /// The part of a row as if it were all.
    fn of(table: &ResourceTable, resource: ResourceIdx) -> Option<Self> {
        let row = resource.row();
        let end = table.end.get(row).and_then(ResourceEnd::from_code);
        let size = table.size.get(row).unwrap_or_default();
        let is_lost = table.is_lost(resource);
        Some(Self {
            opened_ns: table.time_ns.get(row)?,
            ended_ns: table.end_time_ns.get(row),
            lost: end.filter(|_| is_lost),
            end: end.filter(|_| !is_lost),
            size,
            lost_size: if is_lost { size } else { 0 },
        })
    }

    /// Adds another part.
    fn add(&mut self, part: Self) {
        self.size = self.size.saturating_add(part.size);
        self.lost_size = self.lost_size.saturating_add(part.lost_size);
        self.opened_ns = self.opened_ns.min(part.opened_ns);
        self.ended_ns = self.ended_ns.zip(part.ended_ns).map(|(one, other)| one.max(other));
        // What is open at the end of the trace says more than that an end of a process took the rest.
        self.lost = self.lost.into_iter().chain(part.lost).min();
        // A part that has nothing says nothing of the others.
        let ends = self.end.into_iter().chain(part.end);
        self.end = ends.max_by_key(|end| (*end != ResourceEnd::Empty, *end));
    }
}
