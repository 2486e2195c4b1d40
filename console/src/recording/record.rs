//! `handlescope record`: runs a session until its trace is complete, and adds what Windows did not merge into the
//! trace.

use std::env;
use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use handlescope_extract::etl::{Event, EventId, Guid};
use handlescope_extract::live::{EventReceiver, EventSender, WhenFull, live_queue};
use handlescope_extract::{AdditionCounts, CompleteError, complete, image_file_name};
use handlescope_model::{OutputFile, Reason, Trace, Untrusted};
use handlescope_record::{
    EventSink, FurtherTraces, MergeError, Recorder, RecordingEnd, Running, SessionEvent,
    SessionPlan, SessionStats,
};
use indicatif::{HumanBytes, HumanCount};

use super::args::RecordArgs;
use super::elsewhere::refusal;
use super::stop::{StopTrigger, StopWatch};
use handlescope_commands::CommandError;
use handlescope_session::cancel::Cancel;
use handlescope_session::paths::{Output, Overwrite};
use handlescope_session::terminal::{Messages, Progress};
use handlescope_session::trace::extraction::{self, beside, line, options, prepare_folder, warn};
use handlescope_session::trace::{Caveat, LoadError, warn_of};
use handlescope_session::values::CountedNoun;

/// Replaces a recorded trace by a copy that includes the identities of its images and the further traces. `reason` says
/// why Windows did not do so. If it fails, the trace stays as the session left it.
pub fn merge(
    trace: &Output,
    further: &FurtherTraces,
    reason: &MergeError,
    messages: &mut Messages<'_>,
    cancel: &Cancel,
) {
    let progress = messages.progress(trace.path());
    let result = completed(trace, further, &progress, cancel);
    drop(progress);
    let path = Untrusted(trace.path());
    let reason = why(reason);
    match result {
        Ok(AdditionCounts { identified, unidentified, events }) => {
            if identified == 0 {
                messages.warning(format_args!(
                    "{path} has no image identities, so symbols will not be found: {reason}, and \
                     no image file could be read"
                ));
            } else {
                messages.note(format_args!(
                    "{path}: {} identified by file, {} not ({reason})",
                    CountedNoun(identified, "image"),
                    HumanCount(unidentified)
                ));
            }
            if events > 0 {
                messages.note(format_args!("{path}: {} of .NET", CountedNoun(events, "event")));
            }
        }
        Err(error) => messages.warning(format_args!(
            "{path} has no image identities, so symbols will not be found: {reason}, and writing \
             a copy with them failed: {error}"
        )),
    }
}

/// Describes a reason for users.
fn why(reason: &MergeError) -> String {
    match reason {
        MergeError::Replace(source) => format!("{reason}: {}", Reason(source)),
        reason => reason.to_string(),
    }
}

fn completed(
    trace: &Output,
    further: &FurtherTraces,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<AdditionCounts, CompleteError> {
    let mut out = BufWriter::new(OutputFile::beside(trace.path())?);
    let windows = env::var("SystemRoot").unwrap_or_default();
    let result = complete(
        trace.path(),
        further.files(),
        &mut |path| on_this_system(path, &windows),
        &mut out,
        progress,
        cancel,
    )?;
    if (result.identified, result.events) == (0, 0) {
        return Ok(result);
    }
    out.flush()?;
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.persist(trace.path())?;
    trace.remember();
    Ok(result)
}

/// Returns the file of an image. Only Windows can map kernel names to files.
fn on_this_system(path: &str, windows: &str) -> Option<PathBuf> {
    image_file_name(path, windows).filter(|_| cfg!(windows)).map(PathBuf::from)
}

/// Maximum size of events that wait to be counted, in bytes.
const QUEUE: usize = 64 << 20;

/// Maximum time that a recording continues after it was asked to stop.
const TICK: Duration = Duration::from_millis(100);

/// Time between two checks of the written and lost events.
const LOOK: Duration = Duration::from_secs(1);

/// Why a recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// Ctrl-C.
    Interrupted,
    /// `--duration`
    Duration,
    /// `--stop-when`
    Condition(StopTrigger),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Interrupted => f.write_str("ended by Ctrl-C"),
            End::Duration => f.write_str("ended after its time"),
            End::Condition(reached) => write!(f, "ended: {reached}"),
        }
    }
}

/// Records until Ctrl-C, or until another requested end is reached.
pub fn run(
    args: &RecordArgs,
    force: bool,
    recorder: &dyn Recorder,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
    cancel: &Cancel,
) -> Result<(), CommandError> {
    let file = Overwrite::new(force || args.force).replacing(&args.file);
    let file = file.map_err(CommandError::from_command_line)?;
    let watch = StopWatch::new(&args.stop_when)?;
    let counted = Arc::new(AtomicU64::new(0));
    let (sender, receiver) = live_queue(QUEUE, WhenFull::Drop);
    let sink = sink(Arc::clone(&counted), (!watch.is_idle()).then_some(sender));
    let options = args.options();
    let running = recorder
        .start(SessionPlan::new(&options), sink)
        .map_err(|error| refusal("record", &args.session, &options, &error))?;
    messages.note(format_args!("recording to {}; Ctrl-C ends it", Untrusted(&args.file)));
    messages.wait("recording");
    let mut recording = RunningRecording {
        running,
        receiver,
        watch,
        counted,
        started: Instant::now(),
        kib: options.buffer_size.kib(),
    };
    let end = recording.wait(args.duration, messages, cancel);
    // Ctrl-C ended the recording, but not the work that follows.
    cancel.reset();
    messages.spinner().stop();
    let end = end?;
    if args.dot_net.clr {
        messages.wait("waiting for .NET processes to list their methods");
    }
    let (seconds, events) = (recording.started.elapsed().as_secs_f64(), recording.events());
    let stopped = recording.running.stop();
    messages.spinner().stop();
    let RecordingEnd { stats, unmerged, further } = stopped?;
    file.remember();
    messages.note(format_args!(
        "{}: {} in {seconds:.1} s, {}; {end}",
        Untrusted(&args.file),
        CountedNoun(events, "event"),
        losses(stats, recording.receiver.dropped()),
    ));
    if let Some(problem) = further.problem() {
        messages.warning(format_args!("no names for .NET methods: {problem}"));
    }
    if let Some(reason) = unmerged {
        merge(&file, &further, &reason, messages, cancel);
    }
    if args.extract || is_extraction_confirmed(messages) {
        extract(&args.file, out, messages, cancel)
    } else {
        Ok(())
    }
}

