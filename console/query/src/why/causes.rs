//! Causes of leaks: why a group of handles leaks, as far as its events prove it.

use std::collections::{BTreeSet, HashMap};

use handlescope_model::{AcquisitionIdx, EventKind, ObjectIdx, ProcessIdx, StackIdx};
use indicatif::HumanCount;

use super::columns::HandleEvents;
use super::columns::OwnerEnds;
use super::names::LeakedNames;
use super::suspect::LeakingGroup;
use super::target_groups::listed_targets;
use crate::context::FileContext;
use crate::counts::most_frequent;
use crate::targets::Targets;
use handlescope_session::values::{Size, joined};

/// Maximum number of objects named as examples in a diagnosis.
const EXAMPLES: usize = 5;

/// Leaked handles are compared with the lifetimes of the others only if at least this many others ended.
const MIN_ENDED: u64 = 5;

/// Stacks of closes, or of frees, that are named.
const CLOSE_STACKS: usize = 3;

/// The word of a race, which counts when suspects are ranked.
pub const RACE: &str = "race";

/// Causes that add facts to those of the others; the text always includes them.
const PID_REUSED: &str = "pid_reused";
const OTHER_SIDE_OPEN: &str = "other_side_open";
const FACTS_BESIDE: [&str; 2] = [PID_REUSED, OTHER_SIDE_OPEN];

/// A cause of the leaks of a `T`: a group of handles, a site of allocations, or heaps. Holds its word, which never
/// changes, its help text, and the function that proves it.
pub type Cause<T> = (&'static str, &'static str, fn(&T) -> Option<Diagnosis>);

/// Returns the diagnoses of the proved causes, in order.
pub fn proved<T>(causes: &[Cause<T>], subject: &T) -> Vec<Diagnosis> {
    let proved = causes.iter().filter_map(|(word, _, prove)| Some((*word, prove(subject)?)));
    proved.map(|(cause, diagnosis)| Diagnosis { cause, ..diagnosis }).collect()
}

/// Returns the words of some causes with their help texts.
pub fn words<T>(causes: &[Cause<T>]) -> Vec<(&'static str, &'static str)> {
    causes.iter().map(|(word, help, _)| (*word, *help)).collect()
}

/// Returns the causes of leaked handles with their help texts.
pub fn causes_of_handles() -> Vec<(&'static str, &'static str)> {
    words(&Causes::ALL)
}

/// A proved cause and what it explains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// Word for the cause, which never changes.
    pub cause: &'static str,
    /// Number of leaked handles or allocations it explains.
    pub count: u64,
    /// Number of their objects; 0 for allocations.
    pub objects: u64,
    /// Ids of some of these objects in ascending order.
    pub object_ids: Vec<u64>,
    /// The facts, as the predicate of a sentence or a clause.
    facts: String,
    /// How others of the group ended, such as "5 reallocated".
    others: String,
    /// Whether the facts only count how many others of the group code closes or frees.
    counts_ends: bool,
    /// Advice on where to look for the mistake.
    advice: Option<&'static str>,
    /// Stacks that close or free others of the group, most frequent first.
    pub stacks: Vec<StackIdx>,
}

impl Diagnosis {
    /// Makes a diagnosis that explains `count` of all `leaked`; `None` if `count` is 0. [`proved`] adds its word.
    pub fn new(count: u64, leaked: u64, facts: impl Into<String>) -> Option<Self> {
        let facts = match facts.into() {
            facts if count == leaked => facts,
            facts => format!("{} of {}: {facts}", HumanCount(count), HumanCount(leaked)),
        };
        (count > 0).then(|| Self { count, facts, ..Self::default() })
    }

