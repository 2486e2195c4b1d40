use std::collections::HashMap;

use handlescope_model::tables::{Process, Processes};

use crate::etl::Clock;
use crate::kernel::ProcessRow;

/// Session id of processes that belong to no session.
const NO_SESSION: u32 = u32::MAX;

/// Makes the table; rows keep their order, so that row numbers stay valid.
pub(super) fn table(
    rows: &[ProcessRow],
    image_paths: &HashMap<u32, String>,
    clock: &Clock,
) -> Processes {
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
            session_id: Some(process.session_id).filter(|id| *id != NO_SESSION),
            sid: process.sid.clone(),
            start_ns: clock.ns_of(row.start),
            end_ns: clock.ns_of(row.end),
            // While a process runs its status is STATUS_PENDING, which says nothing.
            exit_code: row.end.map(|_| process.exit_status),
        });
    }
    table
}
