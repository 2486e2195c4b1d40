//! Extraction of an opened trace into an archive.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use handlescope_model::Cancel;

use crate::assemble::assemble;
use crate::collect::{Collector, EventCounter, KernelSelector};
use crate::error::ExtractError;
use crate::etl::{MAX_DECODERS, Selector};
use crate::options::{EventChoice, ExtractObserver, ExtractOptions, ExtractSummary, StackChoice};
use crate::recording::{OpenRecording, Recording};
use crate::stacks::KeptStacks;

/// Extracts an open trace into the archive `output`. Its folder must exist.
///
/// The archive appears under its name only once it is complete.
///
/// # Errors
/// Fails if the trace cannot be read, the archive cannot be written, or `cancel` requests a stop.
pub fn extract_recording(
    open: OpenRecording,
    output: &Path,
    options: ExtractOptions,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<ExtractSummary, ExtractError> {
    let begin = Instant::now();
    let open = open.on_threads(options.threads);
    let bytes_read = open.len();
    observer.on_started(bytes_read);
    let selector = match options.events {
        EventChoice::None => KernelSelector::default(),
        EventChoice::All | EventChoice::Providers(_) => KernelSelector::with_providers(),
    }
    .following(options.resources.clone());
    let (selector, stacks) = match options.stacks {
        StackChoice::HandleEvents => (selector.joining_stacks(), KeptStacks::default()),
        StackChoice::All => (selector, KeptStacks::all()),
    };
    let mut collector = Collector::new(stacks)
        .complete_from(open.complete_from())
        .keeping(options.events)
        .following(options.resources);
    // The number is fixed, so that the counts do not depend on the number of threads.
    let mut selectors = selector.divided(MAX_DECODERS);
    let recording = open.read_with(
        selectors.iter_mut().map(|selector| selector as &mut dyn Selector).collect(),
        |bytes| {
            observer.on_progress(bytes);
            if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
        &mut collector,
    )?;
    cancel.check()?;
    observer.on_phase("writing");
    let counter = EventCounter::sum(selectors.into_iter().map(|selector| selector.counter));
    let summary = write(&recording, collector, &counter, output, options.threads, cancel)?;
    Ok(ExtractSummary { bytes_read, elapsed: begin.elapsed(), ..summary })
}

/// Writes the collected events as an archive.
///
/// # Errors
/// Fails if there are too many events, the archive cannot be written, or `cancel` requests a stop.
pub fn write(
    recording: &Recording,
    mut collector: Collector,
    counter: &EventCounter,
    output: &Path,
    threads: NonZeroUsize,
    cancel: &Cancel,
) -> Result<ExtractSummary, ExtractError> {
    collector.finish();
    let rows = collector.shared.timeline.len();
    if u32::try_from(rows).is_err() {
        return Err(ExtractError::TooLarge { path: recording.source.clone(), rows });
    }
    assemble(recording, collector, counter, output, threads, cancel)
        .map_err(|error| cancel.or(error))
}
