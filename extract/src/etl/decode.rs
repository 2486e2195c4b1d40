//! Decodes buffers: finds the selected events, and the stack parts that are handed out with them.

use std::io;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::mpsc::SyncSender;

use super::EtlFile;
use super::buffer::{BUFFER_HEADER_SIZE, BufferTimes, IndexedBuffer};
use super::decoded::{DecodedBuffer, SelectedEvent};
use super::diagnostics::{Diagnostics, WarningKind};
use super::event::{Event, EventFrame, frame, is_end};
use super::gather::Spares;
use super::losses::ReadBuffer;
use super::lz77::decompress;
use super::repeated::RepeatedBytes;
use super::stack_parts::{BufferPart, RecentEvents, StackPart};
use crate::intern::Fingerprint;

/// Chooses the events to hand out. It sees every event of the file.
///
/// It runs on a decoding thread, and sees events buffer by buffer rather than in time order.
pub trait Selector: Send {
    /// Whether to hand out the event.
    fn select(&mut self, event: &Event<'_>) -> bool;

    /// Returns the bytes of a selected event that other events probably share, for [`Event::repeated`]. Only the first
    /// millions of distinct ones are numbered.
    fn repeated<'a>(&self, _event: &Event<'a>) -> Option<&'a [u8]> {
        None
    }

    /// Returns the stack part, if the selected event is one. It may then be handed out with the event it belongs to
    /// instead of at its own time.
    fn stack_part<'a>(&self, _event: &Event<'a>) -> Option<StackPart<'a>> {
        None
    }
}

/// Bytes of decoded buffers sent to the merge together. Waking the merging thread for each buffer would take longer
/// than handling a buffer.
const GROUP_BYTES: usize = 512 << 10;

/// Minimum number of groups, in a file with at least as many buffers, so that small files keep all threads busy too.
const MIN_GROUPS: usize = 16;

/// Divides buffers into groups. The buffers of a group are decoded in sequence and go to the merge together.
pub fn groups(buffers: &[IndexedBuffer]) -> Vec<Range<usize>> {
    let size = |buffer: &IndexedBuffer| buffer.stored.max(buffer.header.filled) as usize;
    let whole: usize = buffers.iter().map(size).sum();
    let full = (whole / MIN_GROUPS).min(GROUP_BYTES);
    let (mut groups, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (position, buffer) in buffers.iter().enumerate() {
        bytes += size(buffer);
        if bytes >= full || position + 1 == buffers.len() {
            groups.push(start..position + 1);
            (start, bytes) = (position + 1, 0);
        }
    }
    groups
}

/// Decodes some of the buffer groups.
pub struct BufferDecoder<'a> {
    file: &'a EtlFile,
    spares: &'a Spares<DecodedBuffer>,
    /// Stored bytes of a compressed buffer.
    stored: Vec<u8>,
    repeated: &'a RepeatedBytes,
    recent: RecentEvents,
    diagnostics: Diagnostics,
    /// Buffers that were read, with their positions in the index.
    read: Vec<(usize, ReadBuffer)>,
}

/// Findings of a decoder.
pub struct DecoderFindings {
    pub diagnostics: Diagnostics,
    /// Buffers that were read, with their positions in the index.
    pub read: Vec<(usize, ReadBuffer)>,
}

impl<'a> BufferDecoder<'a> {
    pub fn new(
        file: &'a EtlFile,
        spares: &'a Spares<DecodedBuffer>,
        repeated: &'a RepeatedBytes,
    ) -> Self {
        Self {
            file,
            spares,
            stored: Vec::new(),
            repeated,
            recent: RecentEvents::default(),
            diagnostics: Diagnostics::default(),
            read: Vec::new(),
        }
    }

    /// Decodes groups of buffers, each with its selector, and sends them on until the merge stops.
    pub fn run(
        mut self,
        buffers: &[IndexedBuffer],
        groups: impl Iterator<Item = Range<usize>>,
        mut selectors: Vec<&mut dyn Selector>,
        decoded: &SyncSender<Vec<DecodedBuffer>>,
    ) -> io::Result<DecoderFindings> {
        let count = selectors.len().max(1);
        for (number, positions) in groups.enumerate() {
            let Some(selector) = selectors.get_mut(number % count) else { break };
            let mut group = Vec::with_capacity(positions.len());
            for (position, buffer) in
                positions.clone().zip(buffers.get(positions).unwrap_or_default())
            {
                let (target, read) = self.decode(buffer, &mut **selector)?;
                self.read.push((position, read));
                group.push(target);
            }
            self.repeated.before_waiting(&mut group);
            // Sending fails once the merge has stopped.
            if decoded.send(group).is_err() {
                break;
            }
        }
        Ok(DecoderFindings { diagnostics: self.diagnostics, read: self.read })
    }

    /// Reads a buffer and selects its events.
    fn decode(
        &mut self,
        buffer: &IndexedBuffer,
        selector: &mut dyn Selector,
    ) -> io::Result<(DecodedBuffer, ReadBuffer)> {
        let mut target = self.spares.take();
        let is_expanded = load(self.file, buffer, &mut self.stored, &mut target.data)?;
        if !is_expanded && !is_cut(buffer) {
            self.diagnostics.count(WarningKind::BadCompression, Some(buffer.offset));
        }
        let filled = buffer.header.filled as usize;
        let valid = target.data.len().min(filled);
        target.valid = valid;
        target.stored = buffer.stored;
        target.offset = buffer.offset;
        target.sequence = buffer.header.sequence;
        target.processor = buffer.header.processor;
        target.expanded = buffer.header.is_compressed();
        let (last, times, is_framed) = self.select(buffer, &mut target, selector);
        let IndexedBuffer { header, first_time: first, .. } = *buffer;
        let is_whole = is_expanded && valid == filled && is_framed;
        Ok((target, ReadBuffer { header, first, last, times, is_whole }))
    }

