//! The answers of each kind as tables, one file per kind.

mod diff;
mod event_counts;
mod events;
mod fleet;
mod frame;
mod groups;
mod loaded;
pub mod members;
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

pub use self::fleet::dataset_traces;
pub use self::why::{findings_of_suspect, first_lines, listed_and_others, stacks_with_lines};
pub use self::{
    diff::{
        diff_document_members, diff_findings, diff_group_members, diff_points, diff_traces,
        point_columns, trace_columns,
    },
    event_counts::event_columns,
    events::object_columns,
    fleet::{
        fleet_diff, fleet_diff_columns, fleet_diff_document, fleet_group_columns,
        fleet_group_document, fleet_groups, fleet_why, fleet_why_columns, fleet_why_document,
    },
    frame::{query_document, write_frame},
    groups::{add_stats, group_document, group_members},
    members::{MemberPage, MemberTable, member_tables},
    module::module_columns,
    object_ref::object_ref_document,
    objects::object_orders,
    process::process_columns,
    resource::{add_amounts, resource_columns, resource_group_document, resource_group_members},
    stack::{stack_columns, stack_document},
    stats::{stats_columns, stats_document, trace_facts},
    symbols::{symbol_columns, symbol_document},
    version::version_columns,
    why::{why_columns, why_document},
};
pub use self::{
    event_counts::event_counts,
    frame::frame,
    loaded::loaded,
    module::modules,
    objects::object_ref,
    process::processes,
    provider_events::provider_events,
    resource::resources,
    stack::call_stacks,
    stats::{properties, stats, unknown_properties},
    symbols::symbols,
    version::versions,
    why::{Look, why, why_findings},
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
