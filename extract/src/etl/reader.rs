//! Events of a file in time order.
//!
//! Threads share the work: decoders read groups of buffers, expand and frame them and select their events, one thread merges
//! these by time, gatherers take what they can of the merged events, and one thread the rest, in order; with few threads, one
//! does all but decoding. Buffers are recycled, so memory depends on the number of buffers that overlap in time (about one per
//! processor) and not on the size of the file.

use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use super::buffer::IndexedBuffer;
use super::decode::{Decoder, Findings, Selector, groups};
use super::diagnostics::Diagnostics;
use super::file::EtlFile;
use super::gather::{Sink, gather};
use super::hand_out::{HandOut, Part};
use super::index::BufferIndex;
use super::losses::ReadBuffer;
use super::merge::{MergeLimits, Merger};
use super::repeated::Repeated;
use super::spares::Spares;
use crate::side_by_side::joined;

/// Groups of decoded buffers that wait for the merge.
const READ_AHEAD: usize = 8;

/// Groups whose order is known and whose events wait to be handed out.
const ORDERED_AHEAD: usize = 4;

/// Most threads that decode: more would wait for the one that takes the events.
pub(crate) const MAX_DECODERS: usize = 4;

/// Most threads that gather: more would wait for the one that appends what they gathered.
const MAX_GATHERERS: usize = 4;

/// Threads from which on one merges, and others take the events.
const THREADS_TO_MERGE: usize = 3;

/// Bytes of buffers that may be merged at once when few processors recorded; two buffers of each processor
/// when that is more. Only files with damaged time stamps come near the limit.
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
    /// A reader for the buffers of `index`, of `buffer_size` bytes each, written by a system with
    /// `processors` processors.
    pub fn new(file: EtlFile, index: BufferIndex, processors: u32, buffer_size: u32) -> Self {
        // One buffer per processor overlaps with the next one of the same processor; more overlap
        // only in damaged files.
        let processors = processors.min(2048) as usize;
        let bytes = (2 * processors).saturating_mul(buffer_size as usize);
        let limits = MergeLimits {
            buffers: 64 + 4 * processors,
            bytes: bytes.clamp(MERGE_BYTES, MAX_MERGE_BYTES),
        };
        Self { file, index, limits, threads: 2 }
    }

    /// Shares the work among so many threads.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Hands out the selected events in time order; events of equal time in the order of their
    /// buffers.
    ///
    /// The groups of buffers are divided among the selectors in turns, whatever the number of threads. A selector is used by one
    /// thread, so that a single one allows one thread to decode. With more than two threads, those gather for the sink.
    ///
    /// `progress` gets the number of bytes of the file read so far and decides whether to go on. Returns its last
    /// decision, and the buffers read.
    ///
    /// # Errors
    /// When the file cannot be read. Damage inside it is counted in the diagnostics instead.
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
        let (spares, spare_parts, repeated) =
            (&Spares::default(), &Spares::default(), &Repeated::default());
        thread::scope(|scope| {
            let (mut decoders, mut decoded) = (Vec::new(), Vec::new());
            for (first, selectors) in divided(selectors, count).into_iter().enumerate() {
                let (decoded_tx, decoded_rx) = sync_channel(READ_AHEAD.div_ceil(count));
                let decoder = Decoder::new(file, spares, repeated);
                decoded.push(decoded_rx);
                let every = groups.iter().skip(first).step_by(count).cloned();
                decoders
                    .push(scope.spawn(move || decoder.run(buffers, every, selectors, &decoded_tx)));
            }
            let merger = Merger::new(decoded, repeated, limits);
            let gatherers: Vec<_> =
                (0..gatherers(threads)).map_while(|_| sink.gatherer()).collect();
            let mut hand_out = HandOut::new(spares, spare_parts, progress, sink);
            let (flow, merged) = if threads < THREADS_TO_MERGE {
                merger.run(buffers, groups, |order| hand_out.take(order))
            } else {
                let merging = Merging { merger, buffers, groups };
                merging.run_beside(scope, gatherers, spare_parts, &mut hand_out)
            };
            diagnostics.merge(&merged);
            let mut read = Vec::with_capacity(buffers.len());
            for decoder in decoders {
                let Findings { diagnostics: findings, read: part } = joined(decoder.join())?;
                diagnostics.merge(&findings);
                read.extend(part);
            }
            read.sort_unstable_by_key(|(position, _)| *position);
            Ok((flow, read.into_iter().map(|(_, buffer)| buffer).collect()))
        })
    }

    /// Number of decoding threads: a divisor of the number of selectors, so that each of these has one thread.
    fn decoders(&self, selectors: usize) -> usize {
        let is_compressed = self.index.buffers.iter().any(|buffer| buffer.header.is_compressed());
        // Expanding takes more than all the rest.
        let most = if is_compressed { self.threads } else { self.threads.div_ceil(2) };
        (1..=most.min(MAX_DECODERS))
            .rev()
            .find(|count| selectors.is_multiple_of(*count))
            .unwrap_or(1)
    }
}

