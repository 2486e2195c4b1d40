//! When a trace lost events, and whether it shows what was open at its end and what process exit closed.

use handlescope_extract::is_loss;
use handlescope_model::rules::{LossTimes, is_of_end_rundown};
use handlescope_model::tables::{
    Acquisitions, End, EventCounts, LossKind, Losses, ObjectTypes, Processes, Warnings,
};
use handlescope_model::{ArchiveError, FILE_MAPPING_TYPE, Table, TableRows, Trace};

/// Returns the times at which events of the trace may be missing, in nanoseconds since session start. If the extract
/// only says that some are missing, that is anywhere.
///
/// # Errors
/// If the archive is damaged.
pub fn loss_times(trace: &Trace) -> Result<LossTimes, ArchiveError> {
    if trace.height(Table::Losses)? > 0 {
        let losses = Losses::read(trace)?;
        // Events that a ring overwrote are from before the recorded time.
        let recorded = losses.rows().filter(|loss| loss.what != LossKind::Overwritten.code());
        return Ok(LossTimes::new(recorded.map(|loss| loss.from_ns.zip(loss.to_ns))));
    }
    if knows_losses(trace)? {
        return Ok(LossTimes::default());
    }
    let info = trace.info()?;
    let is_lost = info.events_lost > 0
        || info.buffers_lost > 0
        || Warnings::read(trace)?.rows().any(|warning| is_loss(&warning.kind));
    Ok(LossTimes::new(is_lost.then_some(None)))
}

/// The least a handle event takes in a buffer, in bytes: header, object, handle, type.
const SMALLEST_EVENT: u64 = 32;

/// Returns the maximum number of handle events missing from a trace; `None` if the extract does not say.
///
/// # Errors
/// If the archive is damaged.
pub fn most_lost_events(trace: &Trace) -> Result<Option<u64>, ArchiveError> {
    let losses = Losses::read(trace)?;
    if losses.is_empty() {
        return Ok(loss_times(trace)?.is_empty().then_some(0));
    }
    let info = trace.info()?;
    let by_buffer = u64::from(info.buffer_size) / SMALLEST_EVENT;
    // The header's counts include the events behind a loss mark or record.
    let is_counted = info.events_lost > 0 || info.buffers_lost > 0;
    let mut counts = losses.rows().map(|loss| match LossKind::from_code(loss.what) {
        Some(LossKind::EventsLost) => loss.count,
        Some(LossKind::DamagedBuffer | LossKind::BuffersLost) => {
            Some(loss.count?.saturating_mul(by_buffer))
        }
        // A missing buffer is counted for one of the processors it may belong to.
        Some(LossKind::MissingBuffers) => {
            Some(loss.count.unwrap_or_default().saturating_mul(by_buffer))
        }
        Some(LossKind::Overwritten) => Some(0),
        _ => is_counted.then_some(0),
    });
    Ok(counts.try_fold(0, |sum: u64, events| Some(sum.saturating_add(events?))))
}

/// Whether an extract records when events may be missing, and what was closed unseen because of that.
///
/// # Errors
/// If the archive is damaged.
pub fn knows_losses(trace: &Trace) -> Result<bool, ArchiveError> {
    let info = trace.info()?;
    Ok(!info.is_converted())
}

/// Counts the handles and views that were closed unseen.
///
/// # Errors
/// If the archive is damaged.
pub fn unseen_closes(trace: &Trace) -> Result<u64, ArchiveError> {
    let is_unseen =
        |code: u8| End::from_code(code.into()).is_some_and(|end| end.unseen().is_some());
    let ends = trace.codes(Acquisitions::end)?;
    Ok(ends.iter().filter(|code| is_unseen(**code)).count() as u64)
}

/// Whether a trace has a rundown of open handles at its end.
///
/// # Errors
/// If the archive is damaged.
pub fn has_end_rundown(trace: &Trace) -> Result<bool, ArchiveError> {
    if has_listed(trace)? {
        return Ok(true);
    }
    let info = trace.info()?;
    if info.is_converted() {
        // Its object types are those of the rundown.
        let types = ObjectTypes::read(trace)?;
        return Ok(types.rows().any(|row| row.type_id != FILE_MAPPING_TYPE));
    }
    let counts = EventCounts::read(trace)?;
    Ok(counts.rows().any(|row| row.name.as_deref().is_some_and(is_of_end_rundown)))
}

/// Whether the end rundown lists what was open. If it has no handles, that is true only if the events leave none open
/// in a process that outlives the trace.
///
/// # Errors
/// If the archive is damaged.
pub fn lists_open_handles(trace: &Trace) -> Result<bool, ArchiveError> {
    if has_listed(trace)? {
        return Ok(true);
    }
    Ok(has_end_rundown(trace)? && !has_open_handles(trace)?)
}

/// Whether the end rundown lists any handle.
fn has_listed(trace: &Trace) -> Result<bool, ArchiveError> {
    Ok(trace.values(Acquisitions::in_rundown)?.any())
}

fn has_open_handles(trace: &Trace) -> Result<bool, ArchiveError> {
    let table = trace.event_table()?;
    let process = trace.values(Acquisitions::process)?;
    let end_ns = trace.values(Processes::end_ns)?;
    let lives_on =
        |row: usize| process.get(row).is_none_or(|process| end_ns.get(process.row()).is_none());
    let is_open_handle = |row: usize| {
        let state = table.state(row);
        state.is_leaked() && !state.is_view() && lives_on(row)
    };
    Ok((0..table.allocations).any(is_open_handle))
}
