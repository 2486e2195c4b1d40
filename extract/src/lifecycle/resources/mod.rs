//! From events to allocations, with their processes and ends.
//!
//! A *process* is one lifetime of a pid. Events after its end belong to it until the pid is reused. The end of a
//! process does nothing to its allocations at first: which ones are left over is known only after all events.

mod acquired;
mod columns;
mod exits;
mod heaps;
mod pages;

use handlescope_model::{Cancel, Cancelled, Poll};

use self::acquired::{AcquiredResources, GuiHandles};
pub use self::columns::{AllocationColumns, AllocationOwner, AllocationStats, AllocatorRow, Miss};
use self::columns::{AtRow, OwnerFinder};
use self::heaps::HeapBlocks;
use self::pages::Pages;
use super::attribution::ProcessIndex;
use super::kinds::{Subject, subject};
use crate::collect::Collector;
use crate::etl::Clock;

/// Follows all allocations in time order, unless cancelled; `order` gives the time order if it differs from the row
/// order.
pub fn follow_resources(
    collected: &Collector,
    index: &ProcessIndex,
    clock: &Clock,
    order: Option<&[u32]>,
    cancel: &Cancel,
) -> Result<AllocationColumns, Cancelled> {
    let timeline = &collected.shared.timeline;
    let mut finder = OwnerFinder::new(index, clock);
    let mut columns = AllocationColumns::default();
    let mut heaps = HeapBlocks::default();
    let mut pages = Pages::default();
    let mut acquired = AcquiredResources::default();
    let mut gui = GuiHandles::default();
    let mut poll = Poll::new(cancel);
    for position in 0..timeline.len() {
        poll.round()?;
        let row = order.map_or(position, |order| order[position] as usize);
        let at = AtRow { columns: &mut columns, row };
        // Looked up only for rows followed here, which most traces do not have.
        let mut owner = || finder.find(timeline.pid[row], timeline.time[row]);
        match subject(timeline.kind[row]) {
            Subject::Heap(change) => heaps.event(collected, change, owner(), at),
            Subject::Pages(change) => pages.event(collected, change, &mut finder, at),
            Subject::Acquired(change) => acquired.event(collected, change, owner(), at),
            Subject::Gui(change) => gui.event(collected, change, &mut finder, at),
            // Objects are followed elsewhere, and unknown subjects cannot be followed.
            Subject::Object(_) | Subject::HandleAtEnd | Subject::Unknown => {}
        }
    }
    pages.finish(&mut columns);
    gui.finish(collected, clock, &mut columns);
    let end_of = |process: u32| collected.processes.rows.get(process as usize)?.end;
    columns.end_at_exit(end_of, |row| timeline.time[row]);
    Ok(columns)
}
