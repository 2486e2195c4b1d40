//! Events that are taken on several threads, as far as the order of all events does not matter for them.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender};

use super::event::Event;
use super::merge::{Order, Place};
use super::spares::{Spare, Spares};

/// Takes the events of a trace in time order.
pub trait Sink {
    type Gatherer: Gatherer;

    /// Takes an event.
    fn take(&mut self, event: &Event<'_>);

    /// Takes some of the events that a gatherer took: these come next, one after the other.
    fn append(&mut self, part: &mut <Self::Gatherer as Gatherer>::Part, events: Range<usize>);

    /// A gatherer for a further thread; `None` if all events have to be taken in their order.
    fn gatherer(&self) -> Option<Self::Gatherer>;
}

/// Takes the events of some parts of a trace, beside others.
pub trait Gatherer: Send {
    /// Events of a part of the trace, in time order.
    type Part: Spare + Send;

    /// Adds an event to a part; `false` if it has to be taken in its order.
    fn gather(&mut self, event: &Event<'_>, part: &mut Self::Part) -> bool;
}

/// The gatherer of a sink that has none.
pub enum NoGatherer {}

impl Gatherer for NoGatherer {
    type Part = ();

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

/// An order some of whose events were gathered.
pub(super) struct GatheredOrder<P> {
    /// Events that were not gathered.
    pub(super) order: Order,
    /// For each of these the number of gathered events that come before it.
    pub(super) before: Vec<usize>,
    pub(super) part: P,
    /// Number of gathered events.
    pub(super) gathered: usize,
}

/// Gathers the events of orders until there are no more, or nothing more is taken.
pub(super) fn gather<G: Gatherer>(
    mut gatherer: G,
    spares: &Spares<G::Part>,
    orders: Receiver<Order>,
    gathered: &SyncSender<GatheredOrder<G::Part>>,
) {
    for order in orders {
        if gathered.send(GatheredOrder::of(order, &mut gatherer, spares.take())).is_err() {
            break;
        }
    }
}

impl<P> GatheredOrder<P> {
    fn of<G: Gatherer<Part = P>>(mut order: Order, gatherer: &mut G, mut part: P) -> Self {
        let (mut gathered, mut last_time) = (0, order.last_time);
        let (mut left, mut before): (Vec<Place>, Vec<usize>) = Default::default();
        order.for_each(|place, event| {
            // One that is out of order stays among the events around it.
            if event.time >= last_time {
                last_time = event.time;
                if gatherer.gather(event, &mut part) {
                    gathered += 1;
                    return;
                }
            }
            left.push(place);
            before.push(gathered);
        });
        order.events = left;
        Self { order, before, part, gathered }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use super::*;
    use crate::etl::EventId;
    use crate::etl::decoded::{DecodedBuffer, SelectedEvent};
    use crate::etl::hand_out::HandOut;

    const GATHERED: u16 = 0x1120;
    const IN_ORDER: u16 = 0x1820;

    /// An order of events of one buffer, by their hooks and times, after an event of `last_time`.
    fn order(last_time: i64, events: &[(u16, i64)]) -> Order {
        let mut buffer = DecodedBuffer::default();
        for (hook, time) in events {
            let position = buffer.data.len() as u32;
            buffer.events.push(SelectedEvent { time: *time, position, ..SelectedEvent::default() });
            // A PERFINFO_TRACE_HEADER of 64 bits: version, type, marker, size, hook and time.
            buffer.data.extend([0, 0, 0x11, 0xC0, 16, 0]);
            buffer.data.extend(hook.to_le_bytes());
            buffer.data.extend(time.to_le_bytes());
        }
        buffer.valid = buffer.data.len();
        let places = (0..events.len() as u32).map(|event| Place { buffer: 0, event });
        Order { events: places.collect(), buffers: vec![Arc::new(buffer)], last_time, read: 100 }
    }

    impl Spare for Vec<i64> {
        fn clear(&mut self) {
            self.clear();
        }
    }

    /// Gathers the times of events, and takes them and those of the others.
    #[derive(Default)]
    struct Times(Vec<(i64, &'static str)>);

    impl Gatherer for Times {
        type Part = Vec<i64>;

        fn gather(&mut self, event: &Event<'_>, part: &mut Vec<i64>) -> bool {
            let is_gathered = event.id == EventId::Hook(GATHERED);
            part.extend(is_gathered.then_some(event.time));
            is_gathered
        }
    }

    impl Sink for Times {
        type Gatherer = Self;

        fn take(&mut self, event: &Event<'_>) {
            self.0.push((event.time, "taken"));
        }

        fn append(&mut self, part: &mut Vec<i64>, events: Range<usize>) {
            self.0.extend(part[events].iter().map(|time| (*time, "gathered")));
        }

        fn gatherer(&self) -> Option<Self> {
            Some(Self::default())
        }
    }

    /// The events of an order as they come after gathering.
    fn handed_out(order: Order) -> Vec<(i64, &'static str)> {
        let (spares, spare_parts, mut times) =
            (Spares::default(), Spares::default(), Times::default());
        let gathered = GatheredOrder::of(order, &mut Times::default(), spare_parts.take());
        let mut read = 0;
        let progress = |bytes| {
            read = bytes;
            ControlFlow::Continue(())
        };
        let flow =
            HandOut::new(&spares, &spare_parts, progress, &mut times).take_gathered(gathered);
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
