//! A session and its window: the tables loaded from it, and the source of its events.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use handlescope_extract::live::{
    EventReceiver, EventSender, Inventory, LiveWindow, Replay, WhenFull, live_queue,
};
use handlescope_extract::{ExtractError, Recording};
use handlescope_model::Untrusted;
use handlescope_model::output::temporary_folder;
use handlescope_record::{Running, SessionEvent, SessionStats};
use tempfile::TempDir;

use super::picture::Heading;
use crate::recording::{LiveArgs, StopTrigger, StopWatch, decodable, live_session};
use handlescope_commands::console::Console;
use handlescope_commands::{CommandError, SharedArgs, answer};
use handlescope_query::{OpenGroup, open_groups};
use handlescope_session::cancel::Cancel;
use handlescope_session::terminal::{Messages, Screen};
use handlescope_session::trace::LoadArgs;

/// Maximum size of queued events while tables are made, in bytes.
const QUEUE: usize = 64 << 20;

/// How long to wait for events, or for keys once no more events come.
pub const TICK: Duration = Duration::from_millis(50);

/// Minimum time between two tables.
const REFRESH: Duration = Duration::from_secs(1);

/// The time between two tables is at least this many times the time that making one takes.
const SHARE: u32 = 4;

/// A session and its window.
pub struct Live {
    /// Source of the events; `None` once stopped.
    source: Option<LiveSource>,
    receiver: EventReceiver,
    window: LiveWindow,
    watch: StopWatch,
    /// Whether no more events will come.
    is_over: bool,
    /// The condition that ended it.
    pub reached: Option<StopTrigger>,
    stats: SessionStats,
    /// Number of events in the last tables that belong to no process, so that nothing shows them.
    hidden: u64,
    /// The trace that is being replayed.
    replayed: Option<PathBuf>,
    /// Folder of the tables; the latest ones are loaded.
    folder: TempDir,
    tables: u64,
    next: Instant,
}

impl Live {
    pub fn start(args: &LiveArgs, is_watched: bool, cancel: &Cancel) -> Result<Live, CommandError> {
        let mut watch = StopWatch::new(&args.stop_when)?;
        let limit = Duration::from_secs(60 * u64::from(args.window));
        let window = |recording| LiveWindow::new(recording, Some(limit));
        let when_full = if args.replayed().is_some() { WhenFull::Wait } else { WhenFull::Drop };
        let (sender, receiver) = live_queue(QUEUE, when_full);
        let (source, window) = match args.replayed() {
            Some(trace) => {
                let speed = args.speed.or(is_watched.then_some(1.0));
                let (source, recording, inventory) =
                    LiveSource::replay(trace, speed, sender, cancel)?;
                watch.know(&inventory);
                (source, window(recording).knowing(inventory))
            }
            None => {
                let (source, recording) = LiveSource::session(args, sender)?;
                (source, window(recording))
            }
        };
        Ok(Live {
            window,
            source: Some(source),
            hidden: 0,
            receiver,
            watch,
            is_over: false,
            reached: None,
            stats: SessionStats::default(),
            replayed: args.replayed().cloned(),
            folder: temporary_folder()?,
            tables: 0,
            next: Instant::now(),
        })
    }

    /// Takes the events that have arrived, or waits a moment for some.
    pub fn receive(&mut self) -> Result<(), CommandError> {
        if self.has_ended() {
            return Ok(());
        }
        let Live { receiver, window, watch, reached, is_over, .. } = self;
        match receiver.receive(TICK) {
            None => *is_over = true,
            Some(events) => {
                *reached = events.iter().find_map(|event| {
                    window.event(&event);
                    watch.event(&event)
                });
            }
        }
        if self.has_ended() { self.stop() } else { Ok(()) }
    }

    /// Whether no more events are taken.
    pub fn has_ended(&self) -> bool {
        self.is_over || self.reached.is_some()
    }

