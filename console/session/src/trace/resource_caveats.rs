//! Caveats about answers on allocations.

use handlescope_extract::is_loss_of_provider;
use handlescope_model::rules::RecordingMethod;
use handlescope_model::tables::{Allocator, ResourceKind};
use handlescope_model::{ArchiveError, Table, Trace};

use super::caveats::{Caveat, CaveatKind, counted};

/// How to record heaps; they need a session of their own.
const RECORD_HEAPS: &str = "for heaps record `xperf -start HeapSession -heap -pids PID -stackwalk \
                            HeapAlloc+HeapRealloc` and merge it with a kernel trace";

/// How to record virtual memory.
const RECORD_PAGES: &str =
    "for virtual memory (VIRT_ALLOC) record with `handlescope record --virtual-alloc`";

/// How to record everything else.
const RECORD_OTHERS: &str = "for other resources record the provider of their events";

/// How to record what is missing.
fn remedy(recording: RecordingMethod) -> &'static str {
    match recording {
        RecordingMethod::HeapSession => RECORD_HEAPS,
        RecordingMethod::VirtualMemory => RECORD_PAGES,
        RecordingMethod::Provider => RECORD_OTHERS,
    }
}

/// Facts that the caveats about allocations depend on.
#[derive(Debug, Clone, Default)]
pub struct ResourceFacts {
    /// The requested kinds.
    requested: Vec<ResourceKind>,
    /// Frees without an allocation, among those that passed.
    pub orphan_frees: u64,
    /// Facts of each kind, by its number.
    kinds: [KindFacts; ResourceKind::ALL.len()],
}

/// For each kind, by its number: the number of allocations, and how many of them have no stack.
pub type KindCounts = [(u64, u64); ResourceKind::ALL.len()];

/// Facts of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct KindFacts {
    /// Allocators of the kind in the whole trace.
    allocators: u64,
    /// Allocators whose process is unknown.
    without_process: u64,
    /// Allocators with a process older than the trace.
    older: u64,
    /// Allocations of the kind that passed the filters.
    allocations: u64,
    /// How many of them have no stack.
    without_stack: u64,
}

impl ResourceFacts {
    /// Creates facts about these kinds, with nothing added yet.
    pub fn new(requested: Vec<ResourceKind>) -> Self {
        Self { requested, ..Self::default() }
    }

    /// Adds an allocator. `start` is `None` if its process is unknown, and `Some(None)` if the trace does not say when
    /// the process started.
    pub fn add_allocator(&mut self, allocator: &Allocator, start: Option<Option<i64>>) {
        let Some(facts) = self.kinds.get_mut(allocator.kind as usize) else { return };
        facts.allocators += 1;
        match start {
            None => facts.without_process += 1,
            Some(None) => facts.older += 1,
            Some(Some(_)) => {}
        }
    }

    /// Adds the allocations that passed.
    pub fn add_allocations(&mut self, counts: &KindCounts) {
        for (facts, (count, without_stack)) in self.kinds.iter_mut().zip(counts) {
            facts.allocations += count;
            facts.without_stack += without_stack;
        }
    }

    /// Sums a count over the requested ones of some kinds.
    fn sum(&self, kinds: &[ResourceKind], count: fn(&KindFacts) -> u64) -> u64 {
        kinds
            .iter()
            .filter(|kind| self.requested.contains(kind))
            .filter_map(|kind| self.kinds.get(kind.code() as usize))
            .map(count)
            .sum()
    }

    /// Whether a kind is requested that is recorded this way.
    fn has_requested(&self, recording: RecordingMethod) -> bool {
        self.requested.iter().any(|kind| RecordingMethod::for_kind(*kind) == recording)
    }

    /// Sums a count over all requested kinds.
    fn total(&self, count: fn(&KindFacts) -> u64) -> u64 {
        self.sum(&ResourceKind::ALL, count)
    }
}

impl Caveat {
    /// Returns the caveats about allocations, except losses.
    pub fn for_resources(
        trace: &Trace,
        facts: &ResourceFacts,
    ) -> Result<Vec<Caveat>, ArchiveError> {
        let mut caveats = Vec::new();
        let mut add = |kind, text| caveats.push(Caveat { kind, text });
        if facts.has_requested(RecordingMethod::Provider)
            && let Some(losses) = counted(trace, is_loss_of_provider)?
        {
            let text = format!(
                "events that acquire and release are missing ({losses}); allocations, frees and leaks may be wrong"
            );
            add(CaveatKind::MissingInFile, text);
        }
        if facts.total(|kind| kind.allocators) == 0 {
            add(CaveatKind::NoResourceEvents, without_events(facts));
            return Ok(caveats);
        }
        if facts.total(|kind| kind.older) > 0 {
            let orphans = match facts.orphan_frees {
                0 => String::new(),
                1 => "; 1 free matches no known allocation".to_owned(),
                count => format!("; {count} frees match no known allocation"),
            };
            let text = format!("allocations from before the trace are unknown{orphans}");
            add(CaveatKind::OlderUnknown, text);
        }
        let unknown = facts.total(|kind| kind.without_process);
        if unknown > 0 {
            let reason = match trace.height(Table::Processes)? {
                0 => ": the trace has no process events; merge it with a kernel trace",
                _ => "",
            };
            let text = format!(
                "the processes of {unknown} of {} allocators are unknown{reason}; allocations that \
                 ended with them count as leaked",
                facts.total(|kind| kind.allocators)
            );
            add(CaveatKind::ProcessesUnknown, text);
        }
        for recording in RecordingMethod::ALL {
            let kinds: Vec<ResourceKind> = recording.kinds().collect();
            let [allocations, without] = [
                facts.sum(&kinds, |kind| kind.allocations),
                facts.sum(&kinds, |kind| kind.without_stack),
            ];
            caveats.extend(without_stacks(&kinds, allocations, without, remedy(recording)));
        }
        Ok(caveats)
    }
}

/// Returns the text for when nothing that was requested was recorded.
fn without_events(facts: &ResourceFacts) -> String {
    let remedies: Vec<&str> = RecordingMethod::ALL
        .into_iter()
        .filter(|recording| facts.has_requested(*recording))
        .map(remedy)
        .collect();
    if remedies.is_empty() {
        let names = ResourceKind::ALL.map(ResourceKind::name).join(", ");
        return format!("no such kind of allocation; the kinds are {names}");
    }
    let kinds: Vec<&str> = facts.requested.iter().map(|kind| kind.name()).collect();
    format!("the trace has no allocation events ({}); {}", kinds.join(", "), remedies.join("; "))
}

/// Returns a caveat about allocations without stacks; none if only a few lack one.
fn without_stacks(kinds: &[ResourceKind], sum: u64, without: u64, remedy: &str) -> Option<Caveat> {
    let percent = without.saturating_mul(100).checked_div(sum)?;
    let names = kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let text = match percent {
        0 => return None,
        100 => format!("no stacks of allocations ({names}); {remedy}"),
        _ => format!("stacks are missing for {percent} % of allocations ({names})"),
    };
    Some(Caveat { kind: CaveatKind::StacksMissing, text })
}
