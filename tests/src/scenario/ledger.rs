//! Tracks the handles and views that processes have open, from the events of a scenario.

use std::collections::{BTreeMap, HashMap};

use super::actors::Caller;
use super::builder::TraceBuilder;
use crate::payload::{DuplicateRecord, HandleRecord, ViewRecord};

/// Bit of handle values in the table of System; threads of all processes open and close them.
pub const KERNEL_HANDLE: u32 = 0x8000_0000;
/// Bits of a handle value that belong to the caller.
pub const TAG_BITS: u32 = 3;

/// A change to what is open.
#[derive(Debug, Clone)]
pub struct HandleChange {
    pub ns: i64,
    pub caller: Caller,
    pub what: HandleChangeKind,
}

#[derive(Debug, Clone)]
pub enum HandleChangeKind {
    /// Open since before the trace.
    Before(HandleRecord),
    Create(HandleRecord),
    Duplicate(DuplicateRecord),
    Close(HandleRecord),
    Map(ViewRecord),
    Unmap(ViewRecord),
}

/// Handles and views that a process has open when it ends.
#[derive(Debug, Clone, Default)]
pub struct OpenAtExit {
    pub handles: Vec<HandleRecord>,
    pub views: Vec<ViewRecord>,
}

/// Process that owns the kernel handles.
const SYSTEM: u32 = 4;

/// Handle tables and address spaces, by process index.
#[derive(Debug, Default)]
struct Ledger {
    /// Lifetimes of each pid as (start, process index), in order of start.
    lifetimes: HashMap<u32, Vec<(i64, usize)>>,
    /// Starts with the creating thread, the parent and the process index, in time order.
    starts: Vec<(i64, (u32, u32), u32, usize)>,
    tables: Vec<BTreeMap<u32, Vec<HandleRecord>>>,
    views: Vec<BTreeMap<u64, ViewRecord>>,
}

impl TraceBuilder {
    /// Returns what each process still has open after all changes, by process index.
    pub fn left_open(&self) -> Vec<OpenAtExit> {
        let mut ledger = Ledger::new(self);
        let mut changes: Vec<&HandleChange> = self.changes.iter().collect();
        changes.sort_by_key(|change| change.ns);
        for change in changes {
            ledger.change(change);
        }
        ledger
            .tables
            .into_iter()
            .zip(ledger.views)
            .map(|(table, views)| OpenAtExit {
                handles: table.into_values().flatten().collect(),
                views: views.into_values().collect(),
            })
            .collect()
    }
}

impl Ledger {
    fn new(trace: &TraceBuilder) -> Self {
        let mut ledger = Self {
            tables: vec![BTreeMap::new(); trace.processes.len()],
            views: vec![BTreeMap::new(); trace.processes.len()],
            ..Self::default()
        };
        for (number, process) in trace.processes.iter().enumerate() {
            let start = process.started.unwrap_or(i64::MIN);
            ledger.lifetimes.entry(process.record.pid).or_default().push((start, number));
            if process.started.is_some() {
                let Caller { pid, tid, .. } = trace.creating_thread(process);
                ledger.starts.push((start, (pid, tid), process.record.parent, number));
            }
        }
        ledger.lifetimes.values_mut().for_each(|list| list.sort_unstable());
        ledger.starts.sort_unstable();
        ledger
    }

    fn change(&mut self, HandleChange { ns, caller, what }: &HandleChange) {
        match what {
            HandleChangeKind::Before(handle) => {
                self.open(self.process(handle.pid, i64::MIN), handle);
            }
            HandleChangeKind::Create(handle) => {
                let is_of_kernel = handle.handle & KERNEL_HANDLE != 0;
                let pid = if is_of_kernel { SYSTEM } else { caller.pid };
                self.open(self.process(pid, *ns), handle);
            }
            HandleChangeKind::Duplicate(duplicate) => {
                let handle = HandleRecord {
                    object: duplicate.object,
                    handle: duplicate.target_handle,
                    type_id: duplicate.type_id,
                    ..HandleRecord::default()
                };
                self.open(self.receiver(*ns, *caller, duplicate), &handle);
            }
            HandleChangeKind::Close(handle) => self.close(*ns, caller.pid, handle),
            HandleChangeKind::Map(view) => {
                if let Some(process) = self.process(address_space(view, *caller), *ns) {
                    self.views[process].insert(view.base, *view);
                }
            }
            HandleChangeKind::Unmap(view) => {
                if let Some(process) = self.process(address_space(view, *caller), *ns) {
                    self.views[process].remove(&view.base);
                }
            }
        }
    }

    /// Returns the process with a pid at a time; before its start, the pid already means its first process.
    fn process(&self, pid: u32, ns: i64) -> Option<usize> {
        let list = self.lifetimes.get(&pid)?;
        let started = list.partition_point(|(start, _)| *start <= ns);
        list.get(started.saturating_sub(1)).map(|(_, number)| *number)
    }

    /// Returns the process that receives a duplicated handle: a child that has no pid yet, or the target.
    fn receiver(&self, ns: i64, caller: Caller, duplicate: &DuplicateRecord) -> Option<usize> {
        let DuplicateRecord { source_handle, target_handle, target_pid, .. } = *duplicate;
        let source_pid = duplicate.source_pid.unwrap_or(caller.pid);
        let is_older_form = target_pid == source_pid && source_handle == target_handle;
        if target_pid != 0 && !is_older_form {
            return self.process(target_pid, ns);
        }
        let next = self.starts.partition_point(|(start, ..)| *start < ns);
        let later = || self.starts[next..].iter();
        let lacks = |number: usize| !self.tables[number].contains_key(&(target_handle & !TAG_BITS));
        let by_thread =
            later().find(|(_, creator, _, at)| *creator == (caller.pid, caller.tid) && lacks(*at));
        by_thread
            .or_else(|| later().find(|(_, _, parent, at)| *parent == source_pid && lacks(*at)))
            .map(|(.., number)| *number)
    }

    fn open(&mut self, process: Option<usize>, handle: &HandleRecord) {
        if let Some(process) = process {
            let value = handle.handle & !(KERNEL_HANDLE | TAG_BITS);
            self.tables[process].entry(value).or_default().push(handle.clone());
        }
    }

    /// Closes the handle in the caller's table, else among the kernel handles, else in any other process.
    fn close(&mut self, ns: i64, pid: u32, handle: &HandleRecord) {
        let own = self.process(pid, ns).into_iter().chain(self.process(SYSTEM, ns));
        let value = handle.handle & !(KERNEL_HANDLE | TAG_BITS);
        for process in own.chain(0..self.tables.len()).collect::<Vec<_>>() {
            let Some(open) = self.tables[process].get_mut(&value) else { continue };
            let Some(at) = open.iter().position(|open| open.object == handle.object) else {
                continue;
            };
            open.remove(at);
            if open.is_empty() {
                self.tables[process].remove(&value);
            }
            return;
        }
    }
}

/// Returns the process that a view is mapped into.
fn address_space(view: &ViewRecord, caller: Caller) -> u32 {
    if view.pid == 0 { caller.pid } else { view.pid }
}
