//! Events → allocations, with their processes and ends.
//!
//! A *process* is one lifetime of a pid; events after its end belong to it until the pid is given again. Nothing happens to
//! an allocation when its process ends: the allocations left over then are known only when all events were seen.

mod acquired;
mod columns;
mod exits;
mod heaps;
mod pages;

use handlescope_model::{Cancel, Cancelled, Poll};

use self::acquired::{Acquired, GuiHandles};
pub use self::columns::{AllocationColumns, AllocationStats, AllocatorRow, Miss, Owner};
use self::columns::{AtRow, OwnerFinder};
use self::heaps::HeapBlocks;
use self::pages::Pages;
use super::attribution::ProcessIndex;
use super::kinds::{Subject, subject};
use crate::collect::Collector;
use crate::etl::Clock;

/// Follows all allocations in time order, unless asked to stop; `order` gives it when it is not the order of the rows.
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
    let mut acquired = Acquired::default();
    let mut gui = GuiHandles::default();
    let mut poll = Poll::new(cancel);
    for position in 0..timeline.len() {
        poll.round()?;
        let row = order.map_or(position, |order| order[position] as usize);
        let at = AtRow { columns: &mut columns, row };
        // Only of the rows that are followed here: most traces have none.
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
