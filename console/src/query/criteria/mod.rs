//! What is asked: plain values, whatever command or format they come from.

mod groups;
mod of_handles;
mod resources;

pub use self::groups::{Figure, GroupCriteria};
pub use self::resources::ResourceCriteria;
pub(crate) use self::resources::ResourceOptions;

use serde::Serialize;

use super::criterion::{Criteria, Criterion, Given, criteria, is_given};
pub(crate) use super::groups::StackTrims;
use super::tables::ProcessInfo;
use crate::{
    filter::{Filter, ProcessFilter},
    settings::StackDisplayArgs,
    values::{CountRange, SuspectId, TimeRange, TopN},
};

/// Which objects and events `.dump ObjectRef` is about, and what is asked of them. A criterion that
/// was not given is `None` or `false`, and says nothing about the objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectCriteria {
    /// The process that created the object.
    pub creator: ProcessCriteria,
    /// `-RelatedProcess`: any process that had to do with the object.
    pub related_process: Option<ProcessFilter>,
    /// `-ObjectName`: the object's name, empty when it has none.
    pub object_name: Option<Filter>,
    /// `-Type`: the object's type name.
    pub object_type: Option<Filter>,
    /// `-Handle`: handle values, written `0xC0`.
    pub handle: Option<Filter>,
    /// `-Object`: the object's kernel address, written `0xFFFF810008BE66F0`.
    pub object: Option<Filter>,
    /// `-Suspect`: only what a suspect opened.
    pub suspect: Option<SuspectId>,
    /// `-Leak`: only handles that were opened and not closed, and views not unmapped.
    pub leak: bool,
    /// `-LeakAtExit`: only handles that nothing but the end of their process closed.
    pub leak_at_exit: bool,
    /// Whether and how stacks are printed, instead of their numbers.
    pub stacks: StackDisplayArgs,
    /// `-CreateStack`: the stack that created the object.
    pub create_stack: Option<Filter>,
    /// `-DestroyStack`: the stack of the delete, last unmap or last close.
    pub destroy_stack: Option<Filter>,
    /// `-StackFilter`: keep only events with a matching stack.
    pub stack_filter: Option<Filter>,
    /// `-MinMaxTime`: keep only events in this time since session start.
    pub time: Option<TimeRange>,
    /// `-MinMaxDuration`: the object's lifetime; never closed counts as 9999 s.
    pub duration: Option<TimeRange>,
    /// `-MinMaxId`: object ids.
    pub ids: Option<CountRange>,
    /// `-Map`: objects only or mappings only.
    pub map: Option<MapMode>,
    /// `-PtrInMap`: mappings whose view holds this address.
    pub ptr_in_map: Option<u64>,
    /// `-ViewBase`: where the view of a mapping starts, written `0x1B544000000`.
    pub view_base: Option<Filter>,
    /// `-MinMaxMapSize`: bytes of the view of a mapping.
    pub map_size: Option<CountRange>,
    /// `-MultiProcess`: objects used by more than one process.
    pub multi_process: bool,
    /// `-Overlapped`: objects with two handles open at once.
    pub overlapped: bool,
    /// `-Inherit`: objects with an inherited handle.
    pub inherit: bool,
    /// `-ShowRef`: print reference count changes too.
    pub show_ref: bool,
    /// `-ShowTotal`: tables or no totals instead of objects and totals.
    pub show_total: Option<ShowTotal>,
    /// `-TopN`: rows of the `-ShowTotal` tables, or objects of each file.
    pub top: Option<TopN>,
    /// `-SortBy` beside `-ShowTotal`: the order of the rows of its tables.
    pub order: CountOrder,
    /// `-PlainProcessNames`: processes go by the names of their executables.
    pub plain_process_names: bool,
    /// Processes go by the names of their executables and modules have their addresses, however they are displayed.
    pub with_identities: bool,
    /// `-GroupBy` and what belongs to it.
    pub groups: GroupCriteria,
}

impl ObjectCriteria {
    /// Narrows a suspect that is asked for to what it lost, which is what it counts, unless it is said which part.
    pub(crate) fn lost_by_suspect(mut self) -> Self {
        let of_suspect = self.suspect.is_some() && !self.leak && !self.leak_at_exit;
        self.leak |= of_suspect;
        self.leak_at_exit |= of_suspect;
        self
    }

    /// Whether the frames of stacks are needed.
    pub(in crate::query) fn needs_frames(&self) -> bool {
        let filters = [&self.stack_filter, &self.create_stack, &self.destroy_stack];
        self.groups.needs_stacks() != (false, false)
            || self.stacks.show
            || self.suspect.is_some()
            || filters.into_iter().any(Option::is_some)
    }
}

