//! Options, progress and summary of an extraction.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use handlescope_model::ContainerLimits;
use handlescope_model::tables::Warning;

use crate::mapping::ResourceMapping;

/// Watches an extraction. All methods are optional.
pub trait ExtractObserver {
    /// Called with the size of the trace in bytes.
    fn on_started(&self, _total_bytes: u64) {}
    /// Called when this number of bytes has been read.
    fn on_progress(&self, _bytes: u64) {}
    /// Called when all bytes have been read, with the name of the next phase.
    fn on_phase(&self, _name: &str) {}
}

/// Observer that ignores all calls.
pub struct NoObserver;

impl ExtractObserver for NoObserver {}

/// Summary of an extraction.
#[derive(Debug, Clone, Default)]
pub struct ExtractSummary {
    pub objects: u64,
    /// Creates, duplicates and closes.
    pub handle_events: u64,
    /// Creates and duplicates without a close.
    pub leaked_handles: u64,
    /// Views that nothing unmaps.
    pub leaked_views: u64,
    /// Creates, duplicates and maps closed only by the end of their process.
    pub closed_at_exit: u64,
    /// Handles and views with a missing close that later events show.
    pub closed_unseen: u64,
    /// Allocated blocks, pages and other resources.
    pub allocations: u64,
    /// Allocations never freed while their process lived on.
    pub never_freed: u64,
    /// Allocations freed only by process exit.
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

/// What an extract contains, and how it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractOptions {
    pub stacks: StackChoice,
    pub events: EventChoice,
    /// Events that acquire and release resources, in addition to those known by name.
    pub resources: Vec<ResourceMapping>,
    /// Limits on a trace inside an archive.
    pub limits: ContainerLimits,
    /// Number of threads that share the work. The archive does not depend on it.
    pub threads: NonZeroUsize,
    /// Memory limit of the process in bytes, at least [`MIN_MEMORY`]. It works only in a program with the
    /// [`SpillingAllocator`]: what does not fit goes to temporary files next to the archive.
    ///
    /// [`SpillingAllocator`]: crate::SpillingAllocator
    pub max_memory: u64,
}

/// Smallest memory limit: buffers, parts of tables and the program itself need this much.
pub const MIN_MEMORY: u64 = 256 << 20;

/// Default memory limit.
const DEFAULT_MEMORY: u64 = 1 << 30;

/// Largest trace that is unpacked. Traces of some gigabytes are common.
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

/// Providers with events that an extract keeps individually.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EventChoice {
    /// None.
    #[default]
    None,
    /// All providers whose events can be decoded.
    All,
    /// Providers with these names or GUIDs, case-insensitive.
    Providers(Vec<String>),
}

impl EventChoice {
    /// Parses a choice in words: `all`, or providers with `;` in between.
    pub fn new(text: &str) -> Self {
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
    /// Stacks of all events.
    All,
}
