//! Criteria that choose objects, and the effect of each on them.

use std::fmt::Write as _;

use handlescope_model::tables::Objects;
use serde::Serialize;

use super::{GroupCriteria, ProcessCriteria};
use crate::context::FileContext;
use crate::criterion::{Criteria, Criterion, Given, Syntax, criteria, criterion, is_given};
use crate::error::QueryError;
use crate::filters::object::{self, HexFilter, Test, ViewTest};
use crate::filters::{event, process};
use crate::selection::{Selected, Selection};
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::values::{CountRange, SuspectId, TimeRange, TopN};

/// Criteria that choose the objects and events of `.dump ObjectRef`, and options for its answer. A criterion that was
/// not given is `None` or `false`, and says nothing about the objects.
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
    /// `-Id`: ids of objects, one by one.
    pub id: Option<Filter>,
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
    /// Totals count all handles of the suspect, though only the leaked ones are listed.
    pub sums_suspect: bool,
    /// `-GroupBy` and what belongs to it.
    pub groups: GroupCriteria,
}

impl ObjectCriteria {
    /// Narrows a suspect that is asked for to what it leaked, which is what it counts, unless it is said which part.
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

/// Leaves the objects that pass, of which it may remove events.
type Keep = fn(&ObjectCriteria, &FileContext<'_>, &mut Selection) -> Result<(), QueryError>;

/// Effect of a criterion on objects. Beside a filter on the stacks of events the first ones are applied in front of
/// it.
#[derive(Clone, Copy)]
pub enum Effect {
    /// Tests the objects, whatever happens to their events.
    Objects(for<'a> fn(&'a ObjectCriteria, &'a FileContext<'_>) -> Result<Test<'a>, QueryError>),
    /// Leaves only mappings, and tests their views.
    Views(for<'a> fn(&'a ObjectCriteria) -> ViewTest<'a>),
    /// Leaves what leaks.
    Leaks,
    /// Removes events by what each is.
    Events(Keep),
    /// Removes events by their stacks, for which symbols may have to come from far away.
    Stacks(Keep),
    /// Looks at the events that are left.
    LeftEvents(Keep),
}

impl Effect {
    /// Rank in the order relative to a filter on the stacks of events.
    pub fn rank_by_stacks(self) -> u8 {
        match self {
            Self::Objects(_) | Self::Views(_) | Self::Leaks | Self::Events(_) => 0,
            Self::Stacks(_) => 1,
            Self::LeftEvents(_) => 2,
        }
    }
}

criteria! {
    ObjectCriteria(self): Effect {
        Id => id: Filter as Number, Effect::Objects(|args, _| {
            let mut digits = String::new();
            Ok(Box::new(move |object| args.id.as_ref().is_none_or(|filter| {
                digits.clear();
                let _ = write!(digits, "{}", u64::from(object.0) + 1);
                filter.matches(&digits)
            })))
        });
        MinMaxId => ids, Effect::Objects(|args, _| {
            Ok(Box::new(|object| args.ids.is_none_or(|ids| ids.contains(u64::from(object.0) + 1))))
        });
        // `map_mode` tests the mode, which other criteria may imply.
        Map => map, Effect::Objects(|_, _| Ok(Box::new(|_| true)));
        MultiProcess => multi_process, Effect::Objects(|_, file| {
            let multi = file.trace.values(Objects::is_multiprocess)?;
            Ok(Box::new(move |object| multi.get(object.row())))
        });
        ObjectName => object_name: Filter,
            Effect::Objects(|args, file| object::by_name(&args.object_name, file));
        Type => object_type: Filter,
            Effect::Objects(|args, file| Ok(object::by_type(&args.object_type, file)));
        Object => object: Filter as Number, Effect::Objects(|args, file| {
            let pointers = file.trace.values(Objects::pointer)?;
            let mut hex = HexFilter::new(&args.object);
            Ok(Box::new(move |object| pointers.get(object.row()).is_some_and(|p| hex.matches(p))))
        });
        Suspect => suspect: SuspectId, Effect::Events(|_, file, selection| event::keep_suspect(file, selection));
        leaks, Effect::Leaks;
        MinMaxTime => time, Effect::Events(|args, file, selection| event::keep_time(args.time, file, selection));
        Process => creator.name: ProcessFilter, Effect::LeftEvents(|args, file, selection| {
            process::keep_creators(&args.creator.by_name(), args.plain_process_names, file, selection)
        });
        CmdLine => creator.command_line: Filter as Line, Effect::LeftEvents(|args, file, selection| {
            let creator = args.creator.by_name_and_command_line();
            process::keep_creators(&creator, args.plain_process_names, file, selection)
        });
        NewProcess => creator.new_process, Effect::LeftEvents(|args, file, selection| {
            process::keep_creators(&args.creator, args.plain_process_names, file, selection)
        });
        PtrInMap => ptr_in_map, Effect::Views(|args| Box::new(|base, size| {
            args.ptr_in_map.is_none_or(|pointer| object::is_in_view(pointer, base, size))
        }));
        ViewBase => view_base: Filter as Number, Effect::Views(|args| {
            let mut hex = HexFilter::new(&args.view_base);
            Box::new(move |base, _| hex.matches(base))
        });
        MinMaxMapSize => map_size, Effect::Views(|args| {
            Box::new(|_, size| args.map_size.is_none_or(|range| range.contains(size)))
        });
        Inherit => inherit, Effect::LeftEvents(|_, file, selection| event::keep_inherited(file, selection));
        RelatedProcess => related_process: ProcessFilter, Effect::LeftEvents(|args, file, selection| {
            process::keep_related(&args.related_process, args.plain_process_names, file, selection)
        });
        Handle => handle: Filter as Number,
            Effect::LeftEvents(|args, file, selection| event::keep_handles(&args.handle, file, selection));
        MinMaxDuration => duration, Effect::Objects(|args, file| {
            object::by_lifetime(args.duration, file)
        });
        Overlapped => overlapped, Effect::LeftEvents(|_, file, selection| event::keep_overlapped(file, selection));
        StackFilter => stack_filter: Filter as Line, Effect::Stacks(|args, file, selection| {
            process::keep_possible_creators(&args.creator, args.plain_process_names, file, selection)?;
            event::keep_stacks(&args.stack_filter, file, selection)
        });
        CreateStack => create_stack: Filter as Line, Effect::LeftEvents(|args, file, selection| {
            event::keep_by_stack_of(Selected::create, &args.create_stack, file, selection)
        });
        DestroyStack => destroy_stack: Filter as Line, Effect::LeftEvents(|args, file, selection| {
            event::keep_by_stack_of(Selected::end, &args.destroy_stack, file, selection)
        });
    }
}

impl ObjectCriteria {
    /// The map mode in force: filters that make sense for one kind only imply it, and those over
    /// mappings win.
    pub fn map_mode(&self) -> Option<MapMode> {
        if self.given().iter().any(|given| matches!(given.effect, Effect::Views(_))) {
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
    /// The given criteria.
    pub fn all_of(args: &ObjectCriteria) -> Vec<Criterion> {
        args.given().into_iter().map(|given| given.criterion).collect()
    }

    /// Number of options that give a criterion.
    pub fn options_of_objects() -> usize {
        // Two options give the criterion on leaks.
        ObjectCriteria::default().all().len() + 1
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
    /// Order in which ETWAnalyzer prints them, so that the largest stands where the next command is typed.
    #[default]
    LargestLast,
    LargestFirst,
    /// Names from a to z.
    Name,
}

impl CountOrder {
    /// The order that `-SortBy` asks for; `None` when it is neither that of the handles nor
    /// that of the `names`.
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
