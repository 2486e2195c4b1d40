//! The whole way from a trace file to an archive.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use handlescope_model::ContainerLimits;

use crate::assemble::assemble;
use crate::collect::{Collector, KernelSelector};
use crate::error::ExtractError;
use crate::recording::OpenRecording;
use crate::stacks::KeptStacks;

/// Watches an extraction; every method may be left out.
pub trait ExtractObserver {
    /// The size of the trace is known: bytes.
    fn on_started(&self, total_bytes: u64) {
        let _ = total_bytes;
    }
    /// So many bytes were read.
    fn on_progress(&self, bytes: u64) {
        let _ = bytes;
    }
    /// All bytes were read; what follows is named.
    fn on_phase(&self, name: &str) {
        let _ = name;
    }
    /// Whether to stop. Asked often, on the thread that called [`extract`].
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Stops when the observer asks for it.
pub(crate) fn check(observer: &dyn ExtractObserver) -> Result<(), ExtractError> {
    if observer.is_cancelled() { Err(ExtractError::Cancelled) } else { Ok(()) }
}

/// An observer that looks away.
pub struct NoObserver;

impl ExtractObserver for NoObserver {}

/// One kind of damage, loss or omission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractWarning {
    /// What happened, in words.
    pub kind: &'static str,
    /// How often.
    pub count: u64,
    /// File offset of the first, where it has one.
    pub first_offset: Option<u64>,
}

/// What an extraction found.
#[derive(Debug, Clone)]
pub struct ExtractSummary {
    /// Objects and views.
    pub objects: u64,
    /// Creates, duplicates and closes.
    pub handle_events: u64,
    /// Creates and duplicates without close.
    pub leaked_handles: u64,
    /// Distinct stacks.
    pub stacks_distinct: u64,
    /// Events the session lost.
    pub events_lost: u64,
    /// Buffers the session lost.
    pub buffers_lost: u64,
    /// Bytes of the trace.
    pub bytes_read: u64,
    /// Bytes of the archive.
    pub output_bytes: u64,
    /// Wall time.
    pub elapsed: Duration,
    /// What else a reader should know.
    pub warnings: Vec<ExtractWarning>,
}

/// What an extract is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractOptions {
    /// Which stacks.
    pub stacks: StackChoice,
    /// What a trace that lies in an archive may not exceed.
    pub limits: ContainerLimits,
}

/// Largest trace that is unpacked. Traces of some gigabytes are usual, and the disk has to have room.
const TRACE_BYTES: u64 = 64 << 30;

impl Default for ExtractOptions {
    fn default() -> Self {
        let limits = ContainerLimits::for_members_of(TRACE_BYTES);
        Self { stacks: StackChoice::default(), limits }
    }
}

/// Which stacks an extract keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StackChoice {
    /// Those of handle events.
    #[default]
    HandleEvents,
    /// Every one, of any event.
    All,
}

/// Extracts the trace `input` into the archive `output`, whose folder must exist.
///
/// The archive appears under its name only when it is complete.
///
/// # Errors
/// When the trace cannot be read, the archive cannot be written, or the observer asks to stop.
pub fn extract(
    input: &Path,
    output: &Path,
    options: ExtractOptions,
    observer: &dyn ExtractObserver,
) -> Result<ExtractSummary, ExtractError> {
    let begin = Instant::now();
    let open = OpenRecording::open_watched(input, &options.limits, observer)?;
    let bytes_read = open.len();
    observer.on_started(bytes_read);
    let mut selector = KernelSelector::default();
    let stacks = match options.stacks {
        StackChoice::HandleEvents => KeptStacks::default(),
        StackChoice::All => KeptStacks::all(),
    };
    let mut collector = Collector::new(stacks);
    let recording = open.read(
        &mut selector,
        |bytes| {
            observer.on_progress(bytes);
            if observer.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
        |event| collector.event(event),
    )?;
    collector.finish();
    let rows = collector.events.len();
    if u32::try_from(rows).is_err() {
        return Err(ExtractError::TooLarge { path: input.to_path_buf(), rows });
    }
    observer.on_phase("writing");
    let assembled = assemble(&recording, collector, &selector.counter, output, observer)?;
    let warnings = assembled.warnings.iter().map(|(kind, finding)| ExtractWarning {
        kind: kind.text(),
        count: finding.count,
        first_offset: finding.first_offset,
    });
    Ok(ExtractSummary {
        objects: assembled.objects,
        handle_events: assembled.handle_events,
        leaked_handles: assembled.leaked_handles,
        stacks_distinct: assembled.stacks_distinct,
        events_lost: u64::from(recording.header.events_lost),
        buffers_lost: u64::from(recording.header.buffers_lost),
        bytes_read,
        output_bytes: assembled.output_bytes,
        elapsed: begin.elapsed(),
        warnings: warnings.collect(),
    })
}
