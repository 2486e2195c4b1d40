//! Sums over what passed the filters. They are loops, because what counts depends on the remaining events of each
//! object.

use std::ops::AddAssign;

use handlescope_model::tables::Acquisitions;
use handlescope_model::{ArchiveError, Trace};
use rayon::prelude::*;
use serde::Serialize;

use super::context::FileContext;
use super::error::QueryError;
use super::selection::{EventMask, OBJECTS_AT_ONCE, SelectedObject, Selection};
use handlescope_session::cancel::{Cancelled, Poll};

/// A summary of the objects and events that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Objects with a creation.
    pub objects_created: u64,
    /// Objects with an end.
    pub objects_destroyed: u64,
    pub handles_created: u64,
    pub handles_closed: u64,
    pub handles_duplicated: u64,
    /// Events that changed a reference count.
    pub ref_changes: u64,
    /// Views mapped.
    pub map_count: u64,
    /// Views unmapped.
    pub unmap_count: u64,
    /// Bytes mapped.
    pub map_size: u64,
    /// Bytes unmapped.
    pub unmap_size: u64,
    /// Creates, duplicates and maps that nothing in the trace closes.
    pub leaked_handles: u64,
    /// The views among these.
    pub leaked_views: u64,
    /// Creates and duplicates that nothing but process exit closed. With `-Leak`, which leaves out their events, those
    /// that `-LeakAtExit` would keep.
    pub closed_at_exit: u64,
    /// Creates, duplicates and maps with a close that the trace lost. With `-Leak` and `-LeakAtExit`, which leave out
    /// their events, those that would remain otherwise.
    pub closed_unseen: u64,
}

impl Totals {
    /// Returns the number of handles and views that were never closed, or only by process exit.
    pub fn unreleased(&self) -> u64 {
        self.leaked_handles.saturating_add(self.closed_at_exit)
    }

    pub fn new(file: &FileContext<'_>, selection: &Selection) -> Result<Self, QueryError> {
        let parts = selection.objects().par_chunks(OBJECTS_AT_ONCE);
        let parts = parts.map(|objects| count(file, objects, &selection.events));
        let (mut totals, mut views) = (Self::default(), Vec::new());
        for part in parts.collect::<Result<Vec<_>, Cancelled>>()? {
            totals += part.0;
            views.extend(part.1);
        }
        totals.add_sizes(&views, file.trace)?;
        Ok(totals)
    }

    /// Adds sizes, which are in a column that most queries do not need.
    fn add_sizes(&mut self, views: &[(bool, usize)], trace: &Trace) -> Result<(), ArchiveError> {
        if views.is_empty() {
            return Ok(());
        }
        let size = trace.values(Acquisitions::size)?;
        for (is_map, view) in views {
            let sum = if *is_map { &mut self.map_size } else { &mut self.unmap_size };
            *sum = sum.saturating_add(size.get(*view).unwrap_or_default() as u64);
        }
        Ok(())
    }
}

/// Sums up some objects except for sizes; returns the rows of mapped or unmapped views for these.
fn count(
    file: &FileContext<'_>,
    objects: &[SelectedObject],
    left: &EventMask,
) -> Result<(Totals, Vec<(bool, usize)>), Cancelled> {
    let table = &file.objects.table;
    let mut totals = Totals::default();
    let mut views = Vec::new();
    let mut poll = Poll::new(file.cancel);
    for selected in objects {
        poll.round()?;
        totals.objects_created += u64::from(selected.create(table).is_some());
        totals.objects_destroyed += u64::from(selected.has_end(table));
        let object = selected.object();
        for row in table.acquisitions(object) {
            let state = table.state(row);
            if state.is_opened() && left.contains(table.numbering.opening(row)) {
                let leaked = u64::from(state.is_leaked());
                totals.leaked_handles += leaked;
                totals.closed_at_exit += u64::from(state.is_closed_at_exit());
                totals.closed_unseen += u64::from(state.is_closed_unseen());
                if state.is_view() {
                    totals.leaked_views += leaked;
                    totals.map_count += 1;
                    views.push((true, row));
                } else if state.is_copy() {
                    totals.handles_duplicated += 1;
                } else {
                    totals.handles_created += 1;
                }
            }
            // An unmap of several views counts once.
            let ending = table.numbering.ending(row);
            if table.ending(row) == Some(ending) && left.contains(ending) {
                if state.is_view() {
                    totals.unmap_count += 1;
                    views.push((false, row));
                } else {
                    totals.handles_closed += 1;
                }
            }
        }
        totals.ref_changes +=
            table.changes(object).filter(|event| left.contains(*event)).count() as u64;
    }
    Ok((totals, views))
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.objects_created += other.objects_created;
        self.objects_destroyed += other.objects_destroyed;
        self.handles_created += other.handles_created;
        self.handles_closed += other.handles_closed;
        self.handles_duplicated += other.handles_duplicated;
        self.ref_changes += other.ref_changes;
        self.map_count += other.map_count;
        self.unmap_count += other.unmap_count;
        self.map_size = self.map_size.saturating_add(other.map_size);
        self.unmap_size = self.unmap_size.saturating_add(other.unmap_size);
        self.leaked_handles += other.leaked_handles;
        self.leaked_views += other.leaked_views;
        self.closed_at_exit += other.closed_at_exit;
        self.closed_unseen += other.closed_unseen;
    }
}
