//! Events of buffers, handed out in the order in which they were merged.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::decoded::{DecodedBuffer, SelectedEvent, SpareBuffers};
use super::diagnostics::{Diagnostics, WarningKind};
use super::event::{Event, Framed, frame};
use super::merge::Order;
use super::stack_parts::StackParts;
use crate::prefetch::prefetch;

/// Events handed out between two calls of the progress function, which may stop the reading.
const EVENTS_PER_CHECK: u32 = 1 << 14;

/// Events of a buffer that are fetched into the cache before they are handed out: what the thread that decoded the
/// buffer has read is in the cache of another processor.
const AHEAD: usize = 2;

/// Positions of events that are fetched before that.
const POSITIONS_AHEAD: usize = 8;

/// The side that hands out events.
pub(super) struct HandOut<'a, P, S> {
    slots: Vec<Slot>,
    spares: &'a SpareBuffers,
    /// Raw time of the latest event handed out; the smallest number before the first, so that no event is out of order.
    last_time: i64,
    handed_out: u32,
    /// Bytes of the file read so far.
    read: u64,
    diagnostics: &'a mut Diagnostics,
    progress: P,
    sink: S,
}

#[derive(Default)]
struct Slot {
    /// `None` once all of its events are handed out.
    buffer: Option<Arc<DecodedBuffer>>,
    next: usize,
}

impl<'a, P: FnMut(u64) -> ControlFlow<()>, S: FnMut(&Event<'_>)> HandOut<'a, P, S> {
    pub(super) fn new(
        spares: &'a SpareBuffers,
        diagnostics: &'a mut Diagnostics,
        progress: P,
        sink: S,
    ) -> Self {
        Self {
            slots: Vec::new(),
            spares,
            last_time: i64::MIN,
            handed_out: 0,
            read: 0,
            diagnostics,
            progress,
            sink,
        }
    }

    /// Hands out the events of an order.
    pub(super) fn take(&mut self, order: Order) -> ControlFlow<()> {
        let mut buffers = order.buffers.into_iter();
        for step in order.steps {
            if step == Order::BUFFER {
                buffers
                    .next()
                    .map_or(ControlFlow::Continue(()), |(slot, buffer)| self.add(slot, buffer))?;
                continue;
            }
            self.hand_out(step as usize);
            self.handed_out = self.handed_out.wrapping_add(1);
            if self.handed_out.is_multiple_of(EVENTS_PER_CHECK) {
                (self.progress)(self.read)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn add(&mut self, slot: Option<u32>, buffer: Arc<DecodedBuffer>) -> ControlFlow<()> {
        self.read += u64::from(buffer.stored);
        match slot.map(|slot| slot as usize) {
            Some(slot) => {
                buffer.events.iter().take(AHEAD).for_each(|event| buffer.fetch(event));
                if self.slots.len() <= slot {
                    self.slots.resize_with(slot + 1, Slot::default);
                }
                self.slots[slot] = Slot { buffer: Some(buffer), next: 0 };
            }
            None => self.recycle(buffer),
        }
        (self.progress)(self.read)
    }

    /// Hands out the next event of the buffer in a slot.
    fn hand_out(&mut self, slot: usize) {
        let Self { slots, last_time, diagnostics, sink, .. } = self;
        let Slot { buffer: slot, next } = &mut slots[slot];
        let Some(buffer) = slot else { return };
        let Some(selected) = buffer.events.get(*next) else { return };
        buffer.events.get(*next + POSITIONS_AHEAD..).into_iter().for_each(prefetch);
        buffer.events.get(*next + AHEAD).into_iter().for_each(|event| buffer.fetch(event));
        *next += 1;
        let SelectedEvent { position, repeated, parts, .. } = *selected;
        let at = position as usize;
        let bytes = buffer.data.get(at..buffer.valid).unwrap_or_default();
        let stack = StackParts::of(&buffer.data, &buffer.parts, parts);
        // The decoder framed it before. It is changed in place: an event is large, and copied where the processor has just
        // written it, which stalls.
        if let Ok(Framed { event, .. }) = &mut frame(bytes, *last_time) {
            event.processor = buffer.processor;
            event.offset = buffer.offset + if buffer.expanded { 0 } else { at as u64 };
            event.repeated = repeated.map(|number| number.get() - 1);
            event.parts = stack.as_ref();
            if event.time < *last_time {
                diagnostics.count(WarningKind::OutOfOrder, Some(event.offset));
            } else {
                *last_time = event.time;
            }
            sink(event);
        }
        if *next == buffer.events.len()
            && let Some(buffer) = slot.take()
        {
            self.recycle(buffer);
        }
    }

    /// Gives back a buffer all of whose events are handed out.
    fn recycle(&self, buffer: Arc<DecodedBuffer>) {
        // The merge has given it up with the order of its last event.
        if let Some(buffer) = Arc::into_inner(buffer) {
            self.spares.give(buffer);
        }
    }
}