    /// Stops the session, unless it has stopped already.
    pub fn stop(&mut self) -> Result<(), CommandError> {
        let Some(source) = self.source.take() else { return Ok(()) };
        self.stats = source.stats();
        let is_complete = self.is_over;
        // Drops the events that are still queued.
        self.receiver.close();
        self.note_lost();
        if let Some(recording) = source.stop()?.filter(|_| is_complete) {
            self.window.recording = recording;
        }
        self.is_over = true;
        Ok(())
    }

    /// Records what was lost so far.
    fn note_lost(&mut self) {
        let dropped = self.receiver.dropped();
        let header = &mut self.window.recording.header;
        let events = u64::from(self.stats.events_lost) + dropped;
        header.events_lost = u32::try_from(events).unwrap_or(u32::MAX);
        header.buffers_lost = self.stats.buffers_lost;
    }

    /// Returns the groups of open handles, if it is time for a refresh.
    pub fn refreshed(
        &mut self,
        console: &mut Console,
    ) -> Result<Option<Vec<OpenGroup>>, CommandError> {
        let begin = Instant::now();
        if begin < self.next {
            return Ok(None);
        }
        let groups = quietly(|messages| self.open_groups(console, messages))?;
        self.next = Instant::now() + REFRESH.max(begin.elapsed() * SHARE);
        Ok(Some(groups))
    }

    /// Loads the tables of all events so far, and queries what is open. Reports what is missing for function names.
    pub fn open_groups(
        &mut self,
        console: &mut Console,
        messages: &mut Messages<'_>,
    ) -> Result<Vec<OpenGroup>, CommandError> {
        self.load(console)?;
        let mut groups = Vec::new();
        let shared = SharedArgs::default();
        console.with_context(&mut io::sink(), messages, |context| {
            answer(false, &shared, context, |dump| {
                groups = open_groups(dump.sources, dump.names, dump.cancel)?;
                Ok(())
            })
        })?;
        Ok(groups)
    }

    /// Makes the tables of all events so far, and loads them in place of the previous ones.
    pub fn load(&mut self, console: &mut Console) -> Result<(), CommandError> {
        if let Some(source) = &self.source {
            self.stats = source.stats();
            self.note_lost();
        }
        self.tables += 1;
        let path = self.folder.path().join(format!("live-{}.json7z", self.tables));
        self.window.save(&path, &console.cancel).map_err(CommandError::Replay)?;
        console.session.replayed.clone_from(&self.replayed);
        let args = LoadArgs::replacing(vec![path.to_string_lossy().into_owned()]);
        quietly(|messages| console.load(&args, messages))?;
        if let Some(file) = console.session.files.first_mut() {
            self.hidden = file.trace.info()?.attributed_dropped;
            // Answers show the source instead of the temporary file.
            file.path.clone_from(&self.window.recording.source);
        }
        if self.tables > 1 {
            // If it cannot be removed now, it goes with the folder.
            let last = self.folder.path().join(format!("live-{}.json7z", self.tables - 1));
            let _ = std::fs::remove_file(last);
        }
        Ok(())
    }

    /// Saves all events so far as an extract with a new name, and returns that name.
    pub fn save(&self, cancel: &Cancel) -> Result<PathBuf, CommandError> {
        let stem = self.window.recording.source.file_stem().unwrap_or_default().to_string_lossy();
        let stem = if stem == "live" { stem.into_owned() } else { format!("{stem}.live") };
        let path = (1..)
            .map(|number: u32| match number {
                1 => PathBuf::from(format!("{stem}.json7z")),
                number => PathBuf::from(format!("{stem}-{number}.json7z")),
            })
            .find(|path| !Path::exists(path))
            .unwrap_or_default();
        self.window.save(&path, cancel).map_err(CommandError::Replay)?;
        Ok(path)
    }

