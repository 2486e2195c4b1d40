//! Treats any bytes as an `.etl`: one thread and several must give the same result, and the result must be readable.
//!
//! The first byte says what the rest is, and what is done with it:
//!
//! * bit 128 set: a whole file; clear: a recipe of buffers and events, which still has readable headers after any
//!   change;
//! * bit 64 set: events are merged and decoded; clear: they become an archive, which takes a hundred times as long;
//! * bit 32 set: the archive has the stacks of its own events; clear: the stacks of all events.
//!
//! A recipe is a sequence of pieces, each with a kind (one byte), a length (two) and content. The first piece is the
//! event of the trace header. Events, buffer headers and buffer content are as they would be in the file, except that
//! sizes and markers are set when the file is made.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use handlescope_extract::collect::{Collector, KernelSelector};
use handlescope_extract::etl::{Event, EventId};
use handlescope_extract::stacks::KeptStacks;
use handlescope_extract::{
    EventChoice, ExtractOptions, NoObserver, OpenRecording, StackChoice, redact,
};
use handlescope_model::{Cancel, ContainerLimits, Table, Trace};
use handlescope_sources::extract;

/// Bits of the first byte.
pub const WHOLE: u8 = 128;
pub const DECODED: u8 = 64;
pub const STACKS_OF_EVENTS: u8 = 32;

/// Kinds of pieces: an event, the header of the next buffer, and stored content of a buffer, compressed or not.
const EVENT: u8 = 0;
const BUFFER: u8 = 1;
const STORED: u8 = 2;

/// Size of a buffer header, and the offsets of its fields.
const BUFFER_HEADER: usize = 72;
const SIZE: usize = 0;
const FILLED: usize = 48;
const FLAGS: usize = 52;
const KIND: usize = 54;
const FLAG_COMPRESSED: u8 = 0x40;

/// Size of the trace header's event without names, and the offsets of its fields.
const TRACE_HEADER: usize = 32 + 288;
const FREQUENCY: usize = 32 + 256;
const CLOCK: usize = 32 + 272;

/// Last byte of an event header, and of a trace message.
const MARKER: u8 = 0xC0;
const MESSAGE: u8 = 0x90;

/// Types of event headers.
const TYPES: [u8; 12] = [1, 2, 3, 4, 0x10, 0x11, 10, 20, 11, 21, 18, 19];

/// Maximum size of the content of an event or a buffer.
const LARGEST: usize = 60_000;

/// Decodes or extracts a trace made from these bytes; returns whether that succeeded.
///
/// # Panics
/// If the number of threads makes a difference, or the archive cannot be read.
pub fn read(bytes: &[u8]) -> bool {
    let Some((kind, rest)) = bytes.split_first() else { return false };
    let trace = if kind & WHOLE == 0 { assembled(rest) } else { rest.to_vec() };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("a.etl");
    fs::write(&path, trace).expect("the trace can be written");
    if kind & DECODED != 0 {
        let alone = decoded(&path, 1);
        assert!(alone == decoded(&path, 3), "three threads read something else");
        return alone.is_ok();
    }
    let stacks =
        if kind & STACKS_OF_EVENTS == 0 { StackChoice::All } else { StackChoice::HandleEvents };
    let alone = extracted(&path, stacks, 1);
    assert!(alone == extracted(&path, stacks, 4), "four threads make something else");
    let limits = ContainerLimits::for_members_of(64 << 20);
    let mut redacted = Vec::new();
    let redaction = redact(&path, &limits, &mut redacted, &NoObserver, &Cancel::default());
    assert!(redaction.is_ok() || alone.is_err(), "a trace cannot be redacted: {redaction:?}");
    alone.is_ok()
}

/// An event: its id, time, process, offset and payload.
type ReadEvent = (EventId, i64, Option<u32>, u64, Vec<u8>);

/// Returns the events of the trace, after feeding them to the event families, or the reason why there are none.
fn decoded(trace: &Path, threads: usize) -> Result<Vec<ReadEvent>, String> {
    let threads = NonZeroUsize::new(threads).expect("some threads");
    let mut collector = Collector::new(KeptStacks::all()).keeping(EventChoice::All);
    let mut events = Vec::new();
    let take = |event: &Event<'_>| {
        collector.event(event);
        events.push((event.id, event.time, event.pid, event.offset, event.payload.to_vec()));
    };
    let open = OpenRecording::open(trace).map_err(|error| error.to_string())?.on_threads(threads);
    open.read(&mut KernelSelector::with_providers(), |_| ControlFlow::Continue(()), take)
        .map_err(|error| error.to_string())?;
    collector.finish();
    Ok(events)
}

/// Returns the bytes of the archive, or the reason why there is none.
fn extracted(trace: &Path, stacks: StackChoice, threads: usize) -> Result<Vec<u8>, String> {
    let output = trace.with_extension("json7z");
    let options = ExtractOptions {
        stacks,
        events: EventChoice::All,
        limits: ContainerLimits::for_members_of(64 << 20),
        threads: NonZeroUsize::new(threads).expect("some threads"),
        ..ExtractOptions::default()
    };
    extract(trace, &output, options, &NoObserver, &Cancel::default())
        .map_err(|error| error.to_string())?;
    if threads == 1 {
        let archive = Trace::open(&output).expect("what was written can be opened");
        for table in Table::ALL {
            archive.frame(table).expect("what was written can be read");
        }
    }
    Ok(fs::read(&output).expect("the archive can be read"))
}

