//! The events of a session that are kept, and the tables that they make.

use std::path::Path;
use std::time::Duration;

use handlescope_model::Cancel;

use super::inventory::Inventory;
use super::packed::PackedEvents;
use super::prune::kept_events;
use crate::collect::{Collector, KernelSelector};
use crate::described::UndescribedKinds;
use crate::error::ExtractError;
use crate::etl::{Event, Selector};
use crate::extraction;
use crate::options::ExtractSummary;
use crate::raw::id_in_file;
use crate::recording::Recording;

/// Bytes of events below which nothing is forgotten.
const LEAST_MEMORY: usize = 4 << 20;

/// What is known of a session so far.
///
/// Events are kept as they are, and each set of tables is made of all of them, by what makes those of a file. With a
/// limit, events of objects that were closed before the last so much time are forgotten, so that memory depends on
/// what is open and on what happened in that time.
pub struct LiveWindow {
    /// The session. Tables have what it says when they are made.
    pub recording: Recording,
    selector: KernelSelector,
    events: PackedEvents,
    /// How long closed objects are kept; for ever without.
    limit: Option<Duration>,
    /// Raw time of the latest event.
    newest: i64,
    /// Events that were forgotten before anything described them.
    forgotten: UndescribedKinds,
    /// Memory of the events at which old ones are looked for.
    full: usize,
    /// Bytes of all events that came.
    bytes: u64,
    /// What is known of the system beforehand.
    inventory: Option<Inventory>,
}

impl LiveWindow {
    /// An empty window of a session.
    pub fn new(recording: Recording, limit: Option<Duration>) -> Self {
        let newest = recording.clock.base;
        Self {
            recording,
            selector: KernelSelector::default(),
            events: PackedEvents::default(),
            limit,
            newest,
            forgotten: UndescribedKinds::default(),
            full: LEAST_MEMORY,
            bytes: 0,
            inventory: None,
        }
    }

    /// The same of a session whose types, processes and modules are known beforehand.
    #[must_use]
    pub fn knowing(self, inventory: Inventory) -> Self {
        Self { inventory: Some(inventory), ..self }
    }

    /// Takes an event; those of the kernel may have the ids of files or of sessions.
    pub fn event(&mut self, event: &Event<'_>) {
        let event = Event { id: id_in_file(event.id), ..*event };
        self.newest = self.newest.max(event.time);
        self.bytes += (event.payload.len() + event.extended.len()) as u64;
        if self.selector.select(&event) {
            self.events.push(&event);
            if self.events.memory() > self.full {
                self.forget();
            }
        }
    }

    /// Number of events that came, kept or not.
    pub fn events(&self) -> u64 {
        self.selector.counter.total()
    }

    /// Bytes of payload of all of them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the events that are kept.
    pub fn memory(&self) -> usize {
        self.events.memory()
    }

    /// Nanoseconds from the start of the session to its latest event.
    pub fn elapsed_ns(&self) -> i64 {
        self.recording.clock.ns(self.newest)
    }

    /// Forgets what is older than the limit and closed. As it goes over all events, it is done when their memory has
    /// doubled.
    fn forget(&mut self) {
        if let Some(limit) = self.limit {
            let ns = i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX);
            let before = self.newest.saturating_sub(self.recording.clock.ticks(ns));
            let fill = |collected: &mut Collector| self.fill(collected);
            let (clock, mut forgotten) = (&self.recording.clock, self.forgotten.clone());
            let keeps = kept_events(&self.events, before, clock, fill, &mut forgotten);
            self.forgotten = forgotten;
            self.events.retain(&keeps);
        }
        self.full = (2 * self.events.memory()).max(LEAST_MEMORY);
    }

    /// Adds what is known of the system beforehand.
    fn fill(&self, collected: &mut Collector) {
        if let Some(inventory) = &self.inventory {
            inventory.fill(collected, self.newest);
        }
    }

    /// Makes the tables of all events so far, as [`extract`](crate::extract) does of a file that ends here.
    ///
    /// # Errors
    /// When the archive cannot be written, or `cancel` asks to stop.
    pub fn save(&self, output: &Path, cancel: &Cancel) -> Result<ExtractSummary, ExtractError> {
        let mut collector = Collector::default();
        collector.described.forgotten = self.forgotten.clone();
        for event in self.events.iter() {
            collector.event(&event);
        }
        cancel.check()?;
        self.fill(&mut collector);
        extraction::write(&self.recording, collector, &self.selector.counter, output, cancel)
    }
}
