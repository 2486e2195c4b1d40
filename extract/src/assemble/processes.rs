//! Tables of processes and threads.

use std::collections::HashMap;

use handlescope_model::ProcessIdx;
use handlescope_model::tables::{Process, Processes, Thread, Threads, Zombie, Zombies};

use crate::etl::Clock;
use crate::kernel::{self, ProcessRow, ThreadRow, ZombieRow};
use crate::lifecycle::ProcessIndex;

/// Makes the table of processes. Rows keep their order, so row numbers stay valid.
pub fn table(rows: &[ProcessRow], image_paths: &HashMap<u32, String>, clock: &Clock) -> Processes {
    let mut table = Processes::default();
    for (index, row) in rows.iter().enumerate() {
        let process = &row.process;
        table.push(Process {
            pid: process.pid,
            parent_pid: process.parent_pid,
            key: process.key,
            name: process.name.clone(),
            image_path: image_paths.get(&(index as u32)).cloned(),
            command_line: process.command_line.clone(),
            session_id: process.session_id,
            sid: process.sid.clone(),
            start_ns: clock.ns_of(row.start),
            end_ns: clock.ns_of(row.end),
            // While a process runs, its status is STATUS_PENDING, which says nothing.
            exit_code: row.end.map(|_| process.exit_status),
        });
    }
    table
}

/// Makes the table of zombies.
pub fn zombies(processes: &kernel::Processes, session_start: i64, clock: &Clock) -> Zombies {
    let rows = &processes.rows;
    // Keys and pids are used again: the last one is meant.
    let with_key = rows.iter().enumerate().filter(|(_, row)| row.process.key != 0);
    let by_ids: HashMap<(u64, u32), usize> =
        with_key.map(|(at, row)| ((row.process.key, row.process.pid), at)).collect();
    let exit_ns = |filetime: i64| filetime.checked_sub(session_start)?.checked_mul(100);
    processes
        .last_zombies()
        .map(|ZombieRow { process, exit_time, listed }| {
            let row = by_ids.get(&(process.key, process.pid)).copied();
            let end = row.and_then(|at| rows.get(at)?.end);
            Zombie {
                process: row.map(|at| ProcessIdx(at as u32)),
                pid: process.pid,
                parent_pid: process.parent_pid,
                key: process.key,
                name: process.name.clone(),
                command_line: process.command_line.clone(),
                session_id: process.session_id,
                sid: process.sid.clone(),
                exit_code: process.exit_status,
                exit_ns: clock.ns_of(end).or_else(|| exit_ns((*exit_time)?)),
                listed_ns: clock.ns(*listed),
            }
        })
        .collect()
}

/// Makes the table of threads. Rows keep their order.
pub fn threads(rows: &[ThreadRow], index: &ProcessIndex, clock: &Clock) -> Threads {
    rows.iter()
        .map(|row| {
            // The last thread of a process may end after the process.
            let process = index.find_or_ended(row.pid, row.seen);
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
        })
        .collect()
}
