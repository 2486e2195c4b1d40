//! Unknown code in two traces: it is the same only at the same address of a process that both of them show.

use handlescope_model::tables::{TraceInfo, TraceInfos};
use handlescope_model::{ArchiveError, TableRows, Trace};

use crate::tables::ProcessInfo;

/// Facts that two traces have about the lives of their processes.
#[derive(Default)]
pub struct UnknownCode {
    traces: [TraceInfo; 2],
}

impl UnknownCode {
    pub fn of(traces: [&Trace; 2]) -> Result<Self, ArchiveError> {
        let [before, after] = traces;
        let info = |trace: &Trace| -> Result<TraceInfo, ArchiveError> {
            Ok(TraceInfos::read(trace)?.row(0).unwrap_or_default())
        };
        Ok(Self { traces: [info(before)?, info(after)?] })
    }

    /// The life of a process of one of the traces, as text: equal in both for one that both of them show, else of no other.
    pub fn life(&self, side: usize, process: &ProcessInfo, knows_modules: bool) -> String {
        let [before, after] = &self.traces;
        let name = process.name.to_lowercase();
        // Of processes in dumps and text, nothing but the id says which it is.
        if !before.has_clock() && !after.has_clock() {
            return format!("{name} {}", process.pid);
        }
        let started = |info: &TraceInfo| info.session_start_filetime;
        if started(before) == started(after) {
            return format!("{name} {} {:?}", process.pid, process.start_ns);
        }
        let is_same_boot = before.boot_filetime.is_some()
            && before.boot_filetime == after.boot_filetime
            && before.computer == after.computer;
        let is_earlier = (started(before) < started(after)) == (side == 0);
        let lives_in_both =
            if is_earlier { process.end_ns.is_none() } else { process.start_ns.is_none() };
        // Without its modules, the code may be shared by all processes since the system was booted.
        if !knows_modules {
            return if is_same_boot { String::new() } else { format!("trace {side}") };
        }
        if is_same_boot && lives_in_both {
            return format!("{name} {}", process.pid);
        }
        format!("{name} {} {:?} in trace {side}", process.pid, process.start_ns)
    }
}
