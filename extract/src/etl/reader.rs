//! Events of a file in time order.
//!
//! Threads share the work: one reads buffers, frames them in the order of the index and selects their events, and one merges
//! them and hands out the events. Compressed buffers are read and expanded ahead by further threads. Buffers are recycled, so
//! memory depends on the number of buffers that overlap in time (about one per processor) and not on the size of the file.

use std::io;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use super::buffer::{BUFFER_HEADER_SIZE, BufferTimes, IndexedBuffer};
use super::diagnostics::{Diagnostics, WarningKind};
use super::event::{Event, Framed, frame, is_end};
use super::file::EtlFile;
use super::index::BufferIndex;
use super::losses::ReadBuffer;
use super::lz77::decompress;
use super::merge::{DecodedBuffer, Merge, SelectedEvent};
use super::repeated::Repeated;
use super::stack_parts::{BufferPart, RecentEvents, StackPart, StackParts};
use crate::intern::Fingerprint;

/// Chooses the events that are handed out; sees every event of the file.
///
/// It runs on the decoding thread and sees the events buffer by buffer, not in time order.
pub trait Selector: Send {
    /// Whether the event is to be handed out.
    fn select(&mut self, event: &Event<'_>) -> bool;

    /// Bytes of a selected event that are likely to be those of others, too, for [`Event::repeated`]. Only the first
    /// millions of them are numbered.
    fn repeated<'a>(&self, _event: &Event<'a>) -> Option<&'a [u8]> {
        None
    }

    /// The part of a stack that a selected event is, where it may be handed out with the event whose stack it is instead of
    /// at its own time.
    fn stack_part<'a>(&self, _event: &Event<'a>) -> Option<StackPart<'a>> {
        None
    }
}

/// Expanded buffers that wait for the decoder, and groups of decoded ones that wait for the merge.
const READ_AHEAD: usize = 8;

/// Bytes of decoded buffers that go to the merge together: waking its thread for each takes more time than a buffer.
const GROUP_BYTES: usize = 512 << 10;

/// Most threads that expand: more would wait for the merge.
const MAX_EXPANDERS: usize = 4;

/// Bytes of buffers that may be merged at once when few processors recorded; two buffers of each processor
/// when that is more. Only files with damaged time stamps come near the limit.
const MERGE_BYTES: usize = 256 << 20;

/// Limit on the bytes merged at once, whatever processor count and buffer size the trace claims.
const MAX_MERGE_BYTES: usize = 512 << 20;

/// Events handed out between two calls of the progress function, which may stop the reading.
const EVENTS_PER_CHECK: u32 = 1 << 14;

/// Reads the events of an indexed file.
pub struct EventReader {
    file: EtlFile,
    index: BufferIndex,
    limits: MergeLimits,
    /// Threads that read and expand compressed buffers; 0 where the decoding thread reads them itself.
    expanders: usize,
}

