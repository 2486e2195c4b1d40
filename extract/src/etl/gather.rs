//! Gathers ordered events into batches on several threads, as far as they can be taken without the events before them.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender};

use super::event::Event;
use super::merge::MergeOrder;
use handlescope_model::guard::lock;

/// Consumer of the events of a trace in time order.
pub trait Sink {
    /// Takes some of the events on other threads.
    type Gatherer: Gatherer;

    /// Takes an event.
    fn take(&mut self, event: &Event<'_>);

    /// Takes a range of a gathered batch. These events follow all that were taken before.
    fn append(&mut self, batch: &mut Batch<Self>, events: Range<usize>);

    /// Creates a gatherer; `None` if all events go to [`Self::take`].
    fn gatherer(&self) -> Option<Self::Gatherer>;
}

/// Batch of a sink's gatherers.
pub type Batch<S> = <<S as Sink>::Gatherer as Gatherer>::Batch;

/// Collects events for a [`Sink`] on another thread.
pub trait Gatherer: Send {
    /// Events in time order.
    type Batch: Spare + Send;

    /// Adds an event to a batch; returns `false` if it must go to [`Sink::take`].
    fn gather(&mut self, event: &Event<'_>, batch: &mut Self::Batch) -> bool;
}

/// Gatherer type of a sink without gatherers.
pub enum NoGatherer {}

impl Gatherer for NoGatherer {
    type Batch = ();

    fn gather(&mut self, _: &Event<'_>, (): &mut ()) -> bool {
        match *self {}
    }
}

impl<F: FnMut(&Event<'_>)> Sink for F {
    type Gatherer = NoGatherer;

    fn take(&mut self, event: &Event<'_>) {
        self(event);
    }

    fn append(&mut self, (): &mut (), _: Range<usize>) {}

    fn gatherer(&self) -> Option<NoGatherer> {
        None
    }
}

/// Order with some of its events gathered.
pub struct GatheredOrder<B> {
    /// Events that were not gathered.
    pub order: MergeOrder,
    /// For each of these, the number of gathered events before it.
    pub before: Vec<u32>,
    pub batch: B,
    /// Number of gathered events.
    pub gathered: u32,
}

/// Gathers the events of orders until no more come, or nobody takes the results.
pub fn gather<G: Gatherer>(
    mut gatherer: G,
    spares: &Spares<G::Batch>,
    orders: Receiver<MergeOrder>,
    gathered: &SyncSender<GatheredOrder<G::Batch>>,
) {
    for order in orders {
        if gathered.send(GatheredOrder::new(order, &mut gatherer, spares.take())).is_err() {
            break;
        }
    }
}

impl<B> GatheredOrder<B> {
    fn new<G: Gatherer<Batch = B>>(mut order: MergeOrder, gatherer: &mut G, mut batch: B) -> Self {
        let (mut gathered, mut last_time) = (0, order.last_time);
        let (mut left, mut before) = (Vec::new(), Vec::new());
        order.for_each(|place, event| {
            // An out-of-order event stays among the events around it.
            if event.time >= last_time {
                last_time = event.time;
                if gatherer.gather(event, &mut batch) {
                    gathered += 1;
                    return;
                }
            }
            left.push(place);
            before.push(gathered);
        });
        order.events = left;
        Self { order, before, batch, gathered }
    }
}

/// Value that can be emptied and keeps its memory.
pub trait Spare: Default {
    /// Empties it.
    fn clear(&mut self);
}

impl Spare for () {
    fn clear(&mut self) {}
}

/// Pool of unused values. The latest one, which may still be cached, is reused first.
#[derive(Default)]
pub struct Spares<T>(Mutex<Vec<T>>);

impl<T: Spare> Spares<T> {
    /// Returns an empty value.
    pub fn take(&self) -> T {
        let mut value = lock(&self.0).pop().unwrap_or_default();
        value.clear();
        value
    }

    /// Takes a value back into the pool.
    pub fn give(&self, value: T) {
        lock(&self.0).push(value);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use super::*;
    use crate::etl::EventId;
    use crate::etl::decoded::DecodedBuffer;
    use crate::etl::hand_out::HandOut;
    use crate::etl::merge::EventPlace;

    const GATHERED: u16 = 0x1120;
    const IN_ORDER: u16 = 0x1820;

    /// An order of events in one buffer, by hook and time, after an event at `last_time`.
    fn order(last_time: i64, events: &[(u16, i64)]) -> MergeOrder {
        let buffers = vec![Arc::new(DecodedBuffer::from_events(events))];
        let places = (0..events.len() as u32).map(|event| EventPlace { buffer: 0, event });
        MergeOrder { events: places.collect(), buffers, last_time, read: 100 }
    }

    impl Spare for Vec<i64> {
        fn clear(&mut self) {
            self.clear();
        }
    }

    /// Gathers times of events, and collects the times of all events.
    #[derive(Default)]
    struct Times(Vec<(i64, &'static str)>);

    impl Gatherer for Times {
        type Batch = Vec<i64>;

        fn gather(&mut self, event: &Event<'_>, batch: &mut Vec<i64>) -> bool {
            let is_gathered = event.id == EventId::Hook(GATHERED);
            batch.extend(is_gathered.then_some(event.time));
            is_gathered
        }
    }

    impl Sink for Times {
        type Gatherer = Self;

        fn take(&mut self, event: &Event<'_>) {
            self.0.push((event.time, "taken"));
        }

        fn append(&mut self, batch: &mut Vec<i64>, events: Range<usize>) {
            self.0.extend(batch[events].iter().map(|time| (*time, "gathered")));
        }

        fn gatherer(&self) -> Option<Self> {
            Some(Self::default())
        }
    }

    /// Returns the events of an order as they are handed out after gathering.
    fn handed_out(order: MergeOrder) -> Vec<(i64, &'static str)> {
        let (spares, spare_batches, mut times) =
            (Spares::default(), Spares::default(), Times::default());
        let gathered = GatheredOrder::new(order, &mut Times::default(), spare_batches.take());
        let mut read = 0;
        let progress = |bytes| {
            read = bytes;
            ControlFlow::Continue(())
        };
        let flow =
            HandOut::new(&spares, &spare_batches, progress, &mut times).take_gathered(gathered);
        assert!(flow.is_continue());
        assert_eq!(read, 100);
        times.0
    }

    #[test]
    fn gathered_events_come_between_those_that_were_not() {
        let events = [(GATHERED, 1), (GATHERED, 1), (IN_ORDER, 2), (IN_ORDER, 3), (GATHERED, 4)];
        assert_eq!(
            handed_out(order(0, &events)),
            [(1, "gathered"), (1, "gathered"), (2, "taken"), (3, "taken"), (4, "gathered")]
        );
        assert_eq!(handed_out(order(0, &[(IN_ORDER, 7)])), [(7, "taken")]);
        assert!(handed_out(order(0, &[])).is_empty());
    }

    #[test]
    fn an_event_that_is_out_of_order_is_not_gathered() {
        let events = [(GATHERED, 3), (GATHERED, 5), (GATHERED, 4), (GATHERED, 5)];
        assert_eq!(
            handed_out(order(4, &events)),
            [(3, "taken"), (5, "gathered"), (4, "taken"), (5, "gathered")]
        );
    }
}