/// Creates a sink that counts events, and passes them on if they are examined.
fn sink(counted: Arc<AtomicU64>, sender: Option<EventSender>) -> EventSink {
    Box::new(move |event| {
        counted.fetch_add(1, Relaxed);
        if let Some(sender) = &sender {
            sender.send(&decodable(event));
        }
    })
}

/// A running recording.
struct RunningRecording {
    running: Box<dyn Running>,
    receiver: EventReceiver,
    watch: StopWatch,
    counted: Arc<AtomicU64>,
    started: Instant,
    /// Buffer size in KiB.
    kib: u32,
}

impl RunningRecording {
    fn events(&self) -> u64 {
        self.counted.load(Relaxed)
    }

    /// Waits until it ends, and shows its progress.
    fn wait(
        &mut self,
        duration: Option<Duration>,
        messages: &Messages<'_>,
        cancel: &Cancel,
    ) -> Result<End, CommandError> {
        let (mut updated, mut events) = (Instant::now(), 0);
        loop {
            if cancel.is_cancelled() {
                return Ok(End::Interrupted);
            }
            if duration.is_some_and(|duration| self.started.elapsed() >= duration) {
                return Ok(End::Duration);
            }
            if let Some(reached) = self.tick() {
                return Ok(End::Condition(reached));
            }
            if updated.elapsed() >= LOOK {
                let stats = self.running.stats()?;
                let new = self.events() - events;
                let rate = new as f64 / updated.elapsed().as_secs_f64();
                (updated, events) = (Instant::now(), events + new);
                let bytes = u64::from(stats.buffers_written) * u64::from(self.kib) * 1024;
                let line = live_line(rate, bytes, stats, self.receiver.dropped());
                messages.spinner().show(line);
            }
        }
    }

    /// Waits a moment, and examines the events that arrive.
    fn tick(&mut self) -> Option<StopTrigger> {
        if self.watch.is_idle() {
            std::thread::sleep(TICK);
            return None;
        }
        match self.receiver.receive(TICK) {
            Some(events) => events.iter().find_map(|event| self.watch.event(&event)),
            // No more events come, so only the duration or Ctrl-C can end the recording.
            None => {
                std::thread::sleep(TICK);
                None
            }
        }
    }
}

/// Formats the progress of a recording.
fn live_line(events_per_second: f64, bytes: u64, stats: SessionStats, uncounted: u64) -> String {
    let rate = HumanCount(events_per_second.round() as u64);
    format!("{rate} events/s, {} written, {};", HumanBytes(bytes), losses(stats, uncounted))
}

/// Formats lost events and buffers. `uncounted` events are in the trace, but were not checked against a condition.
fn losses(SessionStats { events_lost, buffers_lost, .. }: SessionStats, uncounted: u64) -> String {
    let mut text = format!(
        "lost events: {}, lost buffers: {}",
        HumanCount(events_lost.into()),
        HumanCount(buffers_lost.into())
    );
    if uncounted > 0 {
        let _ = write!(text, ", {} not counted for --stop-when", HumanCount(uncounted));
    }
    text
}

/// Asks whether to extract the trace; `false` if there is no user to ask.
fn is_extraction_confirmed(messages: &mut Messages<'_>) -> bool {
    if !messages.is_watched() || !io::stdin().is_terminal() {
        return false;
    }
    messages.note("extract it now? [Y/n]");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok_and(|read| read > 0) && is_yes(&answer)
}

fn is_yes(answer: &str) -> bool {
    let answer = answer.trim();
    answer.is_empty() || answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes")
}

fn extract(
    trace: &Path,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
    cancel: &Cancel,
) -> Result<(), CommandError> {
    let output = beside(trace);
    let _made = prepare_folder(&output)
        .map_err(|source| LoadError::NoPlace { path: output.clone(), source })?;
    let summary = extraction::run(trace, &output, options(None), cancel, messages)
        .map_err(LoadError::from)?;
    warn(trace, summary.warnings.iter().cloned(), messages);
    warn_of(trace, &Caveat::for_load(&Trace::open(&output)?)?, messages);
    writeln!(out, "{}", line(&output, &summary))?;
    Ok(())
}

/// Process and thread id of an event that does not have them.
const UNKNOWN: u32 = u32::MAX;

/// Converts an event of a session for decoding.
pub fn decodable<'a>(event: &SessionEvent<'a>) -> Event<'a> {
    let guid = Guid(event.provider);
    let known = |id: u32| Some(id).filter(|id| *id != UNKNOWN);
    Event {
        id: if event.is_classic {
            EventId::Classic { guid, opcode: event.opcode }
        } else {
            EventId::Manifest { guid, id: event.id }
        },
        version: event.version,
        time: event.time,
        pid: known(event.process_id),
        tid: known(event.thread_id),
        processor: event.processor,
        pointer_size: event.pointer_size.into(),
        payload: event.payload,
        extended: event.extended,
        offset: 0,
        ..Event::default()
    }
}

#[cfg(test)]
mod tests;