/// Limits on the data merged at once.
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
            bytes: bytes.clamp(MERGE_BYTES, MAX_MERGE_BYTES),
        };
        Self { file, index, limits, expanders: 0 }
    }

    /// Shares the work among threads: half of them expand compressed buffers, the others decode and merge.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        let is_compressed = self.index.buffers.iter().any(|buffer| buffer.header.is_compressed());
        let expanders = if is_compressed { (threads / 2).clamp(1, MAX_EXPANDERS) } else { 0 };
        Self { expanders, ..self }
    }

    /// Hands out the selected events in time order; events of equal time in the order of their
    /// buffers.
    ///
    /// `progress` gets the number of bytes of the file read so far and decides whether to go on. Returns its last
    /// decision, and the buffers read.
    ///
    /// # Errors
    /// When the file cannot be read. Damage inside it is counted in the diagnostics instead.
    pub fn read(
        self,
        selector: &mut dyn Selector,
        diagnostics: &mut Diagnostics,
        progress: impl FnMut(u64) -> ControlFlow<()>,
        sink: impl FnMut(&Event<'_>),
    ) -> io::Result<(ControlFlow<()>, Vec<ReadBuffer>)> {
        let Self { file, index, limits, expanders } = self;
        let (buffers, file) = (&index.buffers, &file);
        let (decoded_tx, decoded_rx) = sync_channel(READ_AHEAD);
        let repeated = &Repeated::default();
        thread::scope(|scope| {
            let (mut expanded, mut spares) = (Vec::new(), Vec::new());
            for first in 0..expanders {
                let (expanded_tx, expanded_rx) = sync_channel(READ_AHEAD.div_ceil(expanders));
                let (spare, mut expander) = Expander::new(file);
                expanded.push(expanded_rx);
                spares.push(spare);
                let every = buffers.iter().skip(first).step_by(expanders);
                scope.spawn(move || expander.run(every, &expanded_tx));
            }
            let source = match expanders {
                0 => {
                    let (spare, expander) = Expander::new(file);
                    spares.push(spare);
                    Source::File(expander)
                }
                _ => Source::Expanders(expanded),
            };
            let decoder = scope.spawn(move || {
                let mut decoder = Decoder::new(selector, repeated);
                let result = decoder.run(buffers, source, &decoded_tx);
                (result, decoder.diagnostics, decoder.read)
            });
            let mut merger = Merger {
                merge: Merge::default(),
                repeated,
                spares,
                recycled: 0,
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
                Ok((result, findings, read)) => {
                    diagnostics.merge(&findings);
                    result.map(|()| (flow, read))
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// A buffer whose bytes are expanded, and not framed yet.
struct ExpandedBuffer {
    /// Reuses the memory of a merged buffer; only `data` counts.
    buffer: DecodedBuffer,
    /// Whether all of it could be read and expanded.
    is_whole: bool,
}

/// Reads and expands buffers, into the memory of earlier ones where there is some.
struct Expander<'a> {
    file: &'a EtlFile,
    /// Merged buffers.
    spare: Receiver<DecodedBuffer>,
    stored: Vec<u8>,
}

impl<'a> Expander<'a> {
    /// An expander, and where it takes merged buffers from.
    fn new(file: &'a EtlFile) -> (Sender<DecodedBuffer>, Self) {
        let (sender, spare) = channel();
        (sender, Self { file, spare, stored: Vec::new() })
    }

    fn load(&mut self, buffer: &IndexedBuffer) -> io::Result<ExpandedBuffer> {
        let mut target = self.spare.try_recv().unwrap_or_default();
        let is_whole = load(self.file, buffer, &mut self.stored, &mut target.data)?;
        Ok(ExpandedBuffer { buffer: target, is_whole })
    }

    /// Expands buffers until the decoder takes no more.
    fn run<'b>(
        &mut self,
        buffers: impl Iterator<Item = &'b IndexedBuffer>,
        expanded: &SyncSender<io::Result<ExpandedBuffer>>,
    ) {
        for buffer in buffers {
            if expanded.send(self.load(buffer)).is_err() {
                break;
            }
        }
    }
}

/// Source of expanded buffers.
enum Source<'a> {
    File(Expander<'a>),
    /// Threads that expand, each in turn one buffer.
    Expanders(Vec<Receiver<io::Result<ExpandedBuffer>>>),
}

impl Source<'_> {
    /// The buffer at this position in the index; `None` when its thread panicked, which the scope passes on.
    fn load(
        &mut self,
        position: usize,
        buffer: &IndexedBuffer,
    ) -> Option<io::Result<ExpandedBuffer>> {
        match self {
            Self::File(file) => Some(file.load(buffer)),
            Self::Expanders(expanders) => expanders.get(position % expanders.len())?.recv().ok(),
        }
    }
}

/// The decoding side.
struct Decoder<'a> {
    selector: &'a mut dyn Selector,
    repeated: &'a Repeated,
    diagnostics: Diagnostics,
    /// The buffers read so far.
    read: Vec<ReadBuffer>,
    recent: RecentEvents,
}

impl<'a> Decoder<'a> {
    fn new(selector: &'a mut dyn Selector, repeated: &'a Repeated) -> Self {
        Self {
            selector,
            repeated,
            diagnostics: Diagnostics::default(),
            read: Vec::new(),
            recent: RecentEvents::default(),
        }
    }

    /// Decodes all buffers, and hands them on in groups.
    fn run(
        &mut self,
        buffers: &[IndexedBuffer],
        mut source: Source<'_>,
        decoded: &SyncSender<Vec<DecodedBuffer>>,
    ) -> io::Result<()> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        for (position, buffer) in buffers.iter().enumerate() {
            let Some(expanded) = source.load(position, buffer) else { break };
            let (mut target, is_expanded) = self.target(buffer, expanded?);
            let (last, times, is_framed) = self.select(buffer, &mut target);
            let IndexedBuffer { header, first_time: first, .. } = *buffer;
            let is_whole = is_expanded && is_framed;
            self.read.push(ReadBuffer { header, first, last, times, is_whole });
            bytes += target.data.len();
            group.push(target);
            if bytes >= GROUP_BYTES || position + 1 == buffers.len() {
                bytes = 0;
                self.repeated.before_waiting(&mut group);
                // Fails when the merge has stopped.
                if decoded.send(std::mem::take(&mut group)).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The buffer without its events, and whether all of it could be read.
    fn target(
        &mut self,
        buffer: &IndexedBuffer,
        expanded: ExpandedBuffer,
    ) -> (DecodedBuffer, bool) {
        let ExpandedBuffer { buffer: mut target, is_whole } = expanded;
        if !is_whole && !is_cut(buffer) {
            self.diagnostics.count(WarningKind::BadCompression, Some(buffer.offset));
        }
        let filled = buffer.header.filled as usize;
        let valid = target.data.len().min(filled);
        target.valid = valid;
        target.offset = buffer.offset;
        target.sequence = buffer.header.sequence;
        target.processor = buffer.header.processor;
        target.expanded = buffer.header.is_compressed();
        target.clear();
        (target, is_whole && valid == filled)
    }

    /// Frames the events and notes the positions of the selected ones. Returns the raw time of the last event, the time
    /// ranges of the events by kind, and whether all events could be framed.
    fn select(
        &mut self,
        buffer: &IndexedBuffer,
        target: &mut DecodedBuffer,
    ) -> (i64, BufferTimes, bool) {
        let DecodedBuffer { data, valid, events, parts, .. } = target;
        let data = data.get(..*valid).unwrap_or_default();
        self.recent.clear();
        let mut at = BUFFER_HEADER_SIZE;
        let mut time = buffer.first_time;
        let (mut last, mut times) = (time, BufferTimes::of(buffer));
        while let Some(rest) = data.get(at..) {
            if is_end(rest) {
                break;
            }
            // Used and set in place: an event is large, and copied where the processor has just written it, which stalls.
            let mut framed = frame(rest, time);
            let Ok(Framed { event, stride, .. }) = &mut framed else {
                if !is_cut(buffer) {
                    let offset = if target.expanded { 0 } else { at as u64 };
                    self.diagnostics.count(WarningKind::BadEvent, Some(buffer.offset + offset));
                }
                return (last, times, false);
            };
            event.processor = target.processor;
            time = event.time;
            last = last.max(time);
            times.add(event);
            if self.selector.select(event) {
                let part = self.selector.stack_part(event);
                let part = part.as_ref();
                // One that is out of order is handed out by itself, and counted. More events may come with its time.
                let in_order = part.filter(|part| time == last && part.event_time < time);
                let joined =
                    in_order.and_then(|part| join(part, &mut self.recent, data, events, parts));
                if let Some(frames) = joined {
                    target.part_fingerprints.push(Fingerprint::of(frames));
                } else {
                    self.recent.add(time, event.tid, part.is_none());
                    let frames = part.map(|part| part.frames);
                    if let Some(bytes) = frames.or_else(|| self.selector.repeated(event)) {
                        target.fingerprints.push((events.len() as u32, Fingerprint::of(bytes)));
                    }
                    let position = at as u32;
                    events.push(SelectedEvent { time, position, ..SelectedEvent::default() });
                }
            }
            at += *stride;
        }
        (last, times, true)
    }
}

/// Adds a part of a stack to the event whose stack it is, and returns its frames, if that is known for sure.
fn join<'a>(
    part: &StackPart<'a>,
    recent: &mut RecentEvents,
    data: &[u8],
    events: &mut [SelectedEvent],
    parts: &mut Vec<BufferPart>,
) -> Option<&'a [u8]> {
    let in_buffer = BufferPart::of(part, data)?;
    let event = events.get_mut(recent.event_of(part)?)?;
    parts.push(in_buffer);
    event.parts[usize::from(part.is_user)] = NonZeroU32::new(parts.len() as u32);
    Some(part.frames)
}

/// Reads a buffer, from its header on, and expands it if needed; returns whether it expanded to the size that its
/// header claims.
pub(crate) fn load(
    file: &EtlFile,
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
    let length = (buffer.header.filled as usize).saturating_sub(BUFFER_HEADER_SIZE);
    let stream = stored.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
    let result = decompress(stream, length, data);
    Ok(result.is_ok() && data.len() == buffer.header.filled as usize)
}

/// Whether the file ends inside the buffer. The index counted that as damage already.
fn is_cut(buffer: &IndexedBuffer) -> bool {
    buffer.stored < buffer.header.size
}

/// The merging side.
struct Merger<'a, P, S> {
    merge: Merge,
    repeated: &'a Repeated,
    /// The expanding threads, which get merged buffers in turns.
    spares: Vec<Sender<DecodedBuffer>>,
    recycled: usize,
    /// Bytes of the buffers that are being merged.
    bytes: usize,
    /// Raw time of the latest event handed out; the smallest number before the first, so that no event is out of order.
    last_time: i64,
    handed_out: u32,
    /// Bytes of the file read so far.
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
        decoded: &Receiver<Vec<DecodedBuffer>>,
    ) -> ControlFlow<()> {
        let repeated = self.repeated;
        let mut decoded = decoded.iter().inspect(|_| repeated.taken()).flatten();
        for buffer in buffers {
            self.catch_up(buffer.first_time, limits)?;
            let Some(decoded) = decoded.next() else { break };
            self.add(decoded);
            self.read += u64::from(buffer.stored);
            (self.progress)(self.read)?;
        }
        self.hand_out_while(|merger| merger.merge.len() > 0)
    }

    fn add(&mut self, mut buffer: DecodedBuffer) {
        self.bytes += buffer.data.len();
        self.repeated.number(&mut buffer);
        if let Some(empty) = self.merge.add(buffer) {
            self.recycle(empty);
        }
    }

    /// Hands out the events before `until`, the first time of the next buffer.
    fn catch_up(&mut self, until: i64, limits: MergeLimits) -> ControlFlow<()> {
        self.hand_out_while(|merger| merger.merge.next_time().is_some_and(|time| time < until))?;
        let MergeLimits { buffers, bytes } = limits;
        if self.merge.len() > buffers || self.bytes > bytes {
            self.diagnostics.count(WarningKind::MergeOverflow, None);
            self.hand_out_while(|merger| {
                merger.merge.len() > buffers / 2 || merger.bytes > bytes / 2
            })?;
        }
        ControlFlow::Continue(())
    }

    fn hand_out_while(&mut self, is_ready: impl Fn(&Self) -> bool) -> ControlFlow<()> {
        while is_ready(self) {
            self.hand_out();
            self.handed_out = self.handed_out.wrapping_add(1);
            if self.handed_out.is_multiple_of(EVENTS_PER_CHECK) {
                (self.progress)(self.read)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn hand_out(&mut self) {
        let Self { merge, last_time, diagnostics, sink, .. } = self;
        let done = merge.next(|buffer, selected| {
            let SelectedEvent { position, repeated, parts, .. } = selected;
            let at = position as usize;
            let Some(bytes) = buffer.data.get(at..buffer.valid) else { return };
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
        });
        if let Some(buffer) = done {
            self.recycle(buffer);
        }
    }

    fn recycle(&mut self, buffer: DecodedBuffer) {
        self.bytes = self.bytes.saturating_sub(buffer.data.len());
        self.recycled += 1;
        if let Some(spare) = self.spares.get(self.recycled % self.spares.len().max(1)) {
            // Fails when all buffers are read; then the memory is freed.
            let _ = spare.send(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etl::buffer::BufferHeader;

    struct All;

    impl Selector for All {
        fn select(&mut self, _: &Event<'_>) -> bool {
            true
        }
    }

    fn selected(time: i64, position: u32) -> SelectedEvent {
        SelectedEvent { time, position, ..SelectedEvent::default() }
    }

    #[test]
    fn too_many_overlapping_buffers_are_merged_down_to_half_the_limit() {
        for (buffers, bytes) in [(4, usize::MAX), (usize::MAX, 400)] {
            let mut diagnostics = Diagnostics::default();
            let mut merger = Merger {
                merge: Merge::default(),
                repeated: &Repeated::default(),
                spares: Vec::new(),
                recycled: 0,
                bytes: 0,
                last_time: i64::MIN,
                handed_out: 0,
                read: 0,
                diagnostics: &mut diagnostics,
                progress: |_| ControlFlow::Continue(()),
                sink: |_: &Event<'_>| {},
            };
            let mut left = Vec::new();
            for offset in 0..6 {
                let (data, events) = (vec![0; 100], vec![selected(1, 72)]);
                merger.add(DecodedBuffer { offset, data, events, ..DecodedBuffer::default() });
                assert!(merger.catch_up(0, MergeLimits { buffers, bytes }).is_continue());
                left.push(merger.merge.len());
            }
            assert_eq!(left, [1, 2, 3, 4, 2, 3], "{buffers} buffers, {bytes} bytes");
            assert_eq!(diagnostics.of(WarningKind::MergeOverflow), 1);
        }
    }

    #[test]
    fn a_bad_event_counts_unless_the_file_ends_in_its_buffer() {
        let header = BufferHeader::of(0, 0, 0);
        for (stored, count) in [(header.size, 1), (header.size - 1, 0)] {
            let (selector, repeated) = (&mut All, Repeated::default());
            let mut decoder = Decoder::new(selector, &repeated);
            let buffer = IndexedBuffer { offset: 0, stored, header, first_time: 0 };
            let (data, valid) = (vec![0xEE; stored as usize], stored as usize);
            let mut target = DecodedBuffer { data, valid, ..DecodedBuffer::default() };
            let (_, _, is_framed) = decoder.select(&buffer, &mut target);
            assert!(!is_framed);
            assert_eq!(decoder.diagnostics.of(WarningKind::BadEvent), count, "{stored} bytes");
        }
    }
}
