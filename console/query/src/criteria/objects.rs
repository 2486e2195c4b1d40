//! Criteria that select objects, and what each does.

use serde::Serialize;

use super::groups::GroupCriteria;
use super::processes::ProcessCriteria;
use crate::criterion::{
    Criteria, Criterion, GivenCriterion, ValueSyntax, criteria, criterion, is_given,
};
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::values::{CountRange, SuspectId, TimeRange, TopN};

/// Criteria that select objects and events for `.dump ObjectRef`, and options for the answer. A criterion that was not
/// given is `None` or `false` and does not restrict anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectCriteria {
    /// The process that created the object.
    pub creator: ProcessCriteria,
    /// `-RelatedProcess`: any process involved with the object.
    pub related_process: Option<ProcessFilter>,
    /// `-ObjectName`: the object's name; empty if it has none.
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
    /// `-LeakAtExit`: only handles that nothing but process exit closed.
    pub leak_at_exit: bool,
    /// Whether and how stacks are printed instead of their numbers.
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
    /// `-Id`: object ids, one by one.
    pub id: Option<Filter>,
    /// `-MinMaxId`: object ids.
    pub ids: Option<CountRange>,
    /// `-Map`: objects only or mappings only.
    pub map: Option<MapMode>,
    /// `-PtrInMap`: mappings with a view that contains this address.
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
    /// `-ShowRef`: also print reference count changes.
    pub show_ref: bool,
    /// `-ShowTarget`: print the process or thread that handles refer to.
    pub show_target: bool,
    /// `-ShowTotal`: tables or no totals instead of objects and totals.
    pub show_total: Option<ShowTotal>,
    /// `-TopN`: rows of the `-ShowTotal` tables, or objects of each file.
    pub top: Option<TopN>,
    /// `-SortBy` with `-ShowTotal`: the order of the rows in its tables.
    pub order: CountOrder,
    /// `-PlainProcessNames`: processes are shown by executable name.
    pub plain_process_names: bool,
    /// Processes get executable names and modules their addresses, however they are displayed.
    pub with_identities: bool,
    /// Whether totals count all handles of the suspect, although only the leaked ones are listed.
    pub sums_suspect: bool,
    /// `-GroupBy` and its options.
    pub groups: GroupCriteria,
}

impl ObjectCriteria {
    /// `-Suspect` alone means the suspect's leaks, because these are what it counts; `-Leak` or `-LeakAtExit` override
    /// that.
    pub fn narrowed_to_leaks_of_suspect(mut self) -> Self {
        let is_narrowed = self.suspect.is_some() && !self.leak && !self.leak_at_exit;
        self.sums_suspect = is_narrowed;
        self.leak |= is_narrowed;
        self.leak_at_exit |= is_narrowed;
        self
    }

    /// Whether the frames of stacks are needed.
    pub fn needs_frames(&self) -> bool {
        let filters = [&self.stack_filter, &self.create_stack, &self.destroy_stack];
        self.groups.needs_stacks() != (false, false)
            || self.stacks.show
            || self.suspect.is_some()
            || filters.into_iter().any(Option::is_some)
    }
}

/// What a criterion does to objects; filters apply it. If there is a filter on event stacks, the effects listed before
/// it are applied first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectEffect {
    /// Tests the objects, independent of their events.
    Objects(ObjectTest),
    /// Keeps only mappings and tests their views.
    Views(ViewTest),
    /// Keeps what leaks.
    Leaks,
    /// Removes events by their own properties.
    Events(EventTest),
    /// Removes events by stack; symbols may have to be downloaded for that.
    Stacks,
    /// Tests the remaining events.
    LeftEvents(LeftEventsTest),
}

/// A test of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectTest {
    /// Its id as text.
    Id,
    /// Its id as a number in a range.
    IdRange,
    /// Nothing: the mode is in [`ObjectCriteria::map_mode`], and other criteria may imply it.
    Map,
    MultiProcess,
    Name,
    Type,
    Pointer,
    Lifetime,
}

/// A test of the view of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewTest {
    /// An address in it.
    Pointer,
    Base,
    Size,
}

/// A test of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTest {
    Suspect,
    Time,
}

/// A test of the remaining events of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftEventsTest {
    /// The name of the process that created the object.
    Creator,
    /// Its name and command line.
    CreatorCommandLine,
    /// The same, and whether it started or ended in the trace.
    NewCreator,
    Inherited,
    RelatedProcess,
    Handle,
    Overlapped,
    CreateStack,
    DestroyStack,
}

impl ObjectEffect {
    /// Returns where it comes relative to a filter on event stacks.
    pub fn rank_by_stacks(self) -> u8 {
        match self {
            Self::Objects(_) | Self::Views(_) | Self::Leaks | Self::Events(_) => 0,
            Self::Stacks => 1,
            Self::LeftEvents(_) => 2,
        }
    }
}

