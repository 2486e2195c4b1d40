//! Scenarios: what processes did with handles, at times in nanoseconds since the session start.
//!
//! ```
//! use handlescope_tests::scenario::{Caller, TraceBuilder};
//!
//! let mut trace = TraceBuilder::new();
//! trace.process(4711, "app.exe").parent(4).started(1_000).command_line("app.exe -x");
//! trace.module(4711, r"C:\app\app.exe", 0x7ff6_0000_0000, 0x2_0000);
//! trace.object_type(16, "Event");
//! let app = Caller::new(4711, 4712).on(1);
//! trace
//!     .create_handle(2_000, app, 0xffff_8100_0000_1000, 0x24, 16)
//!     .stack(&[0xffff_f801_0000_1000], &[0x7ff6_0000_1000])
//!     .close_handle(9_000, app, 0xffff_8100_0000_1000, 0x24, 16, r"\BaseNamedObjects\Done");
//! let bytes = trace.to_bytes();
//! assert_eq!(bytes.len() % 65_536, 0);
//! ```
//!
//! Methods can be called in any order of time. As on Windows, a process that ends closes what it has open 0.3 to 50 ms
//! after the end event, its views last ([`ProcessSpec::unswept`] leaves that out), and the header of a start names the
//! creating thread. [`TraceBuilder::to_bytes`] adds what real merged traces end with: rundowns of handles, types,
//! processes, threads and images, image identities and facts about the system.

mod actions;
mod actors;
mod builder;
mod choices;
mod config;
mod exits;
mod ledger;
mod lifetimes;
mod noise;
mod rundown;
mod specs;
mod stacks;

use std::io;
use std::path::Path;

use self::actors::ThreadActors;
use crate::file::{EtlFile, FileSummary};
use crate::header::{HeaderKind, Stamp};
use crate::payload::context_switch;

pub use self::actions::{DuplicatedHandle, MappedView};
pub use self::actors::Caller;
pub use self::builder::TraceBuilder;
pub use self::config::StackMode;
pub use self::ledger::{KERNEL_HANDLE, TAG_BITS};
pub use self::specs::{ModuleSpec, ProcessSpec, ThreadSpec};

/// Time between the last event and the rundown at the end, in nanoseconds.
const RUNDOWN_DELAY: i64 = 1_000_000;

impl TraceBuilder {
    /// Returns the finished file.
    ///
    /// # Panics
    /// See [`EtlFile::to_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.build().to_bytes()
    }

    /// Writes the finished file.
    ///
    /// # Errors
    /// If the file cannot be written.
    ///
    /// # Panics
    /// See [`EtlFile::to_bytes`].
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<FileSummary> {
        self.build().write(path.as_ref())
    }

    /// Returns the file with all events, so that they can be changed before it is written.
    #[must_use]
    pub fn build(&self) -> EtlFile {
        let mut trace = self.clone();
        trace.actors = ThreadActors::new(&self.acts, &self.threads, &self.processes);
        let said = std::mem::take(&mut trace.entries);
        trace.add_starts();
        trace.entries.extend(said);
        trace.add_sweeps();
        trace.add_ends();
        trace.add_stacks();
        let end = trace.config.end.unwrap_or_else(|| trace.last_ns() + RUNDOWN_DELAY);
        trace.add_noise(end);
        trace.add_rundowns(end);
        trace.entries.sort_by_key(|entry| entry.time);
        trace.into_file()
    }

    fn into_file(self) -> EtlFile {
        let mut running: Vec<Option<u32>> = vec![None; self.options.cpus as usize];
        let pointer = self.options.pointer;
        let mut file = EtlFile::new(self.options);
        for entry in self.entries {
            let current = running.get_mut(usize::from(entry.cpu)).filter(|_| entry.tid.is_some());
            if let Some(current) = current.filter(|current| **current != entry.tid)
                && self.config.context_switches
            {
                let switch = context_switch(entry.tid.unwrap_or(0), current.unwrap_or(0));
                let stamp = Stamp::new(entry.time, 0, 0);
                let bytes = switch.event(HeaderKind::PerfInfo, pointer, stamp);
                file.push(entry.cpu, entry.time, bytes);
                *current = entry.tid;
            }
            file.push(entry.cpu, entry.time, entry.bytes);
        }
        file
    }
}

#[cfg(test)]
mod tests;
