//! Events of a file in time order.
//!
//! Threads share the work: decoders read groups of buffers, expand and frame them and select their events, one thread merges
//! these by time, and one hands them out; with few threads, one does both. Buffers are recycled, so memory depends on the
//! number of buffers that overlap in time (about one per processor) and not on the size of the file.

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::decode::{Decoder, Findings, Selector, groups};
use super::decoded::SpareBuffers;
use super::diagnostics::Diagnostics;
use super::event::Event;
use super::file::EtlFile;
use super::hand_out::HandOut;
use super::index::BufferIndex;
use super::losses::ReadBuffer;
use super::merge::{MergeLimits, Merger};
use super::repeated::Repeated;
use crate::side_by_side::joined;

/// Groups of decoded buffers that wait for the merge.
const READ_AHEAD: usize = 8;

/// Groups whose order is known and whose events wait to be handed out.
const ORDERED_AHEAD: usize = 4;

/// Most threads that decode compressed buffers: more would wait for the one that hands out events.
pub(crate) const MAX_DECODERS: usize = 4;

/// Most threads that decode buffers that are not compressed.
const MAX_PLAIN_DECODERS: usize = 2;

/// Threads from which on one merges, and another one hands out events.
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
    /// thread, so that a single one allows one thread to decode.
    ///
    /// `progress` gets the number of bytes of the file read so far and decides whether to go on. Returns its last
    /// decision, and the buffers read.
    ///
    /// # Errors
    /// When the file cannot be read. Damage inside it is counted in the diagnostics instead.
    pub fn read(
        self,
        selectors: Vec<&mut dyn Selector>,
        diagnostics: &mut Diagnostics,
        progress: impl FnMut(u64) -> ControlFlow<()>,
        sink: impl FnMut(&Event<'_>),
    ) -> io::Result<(ControlFlow<()>, Vec<ReadBuffer>)> {
        let count = self.decoders(selectors.len());
        let Self { file, index, limits, threads } = self;
        let (buffers, file) = (&index.buffers, &file);
        let groups = &groups(buffers);
        let (spares, repeated) = (&SpareBuffers::default(), &Repeated::default());
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
            let mut hand_out = HandOut::new(spares, diagnostics, progress, sink);
            let (flow, merged) = if threads < THREADS_TO_MERGE {
                merger.run(buffers, groups, |order| hand_out.take(order))
            } else {
                let (ordered_tx, ordered_rx) = sync_channel(ORDERED_AHEAD);
                let merging = scope.spawn(move || {
                    merger.run(buffers, groups, |order| {
                        // Fails when nothing more is to be handed out.
                        ordered_tx.send(order).map_or(ControlFlow::Break(()), ControlFlow::Continue)
                    })
                });
                let flow = ordered_rx.iter().try_for_each(|order| hand_out.take(order));
                drop(ordered_rx);
                (flow, joined(merging.join()).1)
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
        let most = if is_compressed {
            self.threads.min(MAX_DECODERS)
        } else {
            self.threads.div_ceil(2).min(MAX_PLAIN_DECODERS)
        };
        (1..=most).rev().find(|count| selectors.is_multiple_of(*count)).unwrap_or(1)
    }
}

/// The selectors of each decoder, in turns.
fn divided(selectors: Vec<&mut dyn Selector>, decoders: usize) -> Vec<Vec<&mut dyn Selector>> {
    let mut parts: Vec<_> = (0..decoders).map(|_| Vec::new()).collect();
    for (at, selector) in selectors.into_iter().enumerate() {
        parts[at % decoders].push(selector);
    }
    parts
}
