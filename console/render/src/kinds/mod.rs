//! The answers of each kind as tables, one file per kind.

mod diff;
mod event_counts;
mod events;
mod fleet;
mod frame;
mod groups;
mod loaded;
mod members;
mod module;
mod object_ref;
mod objects;
mod process;
mod provider_events;
mod resource;
mod stack;
mod stats;
mod symbols;
mod version;
mod why;

pub use self::{
    diff::{
        diff_document_members, diff_findings, diff_group_members, diff_points, diff_traces,
        point_columns, trace_columns,
    },
    event_counts::{event_columns, event_counts},
    events::object_columns,
    fleet::{
        dataset_traces, fleet_diff, fleet_diff_columns, fleet_diff_document, fleet_group_columns,
        fleet_group_document, fleet_groups, fleet_why, fleet_why_columns, fleet_why_document,
    },
    frame::{frame, query_document, write_frame},
    groups::{group_document, group_members},
    loaded::loaded,
    members::{MemberPage, MemberTable, member_tables},
    module::{module_columns, modules},
    object_ref::object_ref_document,
    objects::{object_orders, object_ref},
    process::{process_columns, processes},
    provider_events::provider_events,
    resource::{resource_columns, resource_group_document, resource_group_members, resources},
    stack::{call_stacks, stack_columns, stack_document},
    stats::{properties, stats, stats_columns, stats_document, trace_facts, unknown_properties},
    symbols::{symbol_columns, symbol_document, symbols},
    version::{version_columns, versions},
    why::{Look, why, why_columns, why_document, why_findings},
};
pub(crate) use self::{
    groups::add_stats,
    resource::add_amounts,
    why::{findings_of_suspect, first_lines, listed_and_others, stacks_with_lines},
};
use crate::no_match::InOptions;
use handlescope_model::Untrusted;
use handlescope_query::{ListSubject, NoMatch};

/// Returns the line shown instead of rows if a filter matches nothing.
fn no_match_line(no_match: &NoMatch) -> String {
    let noun = if no_match.subject == ListSubject::Allocation { "allocation" } else { "handle" };
    format!("No {noun} matches {}", Untrusted(&InOptions(no_match).option()))
}

/// Returns a file number as columns contain it.
fn index(file: usize) -> u32 {
    u32::try_from(file).unwrap_or(u32::MAX)
}
