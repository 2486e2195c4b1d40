//! Handles in the rundown at the start, which belong to no object of the answer.

use handlescope_model::tables::{Acquisitions, End, Names, Objects};
use handlescope_model::{ObjectIdx, ProcessIdx, TypeId};

use super::object::HexFilter;
use super::process::creator_verdicts;
use crate::context::FileContext;
use crate::criteria::{AcquisitionCriteria, MapMode};
use crate::criterion::{Criteria, Criterion};
use crate::error::QueryError;

/// Returns type and owner of each handle in the start rundown that passes. What is known about them is tested; a
/// criterion on events lets none pass, because they have no events.
///
/// Handles that were closed in the trace are left out.
pub fn open_start_handles(
    file: &FileContext<'_>,
    args: &AcquisitionCriteria,
) -> Result<Vec<(TypeId, ProcessIdx)>, QueryError> {
    if concerns_events(args) {
        return Ok(Vec::new());
    }
    let trace = file.trace;
    let in_start = trace.values(Acquisitions::in_start_rundown)?;
    let of_object = trace.values(Acquisitions::object)?;
    let process = trace.values(Acquisitions::process)?;
    let pointer = trace.values(Objects::pointer)?;
    let type_id = trace.values(Objects::type_id)?;
    let name = trace.values(Objects::name)?;
    let names = trace.values(Names::name)?;
    let owners = creator_verdicts(&args.creator, args.plain_process_names, file);
    let mut object = HexFilter::new(&args.object);
    let mut open = Vec::new();
    for row in (0..of_object.len()).filter(|row| in_start.get(*row)) {
        let of = of_object.get(row).map_or(usize::MAX, ObjectIdx::row);
        let (Some(address), Some(type_id)) = (pointer.get(of), type_id.get(of)) else { continue };
        // An unknown owner has no name and no command line.
        let owner = process.get(row).unwrap_or_default();
        let name = name.get(of).and_then(|name| names.get(name.row())).unwrap_or_default();
        let passes = file.objects.table.end(row) == Some(End::Open)
            && args.object_type.as_ref().is_none_or(|f| f.matches(file.types.get(type_id)))
            && args.object_name.as_ref().is_none_or(|f| file.volumes.matches(f, name))
            && object.matches(address)
            && owners.as_ref().is_none_or(|verdicts| *verdicts.get(Some(owner)));
        if passes {
            open.push((type_id, owner));
        }
    }
    Ok(open)
}

/// Whether any criterion is about events or mappings.
fn concerns_events(args: &AcquisitionCriteria) -> bool {
    let applicable = [
        Criterion::Map,
        Criterion::ObjectName,
        Criterion::Type,
        Criterion::Object,
        Criterion::Process,
        Criterion::CmdLine,
        Criterion::NewProcess,
    ];
    args.given().iter().any(|given| !applicable.contains(&given.criterion))
        || args.map_mode() == Some(MapMode::Mappings)
}
