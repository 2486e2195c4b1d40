use handlescope_model::tables::{StackEvent, StackEvents};
use handlescope_model::{Cancel, Cancelled, Poll, ProcessIdx, StackIdx};

use crate::collect::Collector;
use crate::etl::Clock;
use crate::lifecycle::ProcessIndex;
use crate::stacks::{AddressSpaces, StackResolver, StackTable};

/// Every stack of the trace in time order, if all were kept, unless asked to stop.
pub(super) fn table(
    collected: &Collector,
    spaces: &AddressSpaces,
    methods: &AddressSpaces,
    index: &ProcessIndex,
    clock: &Clock,
    stacks: &mut StackTable,
    cancel: &Cancel,
) -> Result<StackEvents, Cancelled> {
    let mut table = StackEvents::default();
    let Some(all) = &collected.stacks.all else { return Ok(table) };
    let mut poll = Poll::new(cancel);
    let mut resolver = StackResolver::new(all.fragments(), spaces, methods, stacks);
    let mut rows: Vec<_> = all.stacks().iter().collect();
    rows.sort_by_key(|stack| stack.event_time);
    for stack in rows {
        poll.round()?;
        let (parts, more) = stack.parts();
        let resolved = resolver.stack(parts, more, stack.pid, stack.event_time);
        table.push(StackEvent {
            time_ns: clock.ns(stack.event_time),
            process: index.find(stack.pid, stack.event_time).map(ProcessIdx),
            pid: stack.pid,
            tid: stack.tid,
            stack: resolved.map(StackIdx),
        });
    }
    Ok(table)
}
