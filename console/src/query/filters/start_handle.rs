//! Handles of the rundown at the start, which belong to no object of the answer.

use handlescope_model::tables::{Names, StartHandles};
use handlescope_model::{NameIdx, ProcessIdx};

use super::object::{HexFilter, map_mode};
use super::process::creator_verdicts;
use crate::query::context::FileContext;
use crate::query::error::QueryError;
use crate::query::{MapMode, ObjectCriteria};

/// The handles of the rundown at the start that pass, as type and owner of each: what is known of them
/// is tested, and a criterion about events, which they do not have, lets none pass.
///
/// Those that were closed in the trace are left out.
pub(in crate::query) fn open_start_handles(
    file: &FileContext<'_>,
    args: &ObjectCriteria,
) -> Result<Vec<(handlescope_model::TypeId, ProcessIdx)>, QueryError> {
    if asks_for_events(args) {
        return Ok(Vec::new());
    }
    let trace = file.trace;
    let pointer = trace.values(StartHandles::pointer)?;
    let process = trace.values(StartHandles::process)?;
    let type_id = trace.values(StartHandles::type_id)?;
    let name = trace.values(StartHandles::name)?;
    let closed = trace.values(StartHandles::closed)?;
    let names = trace.values(Names::name)?;
    let owners = creator_verdicts(args, file);
    let mut object = args.object.as_ref().map(HexFilter::new);
    let text = |name: Option<NameIdx>| name.and_then(|name| names.get(name.row()));
    let mut open = Vec::new();
    for row in 0..pointer.len() {
        let (Some(address), Some(type_id)) = (pointer.get(row), type_id.get(row)) else { continue };
        // An unknown owner has no name and no command line.
        let owner = process.get(row).unwrap_or_default();
        let passes = !closed.get(row)
            && args.object_type.as_ref().is_none_or(|f| f.matches(file.types.get(type_id)))
            && args
                .object_name
                .as_ref()
                .is_none_or(|f| f.matches(text(name.get(row)).unwrap_or_default()))
            && object.as_mut().is_none_or(|hex| hex.matches(address))
            && owners.as_ref().is_none_or(|verdicts| *verdicts.get(Some(owner)));
        if passes {
            open.push((type_id, owner));
        }
    }
    Ok(open)
}

/// Whether a criterion says something about events, or about mappings.
fn asks_for_events(args: &ObjectCriteria) -> bool {
    let filters = [&args.handle, &args.create_stack, &args.destroy_stack, &args.stack_filter];
    filters.into_iter().any(Option::is_some)
        || args.suspect.is_some()
        || args.time.is_some()
        || args.duration.is_some()
        || args.ids.is_some()
        || args.related_process.is_some()
        || args.multi_process
        || args.overlapped
        || args.inherit
        || map_mode(args) == Some(MapMode::Mappings)
}
