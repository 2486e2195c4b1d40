//! Handles counted by type, process and file. Loops find which of them are open, because that depends on the remaining
//! events of each object.

use std::hash::Hash;

use handlescope_model::rules::{Kinds, OPENING, OPENING_HANDLES};
use handlescope_model::tables::Acquisitions;
use handlescope_model::{ArchiveError, ProcessIdx, Trace, TypeId};
use hashbrown::HashMap;
use serde::Serialize;

use super::context::FileContext;
use super::counts::{CountRows, NameCounts};
use super::criteria::{AcquisitionCriteria, CountOrder};
use super::error::QueryError;
use super::filters;
use super::selection::Selection;
use handlescope_session::cancel::Poll;
use handlescope_session::trace::has_end_rundown;
use handlescope_session::values::TopN;

/// Counts of handles to the objects that passed.
#[derive(Debug, Clone)]
pub struct HandleCounts {
    pub counted: CountedHandles,
    by_type: NameCounts,
    by_process: NameCounts,
    by_file: NameCounts,
}

/// Which handles are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedHandles {
    /// Handles in the final rundown, even if filters removed their events.
    OpenAtEnd,
    /// Handles open at the end of a trace without final rundown, judging by its events and the rundown at the start, if
    /// there is one.
    OpenByEvents { has_start: bool },
    /// Handles and views that the remaining events opened and nothing closed: `-Leak`.
    Leaked,
    /// Handles that only process exit closed: `-LeakAtExit`.
    ClosedAtExit,
    /// Both kinds of leaks: `-Leak -LeakAtExit`.
    LeakedOrAtExit,
}

impl CountedHandles {
    /// Returns what the criteria count in a trace.
    pub fn from_file(criteria: &AcquisitionCriteria, trace: &Trace) -> Result<Self, ArchiveError> {
        let counted = Self::new(criteria);
        if counted != Self::OpenAtEnd || has_end_rundown(trace)? {
            return Ok(counted);
        }
        Ok(Self::OpenByEvents { has_start: trace.values(Acquisitions::in_start_rundown)?.any() })
    }

    /// Returns what the criteria count in traces with a final rundown.
    pub fn new(criteria: &AcquisitionCriteria) -> Self {
        match (criteria.leak, criteria.leak_at_exit) {
            (false, false) => Self::OpenAtEnd,
            (true, false) => Self::Leaked,
            (false, true) => Self::ClosedAtExit,
            (true, true) => Self::LeakedOrAtExit,
        }
    }

    /// Returns what describes the counts of several traces.
    fn of_both(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::OpenByEvents { has_start },
                Self::OpenByEvents { has_start: other_has_start },
            ) => Self::OpenByEvents { has_start: has_start && other_has_start },
            (open @ Self::OpenByEvents { .. }, _) | (_, open @ Self::OpenByEvents { .. }) => open,
            (counted, _) => counted,
        }
    }

    /// Returns the words for the handles in titles and sums.
    pub fn text(self) -> &'static str {
        match self {
            Self::OpenAtEnd | Self::OpenByEvents { .. } => "handles open at the end of the trace",
            Self::Leaked => "leaked handles and views",
            Self::ClosedAtExit => "handles closed only by process exit",
            Self::LeakedOrAtExit => "handles and views leaked or closed only by process exit",
        }
    }

    /// Returns the noun for one or several of them.
    pub fn unit(self, is_one: bool) -> &'static str {
        match (self, is_one) {
            (Self::Leaked | Self::LeakedOrAtExit, true) => "handle or view",
            (Self::Leaked | Self::LeakedOrAtExit, false) => "handles and views",
            (_, true) => "handle",
            (_, false) => "handles",
        }
    }
}

/// The property that handles are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountBy {
    /// Name of the object type.
    Type,
    /// `name.exe(pid)`, separately for each trace.
    Process,
    /// Path of the trace, even if it has no such handles.
    File,
}

impl CountBy {
    /// Returns the title above the names.
    pub fn title(self) -> &'static str {
        match self {
            CountBy::Type => "Type",
            CountBy::Process => "Process",
            CountBy::File => "File",
        }
    }
}

impl HandleCounts {
    /// Counts the handles of the objects that passed.
    pub fn new(
        file: &FileContext<'_>,
        selection: &Selection,
        args: &AcquisitionCriteria,
    ) -> Result<Self, QueryError> {
        let is_plain = args.is_plain();
        let counted = CountedHandles::from_file(args, file.trace)?;
        let HandlesByValue { types, owners } = match counted {
            CountedHandles::OpenAtEnd => open_at_end(file, selection)?,
            CountedHandles::OpenByEvents { .. } => open_by_events(file, selection, args)?,
            CountedHandles::Leaked
            | CountedHandles::ClosedAtExit
            | CountedHandles::LeakedOrAtExit => opened(file, selection, OPENING, |_| true)?,
        };
        let (path, index) = (file.path.to_string_lossy().into_owned(), file.index);
        let by_type = types.named(index, |id| file.types.get(id).to_owned());
        Ok(Self {
            counted,
            by_file: NameCounts::new([(path, by_type.sum())], index),
            by_type,
            by_process: owners.named(index, |row| file.processes.get(row).shown_label(is_plain)),
        })
    }

