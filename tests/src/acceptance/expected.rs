//! What to expect from a trace, according to a truth.

use std::collections::{BTreeMap, HashMap};

use leaky_program::truth::{AllocationKind, CallEffect, TruthLine};

/// What became of a handle, view or allocation before the recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Closed,
    /// Open when the recording ended.
    Leaked,
    /// Its process exited first.
    ClosedAtExit,
}

/// How a process got a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandleOrigin {
    Opened,
    Duplicated,
    /// A child inherited it. The owner is the parent here, as in answers.
    Inherited,
}

/// A handle that should be in the trace.
#[derive(Debug, Clone)]
pub struct ExpectedHandle {
    /// Owner.
    pub pid: u32,
    /// Thread and function that opened it.
    pub tid: u32,
    pub function: String,
    pub at_us: u64,
    pub handle: u64,
    pub object_type: String,
    pub name: Option<String>,
    pub origin: HandleOrigin,
    pub fate: Fate,
}

/// A view that should be in the trace.
#[derive(Debug, Clone)]
pub struct ExpectedView {
    pub pid: u32,
    pub function: String,
    pub at_us: u64,
    pub address: u64,
    pub size: u64,
    pub fate: Fate,
}

/// An allocation that should be in the trace, if its kind was recorded.
#[derive(Debug, Clone)]
pub struct Allocation {
    pub kind: AllocationKind,
    pub pid: u32,
    pub function: String,
    pub at_us: u64,
    pub key: u64,
    pub size: u64,
    pub fate: Fate,
}

/// Everything that is expected.
#[derive(Debug, Clone, Default)]
pub struct Expectation {
    /// Name of the executable.
    pub process: String,
    pub pids: Vec<u32>,
    pub handles: Vec<ExpectedHandle>,
    pub views: Vec<ExpectedView>,
    pub allocations: Vec<Allocation>,
}

impl Expectation {
    /// Follows the calls of a truth to the end of the recording.
    #[must_use]
    pub fn new(lines: &[TruthLine]) -> Self {
        let mut expected = Self::default();
        // A process that waits outlives the recording, even if a later line says that it exits.
        let waits: Vec<u32> = lines
            .iter()
            .filter(|line| line.call == CallEffect::Waits)
            .map(|line| line.pid)
            .collect();
        let at_end =
            |pid: u32| if waits.contains(&pid) { Fate::Leaked } else { Fate::ClosedAtExit };
        let (mut handles, mut views, mut allocations) =
            (HashMap::new(), HashMap::new(), HashMap::new());
        for line in lines {
            match &line.call {
                CallEffect::Started { process } => {
                    expected.process.clone_from(process);
                    expected.pids.push(line.pid);
                }
                CallEffect::Opened { handle, object_type, name } => {
                    handles.insert((line.pid, *handle), expected.handles.len());
                    let fate = at_end(line.pid);
                    let handle = new(line, line.pid, *handle, object_type, name);
                    expected.handles.push(ExpectedHandle {
                        origin: HandleOrigin::Opened,
                        fate,
                        ..handle
                    });
                }
                CallEffect::Duplicated { into, handle, object_type, name } => {
                    handles.insert((*into, *handle), expected.handles.len());
                    let fate = at_end(*into);
                    let handle = new(line, *into, *handle, object_type, name);
                    expected.handles.push(ExpectedHandle {
                        origin: HandleOrigin::Duplicated,
                        fate,
                        ..handle
                    });
                }
                CallEffect::Inherited { by, handle, object_type, name } => {
                    // Programs close inherited handles only by exiting, so that is no leak.
                    let fate = match at_end(*by) {
                        Fate::ClosedAtExit => Fate::Closed,
                        fate => fate,
                    };
                    let handle = new(line, *by, *handle, object_type, name);
                    expected.handles.push(ExpectedHandle {
                        origin: HandleOrigin::Inherited,
                        fate,
                        ..handle
                    });
                }
                CallEffect::Closed { handle } => {
                    if let Some(index) = handles.remove(&(line.pid, *handle)) {
                        expected.handles[index].fate = Fate::Closed;
                    }
                }
                CallEffect::Mapped { address, size } => {
                    views.insert((line.pid, *address), expected.views.len());
                    expected.views.push(ExpectedView {
                        pid: line.pid,
                        function: line.function.clone(),
                        at_us: line.at_us,
                        address: *address,
                        size: *size,
                        fate: at_end(line.pid),
                    });
                }
                CallEffect::Unmapped { address } => {
                    if let Some(index) = views.remove(&(line.pid, *address)) {
                        expected.views[index].fate = Fate::Closed;
                    }
                }
                CallEffect::Allocated { kind, key, size } => {
                    allocations.insert((line.pid, *kind, *key), expected.allocations.len());
                    expected.allocations.push(Allocation {
                        kind: *kind,
                        pid: line.pid,
                        function: line.function.clone(),
                        at_us: line.at_us,
                        key: *key,
                        size: *size,
                        fate: at_end(line.pid),
                    });
                }
                CallEffect::Freed { kind, key } => {
                    if let Some(index) = allocations.remove(&(line.pid, *kind, *key)) {
                        expected.allocations[index].fate = Fate::Closed;
                    }
                }
                CallEffect::Exits | CallEffect::Waits => {}
            }
        }
        expected
    }

    /// Returns the functions that leave handles or views open: how many they left open, and how many they opened.
    #[must_use]
    pub fn leaking(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut functions: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let handles = self.handles.iter().map(|handle| (&handle.function, handle.fate));
        let views = self.views.iter().map(|view| (&view.function, view.fate));
        for (function, fate) in handles.chain(views) {
            let counts = functions.entry(function).or_default();
            counts.0 += usize::from(fate != Fate::Closed);
            counts.1 += 1;
        }
        functions.retain(|_, (leaked, _)| *leaked > 0);
        functions
    }
}

fn new(
    line: &TruthLine,
    pid: u32,
    handle: u64,
    object_type: &str,
    name: &Option<String>,
) -> ExpectedHandle {
    ExpectedHandle {
        pid,
        tid: line.tid,
        function: line.function.clone(),
        at_us: line.at_us,
        handle,
        object_type: object_type.to_owned(),
        name: name.clone(),
        origin: HandleOrigin::Opened,
        fate: Fate::Leaked,
    }
}