/// A merge that is still to be run.
struct Merging<'a> {
    merger: Merger<'a>,
    buffers: &'a [IndexedBuffer],
    groups: &'a [Range<usize>],
}

impl<'a> Merging<'a> {
    /// Merges on a thread of its own, gathers on one for each gatherer, and hands out on this one. Returns the last decision
    /// about going on, and the diagnostics of the merge.
    fn run_beside<'scope, P: FnMut(u64) -> ControlFlow<()>, S: Sink>(
        self,
        scope: &'scope Scope<'scope, 'a>,
        gatherers: Vec<S::Gatherer>,
        spare_parts: &'a Spares<Part<S>>,
        hand_out: &mut HandOut<'_, P, S>,
    ) -> (ControlFlow<()>, Diagnostics)
    where
        S::Gatherer: 'scope,
    {
        let Self { merger, buffers, groups } = self;
        let (ordered, orders) = channels(gatherers.len().max(1));
        let merging = scope.spawn(|| merger.run(buffers, groups, send_in_turns(ordered)));
        let flow = if gatherers.is_empty() {
            in_turns(orders).try_for_each(|order| hand_out.take(order))
        } else {
            let (gathered, parts) = channels(gatherers.len());
            let lanes = gatherers.into_iter().zip(orders).zip(gathered);
            let gathering = lanes.map(|((gatherer, orders), gathered)| {
                scope.spawn(move || gather(gatherer, spare_parts, orders, &gathered))
            });
            let gathering: Vec<_> = gathering.collect();
            let flow = in_turns(parts).try_for_each(|part| hand_out.take_gathered(part));
            gathering.into_iter().for_each(|thread| joined(thread.join()));
            flow
        };
        (flow, joined(merging.join()).1)
    }
}

/// Number of threads that gather.
fn gatherers(threads: usize) -> usize {
    (threads / 2).min(MAX_GATHERERS)
}

/// Channels to or from as many threads.
fn channels<T>(count: usize) -> (Vec<SyncSender<T>>, Vec<Receiver<T>>) {
    (0..count).map(|_| sync_channel(ORDERED_AHEAD)).unzip()
}

/// Sends each item to the next of some threads, until one of them takes no more.
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

/// The items of some threads, one of each in turns, until the next one has no more.
fn in_turns<T>(receivers: Vec<Receiver<T>>) -> impl Iterator<Item = T> {
    let mut turns = (0..receivers.len()).cycle();
    std::iter::from_fn(move || receivers.get(turns.next()?)?.recv().ok())
}

/// The selectors of each decoder, in turns.
fn divided(selectors: Vec<&mut dyn Selector>, decoders: usize) -> Vec<Vec<&mut dyn Selector>> {
    let mut parts: Vec<_> = (0..decoders).map(|_| Vec::new()).collect();
    for (at, selector) in selectors.into_iter().enumerate() {
        parts[at % decoders].push(selector);
    }
    parts
}
