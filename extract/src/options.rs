//! Options, progress and summary of an extraction.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use handlescope_model::ContainerLimits;
use handlescope_model::tables::Warning;

use crate::mapping::ResourceMapping;

/// Watches an extraction; every method may be left out.
pub trait ExtractObserver {
    /// Called with the size of the trace, bytes.
    fn on_started(&self, _total_bytes: u64) {}
    /// Called when this number of bytes has been read.
    fn on_progress(&self, _bytes: u64) {}
    /// Called when all bytes were read, with the name of the next phase.
    fn on_phase(&self, _name: &str) {}
}

/// An observer that ignores all calls.
pub struct NoObserver;

impl ExtractObserver for NoObserver {}

/// Summary of an extraction.
#[derive(Debug, Clone, Default)]
pub struct ExtractSummary {
    pub objects: u64,
    /// Creates, duplicates and closes.
    pub handle_events: u64,
    /// Creates and duplicates without close.
    pub leaked_handles: u64,
    /// Views that nothing unmaps.
    pub leaked_views: u64,
    /// Creates, duplicates and maps that only the end of their process closed.
    pub closed_at_exit: u64,
    /// Handles and views whose close is missing, but shown by later events.
    pub closed_unseen: u64,
    /// Allocated blocks, pages and further resources.
    pub allocations: u64,
    /// Number of allocations that were never freed while their process lived on.
    pub never_freed: u64,
    /// Number of allocations freed only by process exit.
    pub freed_at_exit: u64,
    pub stacks_distinct: u64,
    /// Events the session lost.
    pub events_lost: u64,
    /// Buffers the session lost.
    pub buffers_lost: u64,
    pub bytes_read: u64,
    pub output_bytes: u64,
    pub elapsed: Duration,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
}

/// Content of an extract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractOptions {
    pub stacks: StackChoice,
    pub events: EventChoice,
    /// Events that acquire and release resources, besides those that are known by their names.
    pub resources: Vec<ResourceMapping>,
    /// Limits on a trace inside an archive.
    pub limits: ContainerLimits,
    /// Threads that share the work; the archive is the same for every number.
    pub threads: NonZeroUsize,
    /// Memory that the process is to keep to, bytes, at least [`MIN_MEMORY`]. It has an effect in a program with the
    /// [`SpillingAllocator`], where what has no room lies in temporary files beside the archive.
    ///
    /// [`SpillingAllocator`]: crate::SpillingAllocator
    pub max_memory: u64,
}

/// Smallest limit of memory: buffers, parts of tables and the program itself need as much.
pub const MIN_MEMORY: u64 = 256 << 20;

/// Limit of memory unless another one is given.
const DEFAULT_MEMORY: u64 = 1 << 30;

/// Largest trace that is unpacked. Traces of some gigabytes are usual.
const TRACE_BYTES: u64 = 64 << 30;

impl Default for ExtractOptions {
    fn default() -> Self {
        let limits = ContainerLimits::for_members_of(TRACE_BYTES);
        Self {
            stacks: StackChoice::default(),
            events: EventChoice::default(),
            resources: Vec::new(),
            limits,
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            max_memory: DEFAULT_MEMORY,
        }
    }
}

/// Providers whose single events an extract keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EventChoice {
    /// No provider.
    #[default]
    None,
    /// All providers whose events can be decoded.
    All,
    /// Providers with these names or GUIDs, case-insensitive.
    Providers(Vec<String>),
}

impl EventChoice {
    /// The choice in words: `all`, or providers with `;` between them.
    pub fn of(text: &str) -> Self {
        let names = || text.split(';').map(str::trim).filter(|name| !name.is_empty());
        if names().any(|name| name.eq_ignore_ascii_case("all")) {
            return Self::All;
        }
        Self::Providers(names().map(str::to_owned).collect())
    }

    /// Whether events of a provider are kept.
    pub fn means(&self, name: &str, guid: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Providers(providers) => providers.iter().any(|provider| {
                let provider = provider.trim_start_matches('{').trim_end_matches('}');
                provider.eq_ignore_ascii_case(name) || provider.eq_ignore_ascii_case(guid)
            }),
        }
    }
}

/// Stacks that an extract keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StackChoice {
    #[default]
    HandleEvents,
    /// The stacks of all events.
    All,
}
