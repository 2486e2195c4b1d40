//! Why a group leaks, as far as its events prove it.

use std::collections::{BTreeSet, HashMap};

use handlescope_model::{EventKind, ObjectIdx, ProcessIdx, StackIdx};
use indicatif::HumanCount;

use super::columns::EventColumns;
use super::targets::Targets;
use crate::query::acquired::{Group, Handles};
use crate::query::context::FileContext;
use crate::query::groups::Opened;

/// Objects named as examples of a diagnosis.
const EXAMPLES: usize = 5;

/// Stacks of closes that are named.
const CLOSE_STACKS: usize = 3;

/// Types whose objects end before their handles are closed.
const PROCESS: &str = "Process";
const THREAD: &str = "Thread";

/// A cause of a leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Two threads opened handles to one object at almost the same time: get-or-create without a lock.
    Race,
    /// Duplicated into the process, which did not close them.
    DuplicateNotClosed,
    /// Inherited by the process, which did not close them.
    InheritedNotClosed,
    /// The thread or process they are of ended.
    ThreadOrProcessHandle,
    /// Views that were never unmapped.
    ViewNotUnmapped,
    /// The program closed some of this create stack: an error path.
    SometimesClosed,
    /// The program closed none of them.
    NeverClosed,
    /// Only the end of the process closed them.
    ExitOnly,
    /// The same value was open to the same object before, and closed.
    HandleReuse,
    /// The program frees nothing of this stack.
    NeverFreed,
    /// It frees some of this stack: an error path.
    SometimesFreed,
    /// Blocks that only grew, by reallocation.
    ReallocGrowth,
    /// Addresses that were reserved, and nothing of them committed.
    ReserveWithoutCommit,
    /// Heaps that were created and not destroyed.
    HeapNotDestroyed,
}

impl Cause {
    /// Every cause with the word it goes by, which stays the same.
    pub const ALL: [(Self, &'static str); 14] = [
        (Self::Race, "race"),
        (Self::DuplicateNotClosed, "duplicate_not_closed"),
        (Self::InheritedNotClosed, "inherited_not_closed"),
        (Self::ThreadOrProcessHandle, "thread_or_process_handle"),
        (Self::ViewNotUnmapped, "view_not_unmapped"),
        (Self::SometimesClosed, "sometimes_closed"),
        (Self::NeverClosed, "never_closed"),
        (Self::ExitOnly, "exit_only"),
        (Self::HandleReuse, "handle_reuse"),
        (Self::NeverFreed, "never_freed"),
        (Self::SometimesFreed, "sometimes_freed"),
        (Self::ReallocGrowth, "realloc_growth"),
        (Self::ReserveWithoutCommit, "reserve_without_commit"),
        (Self::HeapNotDestroyed, "heap_not_destroyed"),
    ];

    /// The word it goes by, which stays the same.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(cause, _)| *cause == self).map_or("", |(_, word)| word)
    }
}

/// A cause, and what is lost and proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub cause: Cause,
    /// How many lost handles or allocations it explains.
    pub count: u64,
    /// Ids of some of their objects, ascending; allocations have none.
    pub object_ids: Vec<u64>,
    /// A sentence without a full stop.
    pub text: String,
    /// Stacks that close or free others of the group, the most frequent first.
    pub stacks: Vec<StackIdx>,
}

/// What is known of a group besides how much of it leaks.
pub(super) struct Findings {
    pub(super) diagnoses: Vec<Diagnosis>,
    /// Bytes of blocks that only grew, and how many more they get each minute.
    pub(super) grown: Option<(i64, f64)>,
    /// What became of those that are not leaked, as in "closed".
    pub(super) ended: String,
}

/// What causes are found in.
pub(super) struct Causes<'a> {
    pub(super) file: &'a FileContext<'a>,
    pub(super) columns: &'a EventColumns,
    pub(super) targets: &'a Targets,
    /// How far apart two opens of a race are at most, nanoseconds; `None` in a trace without clock, or whose
    /// clock stands still for longer.
    pub(super) race_window_ns: Option<i64>,
}

