//! Indexes the buffers: their offsets, the order to read them in, and duplicates within a file.

use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::{io, thread};

use handlescope_model::Cancel;
use rustc_hash::FxHasher;

use super::buffer::{BUFFER_HEADER_SIZE, BadHeader, BufferHeader, IndexedBuffer};
use super::diagnostics::{Diagnostics, WarningKind};
use super::event::{LEADING_BYTES, leading_time};
use super::lz77::decompress;
use super::{EtlFile, ScanError};

/// Trace header fields that matter for finding buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLayout {
    /// Buffer size of the session in bytes. No buffer expands to more.
    pub buffer_size: u32,
    pub log_file_mode: u32,
}

/// EVENT_TRACE_FILE_MODE_PREALLOCATE.
const MODE_PREALLOCATE: u32 = 0x20;
/// EVENT_TRACE_COMPRESSED_MODE.
pub const MODE_COMPRESSED: u32 = 0x0400_0000;

impl SessionLayout {
    /// Whether buffers may be compressed, so that they may be at any offset.
    pub fn is_compressed(&self) -> bool {
        self.log_file_mode & MODE_COMPRESSED != 0
    }
}

/// Range of the file without events.
#[derive(Debug, Clone, Copy)]
pub struct SkippedRange {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Bytes to the next buffer.
    pub size: u64,
    /// Whether it is a buffer: of a type without events, or with an implausible size.
    pub is_buffer: bool,
}

/// All buffers with events, in order of their first event.
///
/// The file order does not matter, so circular files need no special care: their newest buffers overwrite the oldest
/// ones in place.
#[derive(Debug, Default)]
pub struct BufferIndex {
    pub buffers: Vec<IndexedBuffer>,
    /// Additional copies of buffers. Their events are not counted again.
    pub duplicates: Vec<IndexedBuffer>,
    /// Ranges without events, in no particular order.
    pub skipped: Vec<SkippedRange>,
    /// Number of distinct buffers, including those without events.
    pub buffers_found: u64,
}

/// Largest size a buffer may expand to, whatever the session claims: EVENT_TRACE_PROPERTIES.BufferSize is at most 16384
/// KB.
const MAX_EXPANDED: u32 = 16 << 20;

/// Compressed bytes that always contain the first event's header: 24 literals and flag words.
const LEADING_COMPRESSED: usize = 256;

impl BufferIndex {
    /// Walks the buffer headers of a file.
    ///
    /// Malformed headers are counted. An uncompressed file is then continued at the next multiple of the session's
    /// buffer size. A compressed file ends there, because nothing says where the next buffer starts.
    ///
    /// # Errors
    /// Fails if the file cannot be read or `cancel` requests a stop.
    pub fn scan(
        file: &EtlFile,
        session: SessionLayout,
        diagnostics: &mut Diagnostics,
        cancel: &Cancel,
    ) -> Result<Self, ScanError> {
        let mut index = Self::default();
        let ahead = FetchAhead::new(file, session);
        thread::scope(|scope| {
            ahead.start(scope);
            let result = index.walk(file, session, diagnostics, cancel);
            ahead.is_over.store(true, Relaxed);
            result
        })?;
        index.duplicates = remove_copies(file, &mut index.buffers, cancel)?;
        for copy in &index.duplicates {
            diagnostics.count(WarningKind::DuplicateBuffer, Some(copy.offset));
        }
        index.buffers_found = index.buffers.len() as u64;
        let Self { buffers, skipped, .. } = &mut index;
        buffers.retain(|buffer| {
            let is_read = count_defects(buffer, session, diagnostics);
            if !is_read {
                let (offset, size) = (buffer.offset, buffer.stored.into());
                skipped.push(SkippedRange { offset, size, is_buffer: true });
            }
            is_read
        });
        buffers.sort_by_key(|b| (b.first_time, b.header.sequence, b.offset));
        Ok(index)
    }

