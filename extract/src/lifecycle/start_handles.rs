//! Which handles of the rundown at the start are closed later.

use handlescope_model::{Cancel, Cancelled, Poll};
use hashbrown::HashMap;

use super::attribution::{NONE, ProcessIndex};
use super::owners::EventOwners;
use crate::collect::Collector;
use crate::raw::RowKind;

/// For each handle of the rundown at the start, whether the process that owned it closed a handle of the
/// same value later; `order` gives the time order when it is not the order of the rows.
///
/// A value means that handle until it is closed, so that the first close of the value is its close.
pub fn closed_start_handles(
    collected: &Collector,
    owners: &EventOwners,
    index: &ProcessIndex,
    order: Option<&[u32]>,
    cancel: &Cancel,
) -> Result<Vec<bool>, Cancelled> {
    let start = &collected.handles.start;
    let mut closed = vec![false; start.len()];
    let mut open: HashMap<(u32, u32), usize> = HashMap::with_capacity(start.len());
    let mut poll = Poll::new(cancel);
    for (at, handle) in start.iter().enumerate() {
        poll.round()?;
        if let Some(process) = index.find(handle.pid, handle.time) {
            open.insert((process, handle.handle), at);
        }
    }
    if open.is_empty() {
        return Ok(closed);
    }
    let timeline = &collected.shared.timeline;
    for position in 0..timeline.len() {
        poll.round()?;
        let row = order.map_or(position, |order| order[position] as usize);
        let process = owners.process[row];
        if timeline.kind[row] != RowKind::HandleClose || process == NONE {
            continue;
        }
        let value = collected.handles.handle[timeline.row[row] as usize];
        let of_value = open.get(&(process, value)).copied();
        if let Some(at) = of_value.filter(|at| start[*at].time <= timeline.time[row]) {
            closed[at] = true;
            open.remove(&(process, value));
        }
    }
    Ok(closed)
}
