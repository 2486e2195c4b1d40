//! The memory limit of queries. Polars has no limit of its own, and a query cannot be stopped inside one of its steps,
//! so we watch the memory of the process.

use std::thread;
use std::time::Duration;

use sysinfo::{MemoryRefreshKind, Process, ProcessRefreshKind, ProcessesToUpdate, System};

use super::error::SqlError;
use handlescope_session::environment::most_addresses;

/// Time between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How much memory queries may take.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLimit {
    /// Bytes per query; by default half the memory of the machine or container.
    pub most: Option<u64>,
    /// Ends the program because an abandoned query, which cannot be stopped, took more than this many bytes.
    pub end_program: fn(u64),
}

/// The memory a query takes on top of what the process already used.
pub struct QueryMemory {
    system: System,
    before: u64,
    most: u64,
    /// Bytes that an abandoned query may take before the program ends.
    most_of_given_up: u64,
    end_program: fn(u64),
}

impl QueryMemory {
    /// Starts watching.
    pub fn new(MemoryLimit { most, end_program }: MemoryLimit) -> Self {
        let system = System::new();
        let mut memory = Self { system, before: 0, most: 0, most_of_given_up: 0, end_program };
        memory.before = memory.used();
        let usual = memory.usual();
        memory.most = most.unwrap_or(usual);
        memory.most_of_given_up = usual.max(memory.most).saturating_add(usual / 4);
        memory
    }

    /// # Errors
    /// If the query needs more than it may.
    pub fn check(&mut self) -> Result<(), SqlError> {
        let most = self.most;
        if self.taken() > most { Err(SqlError::TooMuchMemory { most }) } else { Ok(()) }
    }

    /// Watches an abandoned query, and ends the program before the query takes all memory.
    pub fn wait_for<T: Send + 'static>(&self, query: thread::JoinHandle<T>) {
        let mut memory = Self { system: System::new(), ..*self };
        // If the thread cannot start, the query ends unwatched.
        let _ = thread::Builder::new().name("sql memory".into()).spawn(move || {
            while !query.is_finished() {
                if memory.taken() > memory.most_of_given_up {
                    (memory.end_program)(memory.most_of_given_up);
                }
                thread::sleep(LOOK_EVERY);
            }
        });
    }

    fn taken(&mut self) -> u64 {
        self.used().saturating_sub(self.before)
    }

    /// Returns the bytes of the process in memory, or in addresses if those are limited; 0 if the system does not tell.
    fn used(&mut self) -> u64 {
        let bytes =
            if most_addresses().is_some() { Process::virtual_memory } else { Process::memory };
        self.process().map_or(0, bytes)
    }

    fn process(&mut self) -> Option<&Process> {
        let pid = sysinfo::get_current_pid().ok()?;
        let refresh = ProcessRefreshKind::nothing().with_memory();
        self.system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, refresh);
        self.system.process(pid)
    }

    /// Returns half the memory of the machine or its container, or three quarters of what is left of the address limit
    /// (`ulimit -v`) if that is less. Beyond that limit, an allocation ends the program.
    fn usual(&mut self) -> u64 {
        self.system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let limit = self.system.cgroup_limits().map(|limits| limits.total_memory);
        let total = self.system.total_memory();
        // Without a limit, a container reports 0 or more than the machine has.
        let total = limit.filter(|limit| *limit > 0).map_or(total, |limit| limit.min(total));
        let addresses = most_addresses().map(|most| most.saturating_sub(self.used()));
        addresses.map_or(total / 2, |left| (left / 4 * 3).min(total / 2))
    }
}
