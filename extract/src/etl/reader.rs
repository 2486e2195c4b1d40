//! Reads the events of a file in time order.
//!
//! Threads share the work. Decoders read groups of buffers, expand and frame them, and select their events. One thread
//! merges these by time. Gatherers collect some of the merged events in batches, and one thread hands out batches and
//! all other events in order. With few threads, one does everything but decoding. Buffers are recycled, so memory
//! depends on how many buffers overlap in time (about one per processor) and not on the file size.

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use handlescope_model::guard::joined;

use super::EtlFile;
use super::decode::{BufferDecoder, DecoderFindings, Selector, groups};
use super::diagnostics::Diagnostics;
use super::gather::{Sink, Spares, gather};
use super::hand_out::HandOut;
use super::index::BufferIndex;
use super::losses::ReadBuffer;
use super::merge::{IndexedGroups, MergeLimits, Merger};
use super::repeated::RepeatedBytes;

/// Groups of decoded buffers waiting for the merge.
const READ_AHEAD: usize = 8;

/// Orders waiting to be gathered, and orders waiting to be handed out.
const ORDERED_AHEAD: usize = 4;

/// Maximum number of decoding threads: more would wait for the one that takes the events.
pub const MAX_DECODERS: usize = 4;

/// Maximum number of gathering threads: more would wait for the one that appends what they gathered.
const MAX_GATHERERS: usize = 4;

/// Minimum number of threads for merging on a separate one.
const THREADS_TO_MERGE: usize = 3;

/// Limit on the bytes of buffers merged at once, if few processors recorded. If many did, the limit is two buffers
/// each. Only files with damaged timestamps come near it.
const MERGE_BYTES: usize = 256 << 20;

/// Limit on the bytes merged at once, whatever processor count and buffer size the trace claims.
const MAX_MERGE_BYTES: usize = 512 << 20;

/// Reads the events of an indexed file.
pub struct EventReader {
    file: EtlFile,
    index: BufferIndex,
    limits: MergeLimits,
    threads: usize,
}

impl EventReader {
    /// Creates a reader for the buffers of `index`, each of `buffer_size` bytes, written by a system with `processors`
    /// processors.
    pub fn new(file: EtlFile, index: BufferIndex, processors: u32, buffer_size: u32) -> Self {
        // A processor's buffer overlaps only its next one; more overlap only in damaged files.
        let processors = processors.min(2048) as usize;
        let bytes = (2 * processors).saturating_mul(buffer_size as usize);
        let limits = MergeLimits {
            buffers: 64 + 4 * processors,
            bytes: bytes.clamp(MERGE_BYTES, MAX_MERGE_BYTES),
        };
        Self { file, index, limits, threads: 2 }
    }

    /// Sets the number of threads that share the work.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Hands out the selected events in time order, and events with equal times in the order of their buffers.
    ///
    /// The buffer groups are dealt out to the selectors in turn, whatever the number of threads. A selector is used by
    /// one thread only, so with one selector there is one decoding thread.
    ///
    /// `progress` gets the number of bytes of the file read so far, and decides whether to go on. Returns its last
    /// decision, and the buffers read.
    ///
    /// # Errors
    /// Fails if the file cannot be read. Damage inside the file is counted in the diagnostics instead.
    pub fn read<S: Sink>(
        self,
        selectors: Vec<&mut dyn Selector>,
        diagnostics: &mut Diagnostics,
        progress: impl FnMut(u64) -> ControlFlow<()>,
        sink: &mut S,
    ) -> io::Result<(ControlFlow<()>, Vec<ReadBuffer>)> {
        let count = self.decoders(selectors.len());
        let Self { file, index, limits, threads } = self;
        let (buffers, file) = (&index.buffers, &file);
        let groups = &groups(buffers);
        let (spares, spare_batches, repeated) =
            (&Spares::default(), &Spares::default(), &RepeatedBytes::default());
        thread::scope(|scope| {
            let (mut decoders, mut decoded) = (Vec::new(), Vec::new());
            for (first, selectors) in divided(selectors, count).into_iter().enumerate() {
                let (decoded_tx, decoded_rx) = sync_channel(READ_AHEAD.div_ceil(count));
                let decoder = BufferDecoder::new(file, spares, repeated);
                decoded.push(decoded_rx);
                let every = groups.iter().skip(first).step_by(count).cloned();
                decoders
                    .push(scope.spawn(move || decoder.run(buffers, every, selectors, &decoded_tx)));
            }
            let indexed = IndexedGroups { buffers, groups };
            let merger = Merger::new(decoded, repeated, limits, indexed);
            let gatherers: Vec<_> =
                (0..gatherers(threads)).map_while(|_| sink.gatherer()).collect();
            let mut hand_out = HandOut::new(spares, spare_batches, progress, sink);
            let (flow, merged) = if threads < THREADS_TO_MERGE {
                merger.run(|order| hand_out.take(order))
            } else {
                merge_beside(scope, merger, gatherers, &mut hand_out)
            };
            diagnostics.merge(&merged);
            let mut read = Vec::with_capacity(buffers.len());
            for decoder in decoders {
                let DecoderFindings { diagnostics: findings, read: part } = joined(decoder.join())?;
                diagnostics.merge(&findings);
                read.extend(part);
            }
            read.sort_unstable_by_key(|(position, _)| *position);
            Ok((flow, read.into_iter().map(|(_, buffer)| buffer).collect()))
        })
    }

