//! GDI and USER handles beside kernel handles: traces record them as allocations, but users think of them as handles.

use std::collections::BTreeMap;

use handlescope_model::AcquisitionIdx;
use handlescope_model::tables::{ResourceEnd, ResourceKind};
use serde::Serialize;

use super::acquisition_table::{AcquisitionTable, NeededColumns};
use super::allocations::{AllocationSource, AllocatorList, FilteredTables, ResourceSelection};
use super::context::Source;
use super::criteria::{ObjectCriteria, ResourceCriteria};
use super::error::QueryError;
use super::frame_names::FrameNames;
use super::resources::frames_for;
use super::tables::ProcessList;
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;

/// The kinds of these handles.
const KINDS: [ResourceKind; 2] = [ResourceKind::Gdi, ResourceKind::User];

/// GDI or USER handles in one trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GuiHandles {
    /// The number of the file in the session.
    pub file: usize,
    /// The kind: `gdi` or `user`.
    pub kind: &'static str,
    pub created: u64,
    pub closed: u64,
    /// Never closed.
    pub leaked: u64,
    /// Closed only by process exit.
    pub closed_at_exit: u64,
    /// Number of both by type, such as `Pen`, sorted by name.
    pub leaked_by_type: Vec<(String, u64)>,
}

/// Returns the GDI and USER handles of a trace, selected by those criteria that apply to them, too.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn gui_handles(
    source: &Source<'_>,
    criteria: &ObjectCriteria,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<Vec<GuiHandles>, QueryError> {
    // A suspect is one of kernel handles.
    if criteria.suspect.is_some() || !criteria.select_allocations() {
        return Ok(Vec::new());
    }
    // There are few allocators, and most traces have none of these kinds.
    let trace = source.trace;
    let allocators = AllocatorList::load(trace)?;
    let kinds: Vec<ResourceKind> = KINDS
        .iter()
        .filter(|kind| {
            allocators.rows().iter().any(|allocator| allocator.kind == kind.code())
                && criteria.kinds().is_none_or(|filter| filter.matches(kind.name()))
        })
        .copied()
        .collect();
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let names_of_kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let kind = Filter::new(&names_of_kinds.join(";")).ok();
    let choice = ObjectCriteria { kind, leak: false, leak_at_exit: false, ..criteria.clone() };
    let opened_stack = choice.create_stack.is_some();
    let criteria = ResourceCriteria { choice, ..ResourceCriteria::default() };
    let needed = NeededColumns { opened_stack, ..NeededColumns::for_criteria(&criteria) };
    let table = AcquisitionTable::load(trace, needed)?;
    let processes = ProcessList::load(trace)?;
    let frames = frames_for(&criteria, source, names, cancel)?;
    let origin =
        AllocationSource { trace, processes: &processes, frames: &frames, suspect: None, cancel };
    let tables = FilteredTables::load(origin, &allocators, &table)?;
    let rows = ResourceSelection::new(&tables, &criteria.choice)?.allocations(&tables);
    let handles = kinds.into_iter().map(|kind| {
        let rows = rows.iter().filter_map(|row| {
            let allocator = allocators.get(table.allocator.get(row.row())?)?;
            (allocator.kind == kind.code()).then_some((*row, allocator.name.as_str()))
        });
        GuiHandles::new(source.index, kind.name(), &table, rows)
    });
    Ok(handles.filter(|handles| handles.created > 0).collect())
}

impl GuiHandles {
    /// Counts handles of a kind, each given with its type.
    fn new<'t>(
        file: usize,
        kind: &'static str,
        table: &AcquisitionTable,
        rows: impl Iterator<Item = (AcquisitionIdx, &'t str)>,
    ) -> Self {
        let mut handles = Self { file, kind, ..Self::default() };
        let mut by_type: BTreeMap<&str, u64> = BTreeMap::new();
        for (row, type_name) in rows {
            handles.created += 1;
            handles.closed += u64::from(table.is_freed(row));
            let Some(end) = table.unreleased(row) else { continue };
            let is_leaked = end == ResourceEnd::Open;
            *if is_leaked { &mut handles.leaked } else { &mut handles.closed_at_exit } += 1;
            *by_type.entry(type_name).or_default() += 1;
        }
        let by_type = by_type.into_iter().map(|(name, count)| (name.to_owned(), count));
        Self { leaked_by_type: by_type.collect(), ..handles }
    }
}