    /// Frames the events and records the positions of the selected ones. Returns the raw time of the last event, the
    /// time ranges of the events by kind, and whether all events could be framed.
    fn select(
        &mut self,
        buffer: &IndexedBuffer,
        target: &mut DecodedBuffer,
        selector: &mut dyn Selector,
    ) -> (i64, BufferTimes, bool) {
        let DecodedBuffer { data, valid, events, parts, .. } = target;
        let data = data.get(..*valid).unwrap_or_default();
        self.recent.clear();
        let mut at = BUFFER_HEADER_SIZE;
        let mut time = buffer.first_time;
        let (mut last, mut times) = (time, BufferTimes::new(buffer));
        while let Some(rest) = data.get(at..) {
            if is_end(rest) {
                break;
            }
            // Used and modified in place: an event is large, and copying what the processor has just written stalls.
            let mut framed = frame(rest, time);
            let Ok(EventFrame { event, stride, .. }) = &mut framed else {
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
            if selector.select(event) {
                let part = selector.stack_part(event);
                let part = part.as_ref();
                // An out-of-order part is handed out by itself and counted. More events with its time may follow.
                let in_order = part.filter(|part| time == last && part.event_time < time);
                let joined =
                    in_order.and_then(|part| join(part, &mut self.recent, data, events, parts));
                if let Some(frames) = joined {
                    target.part_fingerprints.push(Fingerprint::new(frames));
                } else {
                    self.recent.add(time, event.tid, part.is_none());
                    let frames = part.map(|part| part.frames);
                    if let Some(bytes) = frames.or_else(|| selector.repeated(event)) {
                        target.fingerprints.push((events.len() as u32, Fingerprint::new(bytes)));
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

/// Attaches a stack part to its event and returns the part's frames, if it is certain which event that is.
fn join<'a>(
    part: &StackPart<'a>,
    recent: &mut RecentEvents,
    data: &[u8],
    events: &mut [SelectedEvent],
    parts: &mut Vec<BufferPart>,
) -> Option<&'a [u8]> {
    let in_buffer = BufferPart::new(part, data)?;
    let event = events.get_mut(recent.event_of(part)?)?;
    parts.push(in_buffer);
    event.parts[usize::from(part.is_user)] = NonZeroU32::new(parts.len() as u32);
    Some(part.frames)
}

/// Reads a buffer including its header, and expands it if needed; returns whether it expanded to the size its header
/// claims.
pub fn load(
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

/// Whether the file ends inside the buffer. The index has already counted that as damage.
fn is_cut(buffer: &IndexedBuffer) -> bool {
    buffer.stored < buffer.header.size
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

    fn indexed(size: u32) -> IndexedBuffer {
        let mut header = BufferHeader::new(0, 0, 0);
        (header.size, header.filled) = (size, size);
        IndexedBuffer { offset: 0, stored: size, header, first_time: 0 }
    }

    #[test]
    fn groups_have_all_buffers_in_their_order() {
        assert!(groups(&[]).is_empty());
        assert_eq!(groups(&[indexed(100)]).first(), Some(&(0..1)));
        let large = GROUP_BYTES as u32;
        let mut sizes = vec![large; MIN_GROUPS];
        sizes.splice(0..0, [large / 2, large / 2, large, 100, large]);
        sizes.push(72);
        let buffers: Vec<_> = sizes.into_iter().map(indexed).collect();
        let groups = groups(&buffers);
        assert_eq!(groups[..4], [0..2, 2..3, 3..5, 5..6]);
        assert_eq!(groups.last(), Some(&(21..22)));
    }

    #[test]
    fn a_small_file_has_many_groups() {
        let buffers: Vec<_> = (0..32).map(|_| indexed(4096)).collect();
        let groups = groups(&buffers);
        assert_eq!((groups.len(), groups[1].clone()), (16, 2..4));
    }

    #[test]
    fn a_bad_event_counts_unless_the_file_ends_in_its_buffer() {
        let file = EtlFile::new(tempfile::tempfile().unwrap()).unwrap();
        let header = BufferHeader::new(0, 0, 0);
        for (stored, count) in [(header.size, 1), (header.size - 1, 0)] {
            let (spares, repeated) = (Spares::default(), RepeatedBytes::default());
            let mut decoder = BufferDecoder::new(&file, &spares, &repeated);
            let buffer = IndexedBuffer { offset: 0, stored, header, first_time: 0 };
            let (data, valid) = (vec![0xEE; stored as usize], stored as usize);
            let mut target = DecodedBuffer { data, valid, ..DecodedBuffer::default() };
            let (_, _, is_framed) = decoder.select(&buffer, &mut target, &mut All);
            assert!(!is_framed);
            assert_eq!(decoder.diagnostics.of(WarningKind::BadEvent), count, "{stored} bytes");
        }
    }
}
