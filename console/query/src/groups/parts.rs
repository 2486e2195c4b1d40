//! Finds and counts the handles of many objects in parallel, and merges them in the order of the objects.

use rayon::prelude::*;

use super::columns::HandleKeys;
use super::counted::CompactHandle;
use super::leaves::{CodedHandles, counting_sort};
use super::lifetimes::{HandleTimes, LifeTables};
use super::nodes::{GroupNodes, Path};
use super::stats::GroupStats;
use crate::selection::{EventMask, SelectedObject, Selection};
use handlescope_session::cancel::{Cancel, Cancelled, Poll};

/// Number of objects that one thread processes at a time.
const PART: usize = 1 << 14;
/// Number of objects with handles and column values in memory at a time.
const WAVE: usize = 1 << 19;

/// Where the handles and the keys to group them by come from.
pub struct HandleCounter<'a> {
    pub lifetimes: LifeTables,
    pub keys: HandleKeys<'a>,
    pub cancel: &'a Cancel,
}

/// The handles of some objects with their values in the columns.
#[derive(Default)]
struct ObjectHandles {
    handles: Vec<CompactHandle>,
    /// Values column by column.
    values: Vec<Vec<u32>>,
    /// Distinct values of each column with texts, in order of first occurrence.
    distinct: Vec<Vec<u32>>,
}

/// The handles of some objects in their groups.
pub struct CountedPart {
    pub outer: GroupNodes<GroupStats>,
    /// Handles of the groups above the innermost level, one group after the other.
    pub handles: CodedHandles,
    /// Where the handles of each such group end, by group plus 1; index 0 is for handles in no group.
    pub ends: Vec<u32>,
    pub all: HandleSums,
}

/// Sums over handles.
#[derive(Debug, Clone, Copy, Default)]
pub struct HandleSums {
    /// Handles and views.
    pub handles: u64,
    /// Handles that the program did not close.
    pub unreleased: u64,
}

impl HandleCounter<'_> {
    /// Counts the handles and views of the selected objects and passes them to `add` in order. With `is_beside`, only
    /// closes by process exit count.
    pub fn count(
        &mut self,
        selection: &Selection,
        is_beside: bool,
        mut add: impl FnMut(CountedPart),
    ) -> Result<(), Cancelled> {
        for wave in selection.objects().chunks(WAVE) {
            let parts = wave.par_chunks(PART);
            let parts: Vec<ObjectHandles> = parts
                .map(|objects| self.part(objects, &selection.events, is_beside))
                .collect::<Result<_, Cancelled>>()?;
            // In sequence, because codes follow the order of the handles.
            parts.iter().for_each(|part| self.keys.learn(&part.distinct));
            let (keys, times) = (&self.keys, &self.lifetimes.times);
            let counted = parts.into_par_iter().map(|part| part.count(keys, times));
            counted.collect::<Vec<_>>().into_iter().for_each(&mut add);
        }
        Ok(())
    }

    fn part(
        &self,
        objects: &[SelectedObject],
        mask: &EventMask,
        is_beside: bool,
    ) -> Result<ObjectHandles, Cancelled> {
        let mut poll = Poll::new(self.cancel);
        let mut handles = Vec::with_capacity(objects.len());
        for selected in objects {
            poll.round()?;
            self.lifetimes.add(*selected, mask, &mut handles);
        }
        if is_beside {
            handles.retain(|handle| handle.has(CompactHandle::AT_EXIT));
            handles.iter_mut().for_each(|handle| handle.flags |= CompactHandle::BESIDE);
        }
        let (values, distinct) = self.keys.values(&self.lifetimes, &handles);
        Ok(ObjectHandles { handles, values, distinct })
    }
}

impl ObjectHandles {
    /// Counts the handles in their groups on all levels but the innermost, and orders them by group.
    fn count(mut self, keys: &HandleKeys<'_>, times: &HandleTimes) -> CountedPart {
        keys.put_codes(&mut self.values);
        let (innermost, outermost) = match self.values.split_last() {
            Some((innermost, outermost)) => (innermost.as_slice(), outermost),
            None => (&[][..], &[][..]),
        };
        let mut outer = GroupNodes::<GroupStats>::default();
        let mut path = Path::default();
        let mut sums = HandleSums::default();
        let mut slots = Vec::with_capacity(self.handles.len());
        for (at, handle) in self.handles.iter().enumerate() {
            let group = path.follow(outermost.chunks(1), at, &mut outer);
            // The span is needed only for levels above the innermost.
            let span_ns = group.and_then(|_| times.span(*handle));
            for node in path.nodes() {
                if let Some(stats) = outer.stats_mut(node) {
                    stats.add(*handle, span_ns);
                }
            }
            slots.push(group.map_or(0, |node| node + 1));
            sums.handles += u64::from(!handle.is_bare());
            sums.unreleased += u64::from(handle.is_unreleased());
        }
        let width = slots.iter().max().map_or(0, |last| *last as usize + 1);
        let rows = slots.iter().map(|slot| *slot as usize).zip(0..);
        let (order, ends) = counting_sort(rows, width);
        let handles = CodedHandles::ordered(&order, innermost, &self.handles);
        CountedPart { outer, handles, ends, all: sums }
    }
}
