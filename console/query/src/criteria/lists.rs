//! Criteria of lists, `.why` and `.diff`.

use super::acquisitions::AcquisitionCriteria;
use super::processes::ProcessCriteria;
use crate::acquired::SuspectScope;
use crate::criterion::{Criteria, Criterion, GivenCriterion, ValueSyntax, criteria, is_given};
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::settings::{Ignoring, StackDisplayArgs};
use handlescope_session::values::{CountRange, SuspectId, TimeRange, TopN};

/// Criteria of `.dump Module` and `.dump Version`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModuleCriteria {
    /// Processes that loaded a module; only their loads count.
    pub loaders: ProcessCriteria,
    /// `-Dll`: names of modules.
    pub name: Option<Filter>,
    /// `-VersionFilter`: path, version, product, description or company.
    pub version: Option<Filter>,
}

criteria! {
    ModuleCriteria(self) {
        processes => loaders;
        Dll => name: Filter;
        VersionFilter => version: Filter as Line;
    }
}

/// Criteria of `.dump Events`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventCriteria {
    /// `-Provider`: name or GUID.
    pub provider: Option<Filter>,
    /// `-Event`: name, id or kind.
    pub event: Option<Filter>,
    /// Processes that logged the events.
    pub processes: ProcessCriteria,
    /// `-MinMaxTime`: events in this time since session start.
    pub time: Option<TimeRange>,
    /// `-ShowFields`: single events with their fields.
    pub fields: bool,
    /// `-Stack`: single events with their stacks.
    pub stacks: StackDisplayArgs,
    /// `-TopN`, if sorted by time.
    pub top: Option<TopN>,
}

criteria! {
    EventCriteria(self) {
        Provider => provider: Filter;
        Event => event: Filter;
        processes => processes;
        MinMaxTime => time;
    }
}

/// A suspect that is requested by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum PickedSuspect {
    /// Its rank among the suspects of a trace, from 1.
    Rank(usize),
    Id(SuspectId),
}

/// Criteria of `.why`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WhyCriteria {
    /// Criteria that select handles, `-Since` as a time range, and options for showing stacks and processes.
    pub handles: AcquisitionCriteria,
    /// Processes that own the handles and allocations.
    pub owners: ProcessCriteria,
    /// `-RaceWindow`: maximum time between the opens of a race, nanoseconds.
    pub race_window_ns: Option<i64>,
    /// `-MinLeaked`: only suspects that leaked at least this many handles or allocations.
    pub min_leaked: Option<u64>,
    /// `-ByProcess` and `-ByStack`: what counts as one suspect.
    pub scope: SuspectScope,
    /// `.why 3` and `.why ID`: only this suspect, with everything there is to say about it.
    pub picked: Option<PickedSuspect>,
    /// `-All`: the text includes suspects that are small compared with the worst.
    pub all: bool,
    /// Number of suspects shown for each trace, by rank; further ones get no frame names. All by default.
    pub shown: Option<usize>,
    /// Whether the answer has all groups of handles, not only leaking ones.
    pub with_every_group: bool,
    /// Known leaks to leave out.
    pub ignoring: Ignoring,
}

impl WhyCriteria {
    /// Returns the criteria that select allocations, if any are meant.
    pub fn allocations(&self) -> Option<AcquisitionCriteria> {
        let owners = if self.owners.is_empty() { &self.handles.creator } else { &self.owners };
        let criteria = AcquisitionCriteria { creator: owners.clone(), ..self.handles.clone() };
        criteria.select_allocations().then_some(criteria)
    }

    /// Whether a suspect is requested by rank or id.
    pub fn names_suspect(&self) -> bool {
        self.picked.is_some() || self.handles.suspect.is_some()
    }
}

/// Criteria of `.diff`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiffCriteria {
    /// Processes that own the handles and allocations.
    pub owners: ProcessCriteria,
    /// `-Type`: handles to objects of matching types; for allocations, `-Kind`.
    pub object_type: Option<Filter>,
    /// `-Suspect`: only groups of this suspect.
    pub suspect: Option<SuspectId>,
    /// Known leaks to leave out of a comparison of two traces.
    pub ignoring: Ignoring,
    /// Whether to list, between points, also groups in which everything open at the second point was already open at
    /// the first.
    pub all_open: bool,
    /// Whether and how stacks are printed.
    pub stacks: StackDisplayArgs,
    /// Processes get executable names and modules their addresses, however they are displayed.
    pub with_identities: bool,
}

/// Criteria of `.dump Stack`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StackCriteria {
    /// Processes in which the stacks were recorded.
    pub processes: ProcessCriteria,
    /// `-Id`: stacks with these numbers; just one if there is no maximum.
    pub ids: Option<CountRange>,
    /// `-StackFilter`: stacks with a matching frame.
    pub stack_filter: Option<Filter>,
    /// `-MinMaxTime`: stacks of events in this time since session start.
    pub time: Option<TimeRange>,
    /// `-TopN`: only the most frequent stacks.
    pub top: Option<TopN>,
    /// Whether and how the frames are printed.
    pub stacks: StackDisplayArgs,
    /// All frames get names and modules addresses, whether frames are displayed or not.
    pub with_identities: bool,
}

criteria! {
    StackCriteria(self) {
        MinMaxTime => time;
        processes => processes;
        Id => ids;
        StackFilter => stack_filter: Filter as Line;
    }

    fn bare(self) -> Self {
        // Without rows to show, no frame names are looked up.
        let top = Some(TopN { take: 0, skip: 0 });
        Self { top, stacks: StackDisplayArgs::default(), with_identities: false, ..self }
    }
}