    /// Adds everything in the file, in file order.
    fn walk(
        &mut self,
        file: &EtlFile,
        session: SessionLayout,
        diagnostics: &mut Diagnostics,
        cancel: &Cancel,
    ) -> Result<(), ScanError> {
        let mut bytes = Vec::new();
        let mut offset = 0;
        let mut last_time = i64::MIN;
        // Fetching the bytes into the cache dominates the scan, so no more are read than needed.
        let leading = if session.is_compressed() { LEADING_COMPRESSED } else { LEADING_BYTES };
        while offset < file.len() {
            cancel.check()?;
            file.read_at(offset, BUFFER_HEADER_SIZE + leading, &mut bytes)?;
            let header = match BufferHeader::parse(&bytes) {
                Ok(header) => header,
                Err(bad) => {
                    let end = skip_bad(bad, offset, file, session, diagnostics);
                    self.add_skipped(offset, end, bad);
                    offset = end;
                    continue;
                }
            };
            if header.is_compressed() && leading < LEADING_COMPRESSED {
                file.read_at(offset, BUFFER_HEADER_SIZE + LEADING_COMPRESSED, &mut bytes)?;
            }
            let stored = u64::from(header.size).min(file.len() - offset) as u32;
            if header.holds_events() {
                last_time = first_time(&header, &bytes).unwrap_or(last_time);
            }
            self.buffers.push(IndexedBuffer { offset, stored, header, first_time: last_time });
            offset += u64::from(header.size);
        }
        Ok(())
    }

    /// Returns the sum of the sizes that compressed buffers claim to expand to, in bytes.
    pub fn expanded_bytes(&self) -> u64 {
        self.buffers
            .iter()
            .filter(|buffer| buffer.header.is_compressed())
            .map(|buffer| u64::from(buffer.header.filled))
            .sum()
    }

    /// Adds a range that is not a buffer. Adjacent empty ranges are joined.
    fn add_skipped(&mut self, offset: u64, end: u64, bad: BadHeader) {
        match self.skipped.last_mut() {
            Some(last) if bad == BadHeader::Empty && last.offset + last.size == offset => {
                last.size += end - offset;
            }
            _ => {
                let (size, is_buffer) = (end - offset, false);
                self.skipped.push(SkippedRange { offset, size, is_buffer });
            }
        }
    }
}

/// Consecutive buffers fetched by one thread before the next thread's turn: as many as a disk has near each other.
const FETCHED_RUN: u64 = 64;
/// Maximum number of fetching threads, besides the one that builds the index.
const MOST_FETCHING: usize = 3;

/// Threads that read the beginnings of buffers into the cache before the index needs them. Without that, reading takes
/// up to 20 times as long as from the cache. There is one thread per additional processor, but only a few, however many
/// threads do the rest of the work. Only in uncompressed files can a thread know where buffers are.
struct FetchAhead<'a> {
    file: &'a EtlFile,
    buffer_size: u64,
    threads: usize,
    /// Whether the index is complete, or was given up.
    is_over: AtomicBool,
}

impl<'a> FetchAhead<'a> {
    fn new(file: &'a EtlFile, session: SessionLayout) -> Self {
        let buffer_size = u64::from(session.buffer_size.max(1));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let has_runs = file.len() / buffer_size >= 4 * FETCHED_RUN;
        let threads = if has_runs && !session.is_compressed() { processors - 1 } else { 0 };
        Self { file, buffer_size, threads: threads.min(MOST_FETCHING), is_over: false.into() }
    }

    fn start<'s>(&'s self, scope: &'s thread::Scope<'s, '_>) {
        for thread in 0..self.threads as u64 {
            scope.spawn(move || self.fetch(thread + 1));
        }
    }

    /// Reads one run of each round, the one at `turn`. The thread that builds the index reads the first run of each
    /// round and the end of the file, and reports all errors.
    fn fetch(&self, turn: u64) {
        let mut bytes = Vec::new();
        let turns = self.threads as u64 + 1;
        let buffers = self.file.len() / self.buffer_size;
        for run in (turn..buffers / FETCHED_RUN).step_by(turns as usize) {
            for buffer in run * FETCHED_RUN..(run + 1) * FETCHED_RUN {
                let offset = buffer * self.buffer_size;
                let size = BUFFER_HEADER_SIZE + LEADING_BYTES;
                if self.is_over.load(Relaxed)
                    || self.file.read_at(offset, size, &mut bytes).is_err()
                {
                    return;
                }
            }
        }
    }
}

