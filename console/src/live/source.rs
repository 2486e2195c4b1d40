//! Where the events of a window come from.

use std::{
    ops::ControlFlow,
    path::Path,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use handlescope_extract::{
    ExtractError, Recording,
    live::{EventSender, Inventory, Replay},
};
use handlescope_record::{Figures, Running, SessionEvent};

use crate::{
    cancel::Cancel,
    commands::CommandError,
    recording::{LiveArgs, decodable, live_session},
};

/// A session, or what stands for one. Its events come out of the queue that it was given.
pub(super) trait LiveSource {
    /// What is known while it runs.
    fn recording(&self) -> Recording;

    /// What it lost so far.
    fn figures(&self) -> Figures;

    /// Ends it; returns what is known in the end if that is more than before.
    fn stop(self: Box<Self>) -> Result<Option<Recording>, CommandError>;
}

/// A trace as if it were recorded now.
pub(super) struct Replayed {
    recording: Recording,
    cancel: Cancel,
    thread: JoinHandle<Result<Option<Recording>, ExtractError>>,
}

impl Replayed {
    /// Sends the events of a trace, `speed` times as fast as they were recorded, or at once. Returns also what the
    /// trace says of its system in the end.
    pub(super) fn start(
        trace: &Path,
        speed: Option<f64>,
        events: EventSender,
        cancel: &Cancel,
    ) -> Result<(Self, Inventory), CommandError> {
        let mut replay = Replay::open(trace, cancel).map_err(CommandError::Replay)?;
        let inventory = std::mem::take(&mut replay.inventory);
        let (recording, own) = (replay.recording(), Cancel::default());
        let stopped = own.clone();
        let started = Instant::now();
        let pace = move |ns: i64| match speed.map(|speed| due(ns, speed)) {
            Some(due) => sleep_until(started, due, &stopped),
            None if stopped.is_cancelled() => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        };
        let thread = thread::spawn(move || replay.run(&events, pace));
        Ok((Self { recording, cancel: own, thread }, inventory))
    }
}

/// When an event is due that was recorded so many nanoseconds after the start.
fn due(ns: i64, speed: f64) -> Duration {
    let seconds = ns.max(0) as f64 / 1e9 / speed;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn sleep_until(started: Instant, due: Duration, stopped: &Cancel) -> ControlFlow<()> {
    /// How long it goes on when it is stopped.
    const LONGEST_SLEEP: Duration = Duration::from_millis(50);
    while !stopped.is_cancelled() {
        let left = due.saturating_sub(started.elapsed());
        if left.is_zero() {
            return ControlFlow::Continue(());
        }
        thread::sleep(left.min(LONGEST_SLEEP));
    }
    ControlFlow::Break(())
}

impl LiveSource for Replayed {
    fn recording(&self) -> Recording {
        self.recording.clone()
    }

    fn figures(&self) -> Figures {
        Figures::default()
    }

    fn stop(self: Box<Self>) -> Result<Option<Recording>, CommandError> {
        self.cancel.cancel();
        match self.thread.join() {
            Ok(ended) => ended.map_err(CommandError::Replay),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// A session of this system.
pub(super) struct Session {
    running: Box<dyn Running>,
    recording: Recording,
}

impl Session {
    pub(super) fn start(args: &LiveArgs, events: EventSender) -> Result<Self, CommandError> {
        let sink = move |event: &SessionEvent<'_>| {
            events.send(&decodable(event));
        };
        let running = live_session(args, Box::new(sink))?;
        let header = running.header().ok_or(CommandError::NoClock)?;
        let recording = Recording::of_session("live", &header.bytes, header.base);
        Ok(Self { recording: recording.ok_or(CommandError::NoClock)?, running })
    }
}

impl LiveSource for Session {
    fn recording(&self) -> Recording {
        self.recording.clone()
    }

    fn figures(&self) -> Figures {
        // What cannot be asked now is asked again.
        self.running.figures().unwrap_or_default()
    }

    fn stop(self: Box<Self>) -> Result<Option<Recording>, CommandError> {
        self.running.stop()?;
        Ok(None)
    }
}
