//! Sums over what passed the filters: loops, as what counts depends on which events of each object are left.

use std::ops::AddAssign;

use handlescope_model::rules::{OPENING, VIEWS};
use handlescope_model::tables::Events;
use handlescope_model::{ArchiveError, EventKind, Flags, Numbers, Sparse, Trace};
use rayon::prelude::*;
use serde::Serialize;

use super::context::FileContext;
use super::error::QueryError;
use super::selection::{EventMask, OBJECTS_AT_ONCE, Selected, Selection};
use handlescope_session::cancel::{Cancelled, Poll};
use handlescope_session::trace::unseen_values;

/// The summary of the objects and events that passed.
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
    /// Creates and duplicates that nothing but the end of their process closed. Under `-Leak`, which
    /// leaves their events out, those that `-LeakAtExit` would keep.
    pub closed_at_exit: u64,
    /// Creates, duplicates and maps whose close the trace lost. Under `-Leak` and `-LeakAtExit`, which leave their
    /// events out, those that would be there without.
    pub closed_unseen: u64,
}

impl Totals {
    /// Handles and views that nothing but the end of a process closed.
    pub fn unreleased(&self) -> u64 {
        self.leaked_handles.saturating_add(self.closed_at_exit)
    }

    pub fn of(file: &FileContext<'_>, selection: &Selection) -> Result<Self, QueryError> {
        let columns = Columns::load(file, selection)?;
        let parts = selection.objects().par_chunks(OBJECTS_AT_ONCE);
        let parts = parts.map(|objects| columns.count(file, objects, &selection.events));
        let (mut totals, mut views) = (Self::default(), Vec::new());
        for part in parts.collect::<Result<Vec<_>, Cancelled>>()? {
            totals += part.0;
            views.extend(part.1);
        }
        totals.add_sizes(&columns.kind, &views, file.trace)?;
        Ok(totals)
    }

    /// The sizes lie in a column that most queries need not read.
    fn add_sizes(
        &mut self,
        kinds: &Sparse<Numbers<u32>>,
        views: &[usize],
        trace: &Trace,
    ) -> Result<(), ArchiveError> {
        if views.is_empty() {
            return Ok(());
        }
        let size = trace.values(Events::view_size)?;
        for &view in views {
            let is_map = kinds.get(view) == Some(EventKind::Map.code());
            let sum = if is_map { &mut self.map_size } else { &mut self.unmap_size };
            *sum = sum.saturating_add(size.get(view).unwrap_or_default());
        }
        Ok(())
    }
}

/// The columns that say what is counted.
struct Columns {
    kind: Sparse<Numbers<u32>>,
    leaked: Flags,
    /// Flags of closes at exit; most traces have none.
    at_exit: Option<Flags>,
    unseen: Numbers<u32>,
}

impl Columns {
    fn load(file: &FileContext<'_>, selection: &Selection) -> Result<Self, QueryError> {
        let trace = file.trace;
        Ok(Self {
            kind: trace.values_at(Events::kind, &selection.event_rows(&file.objects))?,
            leaked: trace.values(Events::leaked)?,
            at_exit: Some(trace.values(Events::closed_at_exit)?).filter(Flags::any),
            unseen: unseen_values(trace, Events::closed_unseen)?,
        })
    }

    /// Sums over some objects but for sizes, and the events of views.
    fn count(
        &self,
        file: &FileContext<'_>,
        objects: &[Selected],
        left: &EventMask,
    ) -> Result<(Totals, Vec<usize>), Cancelled> {
        let mut by_kind = [0_u64; EventKind::ALL.len()];
        let mut totals = Totals::default();
        let mut views = Vec::new();
        let mut poll = Poll::new(file.cancel);
        for selected in objects {
            poll.round()?;
            totals.objects_created += u64::from(selected.create().is_some());
            totals.objects_destroyed += u64::from(selected.end().is_some());
            let object = selected.object();
            for event in file.objects.events(object).filter(|&e| left.contains(e)) {
                let kind = self.kind.get(event).unwrap_or_default();
                if let Some(count) = by_kind.get_mut(kind as usize) {
                    *count += 1;
                }
                if OPENING.contains_code(kind) {
                    let leaked = u64::from(self.leaked.get(event));
                    totals.leaked_handles += leaked;
                    totals.leaked_views += if VIEWS.contains_code(kind) { leaked } else { 0 };
                    totals.closed_at_exit +=
                        u64::from(self.at_exit.as_ref().is_some_and(|flags| flags.get(event)));
                    totals.closed_unseen += u64::from(self.unseen.get(event).is_some());
                }
                if VIEWS.contains_code(kind) {
                    views.push(event);
                }
            }
        }
        let [create, duplicate, close, _, _, reference, dereference, map, unmap] = by_kind;
        totals.handles_created = create;
        totals.handles_duplicated = duplicate;
        totals.handles_closed = close;
        totals.ref_changes = reference + dereference;
        totals.map_count = map;
        totals.unmap_count = unmap;
        Ok((totals, views))
    }
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
