//! Finds unmaps made by the end of a process rather than by its program.
//!
//! They come last, after the handles were closed, and mostly after the process's end event. Those before it are the
//! last ones of the process, on one thread and in quick succession. Their kernel frames are ones on which no program
//! unmapped a view and then went on to map another.

use handlescope_model::{Cancelled, Poll};
use hashbrown::{HashMap, HashSet};

use super::Lifetimes;
use super::attribution::NONE;
use crate::collect::Collector;
use crate::raw::RowKind;

/// Longest time between two unmaps before the end event, and between the last one and that event.
const GAP_NS: i64 = 2_000_000;

/// Unmap, as a row of the timeline.
struct UnmapRow {
    row: u32,
    /// Id of the kernel frames of its stack.
    kernel: Option<u32>,
}

/// Returns these unmaps, unless cancelled; `order` gives the time order if it differs from the row order.
pub fn exit_unmaps(
    lifetimes: &Lifetimes<'_>,
    order: Option<&[u32]>,
) -> Result<HashSet<u32>, Cancelled> {
    let Lifetimes { collected, owners, clock, .. } = *lifetimes;
    if collected.views.rows.is_empty() {
        return Ok(HashSet::new());
    }
    let timeline = &collected.shared.timeline;
    // Unmaps of each process since it last mapped a view.
    let mut last: HashMap<u32, Vec<UnmapRow>> = HashMap::new();
    let mut of_programs = HashSet::new();
    let mut poll = Poll::new(lifetimes.cancel);
    for row in lifetimes.rows(order) {
        poll.round()?;
        let process = owners.process[row];
        match timeline.kind[row] {
            _ if process == NONE => {}
            RowKind::Map => {
                let unmapped = last.get_mut(&process).map(|last| last.drain(..));
                of_programs.extend(unmapped.into_iter().flatten().filter_map(|last| last.kernel));
            }
            RowKind::Unmap => {
                let unmapped = UnmapRow { row: row as u32, kernel: kernel_part(collected, row) };
                last.entry(process).or_default().push(unmapped);
            }
            _ => {}
        }
    }
    let gap = clock.ticks_apart(GAP_NS);
    let mut unmaps = HashSet::new();
    for (process, last) in last {
        let Some(end) = collected.processes.rows[process as usize].end else { continue };
        let (mut until, mut thread) = (end, None);
        for UnmapRow { row, kernel } in last.into_iter().rev() {
            let (time, tid) = (timeline.time[row as usize], timeline.tid[row as usize]);
            let is_after = time > end;
            let is_next = until.saturating_sub(time) <= gap && *thread.get_or_insert(tid) == tid;
            let is_of_sweep = kernel.is_some_and(|part| !of_programs.contains(&part));
            if !(is_after || is_next && is_of_sweep) {
                break;
            }
            until = time.min(end);
            unmaps.insert(row);
        }
    }
    Ok(unmaps)
}

fn kernel_part(collected: &Collector, row: usize) -> Option<u32> {
    let stacks = &collected.stacks.events;
    let parts = stacks.parts(row);
    let mut parts = parts.iter().chain(stacks.more_parts(row));
    let kernel = parts.find(|part| !part.is_user())?;
    stacks.fragments().content(*kernel)
}