/// Counts what is wrong with a buffer; returns whether to read its events.
fn count_defects(
    buffer: &IndexedBuffer,
    session: SessionLayout,
    diagnostics: &mut Diagnostics,
) -> bool {
    let IndexedBuffer { offset, stored, header, .. } = buffer;
    let mut count = |kind| diagnostics.count(kind, Some(*offset));
    if *stored < header.size {
        count(WarningKind::TruncatedBuffer);
    }
    if header.marks_loss() {
        count(WarningKind::LossFlag);
    }
    if !header.holds_events() {
        count(WarningKind::UnknownBufferType);
        return false;
    }
    if header.is_compressed() && header.filled > session.buffer_size.min(MAX_EXPANDED) {
        count(WarningKind::OversizedBuffer);
        return false;
    }
    true
}

/// Counts a range that is not a buffer; returns the offset at which to continue, at most the file size.
///
/// All empty ranges in a hole of the file are skipped and counted at once.
fn skip_bad(
    bad: BadHeader,
    offset: u64,
    file: &EtlFile,
    session: SessionLayout,
    diagnostics: &mut Diagnostics,
) -> u64 {
    let size = u64::from(session.buffer_size.max(BUFFER_HEADER_SIZE as u32));
    let kind = match bad {
        BadHeader::Empty if session.log_file_mode & MODE_PREALLOCATE != 0 => None,
        _ if session.is_compressed() => Some(WarningKind::UnreadableRest),
        _ if file.len() - offset < BUFFER_HEADER_SIZE as u64 => Some(WarningKind::TruncatedBuffer),
        BadHeader::Empty => Some(WarningKind::EmptyBuffer),
        BadHeader::Implausible => Some(WarningKind::BadBuffer),
    };
    if kind == Some(WarningKind::UnreadableRest) {
        diagnostics.count(WarningKind::UnreadableRest, Some(offset));
        return file.len();
    }
    let mut next = (offset / size + 1) * size;
    let mut count = 1;
    if bad == BadHeader::Empty {
        let in_hole = file.next_data(next) / size * size;
        count += in_hole.saturating_sub(next) / size;
        next = next.max(in_hole);
    }
    if let Some(kind) = kind {
        diagnostics.add(kind, count, Some(offset));
    }
    next.min(file.len())
}

fn first_time(header: &BufferHeader, bytes: &[u8]) -> Option<i64> {
    let events = bytes.get(BUFFER_HEADER_SIZE..)?;
    if !header.is_compressed() {
        return leading_time(events);
    }
    let mut expanded = Vec::new();
    // The stream is cut, so an error after the first bytes is expected.
    let _ = decompress(events, LEADING_BYTES, &mut expanded);
    leading_time(&expanded)
}

/// Removes all copies of each buffer but the one with the lowest offset from `buffers`, and returns them.
///
/// A copy has an equal header and equal content. The buffer number does not suffice: in some files numbers start again,
/// and some have none. Content is read only for buffers with equal headers, which do not occur in a sound file.
///
/// # Errors
/// Fails if the file cannot be read or `cancel` requests a stop.
fn remove_copies(
    file: &EtlFile,
    buffers: &mut Vec<IndexedBuffer>,
    cancel: &Cancel,
) -> Result<Vec<IndexedBuffer>, ScanError> {
    buffers.sort_unstable_by_key(|buffer| (common_header(buffer), buffer.offset));
    let (mut kept, mut copies) = (Vec::with_capacity(buffers.len()), Vec::new());
    let mut contents = Contents { file, bytes: Vec::new(), reference: Vec::new() };
    for alike in buffers.chunk_by(|a, b| common_header(a) == common_header(b)) {
        match alike {
            [only] => kept.push(*only),
            [first, ..] if content_size(first) == 0 => kept.extend(alike),
            alike => contents.sort(alike, &mut kept, &mut copies, cancel)?,
        }
    }
    *buffers = kept;
    Ok(copies)
}

/// Returns the header fields that are equal in all copies of a buffer.
fn common_header(buffer: &IndexedBuffer) -> impl Ord + use<> {
    let header = &buffer.header;
    let sizes = (header.size, header.filled, header.saved);
    (header.sequence, header.time, header.processor, header.kind, sizes)
}

