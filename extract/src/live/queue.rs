//! Bounded queue of events between the thread that receives them and the one that decodes them; also replays a trace
//! file in place of a session.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use handlescope_model::Cancel;
use handlescope_model::guard::lock;

use super::PackedEvents;
use super::inventory::Inventory;
use crate::error::ExtractError;
use crate::etl::{Event, Selector};
use crate::options::ExtractOptions;
use crate::raw::id_in_session;
use crate::recording::{OpenRecording, Recording};

/// What a sender does when the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Counts the event and drops it: a session cannot wait.
    Drop,
    /// Waits: a file can.
    Wait,
}

#[derive(Debug, Default)]
struct QueueState {
    events: PackedEvents,
    dropped: u64,
    /// Whether the sender or the receiver is gone.
    is_closed: bool,
}

#[derive(Debug, Default)]
struct LockedQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

impl LockedQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// Sending end of the queue. Dropping it ends the queue.
#[derive(Debug)]
pub struct EventSender {
    shared: Arc<LockedQueue>,
    limit: usize,
    when_full: WhenFull,
}

/// Receiving end of the queue. When it is dropped, senders stop waiting.
#[derive(Debug)]
pub struct EventReceiver {
    shared: Arc<LockedQueue>,
    received: PackedEvents,
}

/// Creates a queue for `limit` bytes of events. The receiver may hold as many that it took out.
pub fn live_queue(limit: usize, when_full: WhenFull) -> (EventSender, EventReceiver) {
    let shared = Arc::new(LockedQueue::default());
    let receiver = EventReceiver { shared: Arc::clone(&shared), received: PackedEvents::default() };
    (EventSender { shared, limit, when_full }, receiver)
}

impl EventSender {
    /// Adds a copy of an event. Returns whether events are still wanted.
    pub fn send(&self, event: &Event<'_>) -> bool {
        let mut state = self.shared.lock();
        while !state.is_closed && state.events.memory() >= self.limit {
            if self.when_full == WhenFull::Drop {
                state.dropped += 1;
                return true;
            }
            let woken = self.shared.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closed {
            return false;
        }
        let was_empty = state.events.is_empty();
        state.events.push(event);
        drop(state);
        if was_empty {
            self.shared.changed.notify_all();
        }
        true
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl EventReceiver {
    /// Takes all events in the queue, after waiting up to `wait` if there are none; `None` when no more will come.
    pub fn receive(&mut self, wait: Duration) -> Option<&PackedEvents> {
        self.received.clear();
        let shared = &self.shared;
        let woken = shared.changed.wait_timeout_while(shared.lock(), wait, |state| {
            state.events.is_empty() && !state.is_closed
        });
        let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        if state.events.is_empty() && state.is_closed {
            return None;
        }
        std::mem::swap(&mut state.events, &mut self.received);
        drop(state);
        shared.changed.notify_all();
        Some(&self.received)
    }

    /// Accepts no more events, so senders stop waiting.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Returns the number of events the queue had no room for.
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        self.close();
    }
}

/// Trace with events that are handed out as by a session.
pub struct Replay {
    open: OpenRecording,
    /// Inventory from the trace, for names that a session records only at its end.
    pub inventory: Inventory,
}

/// Selects all events; those that no family handles are counted too.
struct All;

impl Selector for All {
    fn select(&mut self, _: &Event<'_>) -> bool {
        true
    }
}

impl Replay {
    /// Opens a trace, and reads what it says about its system.
    ///
    /// # Errors
    /// Fails if it cannot be read, or is not a trace.
    pub fn open(path: &Path, cancel: &Cancel) -> Result<Self, ExtractError> {
        let limits = ExtractOptions::default().limits;
        let open = OpenRecording::open_cancellable(path, &limits, cancel)?;
        Ok(Self { open, inventory: Inventory::read(path, cancel)? })
    }

    /// Returns the properties of the session while it runs: without its end and its losses.
    pub fn recording(&self) -> Recording {
        let mut recording = self.open.recording.clone();
        recording.header.end_time = 0;
        (recording.header.events_lost, recording.header.buffers_lost) = (0, 0);
        recording
    }

    /// Sends all events in time order, each once `pace` returns. `pace` gets the nanoseconds since the start of the
    /// session, and may stop the replay. It also stops when no more events are wanted. Returns the session in its final
    /// state, unless the replay was stopped.
    ///
    /// # Errors
    /// Fails if the trace can no longer be read, or was changed.
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const SOON: Duration = Duration::from_secs(30);

    fn event(time: i64) -> Event<'static> {
        Event { time, payload: &[7; 1000], ..Event::default() }
    }

    #[test]
    fn events_that_a_full_queue_has_no_room_for_are_counted() {
        let (sender, mut receiver) = live_queue(10_000, WhenFull::Drop);
        assert!((0..100).all(|time| sender.send(&event(time))));
        let kept = receiver.receive(SOON).unwrap().len();
        assert!((9..=10).contains(&kept), "{kept}");
        assert_eq!(receiver.dropped(), 100 - kept as u64);
        assert!(sender.send(&event(100)));
        let times: Vec<_> = receiver.receive(SOON).unwrap().iter().map(|e| e.time).collect();
        assert_eq!(times, [100]);
        drop(sender);
        assert!(receiver.receive(SOON).is_none());
    }

    #[test]
    fn a_sender_that_may_wait_loses_nothing() {
        let (sender, mut receiver) = live_queue(5_000, WhenFull::Wait);
        let sending = thread::spawn(move || (0..1000).all(|time| sender.send(&event(time))));
        let mut times = Vec::new();
        while let Some(events) = receiver.receive(SOON) {
            assert!(events.memory() < 10_000);
            times.extend(events.iter().map(|event| event.time));
        }
        assert!(sending.join().unwrap());
        assert!(times.iter().copied().eq(0..1000));
        assert_eq!(receiver.dropped(), 0);
    }

    #[test]
    fn neither_side_waits_for_a_side_that_is_gone() {
        let (sender, receiver) = live_queue(1, WhenFull::Wait);
        assert!(sender.send(&event(0)));
        drop(receiver);
        assert!(!sender.send(&event(1)));
    }

    #[test]
    fn a_receiver_does_not_wait_for_ever() {
        let (sender, mut receiver) = live_queue(1, WhenFull::Drop);
        assert!(receiver.receive(Duration::from_millis(1)).unwrap().is_empty());
        drop(sender);
    }
}