impl Causes<'_> {
    /// Why groups of a program leak.
    pub(super) fn findings(&self, acquired: &Handles<'_>, groups: &[Group<'_>]) -> Findings {
        let handles = acquired.handles(groups);
        let lost = handles.iter().copied().filter(|handle| acquired.timed.is_lost(*handle));
        let diagnoses = self.of(&handles, &lost.collect::<Vec<Opened>>());
        Findings { diagnoses, grown: None, ended: "closed".to_owned() }
    }

    /// Why a group leaks: of its handles, `lost` are those that the program did not close.
    fn of(&self, handles: &[Opened], lost: &[Opened]) -> Vec<Diagnosis> {
        let all = [
            self.race(lost),
            self.duplicates(lost),
            self.inherited(lost),
            self.targets(lost),
            self.views(lost),
            self.closes(handles, lost),
            self.exits(lost),
            self.reuse(lost),
        ];
        all.into_iter().flatten().collect()
    }

    fn race(&self, lost: &[Opened]) -> Option<Diagnosis> {
        let mut nearest: Option<(i64, u32, u32)> = None;
        let raced = lost.iter().filter(|handle| {
            let found = self.racing_open(**handle);
            nearest = [nearest, found].into_iter().flatten().min();
            found.is_some()
        });
        let raced: Vec<Opened> = raced.copied().collect();
        let (distance, one, other) = nearest?;
        diagnosis(Cause::Race, &raced, |count| {
            format!(
                "{count} opened while another thread of the process opened a handle to the same object, and only \
                 that one was closed (threads {one} and {other}, {} us apart): look for get-or-create \
                 without a lock",
                distance / 1000
            )
        })
    }

    /// How far the nearest open of the same object by another thread of the process, whose handle the
    /// program closed, is from that of a handle, nanoseconds, and both threads.
    fn racing_open(&self, handle: Opened) -> Option<(i64, u32, u32)> {
        let columns = self.columns;
        let (own, window_ns) = (handle.opened.row(), self.race_window_ns?);
        if columns.kind(own)? != EventKind::HandleCreate {
            return None;
        }
        let (owner, tid) = (columns.owner(own)?, columns.tid(own)?);
        let events = self.file.objects.events(handle.object);
        let time = columns.time_ns(own)?;
        let distance = |event: &usize| {
            Some(columns.time_ns(*event)?.abs_diff(time)).and_then(|ns| i64::try_from(ns).ok())
        };
        let is_near = |event: &usize| distance(event).is_some_and(|ns| ns <= window_ns);
        // That the program closed the other one shows that it means to have one.
        let is_racing_open = |event: &usize| {
            columns.kind(*event) == Some(EventKind::HandleCreate)
                && columns.owner(*event) == Some(owner)
                && columns.tid(*event).is_some_and(|other| other != tid)
                && columns.closed_by_program(*event).is_some()
        };
        let before = (events.start..own).rev().take_while(is_near).find(is_racing_open);
        let after = (own + 1..events.end).take_while(is_near).find(is_racing_open);
        let nearest = before.into_iter().chain(after);
        nearest.filter_map(|event| Some((distance(&event)?, tid, columns.tid(event)?))).min()
    }

    fn duplicates(&self, lost: &[Opened]) -> Option<Diagnosis> {
        let is_given = |handle: &&Opened| {
            let event = handle.opened.row();
            self.columns.kind(event) == Some(EventKind::HandleDuplicate)
                && self.columns.inherited_by(event).is_none()
        };
        let given: Vec<Opened> = lost.iter().filter(is_given).copied().collect();
        let event = given.first()?.opened.row();
        let (source, caller) = self.columns.duplicated(event);
        let (source, caller) = (self.process(source), self.process(caller));
        diagnosis(Cause::DuplicateNotClosed, &given, |count| {
            format!("{count} duplicated into the process from {source} by {caller}, and not closed")
        })
    }

    fn inherited(&self, lost: &[Opened]) -> Option<Diagnosis> {
        let is_inherited =
            |handle: &&Opened| self.columns.inherited_by(handle.opened.row()).is_some();
        let inherited: Vec<Opened> = lost.iter().filter(is_inherited).copied().collect();
        let parent = self.process(self.columns.process(inherited.first()?.opened.row()));
        diagnosis(Cause::InheritedNotClosed, &inherited, |count| {
            format!("{count} inherited from {parent}, and not closed")
        })
    }

    fn targets(&self, lost: &[Opened]) -> Option<Diagnosis> {
        let ended = |handle: &&Opened| {
            let opened = handle.opened.row();
            let Some(opened_ns) = self.columns.time_ns(opened) else { return false };
            let end = self.target_end(handle.object, opened, opened_ns);
            let closed = handle.closed().and_then(|event| self.columns.time_ns(event.row()));
            end.is_some_and(|end| closed.is_none_or(|closed| end < closed))
        };
        let kept: Vec<Opened> = lost.iter().filter(ended).copied().collect();
        let object = kept.first()?.object;
        let what = self.file.types.get(self.file.objects.type_id(object)).to_lowercase();
        diagnosis(Cause::ThreadOrProcessHandle, &kept, |count| {
            format!("{count} stayed open after the end of the {what} that they refer to")
        })
    }

    /// When the process or thread ended that a handle is of.
    fn target_end(&self, object: ObjectIdx, opened: usize, opened_ns: i64) -> Option<i64> {
        match self.file.types.get(self.file.objects.type_id(object)) {
            PROCESS => self.targets.process_end(object, opened_ns),
            THREAD => self.targets.thread_end(opened_ns, self.columns.tid(opened)?),
            _ => None,
        }
    }

    fn views(&self, lost: &[Opened]) -> Option<Diagnosis> {
        let is_view =
            |handle: &&Opened| self.columns.kind(handle.opened.row()) == Some(EventKind::Map);
        let views: Vec<Opened> = lost.iter().filter(is_view).copied().collect();
        diagnosis(Cause::ViewNotUnmapped, &views, |count| {
            let views = if views.len() == 1 { "view of a file" } else { "views of files" };
            format!("{count} {views} never unmapped")
        })
    }

    /// Whether the program closes any handle of the group.
    fn closes(&self, handles: &[Opened], lost: &[Opened]) -> Option<Diagnosis> {
        let closed =
            handles.iter().filter_map(|handle| self.columns.closed_by_program(handle.opened.row()));
        let mut stacks: HashMap<StackIdx, u64> = HashMap::new();
        let mut closes = 0_u64;
        for event in closed {
            closes += 1;
            if let Some(stack) = self.columns.stack(event) {
                *stacks.entry(stack).or_default() += 1;
            }
        }
        if closes == 0 {
            return diagnosis(Cause::NeverClosed, lost, |_| {
                "the program closes none of the handles that this stack opens".to_owned()
            });
        }
        let all = HumanCount(handles.len() as u64);
        let mut stacks: Vec<_> = stacks.into_iter().collect();
        stacks.sort_by_key(|(stack, count)| (std::cmp::Reverse(*count), *stack));
        let stacks = stacks.into_iter().take(CLOSE_STACKS).map(|(stack, _)| stack).collect();
        let own = diagnosis(Cause::SometimesClosed, lost, |count| {
            let closes = HumanCount(closes);
            format!(
                "the program closes {closes} of {all} that this stack opens, and not the other {count}: look at its \
                 error paths"
            )
        })?;
        Some(Diagnosis { stacks, ..own })
    }

    fn exits(&self, lost: &[Opened]) -> Option<Diagnosis> {
        let swept: Vec<Opened> =
            lost.iter().filter(|handle| handle.closed().is_some()).copied().collect();
        diagnosis(Cause::ExitOnly, &swept, |count| {
            format!("{count} closed by the end of the process, and by nothing before")
        })
    }

    fn reuse(&self, lost: &[Opened]) -> Option<Diagnosis> {
        let mut reused = Vec::new();
        let mut object = None;
        let mut closed: HashMap<(ProcessIdx, u64), usize> = HashMap::new();
        for handle in lost {
            // Those of an object stand one after the other.
            if object != Some(handle.object) {
                object = Some(handle.object);
                closed = self.first_closes(handle.object);
            }
            let opened = handle.opened.row();
            let value = self.columns.owner(opened).zip(self.columns.handle(opened));
            let before = value.and_then(|value| closed.get(&value));
            reused.extend(before.is_some_and(|close| *close < opened).then_some(*handle));
        }
        diagnosis(Cause::HandleReuse, &reused, |count| {
            format!(
                "{count} with a value that was open to the same object before, and closed: matching closes \
                 by value alone counts them as closed"
            )
        })
    }

    /// The first event by which the program closed a handle, by its owner and value.
    fn first_closes(&self, object: ObjectIdx) -> HashMap<(ProcessIdx, u64), usize> {
        let mut closes = HashMap::new();
        for event in self.file.objects.events(object).filter(|&at| self.columns.is_opening(at)) {
            let value = self.columns.owner(event).zip(self.columns.handle(event));
            if let (Some(value), Some(close)) = (value, self.columns.closed_by_program(event)) {
                closes
                    .entry(value)
                    .and_modify(|known: &mut usize| *known = close.min(*known))
                    .or_insert(close);
            }
        }
        closes
    }

    fn process(&self, process: Option<ProcessIdx>) -> String {
        match process {
            Some(_) => self.file.processes.known_or_invalid(process).shown_label(false),
            None => "an unknown process".to_owned(),
        }
    }
}

/// A diagnosis about some lost handles; `None` when there are none.
fn diagnosis(
    cause: Cause,
    handles: &[Opened],
    text: impl FnOnce(HumanCount) -> String,
) -> Option<Diagnosis> {
    if handles.is_empty() {
        return None;
    }
    let mut ids = BTreeSet::new();
    for handle in handles {
        ids.insert(u64::from(handle.object.0) + 1);
        if ids.len() == EXAMPLES {
            break;
        }
    }
    Some(Diagnosis {
        cause,
        count: handles.len() as u64,
        object_ids: ids.into_iter().collect(),
        text: text(HumanCount(handles.len() as u64)),
        stacks: Vec::new(),
    })
}
