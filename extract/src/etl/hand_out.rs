//! Events of buffers, handed out in the order in which they were merged.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::decoded::{DecodedBuffer, SelectedEvent};
use super::event::{Event, Framed, frame};
use super::gather::{Batch, GatheredOrder, Sink, Spares};
use super::merge::{EventPlace, Order};
use super::stack_parts::StackParts;
use crate::prefetch::prefetch;

/// Events that are fetched into the cache before they are handed out: what the thread that decoded their buffer has read
/// is in the cache of another processor.
const AHEAD: usize = 4;

/// Positions of events that are fetched before that.
const POSITIONS_AHEAD: usize = 12;

/// The side that hands out events.
pub struct HandOut<'a, P, S: Sink> {
    spares: &'a Spares<DecodedBuffer>,
    pub spare_batches: &'a Spares<Batch<S>>,
    progress: P,
    sink: &'a mut S,
}

impl<'a, P: FnMut(u64) -> ControlFlow<()>, S: Sink> HandOut<'a, P, S> {
    pub fn new(
        spares: &'a Spares<DecodedBuffer>,
        spare_batches: &'a Spares<Batch<S>>,
        progress: P,
        sink: &'a mut S,
    ) -> Self {
        Self { spares, spare_batches, progress, sink }
    }

    /// Hands out the events of an order.
    pub fn take(&mut self, order: Order) -> ControlFlow<()> {
        order.for_each(|_, event| self.sink.take(event));
        self.end(order)
    }

    /// Hands out the events of an order some of which were gathered.
    pub fn take_gathered(&mut self, gathered: GatheredOrder<Batch<S>>) -> ControlFlow<()> {
        let Self { sink, spare_batches, .. } = self;
        let GatheredOrder { order, before, mut batch, gathered } = gathered;
        let (mut done, mut before) = (0, before.into_iter());
        let mut append = |sink: &mut S, end: u32| {
            if end > done {
                sink.append(&mut batch, done as usize..end as usize);
                done = end;
            }
        };
        order.for_each(|_, event| {
            append(sink, before.next().unwrap_or_default());
            sink.take(event);
        });
        append(sink, gathered);
        spare_batches.give(batch);
        self.end(order)
    }

    /// Ends an order: gives its buffers back, and says how much of the file was read.
    fn end(&mut self, order: Order) -> ControlFlow<()> {
        for buffer in order.buffers {
            // The merge, and orders around this one, may still have it.
            Arc::into_inner(buffer).into_iter().for_each(|buffer| self.spares.give(buffer));
        }
        (self.progress)(order.read)
    }
}

impl Order {
    /// Frames the events, and hands each out with its place.
    pub fn for_each(&self, mut each: impl FnMut(EventPlace, &Event<'_>)) {
        let buffer = |place: &EventPlace| self.buffers.get(place.buffer as usize);
        for (at, place) in self.events.iter().enumerate() {
            if let Some(ahead) = self.events.get(at + POSITIONS_AHEAD)
                && let Some(buffer) = buffer(ahead)
            {
                buffer.events.get(ahead.event as usize..).into_iter().for_each(prefetch);
            }
            if let Some(ahead) = self.events.get(at + AHEAD)
                && let Some(buffer) = buffer(ahead)
            {
                buffer
                    .events
                    .get(ahead.event as usize)
                    .into_iter()
                    .for_each(|event| buffer.fetch(event));
            }
            if let Some(buffer) = buffer(place)
                && let Some(event) = buffer.events.get(place.event as usize)
            {
                buffer.frame(event, |event| each(*place, event));
            }
        }
    }
}

impl DecodedBuffer {
    /// Frames one of its events.
    fn frame(&self, selected: &SelectedEvent, take: impl FnOnce(&Event<'_>)) {
        let SelectedEvent { time, position, repeated, parts } = *selected;
        let bytes = self.data.get(position as usize..self.valid).unwrap_or_default();
        let stack = StackParts::of(&self.data, &self.parts, parts);
        // The decoder framed it before. It is changed in place: an event is large, and copied where the processor has just
        // written it, which stalls.
        if let Ok(Framed { event, .. }) = &mut frame(bytes, time) {
            event.processor = self.processor;
            event.offset = self.offset_of(selected);
            event.repeated = repeated.map(|number| number.get() - 1);
            event.parts = stack.as_ref();
            take(event);
        }
    }
}
