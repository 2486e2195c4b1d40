//! Criteria that select objects with their handles and views, and allocations.

use serde::Serialize;

use super::columns::{GroupColumn, KeyKind};
use super::groups::GroupCriteria;
use super::processes::ProcessCriteria;
use crate::criterion::{Criteria, Criterion, GivenCriterion, ValueSyntax, criteria, is_given};
use crate::handle_counts::CountBy;
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::values::{CountRange, SuspectId, TimeRange, TopN};

/// Criteria that select objects and events for `.dump ObjectRef` or allocations, and options for the answer. A criterion
/// that was not given is `None` or `false` and does not restrict anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AcquisitionCriteria {
    /// The process that created the object, or owns the allocation.
    pub creator: ProcessCriteria,
    /// `-RelatedProcess`: any process involved with the object.
    pub related_process: Option<ProcessFilter>,
    /// `-ObjectName`: the object's name; empty if it has none.
    pub object_name: Option<Filter>,
    /// `-Type`: the object's type name, or the allocation's kind.
    pub object_type: Option<Filter>,
    /// `-Kind`: names of kinds of allocations, such as `heap`.
    pub kind: Option<Filter>,
    /// `-Allocator`: names of allocators.
    pub allocator: Option<Filter>,
    /// `-Handle`: handle values, written `0xC0`.
    pub handle: Option<Filter>,
    /// `-Object`: the object's kernel address, written `0xFFFF810008BE66F0`.
    pub object: Option<Filter>,
    /// `-Suspect`: only what a suspect opened or allocated.
    pub suspect: Option<SuspectId>,
    /// `-Leak`: only handles that were opened and not closed, views not unmapped, and allocations not freed, in
    /// processes that still run.
    pub leak: bool,
    /// `-LeakAtExit`: only what nothing but process exit closed or freed.
    pub leak_at_exit: bool,
    /// Whether and how stacks are printed instead of their numbers.
    pub stacks: StackDisplayArgs,
    /// `-CreateStack`: the stack that created the object or allocated.
    pub create_stack: Option<Filter>,
    /// `-DestroyStack`: the stack of the delete, last unmap, last close or free.
    pub destroy_stack: Option<Filter>,
    /// `-FreeStack`: the stack that freed.
    pub free_stack: Option<Filter>,
    /// `-StackFilter`: keep only events with a matching stack.
    pub stack_filter: Option<Filter>,
    /// `-MinMaxTime`: keep only events, or what was allocated, in this time since session start.
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
    /// `-MinMaxSize`: bytes of an allocation, including all its parts.
    pub size: Option<CountRange>,
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
    /// `-ShowTotal`: a table of handles by this property, instead of objects.
    pub count_by: Option<CountBy>,
    /// `-ShowTotal None`: objects without totals.
    pub without_totals: bool,
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
    /// Whether allocations that are not grouped have both totals and leaks.
    pub with_totals_and_leaks: bool,
    /// Whether allocations are compared: their stacks are examined, and nothing is counted.
    pub is_compared: bool,
}

impl AcquisitionCriteria {
    /// `-Suspect` alone means the suspect's leaks, because these are what it counts; `-Leak` or `-LeakAtExit` override
    /// that.
    pub fn narrowed_to_leaks_of_suspect(mut self) -> Self {
        let is_narrowed = self.suspect.is_some() && !self.leak && !self.leak_at_exit;
        self.sums_suspect = is_narrowed;
        self.leak |= is_narrowed;
        self.leak_at_exit |= is_narrowed;
        self
    }

    /// Returns the same criteria with other groups, for which stacks are trimmed as before.
    pub fn with_groups(&self, groups: GroupCriteria) -> Self {
        let trims = self.groups.trims.clone();
        Self { groups: GroupCriteria { trims, ..groups }, ..self.clone() }
    }

    /// Whether processes are shown by executable name, which identifies them.
    pub fn is_plain(&self) -> bool {
        self.plain_process_names || self.with_identities
    }

    /// Whether only leaks are requested.
    pub fn is_of_leaks(&self) -> bool {
        self.leak || self.leak_at_exit
    }

    /// Whether the frames of stacks are needed.
    pub fn needs_frames(&self) -> bool {
        self.groups.needs_stacks() != (false, false) || self.stacks.show || self.tests_frames()
    }

    /// Whether a criterion looks at the frames of stacks.
    pub fn tests_frames(&self) -> bool {
        let filters =
            [&self.stack_filter, &self.create_stack, &self.destroy_stack, &self.free_stack];
        self.suspect.is_some() || filters.into_iter().any(Option::is_some)
    }

    /// Whether they can select allocations: none is about something that only objects have.
    pub fn select_allocations(&self) -> bool {
        self.given().iter().all(|given| given.criterion.rank_for_allocations().is_some())
    }