    pub fn heading(&self) -> Heading {
        let header = &self.window.recording.header;
        Heading {
            source: Untrusted(&self.window.recording.source_name).to_string(),
            seconds: self.window.elapsed_ns() as f64 / 1e9,
            events: self.window.events(),
            lost: header.events_lost.into(),
            hidden: self.hidden,
            state: if self.has_ended() { "ended" } else { "running" },
            message: self
                .reached
                .as_ref()
                .map_or_else(String::new, |reached| format!("ended because {reached}")),
        }
    }
}

/// Runs `work` without its messages. They would disturb the picture, and come again with each table.
pub fn quietly<T>(work: impl FnOnce(&mut Messages<'_>) -> T) -> T {
    let mut nowhere = io::sink();
    work(&mut Messages::new(&mut nowhere, Screen::PLAIN))
}

/// A session of this system, or a trace replayed as if it were recorded now. Its events come out of the queue that it
/// was given.
enum LiveSource {
    Session(Box<dyn Running>),
    Replay { cancel: Cancel, thread: JoinHandle<Result<Option<Recording>, ExtractError>> },
}

impl LiveSource {
    /// Starts a session; also returns what is known while it runs.
    fn session(
        args: &LiveArgs,
        events: EventSender,
    ) -> Result<(LiveSource, Recording), CommandError> {
        let sink = Box::new(move |event: &SessionEvent<'_>| {
            events.send(&decodable(event));
        });
        let running = live_session(args, sink)?;
        let header = running.header().ok_or(CommandError::NoClock)?;
        let recording = Recording::for_session("live", &header.bytes, header.base);
        Ok((LiveSource::Session(running), recording.ok_or(CommandError::NoClock)?))
    }

    /// Sends the events of a trace, `speed` times as fast as they were recorded, or as fast as possible. Also returns
    /// what is known while it runs, and what the trace says about its system in the end.
    fn replay(
        trace: &Path,
        speed: Option<f64>,
        events: EventSender,
        cancel: &Cancel,
    ) -> Result<(LiveSource, Recording, Inventory), CommandError> {
        let mut replay = Replay::open(trace, cancel).map_err(CommandError::Replay)?;
        let inventory = std::mem::take(&mut replay.inventory);
        let (recording, cancel) = (replay.recording(), Cancel::default());
        let stopped = cancel.clone();
        let started = Instant::now();
        let thread = thread::spawn(move || {
            replay.run(&events, move |ns| match speed.map(|speed| due(ns, speed)) {
                Some(due) => sleep_until(started, due, &stopped),
                None if stopped.is_cancelled() => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            })
        });
        Ok((LiveSource::Replay { cancel, thread }, recording, inventory))
    }

    /// Returns the events and buffers lost so far.
    fn stats(&self) -> SessionStats {
        match self {
            // Counts that are not available now will be read again later.
            LiveSource::Session(running) => running.stats().unwrap_or_default(),
            LiveSource::Replay { .. } => SessionStats::default(),
        }
    }

    /// Stops it; returns the final facts if there are more than before.
    fn stop(self) -> Result<Option<Recording>, CommandError> {
        match self {
            LiveSource::Session(running) => {
                running.stop()?;
                Ok(None)
            }
            LiveSource::Replay { cancel, thread } => {
                cancel.cancel();
                match thread.join() {
                    Ok(ended) => ended.map_err(CommandError::Replay),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        }
    }
}

/// Returns when to replay an event that was recorded `ns` nanoseconds after the start.
fn due(ns: i64, speed: f64) -> Duration {
    let seconds = ns.max(0) as f64 / 1e9 / speed;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn sleep_until(started: Instant, due: Duration, stopped: &Cancel) -> ControlFlow<()> {
    /// Maximum delay before it notices that it was stopped.
    const MAX_SLEEP: Duration = Duration::from_millis(50);
    while !stopped.is_cancelled() {
        let left = due.saturating_sub(started.elapsed());
        if left.is_zero() {
            return ControlFlow::Continue(());
        }
        thread::sleep(left.min(MAX_SLEEP));
    }
    ControlFlow::Break(())
}