/// Returns the size of a buffer's content in the file, without the header and the unused bytes at the end.
fn content_size(buffer: &IndexedBuffer) -> usize {
    let end = if buffer.header.is_compressed() {
        buffer.stored
    } else {
        buffer.stored.min(buffer.header.filled)
    };
    (end as usize).saturating_sub(BUFFER_HEADER_SIZE)
}

/// Reads the content of buffers.
struct Contents<'a> {
    file: &'a EtlFile,
    bytes: Vec<u8>,
    /// Content that `bytes` is compared with.
    reference: Vec<u8>,
}

impl Contents<'_> {
    /// Sorts buffers with equal headers, given in file order, into originals and copies.
    fn sort(
        &mut self,
        alike: &[IndexedBuffer],
        kept: &mut Vec<IndexedBuffer>,
        copies: &mut Vec<IndexedBuffer>,
        cancel: &Cancel,
    ) -> Result<(), ScanError> {
        let mut firsts: HashMap<u64, IndexedBuffer> = HashMap::new();
        for buffer in alike {
            cancel.check()?;
            read_part(self.file, buffer, content_size(buffer), &mut self.bytes)?;
            let mut hasher = FxHasher::default();
            hasher.write(&self.bytes);
            let same_hash = firsts.get(&hasher.finish()).copied();
            let is_copy = match same_hash {
                Some(first) => self.starts_like(&first, content_size(&first))?,
                // Only the last buffer of a file can be cut.
                None if buffer.stored < buffer.header.size => self.starts_like_any(kept, buffer)?,
                None => false,
            };
            if is_copy {
                copies.push(*buffer);
            } else {
                firsts.entry(hasher.finish()).or_insert(*buffer);
                kept.push(*buffer);
            }
        }
        Ok(())
    }

    /// Whether a kept buffer with the same header as a cut buffer starts with its bytes. These are the last of the kept
    /// buffers.
    fn starts_like_any(&mut self, kept: &[IndexedBuffer], cut: &IndexedBuffer) -> io::Result<bool> {
        for buffer in
            kept.iter().rev().take_while(|buffer| common_header(buffer) == common_header(cut))
        {
            if self.starts_like(buffer, content_size(cut))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the first `size` bytes of a buffer equal the bytes read last.
    fn starts_like(&mut self, buffer: &IndexedBuffer, size: usize) -> io::Result<bool> {
        read_part(self.file, buffer, size, &mut self.reference)?;
        Ok(self.reference == self.bytes)
    }
}

fn read_part(
    file: &EtlFile,
    buffer: &IndexedBuffer,
    size: usize,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    file.read_at(buffer.offset + BUFFER_HEADER_SIZE as u64, size, bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SESSION: SessionLayout = SessionLayout { buffer_size: 256, log_file_mode: 0 };

    /// A buffer of 256 bytes with one perfinfo event at `time`.
    fn buffer(time: i64) -> Vec<u8> {
        let mut bytes = vec![0u8; 256];
        bytes[0..4].copy_from_slice(&256u32.to_le_bytes());
        bytes[48..52].copy_from_slice(&88u32.to_le_bytes());
        bytes[72..80].copy_from_slice(&[2, 0, 0x11, 0xC0, 16, 0, 0, 0]);
        bytes[80..88].copy_from_slice(&time.to_le_bytes());
        bytes
    }

    fn scan(bytes: &[u8], session: SessionLayout) -> (BufferIndex, Diagnostics) {
        let mut temp = tempfile::NamedTempFile::new().unwrap();
        temp.write_all(bytes).unwrap();
        let file = EtlFile::new(temp.reopen().unwrap()).unwrap();
        let mut diagnostics = Diagnostics::default();
        let index =
            BufferIndex::scan(&file, session, &mut diagnostics, &Cancel::default()).unwrap();
        (index, diagnostics)
    }

    #[test]
    fn a_walk_over_buffers_is_stopped_at_the_next_buffer() {
        let mut temp = tempfile::NamedTempFile::new().unwrap();
        temp.write_all(&[buffer(1), buffer(2), vec![0; 512], buffer(3)].concat()).unwrap();
        let file = EtlFile::new(temp.reopen().unwrap()).unwrap();
        for looks in 0..5 {
            let cancel = Cancel::after(looks);
            let index = BufferIndex::scan(&file, SESSION, &mut Diagnostics::default(), &cancel);
            assert!(matches!(index, Err(ScanError::Cancelled(_))), "{looks}");
        }
    }

    #[test]
    fn a_hole_is_counted_as_its_buffers_would_be() {
        let mut temp = tempfile::NamedTempFile::new().unwrap();
        temp.write_all(&buffer(1)).unwrap();
        temp.as_file().set_len((1 << 20) + 300).unwrap();
        let mut end = temp.reopen().unwrap();
        std::io::Seek::seek(&mut end, std::io::SeekFrom::Start(1 << 20)).unwrap();
        end.write_all(&buffer(2)).unwrap();
        let file = EtlFile::new(temp.reopen().unwrap()).unwrap();
        let (mut diagnostics, cancel) = (Diagnostics::default(), Cancel::default());
        let index = BufferIndex::scan(&file, SESSION, &mut diagnostics, &cancel).unwrap();
        assert_eq!(index.buffers_found, 2);
        assert_eq!(diagnostics.of(WarningKind::EmptyBuffer), (1 << 20) / 256 - 1);
        assert_eq!(diagnostics.of(WarningKind::TruncatedBuffer), 1);
        let skipped: u64 = index.skipped.iter().map(|range| range.size).sum();
        assert_eq!((skipped, index.skipped.len()), ((1 << 20) - 256 + 44, 2));
    }

    #[test]
    fn buffers_come_in_the_order_of_their_first_event() {
        let (index, diagnostics) = scan(&[buffer(30), buffer(10), buffer(20)].concat(), SESSION);
        let offsets: Vec<_> = index.buffers.iter().map(|b| b.offset).collect();
        assert_eq!(offsets, [256, 512, 0]);
        assert!(diagnostics.warnings().is_empty());
    }

    #[test]
    fn reading_goes_on_at_the_next_buffer_after_a_bad_header() {
        let mut bytes = [buffer(1), buffer(2), buffer(3)].concat();
        bytes[256..260].fill(0xEE);
        let (index, diagnostics) = scan(&bytes, SESSION);
        assert_eq!(index.buffers_found, 2);
        assert_eq!(diagnostics.of(WarningKind::BadBuffer), 1);
    }

    #[test]
    fn only_adjacent_empty_ranges_are_joined() {
        let mut bytes = [buffer(1), vec![0; 512], buffer(2), vec![0; 512]].concat();
        bytes[1280..1284].fill(0xEE);
        let (index, _) = scan(&bytes, SESSION);
        let ranges: Vec<_> = index.skipped.iter().map(|range| (range.offset, range.size)).collect();
        assert_eq!(ranges, [(256, 512), (1024, 256), (1280, 256)]);
    }

    #[test]
    fn unused_space_is_a_warning_only_in_a_file_that_was_not_preallocated() {
        let bytes = [buffer(1), vec![0; 512]].concat();
        assert_eq!(scan(&bytes, SESSION).1.of(WarningKind::EmptyBuffer), 2);
        let preallocated = SessionLayout { log_file_mode: MODE_PREALLOCATE, ..SESSION };
        assert!(scan(&bytes, preallocated).1.warnings().is_empty());
    }

    #[test]
    fn a_cut_last_buffer_is_kept_and_counted() {
        let bytes = [buffer(1), buffer(2)].concat();
        let (index, diagnostics) = scan(&bytes[..400], SESSION);
        assert_eq!(index.buffers[1].stored, 144);
        assert_eq!(diagnostics.of(WarningKind::TruncatedBuffer), 1);
    }

    #[test]
    fn a_compressed_file_ends_at_a_bad_header() {
        let mut bytes = [buffer(1), buffer(2), buffer(3)].concat();
        bytes[256..260].fill(0xEE);
        let compressed = SessionLayout { log_file_mode: MODE_COMPRESSED, ..SESSION };
        let (index, diagnostics) = scan(&bytes, compressed);
        assert_eq!(index.buffers_found, 1);
        assert_eq!(diagnostics.of(WarningKind::UnreadableRest), 1);
    }
}
