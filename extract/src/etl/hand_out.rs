//! Hands out events of buffers in merged order.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::decoded::{DecodedBuffer, SelectedEvent};
use super::event::{Event, EventFrame, frame};
use super::gather::{Batch, GatheredOrder, Sink, Spares};
use super::merge::{EventPlace, MergeOrder};
use super::stack_parts::StackParts;
use crate::prefetch::prefetch;

/// Prefetch distance in events. What the decoding thread has read is in another processor's cache.
const AHEAD: usize = 4;

/// Prefetch distance for the positions of events, which must come before the events.
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
    pub fn take(&mut self, order: MergeOrder) -> ControlFlow<()> {
        order.for_each(|_, event| self.sink.take(event));
        self.end(order)
    }

    /// Hands out the events of an order with some of them gathered.
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

    /// Ends an order: gives its buffers back, and reports how much of the file was read.
    fn end(&mut self, order: MergeOrder) -> ControlFlow<()> {
        for buffer in order.buffers {
            // The merge and neighbouring orders may still use it.
            Arc::into_inner(buffer).into_iter().for_each(|buffer| self.spares.give(buffer));
        }
        (self.progress)(order.read)
    }
}

impl MergeOrder {
    /// Frames the events, and passes each on with its place.
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
        let stack = StackParts::new(&self.data, &self.parts, parts);
        // It was already framed by the decoder. It is modified in place: an event is large, and copying what the
        // processor has just written stalls.
        if let Ok(EventFrame { event, .. }) = &mut frame(bytes, time) {
            event.processor = self.processor;
            event.offset = self.offset_of(selected);
            event.repeated = repeated.map(|number| number.get() - 1);
            event.parts = stack.as_ref();
            take(event);
        }
    }
}