criteria! {
    ObjectCriteria(self) {
        MinMaxId => ids,
        Map => map,
        MultiProcess => multi_process,
        ObjectName => object_name: Filter,
        Type => object_type: Filter,
        Object => object: Filter,
        Suspect => suspect: SuspectId,
        leaks,
        MinMaxTime => time,
        Process => creator.name: ProcessFilter,
        CmdLine => creator.command_line: Filter,
        NewProcess => creator.new_process,
        PtrInMap => ptr_in_map,
        ViewBase => view_base: Filter,
        MinMaxMapSize => map_size,
        Inherit => inherit,
        RelatedProcess => related_process: ProcessFilter,
        Handle => handle: Filter,
        MinMaxDuration => duration,
        Overlapped => overlapped,
        StackFilter => stack_filter: Filter,
        CreateStack => create_stack: Filter,
        DestroyStack => destroy_stack: Filter,
    }
}

#[cfg(test)]
impl Criterion {
    /// Those that are given.
    pub(crate) fn all_of(args: &ObjectCriteria) -> Vec<Criterion> {
        args.given().into_iter().map(|given| given.criterion).collect()
    }
}

/// Which processes are meant: those that pass all that was given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessCriteria {
    /// `-ProcessName`: name and pid.
    pub name: Option<ProcessFilter>,
    /// `-CmdLine`: the command line.
    pub command_line: Option<Filter>,
    /// `-NewProcess`: whether it started or ended in the trace.
    pub new_process: Option<NewProcess>,
}

impl ProcessCriteria {
    /// Whether every process is meant.
    pub fn is_empty(&self) -> bool {
        self.name.is_none() && self.command_line.is_none() && self.new_process.is_none()
    }

    /// The same without what is named behind a criterion.
    pub(in crate::query) fn up_to(&self, criterion: Criterion) -> Self {
        let command_line = self.command_line.as_ref().filter(|_| criterion >= Criterion::CmdLine);
        Self {
            name: self.name.clone(),
            command_line: command_line.cloned(),
            new_process: self.new_process.filter(|_| criterion >= Criterion::NewProcess),
        }
    }

    /// Whether a process is meant, `plain` by the name of its executable alone.
    pub fn mean(&self, process: &ProcessInfo, plain: bool) -> bool {
        self.name.as_ref().is_none_or(|filter| process.is_meant_by(filter, plain))
            && self.command_line.as_ref().is_none_or(|f| f.matches(&process.command_line))
            && self.new_process.is_none_or(|new| new.means(process))
    }
}

/// What `.dump Process` is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessListCriteria {
    pub processes: ProcessCriteria,
    /// `-Parent`: only children of these processes.
    pub parent: Option<ProcessFilter>,
    /// The order of the processes of a trace.
    pub order: ProcessOrder,
}

criteria! {
    ProcessListCriteria(self) {
        Process => processes.name: ProcessFilter,
        Parent => parent: ProcessFilter,
        CmdLine => processes.command_line: Filter,
        NewProcess => processes.new_process,
    }
}

/// `-SortBy` of `.dump Process`, when it names no column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessOrder {
    /// By pid, then by start.
    #[default]
    Pid,
    /// By start; those that were there before come first.
    Start,
    /// By end; those that outlived the trace come first.
    End,
    /// Children after their parents.
    Tree,
}

/// What `.dump Module` and `.dump Version` are about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModuleCriteria {
    /// Only modules that these processes loaded, and only those loads.
    pub loaders: ProcessCriteria,
    /// `-Dll`: names of modules.
    pub name: Option<Filter>,
    /// `-VersionFilter`: path, version, product, description or company.
    pub version: Option<Filter>,
}

criteria! {
    ModuleCriteria(self) {
        Process => loaders.name: ProcessFilter,
        CmdLine => loaders.command_line: Filter,
        NewProcess => loaders.new_process,
        Dll => name: Filter,
        VersionFilter => version: Filter,
    }
}

/// What `.dump Events` is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventCriteria {
    /// `-Provider`: name or GUID.
    pub provider: Option<Filter>,
    /// `-Event`: name, id or kind.
    pub event: Option<Filter>,
    /// `-ProcessName`: events of these processes.
    pub process: Option<ProcessFilter>,
    /// `-MinMaxTime`: events in this time since session start.
    pub time: Option<TimeRange>,
    /// `-ShowFields`: single events with their fields.
    pub fields: bool,
    /// `-Stack`: single events with their stacks.
    pub stacks: StackDisplayArgs,
    /// `-TopN`, where the order is that of time.
    pub top: Option<TopN>,
}

criteria! {
    EventCriteria(self) {
        Provider => provider: Filter,
        Event => event: Filter,
        Process => process: ProcessFilter,
        MinMaxTime => time,
    }
}

