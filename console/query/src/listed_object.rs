//! Objects and their events as every format prints them.

use handlescope_model::rules::{self, OPENING, VIEWS, WITH_HANDLE};
use handlescope_model::{EventKind, ObjectIdx, ProcessIdx};

use super::listing::{EventListing, ListedEvent};
use super::object_ref::{FileAnswer, ObjectsLeftOut};
use super::selection::SelectedObject;
use super::tables::ProcessInfo;
use super::targets::{PROCESS, THREAD, Target};

/// An object that passed. What is said of it does not depend on filters of its events, except `events` and `kinds`.
#[derive(Clone, Copy)]
pub struct ListedObject<'a> {
    pub file: &'a FileAnswer<'a>,
    selected: SelectedObject,
    listing: &'a EventListing,
}

impl FileAnswer<'_> {
    /// Returns the objects that are listed, in order; none if only sums or groups were requested.
    pub fn objects(&self) -> impl Iterator<Item = ListedObject<'_>> {
        self.listing.iter().flat_map(move |listing| {
            let listed = move |&selected: &_| ListedObject { file: self, selected, listing };
            self.selection.objects().iter().map(listed)
        })
    }
}

impl<'a> ListedObject<'a> {
    fn object(self) -> ObjectIdx {
        self.selected.object()
    }

    /// Returns the id that users see, from 1.
    pub fn id(self) -> u64 {
        self.selected.id()
    }

    /// Returns the kernel address; `None` if the source does not have it.
    pub fn pointer(self) -> Option<u64> {
        self.listing.pointer(self.object())
    }

    pub fn name(self) -> Option<&'a str> {
        self.listing.name(self.object())
    }

    pub fn type_name(self) -> &'a str {
        let tables = &self.file.file;
        tables.types.get(tables.objects.type_id(self.object()))
    }

    pub fn is_mapping(self) -> bool {
        self.file.file.objects.is_mapping(self.object())
    }

    /// Whether more than one process used it.
    pub fn is_multiprocess(self) -> bool {
        self.listing.is_multiprocess(self.object())
    }

    /// Whether two handles were open at once.
    pub fn is_overlapped(self) -> bool {
        self.listing.is_overlapped(self.object())
    }

    /// Returns when it was created and ended; `None` if unknown.
    pub fn ends_ns(self) -> [Option<i64>; 2] {
        self.listing.ends_ns(self.object())
    }

    /// Returns its lifetime; `None` if its creation or end is unknown.
    pub fn lifetime_ns(self) -> Option<i64> {
        let [created_ns, ended_ns] = self.ends_ns();
        rules::lifetime_ns(created_ns, ended_ns)
    }

    /// Returns the time of the creation that filters left.
    pub fn left_create_ns(self) -> Option<i64> {
        let create = self.selected.create(&self.file.file.objects.table)?;
        self.listing.time_ns(create.row())
    }

    /// Whether the trace has the event that created it.
    pub fn has_create(self) -> bool {
        self.file.file.objects.table.create_event(self.object()).is_some()
    }

    /// Whether the trace has the event that ended it.
    pub fn has_end(self) -> bool {
        self.file.file.objects.table.has_destroy_event(self.object())
    }

    /// Returns the process that created it, if the trace has its creation.
    pub fn creator(self) -> Option<&'a ProcessInfo> {
        let create = self.file.file.objects.table.create_event(self.object())?;
        Some(self.file.file.processes.get(self.listing.event(create.row())?.process))
    }

    /// Returns the process or thread that handles to it refer to, if that was asked for: `Some(None)` if it is unknown,
    /// and `None` for objects of other types.
    pub fn target(self) -> Option<Option<&'a Target>> {
        let targets = self.file.targets.as_ref()?;
        [PROCESS, THREAD].contains(&self.type_name()).then(|| targets.of_object(self.object()))
    }

    /// Returns owner row and value of each of its handles in the final rundown. A list that only counts handles has no
    /// values.
    pub fn existing(self) -> impl Iterator<Item = (ProcessIdx, Option<u64>)> + 'a {
        self.listing.existing(self.object())
    }

    /// Returns its remaining events in time order.
    pub fn events(self) -> impl Iterator<Item = ListedEvent<'a>> {
        self.numbers().filter_map(move |number| self.listing.event(number))
    }

    /// Returns the kinds of its remaining events in time order.
    pub fn kinds(self) -> impl Iterator<Item = EventKind> + 'a {
        self.numbers().filter_map(move |number| self.listing.kind(number))
    }

    /// Returns the events of duplicates that a child inherited, in no particular order, and whom by.
    pub fn inherited(self) -> impl Iterator<Item = (ListedEvent<'a>, ProcessIdx)> {
        self.file.file.objects.events(self.object()).filter_map(move |number| {
            let child = self.listing.inherited_by(number)?;
            Some((self.listing.event(number)?, child))
        })
    }

    /// Returns the highest reference count that the trace shows, counting from 0.
    pub fn max_ref_count(self) -> i64 {
        let events = self.file.file.objects.events(self.object());
        let counts =
            events.filter_map(|event| self.listing.ref_delta(event)).scan(0, |sum, delta| {
                *sum += i64::from(delta);
                Some(*sum)
            });
        counts.max().unwrap_or_default().max(0)
    }

    /// Counts it as an object that is not printed.
    pub fn left_out(self) -> ObjectsLeftOut {
        let opened = self.kinds().filter(|kind| OPENING.contains(*kind)).count();
        let existing =
            if self.kinds().any(|kind| WITH_HANDLE.contains(kind) || VIEWS.contains(kind)) {
                0
            } else {
                // Handles that were open all the time have no events.
                self.file.file.objects.table.listed(self.object()).count()
            };
        let (handles, views) = if self.is_mapping() { (0, opened) } else { (opened, 0) };
        ObjectsLeftOut { objects: 1, handles, views, existing }
    }

    fn numbers(self) -> impl Iterator<Item = usize> + 'a {
        let events = self.listing.events_in_order(&self.file.file, self.object());
        events.into_iter().filter(move |event| self.file.selection.events.contains(*event))
    }
}