    /// Returns the number of decoding threads. It divides the number of selectors, so that each selector has one
    /// thread.
    fn decoders(&self, selectors: usize) -> usize {
        let is_compressed = self.index.buffers.iter().any(|buffer| buffer.header.is_compressed());
        // Expanding takes longer than everything else together.
        let most = if is_compressed { self.threads } else { self.threads.div_ceil(2) };
        (1..=most.min(MAX_DECODERS))
            .rev()
            .find(|count| selectors.is_multiple_of(*count))
            .unwrap_or(1)
    }
}

/// Merges on one thread, gathers on one per gatherer, and hands out on this one. Returns the last decision about going
/// on, and the diagnostics of the merge.
fn merge_beside<'scope, 'a: 'scope, P: FnMut(u64) -> ControlFlow<()>, S: Sink>(
    scope: &'scope Scope<'scope, 'a>,
    merger: Merger<'a>,
    gatherers: Vec<S::Gatherer>,
    hand_out: &mut HandOut<'a, P, S>,
) -> (ControlFlow<()>, Diagnostics)
where
    S::Gatherer: 'scope,
{
    let (ordered, orders) = channels(gatherers.len().max(1));
    let merging = scope.spawn(|| merger.run(send_in_turns(ordered)));
    let flow = if gatherers.is_empty() {
        in_turns(orders).try_for_each(|order| hand_out.take(order))
    } else {
        let spares = hand_out.spare_batches;
        let (gathered, batches) = channels(gatherers.len());
        let lanes = gatherers.into_iter().zip(orders).zip(gathered);
        let gathering: Vec<_> = lanes
            .map(|((gatherer, orders), gathered)| {
                scope.spawn(move || gather(gatherer, spares, orders, &gathered))
            })
            .collect();
        let flow = in_turns(batches).try_for_each(|batch| hand_out.take_gathered(batch));
        gathering.into_iter().for_each(|thread| joined(thread.join()));
        flow
    };
    (flow, joined(merging.join()).1)
}

/// Returns the number of gathering threads; none if the thread that hands out also merges.
fn gatherers(threads: usize) -> usize {
    if threads < THREADS_TO_MERGE { 0 } else { (threads / 2).min(MAX_GATHERERS) }
}

/// Creates `count` channels that together hold [`ORDERED_AHEAD`] items, or a few more.
fn channels<T>(count: usize) -> (Vec<SyncSender<T>>, Vec<Receiver<T>>) {
    (0..count).map(|_| sync_channel(ORDERED_AHEAD.div_ceil(count))).unzip()
}

/// Sends items to each channel in turn, until a receiver is gone.
fn send_in_turns<T>(senders: Vec<SyncSender<T>>) -> impl FnMut(T) -> ControlFlow<()> {
    let mut turns = (0..senders.len()).cycle();
    move |item| {
        let sender = turns.next().and_then(|turn| senders.get(turn));
        match sender.map(|sender| sender.send(item)) {
            Some(Ok(())) => ControlFlow::Continue(()),
            Some(Err(_)) | None => ControlFlow::Break(()),
        }
    }
}