/// Turns a file with uncompressed buffers into a recipe.
pub fn recipe(file: &[u8]) -> Vec<u8> {
    let mut recipe = vec![0];
    let mut buffers = file;
    while let Some((header, rest)) = buffers.split_at_checked(BUFFER_HEADER) {
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let [size, filled] = [SIZE, FILLED].map(|at| word(at) as usize - BUFFER_HEADER);
        let mut events = &rest[..filled];
        if buffers.len() < file.len() {
            recipe.extend(piece(BUFFER, header));
        }
        while !events.is_empty() {
            let at = size_at(events[2]);
            let size = usize::from(u16::from_le_bytes([events[at], events[at + 1]]));
            recipe.extend(piece(EVENT, &events[..size]));
            events = &events[size.next_multiple_of(8).min(events.len())..];
        }
        buffers = &rest[size.min(rest.len())..];
    }
    recipe
}

/// Builds a piece of a recipe.
fn piece(kind: u8, content: &[u8]) -> Vec<u8> {
    let [low, high, ..] = content.len().to_le_bytes();
    [&[kind, low, high], content].concat()
}

/// Builds the file that a recipe describes; the recipe comes without its first byte.
pub fn assembled(recipe: &[u8]) -> Vec<u8> {
    let mut pieces = RecipePieces(recipe);
    let mut buffer = RecipeBuffer::default();
    buffer.header[KIND] = 4;
    let (_, first) = pieces.next().unwrap_or_default();
    buffer.content = trace_header(first);
    let mut file = Vec::new();
    for (kind, content) in pieces {
        match kind % 3 {
            BUFFER => {
                file.extend(buffer.into_bytes());
                buffer = RecipeBuffer::default();
                let size = content.len().min(BUFFER_HEADER);
                buffer.header[..size].copy_from_slice(&content[..size]);
            }
            _ if buffer.content.len() + content.len() > LARGEST => {}
            STORED => {
                buffer.content.extend(content);
                buffer.is_stored = true;
            }
            _ => buffer.content.extend(event(content)),
        }
    }
    file.extend(buffer.into_bytes());
    file
}

/// A buffer of a recipe.
struct RecipeBuffer {
    header: [u8; BUFFER_HEADER],
    content: Vec<u8>,
    /// Whether the content goes into the file as it is, even if the buffer is compressed.
    is_stored: bool,
}

impl Default for RecipeBuffer {
    fn default() -> Self {
        Self { header: [0; BUFFER_HEADER], content: Vec::new(), is_stored: false }
    }
}

impl RecipeBuffer {
    fn into_bytes(mut self) -> Vec<u8> {
        let is_compressed = self.header[FLAGS] & FLAG_COMPRESSED != 0;
        let mut filled = BUFFER_HEADER + self.content.len();
        if is_compressed && self.is_stored {
            // The size that the stream expands to.
            filled +=
                usize::from(u16::from_le_bytes([self.header[FILLED], self.header[FILLED + 1]]));
        } else if is_compressed {
            self.content = literals(&self.content);
        }
        let size = BUFFER_HEADER + self.content.len();
        for (at, number) in [(SIZE, size), (FILLED, filled)] {
            self.header[at..at + 4].copy_from_slice(&(number as u32).to_le_bytes());
        }
        [&self.header[..], &self.content].concat()
    }
}

/// Compresses content without matches: a word of flags before every 32 bytes. A word of all ones ends the stream.
fn literals(content: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut chunks = content.chunks_exact(32);
    for chunk in &mut chunks {
        stream.extend([0; 4]);
        stream.extend(chunk);
    }
    let rest = chunks.remainder();
    stream.extend((u32::MAX >> rest.len()).to_le_bytes());
    stream.extend(rest);
    stream
}

/// Pieces of a recipe; the last may be shorter than it says.
struct RecipePieces<'a>(&'a [u8]);

impl<'a> Iterator for RecipePieces<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let ([kind, low, high], rest) = self.0.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (content, rest) = rest.split_at(length.min(rest.len()));
        self.0 = rest;
        Some((*kind, content))
    }
}

/// Builds the event of a trace header with a clock.
fn trace_header(content: &[u8]) -> Vec<u8> {
    let mut event = content.to_vec();
    event.resize(event.len().clamp(TRACE_HEADER, LARGEST), 0);
    let size = (event.len() as u16).to_le_bytes();
    event[2..8].copy_from_slice(&[2, MARKER, size[0], size[1], 0, 0]);
    if event[FREQUENCY..][..8] == [0; 8] || event[FREQUENCY + 7] >= 128 {
        event[FREQUENCY..][..8].copy_from_slice(&10_000_000_i64.to_le_bytes());
    }
    if !matches!(event[CLOCK..][..4], [1..=2, 0, 0, 0]) {
        event[CLOCK..][..4].copy_from_slice(&[1, 0, 0, 0]);
    }
    padded(event)
}

/// Builds an event whose header has a known type and the right size.
fn event(content: &[u8]) -> Vec<u8> {
    let mut event = content.to_vec();
    event.resize(event.len().clamp(8, LARGEST), 0);
    let size = (event.len() as u16).to_le_bytes();
    if event[3] == MESSAGE {
        event[..2].copy_from_slice(&size);
        return padded(event);
    }
    event[3] = MARKER;
    if !TYPES.contains(&event[2]) {
        event[2] = TYPES[usize::from(event[2]) % TYPES.len()];
    }
    let at = size_at(event[2]);
    event[at..at + 2].copy_from_slice(&size);
    padded(event)
}

/// Returns the offset of the size in a header of a type.
fn size_at(header: u8) -> usize {
    if matches!(header, 1..=4 | 0x10 | 0x11) { 4 } else { 0 }
}

/// Pads an event: events begin at multiples of eight bytes.
fn padded(mut event: Vec<u8>) -> Vec<u8> {
    event.resize(event.len().next_multiple_of(8), 0);
    event
}
