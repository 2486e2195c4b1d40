use handlescope_model::ProcessIdx;
use handlescope_model::tables::{Thread, Threads};

use crate::etl::Clock;
use crate::kernel::ThreadRow;
use crate::lifecycle::{EXIT_GRACE_NS, ProcessIndex};

/// Makes the table; rows keep their order.
pub(super) fn table(rows: &[ThreadRow], index: &ProcessIndex, clock: &Clock) -> Threads {
    let grace = clock.ticks_apart(EXIT_GRACE_NS);
    let thread = |row: &ThreadRow| {
        // The last thread of a process may end after it.
        let process =
            index.find(row.pid, row.seen).or_else(|| index.find_ended(row.pid, row.seen, grace));
        Thread {
            process: process.map(ProcessIdx),
            pid: row.pid,
            tid: row.tid,
            start_ns: row.is_started.then(|| clock.ns(row.seen)),
            end_ns: clock.ns_of(row.end),
            creator_pid: row.creator.map(|(pid, _)| pid),
            creator_tid: row.creator.map(|(_, tid)| tid),
            start_address: Some(row.start_address).filter(|address| *address != 0),
        }
    };
    rows.iter().map(thread).collect()
}
