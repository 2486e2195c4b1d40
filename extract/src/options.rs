//! What an extraction is asked for, what watches it, and what it answers.

use std::time::Duration;

use handlescope_model::ContainerLimits;
use handlescope_model::tables::Warning;

use crate::mapping::ResourceMapping;

/// Watches an extraction; every method may be left out.
pub trait ExtractObserver {
    /// The size of the trace is known: bytes.
    fn on_started(&self, _total_bytes: u64) {}
    /// So many bytes were read.
    fn on_progress(&self, _bytes: u64) {}
    /// All bytes were read; what follows is named.
    fn on_phase(&self, _name: &str) {}
}

/// An observer that looks away.
pub struct NoObserver;

impl ExtractObserver for NoObserver {}

/// What an extraction found.
#[derive(Debug, Clone, Default)]
pub struct ExtractSummary {
    pub objects: u64,
    /// Creates, duplicates and closes.
    pub handle_events: u64,
    /// Creates and duplicates without close.
    pub leaked_handles: u64,
    /// Views that nothing unmaps.
    pub leaked_views: u64,
    /// Creates and duplicates that only the end of their process closed.
    pub closed_at_exit: u64,
    /// Handles and views whose close is missing, but shown by something else.
    pub closed_unseen: u64,
    /// Blocks, pages and whatever else was allocated.
    pub allocations: u64,
    /// Those that nothing freed while their process lived on.
    pub never_freed: u64,
    /// Those that only the end of their process freed.
    pub freed_at_exit: u64,
    pub stacks_distinct: u64,
    /// Events the session lost.
    pub events_lost: u64,
    /// Buffers the session lost.
    pub buffers_lost: u64,
    pub bytes_read: u64,
    pub output_bytes: u64,
    pub elapsed: Duration,
    /// What else a reader should know.
    pub warnings: Vec<Warning>,
}

/// What an extract is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractOptions {
    pub stacks: StackChoice,
    pub events: EventChoice,
    /// Events that acquire and release resources, besides those that are known by their names.
    pub resources: Vec<ResourceMapping>,
    /// What a trace that lies in an archive may not exceed.
    pub limits: ContainerLimits,
}

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
        }
    }
}

/// Of which providers an extract keeps single events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EventChoice {
    /// Of none.
    #[default]
    None,
    /// Of all whose events can be decoded.
    All,
    /// Of those with these names or GUIDs, in any case.
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

/// Which stacks an extract keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StackChoice {
    #[default]
    HandleEvents,
    /// Every one, of any event.
    All,
}