/// What `.why` is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WhyCriteria {
    /// Which handles, and how stacks and processes are shown.
    pub handles: ObjectCriteria,
    /// `-ProcessName`: handles that these processes own.
    pub process: Option<ProcessFilter>,
    /// `-RaceWindow`: how far apart the opens of a race are at most, nanoseconds.
    pub race_window_ns: Option<i64>,
    /// `-ByProcess`: suspects are groups of one process, not of a program.
    pub by_process: bool,
    /// `-All`: the text has the suspects, too, that are small beside the worst.
    pub all: bool,
    /// How many suspects of each trace are shown, those that rank first; further ones have no names of frames. All unless
    /// it is said.
    pub shown: Option<usize>,
}

impl WhyCriteria {
    /// Whether processes go by the names of their executables.
    pub(in crate::query) fn is_plain(&self) -> bool {
        self.handles.plain_process_names || self.handles.with_identities
    }
}

/// What `.diff` is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiffCriteria {
    /// `-ProcessName`: handles that these processes own.
    pub process: Option<ProcessFilter>,
    /// `-Type`: handles of objects of such a type; of allocations `-Kind`.
    pub object_type: Option<Filter>,
    /// Between points: also groups of which nothing but what was open at the first point is open at the
    /// second.
    pub all_open: bool,
    /// Whether and how stacks are printed.
    pub stacks: StackDisplayArgs,
    /// Processes go by the names of their executables and modules have their addresses, however they are displayed.
    pub with_identities: bool,
}

/// What `.dump Stack` is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StackCriteria {
    /// `-ProcessName`: stacks of these processes.
    pub process: Option<ProcessFilter>,
    /// `-Id`: stacks of these numbers; of one when there is no maximum.
    pub ids: Option<CountRange>,
    /// `-StackFilter`: stacks with a matching frame.
    pub stack_filter: Option<Filter>,
    /// `-MinMaxTime`: stacks of events in this time since session start.
    pub time: Option<TimeRange>,
    /// `-TopN`: only the most frequent stacks.
    pub top: Option<TopN>,
    /// Whether and how the frames are printed.
    pub stacks: StackDisplayArgs,
    /// All frames have names, and modules addresses, whether frames are displayed or not.
    pub with_identities: bool,
}

criteria! {
    StackCriteria(self) {
        MinMaxTime => time,
        Process => process: ProcessFilter,
        Id => ids,
        StackFilter => stack_filter: Filter,
    }

    fn bare(self) -> Self {
        // Names of frames that are not shown are not looked up.
        let top = Some(TopN { take: 0, skip: 0 });
        Self { top, stacks: StackDisplayArgs::default(), with_identities: false, ..self }
    }
}

/// `-Map`: which kind of object is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapMode {
    /// `0`: objects that have handles or references.
    Objects,
    /// `1`: file mappings.
    Mappings,
}

/// `-NewProcess`: processes by their lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewProcess {
    /// `-2`: ended, but did not start in the trace.
    EndedOnly,
    /// `-1`: ended in the trace.
    Ended,
    /// `0`: neither started nor ended in the trace.
    Permanent,
    /// `1`: started in the trace.
    Started,
    /// `2`: started, but did not end in the trace.
    StartedOnly,
}

impl NewProcess {
    /// Whether a process is meant.
    pub(in crate::query) fn means(self, process: &ProcessInfo) -> bool {
        let (has_started, has_ended) = (process.start_ns.is_some(), process.end_ns.is_some());
        match self {
            NewProcess::EndedOnly => has_ended && !has_started,
            NewProcess::Ended => has_ended,
            NewProcess::Permanent => !has_started && !has_ended,
            NewProcess::Started => has_started,
            NewProcess::StartedOnly => has_started && !has_ended,
        }
    }
}

/// `-ShowTotal`: what is printed beside or instead of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShowTotal {
    /// No objects, but handles by object type.
    Total,
    /// No objects, but handles by process.
    Process,
    /// No objects, but the totals of each file.
    File,
    /// Objects without a totals line.
    None,
}

/// The order of rows of counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountOrder {
    /// As ETWAnalyzer prints them, so that the largest stands where the next command is typed.
    #[default]
    LargestLast,
    LargestFirst,
    /// From a to z.
    Name,
}

impl CountOrder {
    /// The order that `-SortBy` asks for; `None` when it is neither that of the handles nor
    /// that of the `names`.
    pub(crate) fn by(column: &str, names: &str) -> Option<Self> {
        let columns = [("Handles", Self::LargestFirst), (names, Self::Name)];
        let found = columns.into_iter().find(|(title, _)| column.eq_ignore_ascii_case(title));
        found.map(|(_, order)| order)
    }
}