    /// Makes a diagnosis that explains all that leak: code closes or frees `ended` others of the group. `verb` names how
    /// they end.
    ///
    /// It advises to check the error paths if most others end, at least five did, and that is beyond chance: some leaked
    /// ones are older than the lifetimes of the others explain. The estimate for that, by Kaplan and Meier
    /// (1958), says nothing about fewer than five; docs/statistics.md describes it.
    pub fn from_error_paths(
        &LeakingGroup { counts, is_beyond_chance, .. }: &LeakingGroup,
        ended: u64,
        verb: &str,
    ) -> Option<Self> {
        let (leaked, opened) = (counts.unreleased(), counts.opened);
        let is_rule = ended > opened / 2;
        let be = if ended == 1 { "is" } else { "are" };
        let facts = format!("{} of {} {be} {verb}", HumanCount(ended), HumanCount(opened));
        let advice =
            (is_rule && is_beyond_chance && ended >= MIN_ENDED).then_some("check the error paths");
        Some(Self { counts_ends: true, advice, ..Self::new(leaked, leaked, facts)? })
    }

    /// Whether it says more than how many others are closed or freed. Naming the code that does so counts as more.
    pub fn explains(&self) -> bool {
        !self.counts_ends || !self.stacks.is_empty()
    }

    /// Whether it adds to what other causes say.
    pub fn is_beside(&self) -> bool {
        FACTS_BESIDE.contains(&self.cause)
    }

    /// Adds how others of the group ended, such as "5 reallocated".
    pub fn with_others(self, others: String) -> Self {
        Self { others, ..self }
    }

    /// Adds the most frequent stacks that close or free others of the group.
    pub fn with_stacks(self, stacks: impl Iterator<Item = StackIdx>) -> Self {
        let stacks = most_frequent(stacks).into_iter().take(CLOSE_STACKS);
        Self { stacks: stacks.map(|(stack, _)| stack).collect(), ..self }
    }

    /// Returns a sentence in lower case without a full stop; `closers` are the functions that close or free others.
    pub fn sentence(&self, closers: &[String]) -> String {
        let mut sentence = self.facts.clone();
        if !closers.is_empty() {
            sentence.push_str(&format!(" by {}", joined(closers)));
        }
        if !self.others.is_empty() {
            sentence.push_str(&format!(" ({})", self.others));
        }
        if let Some(advice) = self.advice {
            sentence.push_str(&format!(": {advice}"));
        }
        sentence
    }
}

/// What was found out about a group besides how much of it leaks.
#[derive(Default)]
pub struct GroupFindings {
    pub diagnoses: Vec<Diagnosis>,
    /// The most frequent names of the leaked objects.
    pub names: LeakedNames,
    /// Number of different stacks with equal functions that opened the handles; `None` for allocations.
    pub create_stacks: Option<usize>,
    /// Bytes of the blocks that only grew, and the bytes they gain per minute.
    pub grown: Option<(i64, f64)>,
    /// Word for how those that are not leaked end, such as "closed".
    pub ended: String,
}

/// A group of handles with the data that its causes are found in.
pub struct Causes<'a> {
    pub group: &'a LeakingGroup,
    pub file: &'a FileContext<'a>,
    pub columns: &'a HandleEvents,
    pub targets: &'a Targets,
    pub ends: &'a OwnerEnds,
    /// Whether processes go by the names of their executables.
    pub is_plain: bool,
    /// The verb for the end of a handle or view.
    pub ended: &'static str,
    /// Maximum time between two opens that race, in nanoseconds; `None` if the trace has no clock or its clock steps
    /// are longer.
    pub race_window_ns: Option<i64>,
}

