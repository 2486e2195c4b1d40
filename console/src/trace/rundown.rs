//! Whether a trace says what was open at its end, and what the ends of processes closed.

use handlescope_model::rules::is_of_end_rundown;
use handlescope_model::tables::{EventCounts, Events, ObjectTypes, TraceInfos};
use handlescope_model::{ArchiveError, FILE_MAPPING_TYPE, Table, TableRows, Trace};

/// Whether a trace has a rundown of open handles at its end.
///
/// # Errors
/// When the archive is damaged.
pub fn has_end_rundown(trace: &Trace) -> Result<bool, ArchiveError> {
    if trace.height(Table::ExistingHandles)? > 0 {
        return Ok(true);
    }
    let info = TraceInfos::read(trace)?.row(0).unwrap_or_default();
    if info.is_converted() {
        // Its types are those of the rundown.
        let types = ObjectTypes::read(trace)?;
        return Ok(types.rows().any(|row| row.type_id != FILE_MAPPING_TYPE));
    }
    let counts = EventCounts::read(trace)?;
    Ok(counts.rows().any(|row| row.name.as_deref().is_some_and(is_of_end_rundown)))
}

/// Whether an extract says which closes the ends of processes made, as older ones do not.
///
/// # Errors
/// When the archive is damaged.
pub(crate) fn knows_exits(trace: &Trace) -> Result<bool, ArchiveError> {
    Ok(trace.height(Table::Events)? == 0
        || trace.values(Events::closed_at_exit)?.known(0).is_some())
}