/// Receives items from each channel in turn, until the next one has no more.
fn in_turns<T>(receivers: Vec<Receiver<T>>) -> impl Iterator<Item = T> {
    let mut turns = (0..receivers.len()).cycle();
    std::iter::from_fn(move || receivers.get(turns.next()?)?.recv().ok())
}

/// Deals out the selectors to the decoders in turn.
fn divided(selectors: Vec<&mut dyn Selector>, decoders: usize) -> Vec<Vec<&mut dyn Selector>> {
    let mut parts: Vec<_> = (0..decoders).map(|_| Vec::new()).collect();
    for (at, selector) in selectors.into_iter().enumerate() {
        parts[at % decoders].push(selector);
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::etl::decoded::DecodedBuffer;
    use crate::etl::{BufferHeader, Event, Gatherer, IndexedBuffer};

    #[test]
    fn items_of_several_threads_come_in_the_order_in_which_they_were_sent() {
        for count in [1, 2, 3] {
            let (senders, receivers) = channels(count);
            let sending = thread::spawn(move || (0..20).try_for_each(send_in_turns(senders)));
            let received: Vec<i32> = in_turns(receivers).collect();
            assert_eq!(received, (0..20).collect::<Vec<_>>(), "{count} channels");
            assert!(sending.join().is_ok_and(|flow| flow.is_continue()));
        }
    }

    /// Panics at an event, or at the first batch.
    #[derive(Clone, Copy)]
    enum Panics {
        InGather,
        InAppend,
    }

    impl Gatherer for Panics {
        type Batch = ();

        fn gather(&mut self, event: &Event<'_>, (): &mut ()) -> bool {
            match self {
                Self::InGather => panic!("over the event at {}", event.time),
                Self::InAppend => true,
            }
        }
    }

    impl Sink for Panics {
        type Gatherer = Self;

        fn take(&mut self, _: &Event<'_>) {}

        fn append(&mut self, (): &mut (), events: Range<usize>) {
            panic!("over the {} events of a batch", events.len())
        }

        fn gatherer(&self) -> Option<Self> {
            Some(*self)
        }
    }

    /// Returns the panic message of the sink or its gatherers, while a hundred orders wait.
    fn message(panics: Panics) -> String {
        let header = BufferHeader::new(0, 0, 0);
        let buffers = &vec![IndexedBuffer { offset: 0, stored: 0, header, first_time: 0 }; 100];
        let groups = &(0..100).map(|at| at..at + 1).collect::<Vec<_>>();
        let (decoded_tx, decoded) = sync_channel(100);
        let buffer = |time| vec![DecodedBuffer::from_events(&[(0x1120, time)])];
        (7..107).for_each(|time| decoded_tx.send(buffer(time)).unwrap());
        let limits = MergeLimits { buffers: 4, bytes: 1 << 20 };
        let repeated = &RepeatedBytes::default();
        let (spares, spare_batches) = (&Spares::default(), &Spares::default());
        let result = catch_unwind(AssertUnwindSafe(|| {
            let indexed = IndexedGroups { buffers, groups };
            let merger = Merger::new(vec![decoded], repeated, limits, indexed);
            let progress = |_| ControlFlow::Continue(());
            let mut sink = panics;
            let mut hand_out = HandOut::new(spares, spare_batches, progress, &mut sink);
            thread::scope(|scope| {
                let _ = merge_beside(scope, merger, vec![panics, panics], &mut hand_out);
            });
        }));
        let panic = result.unwrap_err();
        *panic.downcast::<String>().unwrap()
    }

    #[test]
    fn a_panic_of_a_sink_or_of_its_gatherers_is_passed_on() {
        let of_gatherer = message(Panics::InGather);
        assert!(of_gatherer.starts_with("over the event at "), "{of_gatherer}");
        let of_sink = message(Panics::InAppend);
        assert!(of_sink.ends_with(" events of a batch"), "{of_sink}");
    }

    #[test]
    fn sending_ends_when_one_thread_takes_no_more() {
        let (senders, mut receivers) = channels(2);
        drop(receivers.pop());
        let mut send = send_in_turns(senders);
        assert_eq!([send(1), send(2)], [ControlFlow::Continue(()), ControlFlow::Break(())]);
    }
}