impl Causes<'_> {
    /// Causes of leaked handles in the order they are reported.
    pub const ALL: [Cause<Self>; 14] = [
        (RACE, "two threads opened one object within 1 ms; only one handle was closed", Self::race),
        (
            "opened_twice",
            "one thread opened one object twice and closed it once",
            Self::opened_twice,
        ),
        (
            "duplicate_not_closed",
            "another process or thread duplicated the handle into the process",
            Self::duplicates,
        ),
        (
            "inherited_not_closed",
            "the process inherited the handle from its parent",
            Self::inherited,
        ),
        ("thread_or_process_handle", "the thread or process it refers to has ended", Self::targets),
        ("view_not_unmapped", "a view of a file was never unmapped", Self::views),
        ("owner_crashed", "the process crashed with the handle open", Self::crashes),
        (
            "owner_ended",
            "the process ended, and the trace has no close of the handle",
            Self::owners_ended,
        ),
        (PID_REUSED, "the process ended, and its pid was reused", Self::pids_reused),
        (
            OTHER_SIDE_OPEN,
            "the handle was duplicated, and the other process still has it open",
            Self::other_sides_open,
        ),
        ("sometimes_closed", "other handles opened here are closed", Self::some_closed),
        ("never_closed", "nothing closes handles opened here", Self::none_closed),
        ("exit_only", "closed only by process exit", Self::exits),
        ("handle_reuse", "an earlier handle with this value was closed", Self::reuse),
    ];

    /// Returns the leaked handles whose opening event is selected.
    fn leaked_by(&self, is_selected: impl Fn(usize) -> bool) -> Vec<AcquisitionIdx> {
        self.leaked_where(|handle| is_selected(self.columns.opening(handle)))
    }

    /// Returns the selected leaked handles.
    pub fn leaked_where(
        &self,
        is_selected: impl Fn(AcquisitionIdx) -> bool,
    ) -> Vec<AcquisitionIdx> {
        self.group.leaked.iter().copied().filter(|handle| is_selected(*handle)).collect()
    }

    fn race(&self) -> Option<Diagnosis> {
        let leaked = self.group.leaked.iter();
        let (raced, opens): (Vec<AcquisitionIdx>, Vec<_>) =
            leaked.filter_map(|handle| Some((*handle, self.racing_open(*handle)?))).unzip();
        let (distance, first, second) = opens.into_iter().min()?;
        let at_least = if raced.len() > 1 { "as little as " } else { "" };
        let facts = format!(
            "race: two threads ({first}, {second}) opened the same object {at_least}{} µs apart and only one handle \
             was closed",
            HumanCount(distance / 1000)
        );
        let advice = Some("get-or-create without a lock");
        Some(Diagnosis { advice, ..self.diagnosis(&raced, facts)? })
    }

    /// Finds the nearest open of the same object by another thread of the process, if the program closed that handle.
    /// Returns the distance in nanoseconds and both threads.
    fn racing_open(&self, handle: AcquisitionIdx) -> Option<(u64, u32, u32)> {
        let (columns, opening) = (self.columns, self.columns.opening(handle));
        let (time, tid) = (columns.time_ns(opening)?, columns.tid(opening));
        let (mut before, mut after) = self.nearby_creates(handle)?;
        // The program closed the other handle, so it intends to have only one.
        let is_racing_open = |event: &usize| {
            columns.tid(*event) != tid && columns.closed_by_program(*event).is_some()
        };
        let nearest = [before.find(is_racing_open), after.find(is_racing_open)];
        nearest
            .into_iter()
            .flatten()
            .filter_map(|event| {
                Some((columns.time_ns(event)?.abs_diff(time), tid, columns.tid(event)))
            })
            .min()
    }

    /// Finds other creates of handles to the same object by the same owner within the race window. Returns those before
    /// and those after, nearest first; `None` if the handle was not created or its time is unknown.
    pub fn nearby_creates(
        &self,
        handle: AcquisitionIdx,
    ) -> Option<(impl Iterator<Item = usize>, impl Iterator<Item = usize>)> {
        let (columns, opening) = (self.columns, self.columns.opening(handle));
        let time = columns.time_ns(opening)?;
        let window_ns = u64::try_from(self.race_window_ns?).ok()?;
        let is_create = move |event: usize| columns.kind(event) == Some(EventKind::HandleCreate);
        if !is_create(opening) {
            return None;
        }
        let owner = columns.processes.owner(opening)?;
        let is_near = move |event: &usize| {
            columns.time_ns(*event).is_some_and(|ns| ns.abs_diff(time) <= window_ns)
        };
        let is_of_owner = move |event: &usize| {
            is_create(*event) && columns.processes.owner(*event) == Some(owner)
        };
        let (before, after) = columns.around(handle);
        let before = before.iter().rev().copied().take_while(is_near).filter(is_of_owner);
        let after = after.iter().copied().take_while(is_near).filter(is_of_owner);
        Some((before, after))
    }

    fn duplicates(&self) -> Option<Diagnosis> {
        let duplicated = self.leaked_by(|event| {
            self.columns.kind(event) == Some(EventKind::HandleDuplicate)
                && self.columns.processes.inherited_by(event).is_none()
        });
        let event = self.columns.opening(*duplicated.first()?);
        let (source, caller) = self.columns.duplicated(event);
        let owner = self.columns.processes.owner(event);
        let by = match caller {
            Some(_) if caller == owner => "the process itself".to_owned(),
            caller => self.process(caller),
        };
        let from = match source {
            Some(_) if source == owner => "within the process".to_owned(),
            Some(_) if source == caller => "into the process".to_owned(),
            source => format!("from {}", self.process(source)),
        };
        let facts = if source == owner && caller == owner {
            "duplicated within the process and never closed".to_owned()
        } else {
            format!("duplicated {from} by {by} and never closed")
        };
        self.diagnosis(&duplicated, facts)
    }

    fn inherited(&self) -> Option<Diagnosis> {
        let inherited =
            self.leaked_by(|event| self.columns.processes.inherited_by(event).is_some());
        let opening = self.columns.opening(*inherited.first()?);
        let parent = self.process(self.columns.processes.get(opening));
        self.diagnosis(&inherited, format!("inherited from {parent} and never closed"))
    }

    fn targets(&self) -> Option<Diagnosis> {
        let mut places = BTreeSet::new();
        let mut outlived = Vec::new();
        for handle in &self.group.leaked {
            let object = self.columns.object(*handle);
            let Some(target) = self.targets.of_object(object) else { continue };
            places.extend(self.targets.place(object));
            let closed =
                self.columns.closing(*handle).and_then(|event| self.columns.time_ns(event));
            let is_over = match (target.end.time_ns(), closed) {
                (Some(end), Some(closed)) => end < closed,
                _ => target.end.has_ended(),
            };
            outlived.extend(is_over.then_some(*handle));
        }
        let targets: Vec<_> = places.into_iter().filter_map(|it| self.targets.at(it)).collect();
        let kind = match targets.first()?.tid {
            None => "process",
            Some(_) => "thread",
        };
        let listed = listed_targets(&targets, self.is_plain);
        let facts = format!("still open after the target {kind} ended ({listed})");
        self.diagnosis(&outlived, facts)
    }

    fn views(&self) -> Option<Diagnosis> {
        let views = self.leaked_by(|event| self.columns.kind(event) == Some(EventKind::Map));
        let sizes =
            views.iter().filter_map(|view| self.columns.view_size(self.columns.opening(*view)));
        let bytes = sizes.fold(0_u64, u64::saturating_add);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let facts = match views.len() {
            1 => "1 view of a file is never unmapped".to_owned(),
            count => format!("{} views of files are never unmapped", HumanCount(count as u64)),
        };
        let facts = if bytes > 0 { format!("{facts} ({})", Size(bytes)) } else { facts };
        self.diagnosis(&views, facts)
    }

    /// Returns the events by which the program closes handles of the group.
    fn closes(&self) -> impl Iterator<Item = usize> {
        self.group
            .rows
            .iter()
            .map(|handle| self.columns.opening(*handle))
            .filter_map(|event| self.columns.closed_by_program(event))
    }

    fn some_closed(&self) -> Option<Diagnosis> {
        let stacks: Vec<Option<StackIdx>> =
            self.closes().map(|event| self.columns.stack(event)).collect();
        if stacks.is_empty() {
            return None;
        }
        let diagnosis = Diagnosis::from_error_paths(self.group, stacks.len() as u64, self.ended)?;
        let diagnosis = self.with_objects(diagnosis, &self.group.leaked);
        Some(diagnosis.with_stacks(stacks.into_iter().flatten()))
    }

    fn none_closed(&self) -> Option<Diagnosis> {
        let leaked: &[_] = if self.closes().next().is_none() { &self.group.leaked } else { &[] };
        let facts = match self.ended {
            "unmapped" => "nothing unmaps views mapped here",
            _ => "nothing closes handles opened here",
        };
        self.diagnosis(leaked, facts)
    }

    fn exits(&self) -> Option<Diagnosis> {
        let swept: Vec<AcquisitionIdx> =
            self.leaked_where(|handle| self.columns.closing(handle).is_some());
        self.diagnosis(&swept, "closed only by process exit")
    }

    fn reuse(&self) -> Option<Diagnosis> {
        let mut reused = Vec::new();
        let mut object = None;
        let mut closed: HashMap<(ProcessIdx, u64), u32> = HashMap::new();
        for handle in &self.group.leaked {
            // Handles of an object are adjacent.
            let of = self.columns.object(*handle);
            if object != Some(of) {
                object = Some(of);
                closed = self.first_closes(of);
            }
            let opened = self.columns.opening(*handle);
            let value = self.columns.processes.owner(opened).zip(self.columns.slot(opened));
            let before = value.and_then(|value| closed.get(&value));
            let opened = self.columns.place(opened);
            reused.extend(before.is_some_and(|close| *close < opened).then_some(*handle));
        }
        let facts = "an earlier handle with this value was closed, so a list of values alone would hide the leak";
        self.diagnosis(&reused, facts)
    }

    /// Returns, by owner and handle value, the place of the first event by which the program closed such a handle.
    fn first_closes(&self, object: ObjectIdx) -> HashMap<(ProcessIdx, u64), u32> {
        let mut closes = HashMap::new();
        let events = self.columns.of_object(object).iter().copied();
        for event in events.filter(|event| self.columns.is_opening(*event)) {
            let value = self.columns.processes.owner(event).zip(self.columns.slot(event));
            if let (Some(value), Some(close)) = (value, self.columns.closed_by_program(event)) {
                let close = self.columns.place(close);
                let first: &mut u32 = closes.entry(value).or_insert(close);
                *first = close.min(*first);
            }
        }
        closes
    }

    /// Makes a diagnosis that explains `handles`; `None` if there are none.
    pub fn diagnosis(
        &self,
        handles: &[AcquisitionIdx],
        facts: impl Into<String>,
    ) -> Option<Diagnosis> {
        let (count, leaked) = (handles.len() as u64, self.group.leaked.len() as u64);
        Some(self.with_objects(Diagnosis::new(count, leaked, facts)?, handles))
    }

    /// Adds the number of the objects of `handles` and the ids of some of them. Handles of one object must be adjacent.
    fn with_objects(&self, diagnosis: Diagnosis, handles: &[AcquisitionIdx]) -> Diagnosis {
        let object = |handle: &AcquisitionIdx| self.columns.object(*handle);
        let objects = handles.chunk_by(|one, next| object(one) == object(next)).count() as u64;
        let mut ids = BTreeSet::new();
        for handle in handles {
            ids.insert(u64::from(object(handle).0) + 1);
            if ids.len() == EXAMPLES {
                break;
            }
        }
        Diagnosis { objects, object_ids: ids.into_iter().collect(), ..diagnosis }
    }

    pub fn process(&self, process: Option<ProcessIdx>) -> String {
        match process {
            Some(_) => self.file.processes.known_or_invalid(process).shown_label(false),
            None => "an unknown process".to_owned(),
        }
    }
}
