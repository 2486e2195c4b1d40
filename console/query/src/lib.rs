//! Queries over loaded traces.
//!
//! A query reads only the columns it needs and works on contiguous slices. It tests a text once for each distinct name,
//! type, process or frame instead of once for each event. Its result is a [`Selection`]: objects with their remaining
//! events. Answers are loops over these slices, because most depend on the remaining events of an object, or on their
//! order.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod acquired;
mod acquisition_table;
mod allocations;
mod amounts;
mod answer;
mod call_stacks;
mod context;
mod counts;
mod criteria;
mod criterion;
mod diff;
mod error;
mod event_counts;
mod exit_stacks;
mod filters;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod frame_class;
mod frame_names;
mod frame_view;
mod groups;
mod growth;
mod gui_handles;
mod handle_counts;
mod ignored;
mod info;
mod inventory;
mod list_answer;
mod listing;
mod modules;
mod no_match;
mod object_ref;
mod objects;
mod open_groups;
mod polars_reason;
mod pretty_names;
mod processes;
mod program_frames;
mod provider_events;
mod requests;
mod resources;
mod selection;
mod stacks;
mod start_functions;
mod stats;
mod suspect_rows;
mod symbols;
mod tables;
mod targets;
mod totals;
mod trimmed_stacks;
mod unnamed_methods;
mod volumes;
mod why;
mod zombies;

pub use self::acquired::{
    Caller, CallerLeaks, PRIVATE_HEAP, PointAmounts, PointSpan, SharedFunction, SuspectScope,
};
pub use self::allocations::allocated_kinds;
pub use self::amounts::{Amount, ByteAmounts, Counts};
pub use self::answer::{About, Domain, TraceAnswer};
pub use self::call_stacks::{ProcessStack, StackList, StacksAnswer, call_stacks};
pub use self::context::Source;
pub use self::counts::{CountRow, CountRows};
pub use self::criteria::{
    AcquisitionCriteria, CountOrder, DiffCriteria, EventCriteria, GroupColumn, GroupCriteria,
    GroupKey, KeyKind, MapMode, ModuleCriteria, NewProcess, PickedSuspect, ProcessCriteria,
    ProcessListCriteria, ProcessOrder, StackCriteria, StackNames, StackTrims, Stat, WhyCriteria,
};
pub use self::criterion::Criterion;
pub use self::diff::{
    ComparableAnswer, ComparedGroup, ComparedLeaks, ComparisonTotals, GroupSite, GroupState,
    OpenedGroup, PointsDiff, SampledGroup, SideLeaks, TraceLeaks, TracesDiff, between_points,
    compare_samples, compare_traces,
};
pub use self::error::QueryError;
pub use self::event_counts::{CountedEvent, EventsAnswer, event_counts};
pub use self::exit_stacks::ExitStacks;
pub use self::frame_names::{FrameNames, FrameStats};
pub use self::groups::{GroupStats, GroupTree, Groups, GroupsLeftOut, NodeIdx, TimedGroup};
pub use self::growth::{
    Growth, GrowthEvidence, Lifetime, OutlivingHandles, Rate, TimeWindow, Verdict, most_at_once,
    outstanding, sparkline,
};
pub use self::gui_handles::GuiHandles;
pub use self::handle_counts::{CountBy, CountedHandles, HandleCounts};
pub use self::list_answer::ListAnswer;
pub use self::listing::{ListedDuplicate, ListedEvent, ListedObject};
pub use self::modules::{LoadedModule, Loader, ModuleAnswer, modules};
pub use self::no_match::{ListSubject, NoMatch};
pub use self::object_ref::{FileAnswer, ObjectRefAnswer, ObjectsLeftOut, object_ref};
pub use self::open_groups::{OpenGroup, open_groups};
pub use self::polars_reason::start_engine;
pub use self::pretty_names::pretty_name;
pub use self::processes::{ListedProcess, ProcessAnswer, processes};
pub use self::provider_events::{
    FieldValue, NamedField, ProviderEventList, ProviderEventsAnswer, SingleEvent, provider_events,
    single_event_counts,
};
pub use self::resources::{
    AllocatedKind, AllocationsOverview, ResourceGroup, ResourceGroups, ResourceStats,
    ResourcesAnswer, allocations_overview, resources,
};
pub use self::selection::{EventMask, SelectedObject, Selection};
pub use self::stats::{StatsAnswer, TraceStats, stats};
pub use self::symbols::{AllNames, all_names};
pub use self::symbols::{ModuleSymbols, SymbolsAnswer, symbols};
pub use self::tables::PerProcess;
pub use self::tables::{ProcessInfo, ProcessList, TypeNames};
pub use self::targets::{Target, TargetEnd};
pub use self::totals::Totals;
pub use self::volumes::Volumes;
pub use self::why::{
    Diagnosis, LeakedNames, NoSuspectReason, NotCounted, ObjectNames, Suspect, SuspectProcess,
    WhyAnswer, causes_of_allocations, causes_of_handles, why,
};
pub use self::zombies::{ZombieHolder, ZombieSummary};

pub use self::frame_names::{Frames, NamedFrames, module_identities};
pub use self::frame_view::{FrameView, ModuleBases, frame_lines};
pub use self::info::{session_start_us, start_us};
pub use self::inventory::{
    Acquisition, Inventory, InventoryGroup, OpenAt, OpenOverTime, StackIdentity, StackOfProcess,
    build_id,
};
pub use self::polars_reason::{QueryNames, polars_reason, type_name};
pub use self::program_frames::{is_of_process_start, with_program};
pub use self::trimmed_stacks::TrimmedStacks;
pub use handlescope_model::rules::UNKNOWN_LIFETIME_NS;