    /// Whether they select allocations by more than kind, allocator, process and leaks.
    pub fn chooses_allocations(&self) -> bool {
        let stacks = [self.create_stack.as_ref(), self.end_stack()];
        self.suspect.is_some()
            || self.time.is_some()
            || self.size.is_some()
            || stacks.into_iter().any(|stack| stack.is_some())
    }

    /// Returns the filter on kinds of allocations.
    pub fn kinds(&self) -> Option<&Filter> {
        self.kind.as_ref().or(self.object_type.as_ref())
    }

    /// Returns the filter on the stack that freed an allocation.
    pub fn end_stack(&self) -> Option<&Filter> {
        self.free_stack.as_ref().or(self.destroy_stack.as_ref())
    }

    /// Whether leaked allocations are shown by the stacks that allocated them.
    pub fn lists_leaked_allocations(&self) -> bool {
        self.is_of_leaks() && self.groups.by.is_none()
    }

    /// Whether any groups of allocations share stacks.
    pub fn has_stacks_of_allocations(&self) -> bool {
        let has_leaks = self.with_totals_and_leaks && self.groups.by.is_none();
        has_leaks
            || self.columns_of_allocations().iter().any(|column| column.kind() == KeyKind::Stack)
    }

    /// Whether the frames of stacks of allocations are needed.
    pub fn needs_frames_of_allocations(&self) -> bool {
        self.is_compared || self.has_stacks_of_allocations() || self.tests_frames()
    }

    /// Returns the columns of the shown groups of allocations.
    pub fn columns_of_allocations(&self) -> &[GroupColumn] {
        match &self.groups.by {
            Some(by) => by,
            None if self.is_of_leaks() => &GroupColumn::LEAKS,
            None => &GroupColumn::TOTALS,
        }
    }
}

impl Criterion {
    /// Returns when it is applied to allocations: first what it says about their allocators, then the rest. `None` if
    /// it is about something that allocations do not have.
    pub fn rank_for_allocations(self) -> Option<u8> {
        match self {
            Self::Type
            | Self::Kind
            | Self::Allocator
            | Self::Process
            | Self::CmdLine
            | Self::NewProcess => Some(0),
            Self::Suspect
            | Self::Leak
            | Self::LeakAtExit
            | Self::LeakOrAtExit
            | Self::MinMaxTime
            | Self::MinMaxSize
            | Self::CreateStack
            | Self::DestroyStack
            | Self::FreeStack => Some(1),
            _ => None,
        }
    }
}

criteria! {
    AcquisitionCriteria(self) {
        Id => id: Filter as Number;
        MinMaxId => ids;
        Map => map;
        MultiProcess => multi_process;
        ObjectName => object_name: Filter;
        Type => object_type: Filter;
        Kind => kind: Filter;
        Allocator => allocator: Filter;
        Object => object: Filter as Number;
        Suspect => suspect: SuspectId;
        leaks;
        MinMaxTime => time;
        MinMaxSize => size;
        processes => creator;
        PtrInMap => ptr_in_map;
        ViewBase => view_base: Filter as Number;
        MinMaxMapSize => map_size;
        Inherit => inherit;
        RelatedProcess => related_process: ProcessFilter;
        Handle => handle: Filter as Number;
        MinMaxDuration => duration;
        Overlapped => overlapped;
        StackFilter => stack_filter: Filter as Line;
        CreateStack => create_stack: Filter as Line;
        DestroyStack => destroy_stack: Filter as Line;
        FreeStack => free_stack: Filter as Line;
    }
}

impl AcquisitionCriteria {
    /// Returns the effective map mode. Filters that make sense for one kind only imply that kind; filters on mappings
    /// win.
    pub fn map_mode(&self) -> Option<MapMode> {
        if self.ptr_in_map.is_some() || self.view_base.is_some() || self.map_size.is_some() {
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
    pub fn all_of(args: &AcquisitionCriteria) -> Vec<Criterion> {
        args.given().into_iter().map(|given| given.criterion).collect()
    }

    /// Returns the number of options that set a criterion on objects or allocations.
    pub fn option_count() -> usize {
        // Two options set the criterion on leaks.
        AcquisitionCriteria::default().all().len() + 1
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
        let mut args = AcquisitionCriteria { map: Some(MapMode::Mappings), ..Default::default() };
        assert_eq!(args.map_mode(), Some(MapMode::Mappings));
        args.handle = filter.clone();
        assert_eq!(args.map_mode(), Some(MapMode::Objects));
        args.view_base = filter;
        assert_eq!(args.map_mode(), Some(MapMode::Mappings));
        assert_eq!(AcquisitionCriteria::default().map_mode(), None);
    }

    #[test]
    fn how_things_are_printed_says_nothing_about_whether_allocations_are_meant() {
        let printed = AcquisitionCriteria {
            leak: true,
            stacks: StackDisplayArgs { show: true, address: true, line: true },
            plain_process_names: true,
            with_identities: true,
            ..AcquisitionCriteria::default()
        };
        assert!(printed.select_allocations());
        assert!(!AcquisitionCriteria { overlapped: true, ..printed }.select_allocations());
    }
}
