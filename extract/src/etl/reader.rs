//! Events of a file in time order.
//!
//! Two threads share the work: one reads, expands and frames buffers ahead, the other merges them
//! and hands out the events. Buffers are recycled, so memory depends on the number of buffers that
//! overlap in time (about one per processor) and not on the size of the file.

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use super::buffer::{BUFFER_HEADER_SIZE, IndexedBuffer};
use super::diagnostics::{Diagnostics, WarningKind};
use super::event::{Event, frame, is_end};
use super::file::EtlFile;
use super::index::BufferIndex;
use super::losses::ReadBuffer;
use super::lz77::decompress;
use super::merge::{DecodedBuffer, Merge};
use super::times::BufferTimes;

/// Chooses the events that are handed out; sees every event of the file.
///
/// It runs on the decoding thread and sees the events buffer by buffer, not in time order.
pub trait Selector: Send {
    /// Whether the event is to be handed out.
    fn select(&mut self, event: &Event<'_>) -> bool;
}

/// Decoded buffers that wait for the merge.
const READ_AHEAD: usize = 8;

/// Bytes of buffers that may be merged at once, or of some for each processor if that is more; only
/// damaged time stamps come near.
const MERGE_BYTES: usize = 256 << 20;

/// The same, however many processors and how large buffers the trace claims.
const MOST_MERGE_BYTES: usize = 512 << 20;

/// Events handed out between two looks whether to stop.
const EVENTS_PER_LOOK: u32 = 1 << 14;

/// Reads the events of an indexed file.
pub struct EventReader {
    file: EtlFile,
    index: BufferIndex,
    limits: MergeLimits,
}

/// How much is merged at once.
#[derive(Debug, Clone, Copy)]
struct MergeLimits {
    buffers: usize,
    bytes: usize,
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
            bytes: bytes.clamp(MERGE_BYTES, MOST_MERGE_BYTES),
        };
        Self { file, index, limits }
    }

    /// Hands out the selected events in time order; events of equal time in the order of their
    /// buffers.
    ///
    /// `progress` gets the number of bytes of the file read so far, and says whether to go
    /// on; the answer says whether it did, and what was read of each buffer. `times` gets those of each.
    ///
    /// # Errors
    /// When the file cannot be read. Damage inside it is counted in the diagnostics instead.
    pub fn read(
        self,
        selector: &mut dyn Selector,
        diagnostics: &mut Diagnostics,
        times: &mut Vec<BufferTimes>,
        progress: impl FnMut(u64) -> ControlFlow<()>,
        sink: impl FnMut(&Event<'_>),
    ) -> io::Result<(ControlFlow<()>, Vec<ReadBuffer>)> {
        let Self { file, index, limits } = self;
        let (decoded_tx, decoded_rx) = sync_channel(READ_AHEAD);
        let (spare_tx, spare_rx) = channel();
        thread::scope(|scope| {
            let buffers = &index.buffers;
            let decoder = scope.spawn(move || {
                let diagnostics = Diagnostics::default();
                let mut decoder = Decoder { file, selector, diagnostics, read: Vec::new(), times };
                let result = decoder.run(buffers, &decoded_tx, &spare_rx);
                (result, decoder.diagnostics, decoder.read)
            });
            let mut merger = Merger {
                merge: Merge::default(),
                spare: spare_tx,
                bytes: 0,
                last_time: i64::MIN,
                handed_out: 0,
                read: 0,
                diagnostics,
                progress,
                sink,
            };
            let flow = merger.run(buffers, limits, &decoded_rx);
            drop(decoded_rx);
            let Merger { diagnostics, .. } = merger;
            match decoder.join() {
                Ok((result, found, read)) => {
                    diagnostics.merge(&found);
                    result.map(|()| (flow, read))
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// The decoding side.
struct Decoder<'a> {
    file: EtlFile,
    selector: &'a mut dyn Selector,
    diagnostics: Diagnostics,
    /// The buffers so far.
    read: Vec<ReadBuffer>,
    times: &'a mut Vec<BufferTimes>,
}

impl Decoder<'_> {
    fn run(
        &mut self,
        buffers: &[IndexedBuffer],
        decoded: &SyncSender<DecodedBuffer>,
        spare: &Receiver<DecodedBuffer>,
    ) -> io::Result<()> {
        let mut stored = Vec::new();
        for buffer in buffers {
            let mut target = spare.try_recv().unwrap_or_default();
            let is_expanded = self.load(buffer, &mut stored, &mut target)?;
            let (last, is_framed) = self.select(buffer, &mut target);
            let IndexedBuffer { header, first_time: first, .. } = *buffer;
            self.read.push(ReadBuffer { header, first, last, is_whole: is_expanded && is_framed });
            if decoded.send(target).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Reads a buffer and expands it if needed; returns whether that is all of it.
    fn load(
        &mut self,
        buffer: &IndexedBuffer,
        stored: &mut Vec<u8>,
        target: &mut DecodedBuffer,
    ) -> io::Result<bool> {
        (target.offset, target.sequence) = (buffer.offset, buffer.header.sequence);
        target.processor = buffer.header.processor;
        target.expanded = buffer.header.is_compressed();
        let is_whole = load(&mut self.file, buffer, stored, &mut target.data)?;
        if !is_whole && !is_cut(buffer) {
            self.diagnostics.count(WarningKind::BadCompression, Some(buffer.offset));
        }
        let filled = buffer.header.filled as usize;
        target.valid = target.data.len().min(filled);
        Ok(is_whole && target.valid == filled)
    }

    /// Frames the events and notes the selected ones; returns the raw time of the last one, and whether all could be
    /// framed.
    fn select(&mut self, buffer: &IndexedBuffer, target: &mut DecodedBuffer) -> (i64, bool) {
        target.events.clear();
        let mut at = BUFFER_HEADER_SIZE;
        let mut time = buffer.first_time;
        let mut last = time;
        let mut times = BufferTimes::of(buffer);
        while let Some(rest) = target.data[..target.valid].get(at..) {
            if is_end(rest) {
                break;
            }
            let Ok(framed) = frame(rest, time) else {
                if !is_cut(buffer) {
                    let place = if target.expanded { 0 } else { at as u64 };
                    self.diagnostics.count(WarningKind::BadEvent, Some(buffer.offset + place));
                }
                self.times.push(times);
                return (last, false);
            };
            time = framed.event.time;
            last = last.max(time);
            let event = Event { processor: target.processor, ..framed.event };
            times.add(&event);
            if self.selector.select(&event) {
                target.events.push((time, at as u32));
            }
            at += framed.stride;
        }
        self.times.push(times);
        (last, true)
    }
}

/// Reads a buffer, from its header on, and expands it if needed; returns whether it expanded as it
/// should.
pub(crate) fn load(
    file: &mut EtlFile,
    buffer: &IndexedBuffer,
    stored: &mut Vec<u8>,
    data: &mut Vec<u8>,
) -> io::Result<bool> {
    let size = buffer.stored as usize;
    if !buffer.header.is_compressed() {
        file.read_at(buffer.offset, size, data)?;
        return Ok(true);
    }
    file.read_at(buffer.offset, size, stored)?;
    data.clear();
    data.extend_from_slice(stored.get(..BUFFER_HEADER_SIZE).unwrap_or_default());
    let wanted = (buffer.header.filled as usize).saturating_sub(BUFFER_HEADER_SIZE);
    let stream = stored.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
    let result = decompress(stream, wanted, data);
    Ok(result.is_ok() && data.len() == buffer.header.filled as usize)
}

/// Whether the file ends inside the buffer, which was counted when the buffer was found.
fn is_cut(buffer: &IndexedBuffer) -> bool {
    buffer.stored < buffer.header.size
}

/// The merging side.
struct Merger<'a, P, S> {
    merge: Merge,
    spare: Sender<DecodedBuffer>,
    bytes: usize,
    last_time: i64,
    handed_out: u32,
    /// Bytes of the file that were read.
    read: u64,
    diagnostics: &'a mut Diagnostics,
    progress: P,
    sink: S,
}

impl<P: FnMut(u64) -> ControlFlow<()>, S: FnMut(&Event<'_>)> Merger<'_, P, S> {
    /// Hands out the events of all buffers; ends early when the decoder does.
    fn run(
        &mut self,
        buffers: &[IndexedBuffer],
        limits: MergeLimits,
        decoded: &Receiver<DecodedBuffer>,
    ) -> ControlFlow<()> {
        for buffer in buffers {
            self.catch_up(buffer.first_time, limits)?;
            let Ok(decoded) = decoded.recv() else { break };
            self.add(decoded);
            self.read += u64::from(buffer.stored);
            (self.progress)(self.read)?;
        }
        self.hand_out_while(|merger| merger.merge.len() > 0)
    }

    fn add(&mut self, buffer: DecodedBuffer) {
        self.bytes += buffer.data.len();
        if let Some(empty) = self.merge.add(buffer) {
            self.recycle(empty);
        }
    }

    /// Hands out what comes before `until`, the first time of the next buffer.
    fn catch_up(&mut self, until: i64, limits: MergeLimits) -> ControlFlow<()> {
        self.hand_out_while(|merger| merger.merge.next_time().is_some_and(|time| time < until))?;
        let MergeLimits { buffers, bytes } = limits;
        if self.merge.len() > buffers || self.bytes > bytes {
            self.diagnostics.count(WarningKind::MergeOverflow, None);
            let is_full =
                |merger: &Self| merger.merge.len() > buffers / 2 || merger.bytes > bytes / 2;
            self.hand_out_while(is_full)?;
        }
        ControlFlow::Continue(())
    }

    fn hand_out_while(&mut self, is_wanted: impl Fn(&Self) -> bool) -> ControlFlow<()> {
        while is_wanted(self) {
            self.hand_out();
            self.handed_out = self.handed_out.wrapping_add(1);
            if self.handed_out.is_multiple_of(EVENTS_PER_LOOK) {
                (self.progress)(self.read)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn hand_out(&mut self) {
        let Self { merge, last_time, diagnostics, sink, .. } = self;
        let done = merge.next(|buffer, at| {
            let Some(event) = event_at(buffer, at, *last_time) else { return };
            if event.time < *last_time {
                diagnostics.count(WarningKind::OutOfOrder, Some(event.offset));
            } else {
                *last_time = event.time;
            }
            sink(&event);
        });
        if let Some(buffer) = done {
            self.recycle(buffer);
        }
    }

    fn recycle(&mut self, buffer: DecodedBuffer) {
        self.bytes = self.bytes.saturating_sub(buffer.data.len());
        // The decoder may be done and gone; then the buffer is simply dropped.
        let _ = self.spare.send(buffer);
    }
}

/// Frames an event again whose place was noted by the decoder.
fn event_at(buffer: &DecodedBuffer, at: usize, inherited_time: i64) -> Option<Event<'_>> {
    let framed = frame(buffer.data.get(at..buffer.valid)?, inherited_time).ok()?;
    let place = if buffer.expanded { 0 } else { at as u64 };
    Some(Event { processor: buffer.processor, offset: buffer.offset + place, ..framed.event })
}