    /// Combines the handles of several traces. Types with the same name count together; processes stay separate by
    /// trace.
    pub fn from_all<'a>(
        counted: CountedHandles,
        counts: impl Iterator<Item = &'a Self> + Clone,
    ) -> Self {
        let counted =
            counts.clone().map(|counts| counts.counted).fold(counted, CountedHandles::of_both);
        Self {
            counted,
            by_type: NameCounts::from_all(counts.clone().map(|counts| &counts.by_type)),
            by_process: NameCounts::from_each(counts.clone().map(|counts| &counts.by_process)),
            by_file: NameCounts::from_each(counts.map(|counts| &counts.by_file)),
        }
    }

    /// Returns the number of processes that own at least one of the handles.
    pub fn process_count(&self) -> usize {
        self.by_process.len()
    }

    /// Returns names with their counts in the given order: the `take` largest after the `skip` largest.
    pub fn rows(&self, by: CountBy, top: Option<TopN>, order: CountOrder) -> CountRows<'_> {
        let counts = match by {
            CountBy::Type => &self.by_type,
            CountBy::Process => &self.by_process,
            CountBy::File => &self.by_file,
        };
        counts.rows(top, order)
    }
}

/// Handles by type and by owner.
#[derive(Default)]
struct HandlesByValue {
    types: ValueCounts<TypeId>,
    owners: ValueCounts<ProcessIdx>,
}

/// Counts the handles in the final rundown.
fn open_at_end(
    file: &FileContext<'_>,
    selection: &Selection,
) -> Result<HandlesByValue, QueryError> {
    let owner = file.trace.values(Acquisitions::process)?;
    let mut counts = HandlesByValue::default();
    let mut poll = Poll::new(file.cancel);
    for selected in selection.objects() {
        poll.round()?;
        let object = selected.object();
        for handle in file.objects.table.listed(object) {
            counts.types.add(file.objects.type_id(object));
            counts.owners.add(owner.get(handle).unwrap_or(ProcessIdx::NONE));
        }
    }
    Ok(counts)
}

/// Counts the handles that remaining events opened and nothing closed, and those open since the start.
fn open_by_events(
    file: &FileContext<'_>,
    selection: &Selection,
    args: &AcquisitionCriteria,
) -> Result<HandlesByValue, QueryError> {
    let table = &file.objects.table;
    let mut counts = opened(file, selection, OPENING_HANDLES, |event| table.is_leaked(event))?;
    for (type_id, owner) in filters::open_start_handles(file, args)? {
        counts.types.add(type_id);
        counts.owners.add(owner);
    }
    Ok(counts)
}

/// Counts the handles that some of the remaining events opened.
fn opened(
    file: &FileContext<'_>,
    selection: &Selection,
    kinds: Kinds,
    is_counted: impl Fn(usize) -> bool,
) -> Result<HandlesByValue, QueryError> {
    let table = &file.objects.table;
    let owner = selection.columns(file.trace, &file.objects)?.processes()?;
    let mut counts = HandlesByValue::default();
    let mut poll = Poll::new(file.cancel);
    for selected in selection.objects() {
        poll.round()?;
        let events = file.objects.events(selected.object());
        let openings = events
            .filter(|&event| selection.events.contains(event))
            .filter(|event| table.kind(*event).is_some_and(|kind| kinds.contains(kind)));
        for event in openings.filter(|&event| is_counted(event)) {
            counts.types.add(file.objects.type_id(selected.object()));
            counts.owners.add(owner.get(event).unwrap_or_default());
        }
    }
    Ok(counts)
}

/// Counts by value.
#[derive(Default)]
struct ValueCounts<T> {
    counts: HashMap<T, u64>,
    /// The value counted last, because most handles of an object have the same ones.
    last: Option<(T, u64)>,
}

impl<T: Eq + Hash> ValueCounts<T> {
    fn add(&mut self, value: T) {
        match &mut self.last {
            Some((last, count)) if *last == value => *count += 1,
            last => {
                if let Some((value, count)) = last.replace((value, 1)) {
                    *self.counts.entry(value).or_default() += count;
                }
            }
        }
    }

    /// Sums the counts by name in trace number `file`; several values may have the same name.
    fn named(self, file: usize, name: impl Fn(T) -> String) -> NameCounts {
        let counts = self.counts.into_iter().chain(self.last);
        NameCounts::new(counts.map(|(value, count)| (name(value), count)), file)
    }
}