criteria! {
    ObjectCriteria(self): ObjectEffect {
        Id => id: Filter as Number, ObjectEffect::Objects(ObjectTest::Id);
        MinMaxId => ids, ObjectEffect::Objects(ObjectTest::IdRange);
        Map => map, ObjectEffect::Objects(ObjectTest::Map);
        MultiProcess => multi_process, ObjectEffect::Objects(ObjectTest::MultiProcess);
        ObjectName => object_name: Filter, ObjectEffect::Objects(ObjectTest::Name);
        Type => object_type: Filter, ObjectEffect::Objects(ObjectTest::Type);
        Object => object: Filter as Number, ObjectEffect::Objects(ObjectTest::Pointer);
        Suspect => suspect: SuspectId, ObjectEffect::Events(EventTest::Suspect);
        leaks, ObjectEffect::Leaks;
        MinMaxTime => time, ObjectEffect::Events(EventTest::Time);
        Process => creator.name: ProcessFilter, ObjectEffect::LeftEvents(LeftEventsTest::Creator);
        CmdLine => creator.command_line: Filter as Line,
            ObjectEffect::LeftEvents(LeftEventsTest::CreatorCommandLine);
        NewProcess => creator.new_process, ObjectEffect::LeftEvents(LeftEventsTest::NewCreator);
        PtrInMap => ptr_in_map, ObjectEffect::Views(ViewTest::Pointer);
        ViewBase => view_base: Filter as Number, ObjectEffect::Views(ViewTest::Base);
        MinMaxMapSize => map_size, ObjectEffect::Views(ViewTest::Size);
        Inherit => inherit, ObjectEffect::LeftEvents(LeftEventsTest::Inherited);
        RelatedProcess => related_process: ProcessFilter,
            ObjectEffect::LeftEvents(LeftEventsTest::RelatedProcess);
        Handle => handle: Filter as Number, ObjectEffect::LeftEvents(LeftEventsTest::Handle);
        MinMaxDuration => duration, ObjectEffect::Objects(ObjectTest::Lifetime);
        Overlapped => overlapped, ObjectEffect::LeftEvents(LeftEventsTest::Overlapped);
        StackFilter => stack_filter: Filter as Line, ObjectEffect::Stacks;
        CreateStack => create_stack: Filter as Line, ObjectEffect::LeftEvents(LeftEventsTest::CreateStack);
        DestroyStack => destroy_stack: Filter as Line,
            ObjectEffect::LeftEvents(LeftEventsTest::DestroyStack);
    }
}

impl ObjectCriteria {
    /// Returns the effective map mode. Filters that make sense for one kind only imply that kind; filters on mappings
    /// win.
    pub fn map_mode(&self) -> Option<MapMode> {
        if self.given().iter().any(|given| matches!(given.effect, ObjectEffect::Views(_))) {
            Some(MapMode::Mappings)
        } else if self.handle.is_some() || self.object_name.is_some() {
            Some(MapMode::Objects)
        } else {
            self.map
        }
    }
}

#[cfg(any(test, feature = "fixture"))]
impl Criterion {
    /// Returns the given criteria.
    pub fn all_of(args: &ObjectCriteria) -> Vec<Criterion> {
        args.given().into_iter().map(|given| given.criterion).collect()
    }

    /// Returns the number of options that set a criterion.
    pub fn options_of_objects() -> usize {
        // Two options set the criterion on leaks.
        ObjectCriteria::default().all().len() + 1
    }
}

/// `-Map`: which kind of object to select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapMode {
    /// `0`: objects with handles or references.
    Objects,
    /// `1`: file mappings.
    Mappings,
}

/// `-ShowTotal`: what to print with or instead of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShowTotal {
    /// Handles by object type instead of objects.
    Total,
    /// Handles by process instead of objects.
    Process,
    /// The totals of each file instead of objects.
    File,
    /// Objects without a totals line.
    None,
}

/// The order of rows of counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountOrder {
    /// The order in which ETWAnalyzer prints them, with the largest next to where the next command is typed.
    #[default]
    LargestLast,
    LargestFirst,
    /// Names from a to z.
    Name,
}

impl CountOrder {
    /// Returns the order that `-SortBy` asks for; `None` if the column is neither the handles nor `names`.
    pub fn by(column: &str, names: &str) -> Option<Self> {
        let columns = [("Handles", Self::LargestFirst), (names, Self::Name)];
        let entry = columns.into_iter().find(|(title, _)| column.eq_ignore_ascii_case(title));
        entry.map(|(_, order)| order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_filters_win_over_handle_filters_which_win_over_the_option() {
        let filter = Filter::new("0xC*").ok();
        let mut args = ObjectCriteria { map: Some(MapMode::Mappings), ..Default::default() };
        assert_eq!(args.map_mode(), Some(MapMode::Mappings));
        args.handle = filter.clone();
        assert_eq!(args.map_mode(), Some(MapMode::Objects));
        args.view_base = filter;
        assert_eq!(args.map_mode(), Some(MapMode::Mappings));
        assert_eq!(ObjectCriteria::default().map_mode(), None);
    }
}
