//! Sums over what passed the filters.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::AddAssign;

use handlescope_model::rules::{OPENING, VIEWS};
use handlescope_model::tables::{Events, ExistingHandles};
use handlescope_model::{ArchiveError, EventKind, ProcessIdx, Trace, TypeId};

use super::context::FileContext;
use super::error::QueryError;
use super::selection::Selection;
use crate::cancel::Poll;
use crate::values::TopN;

/// The summary of the objects and events that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects with a creation.
    pub objects_created: u64,
    /// Objects with an end.
    pub objects_destroyed: u64,
    /// Handle creates.
    pub handles_created: u64,
    /// Handle closes.
    pub handles_closed: u64,
    /// Handle duplicates.
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
}

impl Totals {
    pub(crate) fn of(file: &FileContext<'_>, selection: &Selection) -> Result<Self, QueryError> {
        let trace = file.trace;
        let (kind, leaked) = (trace.values(Events::kind)?, trace.values(Events::leaked)?);
        let kinds = kind.values();
        let mut by_kind = [0_u64; EventKind::ALL.len()];
        let mut totals = Self::default();
        let mut views = Vec::new();
        let mut poll = Poll::new(file.cancel);
        for selected in selection.objects() {
            poll.round()?;
            totals.objects_created += u64::from(selected.create().is_some());
            totals.objects_destroyed += u64::from(selected.end().is_some());
            let object = selected.object();
            for event in file.objects.events(object).filter(|&e| selection.events.contains(e)) {
                let kind = kinds.get(event).copied().unwrap_or_default();
                if let Some(count) = by_kind.get_mut(kind as usize) {
                    *count += 1;
                }
                totals.leaked_handles +=
                    u64::from(OPENING.contains_code(kind) && leaked.get(event));
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
        totals.add_sizes(kinds, &views, trace)?;
        Ok(totals)
    }

    /// The sizes lie in a column that most queries need not read.
    fn add_sizes(
        &mut self,
        kinds: &[u32],
        views: &[usize],
        trace: &Trace,
    ) -> Result<(), ArchiveError> {
        if views.is_empty() {
            return Ok(());
        }
        let size = trace.values(Events::view_size)?;
        for &view in views {
            let is_map = kinds.get(view) == Some(&EventKind::Map.code());
            let sum = if is_map { &mut self.map_size } else { &mut self.unmap_size };
            *sum = sum.saturating_add(size.get(view).unwrap_or_default());
        }
        Ok(())
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
    }
}

/// The handles that were still open at the end (rundown) of the objects that passed, whatever the
/// filters removed of their events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenHandles {
    by_type: HashMap<String, u64>,
    by_process: HashMap<String, u64>,
    by_file: HashMap<String, u64>,
}

/// What the handles are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountBy {
    /// Name of the object type.
    Type,
    /// `name.exe(pid)`.
    Process,
    /// Path of the trace, also of one without such handles.
    File,
}

impl OpenHandles {
    /// Counts the open handles of some objects; `plain` names are those of executables.
    pub(crate) fn of(
        file: &FileContext<'_>,
        selection: &Selection,
        plain: bool,
    ) -> Result<Self, QueryError> {
        let owner = file.trace.values(ExistingHandles::process)?;
        let mut types: HashMap<TypeId, u64> = HashMap::new();
        let mut processes: HashMap<ProcessIdx, u64> = HashMap::new();
        let mut poll = Poll::new(file.cancel);
        for selected in selection.objects() {
            poll.round()?;
            let handles = file.objects.existing(selected.object());
            let owners = owner.range(handles);
            if let Some(count) = Some(owners.len() as u64).filter(|count| *count > 0) {
                *types.entry(file.objects.type_id(selected.object())).or_default() += count;
            }
            for owner in owners {
                *processes.entry(owner).or_default() += 1;
            }
        }
        let file_count = processes.values().sum();
        Ok(Self {
            by_file: HashMap::from([(file.path.display().to_string(), file_count)]),
            by_type: named(types, |id| file.types.get(id).to_owned()),
            by_process: named(processes, |row| file.processes.get(row).shown_label(plain)),
        })
    }

    /// Adds the handles of another trace; equal names count together.
    pub(crate) fn add(&mut self, other: &Self) {
        for (all, more) in [
            (&mut self.by_type, &other.by_type),
            (&mut self.by_process, &other.by_process),
            (&mut self.by_file, &other.by_file),
        ] {
            for (name, count) in more {
                *all.entry(name.clone()).or_default() += count;
            }
        }
    }

    /// Number of processes that own at least one of the handles.
    pub fn process_count(&self) -> usize {
        self.by_process.len()
    }

    /// Names with their counts, the largest last: the `take` largest after the `skip` largest.
    /// Among equal counts the names decide, so that the same question has the same answer.
    pub fn rows(&self, by: CountBy, top: Option<TopN>) -> Vec<(&str, u64)> {
        let counts = match by {
            CountBy::Type => &self.by_type,
            CountBy::Process => &self.by_process,
            CountBy::File => &self.by_file,
        };
        let mut rows: Vec<(&str, u64)> =
            counts.iter().map(|(name, &count)| (name.as_str(), count)).collect();
        rows.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let TopN { take, skip } = top.unwrap_or(TopN { take: usize::MAX, skip: 0 });
        let mut rows: Vec<_> = rows.into_iter().skip(skip).take(take).collect();
        rows.reverse();
        rows
    }
}

/// Counts by name instead of by number; several numbers may have one name.
fn named<K: Hash + Eq>(
    counts: HashMap<K, u64>,
    name: impl Fn(K) -> String,
) -> HashMap<String, u64> {
    let mut by_name = HashMap::new();
    for (key, count) in counts {
        *by_name.entry(name(key)).or_default() += count;
    }
    by_name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handles() -> OpenHandles {
        let counts = [("Event", 7), ("File", 3), ("Key", 3), ("Thread", 9), ("Job", 1)];
        OpenHandles {
            by_type: counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            ..OpenHandles::default()
        }
    }

    #[test]
    fn rows_ascend_to_the_largest_and_equal_counts_go_by_name() {
        let handles = handles();
        let names: Vec<_> = handles.rows(CountBy::Type, None).iter().map(|row| row.0).collect();
        assert_eq!(names, ["Job", "Key", "File", "Event", "Thread"]);
    }

    #[test]
    fn top_n_with_skip_leaves_the_largest_out() {
        let handles = handles();
        let top = |take, skip| handles.rows(CountBy::Type, Some(TopN { take, skip }));
        assert_eq!(top(2, 0), [("Event", 7), ("Thread", 9)]);
        assert_eq!(top(2, 1), [("File", 3), ("Event", 7)]);
        assert_eq!(top(10, 4), [("Job", 1)]);
        assert_eq!(top(1, 9), []);
    }

    #[test]
    fn several_traces_add_up_by_name() {
        let mut all = handles();
        all.add(&handles());
        assert_eq!(all.rows(CountBy::Type, Some(TopN { take: 1, skip: 0 })), [("Thread", 18)]);
    }
}
