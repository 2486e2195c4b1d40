//! A trace file in place of a session.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;

use handlescope_model::Cancel;

use super::inventory::Inventory;
use super::queue::EventSender;
use crate::error::ExtractError;
use crate::etl::{Event, Selector};
use crate::options::ExtractOptions;
use crate::raw::id_in_session;
use crate::recording::{OpenRecording, Recording};

/// A trace whose events are handed out as a session hands them out.
pub struct Replay {
    open: OpenRecording,
    /// What the trace says of its system, which records at its end name.
    pub inventory: Inventory,
}

/// Selects all events: those that no family takes are counted, too.
struct All;

impl Selector for All {
    fn select(&mut self, _: &Event<'_>) -> bool {
        true
    }
}

impl Replay {
    /// Opens a trace, and reads what it says of its system.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn open(path: &Path, cancel: &Cancel) -> Result<Self, ExtractError> {
        let limits = ExtractOptions::default().limits;
        let open = OpenRecording::open_cancellable(path, &limits, cancel)?;
        Ok(Self { open, inventory: Inventory::read(path, cancel)? })
    }

    /// What is known of the session while it runs: not when it ends, nor what it loses.
    pub fn recording(&self) -> Recording {
        let mut recording = self.open.recording.clone();
        recording.header.end_time = 0;
        (recording.header.events_lost, recording.header.buffers_lost) = (0, 0);
        recording
    }

    /// Sends all events in time order, each when `pace`, which gets the nanoseconds since the start of the session,
    /// returns; ends early when it says so, or no more are wanted. Returns the session as it is in the end, unless it
    /// ended early.
    ///
    /// # Errors
    /// When the trace cannot be read any more, or was changed.
    pub fn run(
        self,
        events: &EventSender,
        mut pace: impl FnMut(i64) -> ControlFlow<()>,
    ) -> Result<Option<Recording>, ExtractError> {
        let clock = self.open.recording.clock;
        let flow = Cell::new(ControlFlow::Continue(()));
        let read = self.open.read(
            &mut All,
            |_| flow.get(),
            |event| {
                let is_sent = flow.get().is_continue()
                    && pace(clock.ns(event.time)).is_continue()
                    && events.send(&Event { id: id_in_session(event.id), ..*event });
                if !is_sent {
                    flow.set(ControlFlow::Break(()));
                }
            },
        );
        if flow.get().is_break() {
            return Ok(None);
        }
        read.map(Some)
    }
}
