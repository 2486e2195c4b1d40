//! Streams events into the buffers of a file.

use std::collections::VecDeque;
use std::io::{self, Seek, SeekFrom, Write};

use super::buffer::{BUFFER_HEADER, BufferHeader, FLAG_FLUSH_MARKER, TYPE_HEADER};
use super::options::{BufferOrder, FileOptions, Ring};
use crate::header::{HeaderKind, Stamp};

/// In a merged file, the time stamps of buffers are this long after the last event, in 100 ns units.
const MERGE_DELAY: i64 = 10_000_000;

/// Numbers about the written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSummary {
    /// Number of events, including the trace header event and the events of the header buffer. Events in overwritten
    /// buffers of a circular file count.
    pub events: u64,
    /// Number of buffers in the file, including the header buffer but not unused ones.
    pub buffers: u64,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Raw time of the last event.
    pub last: i64,
}

/// The buffer a processor is filling.
#[derive(Debug)]
struct OpenBuffer {
    sequence: u64,
    content: Vec<u8>,
    last: i64,
}

/// Writes events in time order; writes a buffer when the next event does not fit.
#[derive(Debug)]
pub struct FileWriter<W: Write + Seek> {
    out: W,
    options: FileOptions,
    open: Vec<Option<OpenBuffer>>,
    /// A processor gets a sequence number when it takes a buffer, as in a real session: the numbers rise per processor,
    /// but not through the file.
    next_sequence: u64,
    flushed: u64,
    /// The newest buffers of an in-memory session, in the order in which they became full.
    in_memory: VecDeque<(BufferHeader, Vec<u8>)>,
    end: u64,
    events: u64,
    last: i64,
}

impl<W: Write + Seek> FileWriter<W> {
    /// Starts a file; the header buffer is written again at the end.
    ///
    /// # Errors
    /// If the output cannot be written.
    ///
    /// # Panics
    /// If compression is combined with a circular layout.
    pub fn new(out: W, options: FileOptions) -> io::Result<Self> {
        assert!(
            !options.compressed || !matches!(options.layout, BufferOrder::Circular { .. }),
            "compressed buffers have no fixed place to overwrite"
        );
        let mut writer = Self {
            out,
            open: (0..options.cpus).map(|_| None).collect(),
            next_sequence: 1,
            flushed: 0,
            in_memory: VecDeque::new(),
            end: 0,
            events: 1 + options.header_events.len() as u64,
            last: options.base_raw(),
            options,
        };
        let header = writer.header_buffer(1);
        writer.append(&header)?;
        Ok(writer)
    }

    #[must_use]
    pub fn options(&self) -> &FileOptions {
        &self.options
    }

    /// Adds an encoded event of a processor at a raw time.
    ///
    /// # Errors
    /// If the output cannot be written.
    ///
    /// # Panics
    /// If the event does not fit an empty buffer, has an unknown processor, or is earlier than the event before it on
    /// its processor.
    pub fn push(&mut self, cpu: u16, time: i64, event: &[u8]) -> io::Result<()> {
        let capacity = self.options.buffer_size as usize - BUFFER_HEADER;
        let size = event.len().next_multiple_of(8);
        assert!(size <= capacity, "an event of {size} bytes does not fit a buffer");
        let slot = usize::from(cpu);
        assert!(slot < self.open.len(), "processor {cpu} of {}", self.open.len());
        if self.open[slot].as_ref().is_some_and(|open| open.content.len() + size > capacity) {
            self.flush(slot, 0)?;
        }
        let sequence = &mut self.next_sequence;
        let open = self.open[slot].get_or_insert_with(|| {
            *sequence += 1;
            OpenBuffer { sequence: *sequence - 1, content: Vec::new(), last: time }
        });
        assert!(time >= open.last, "the events of processor {cpu} are not in time order");
        open.content.extend_from_slice(event);
        open.content.resize(open.content.len().next_multiple_of(8), 0);
        open.last = time;
        self.last = self.last.max(time);
        self.events += 1;
        Ok(())
    }

    /// Writes the open buffers, the extra buffers and the final header buffer.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(mut self) -> io::Result<FileSummary> {
        let open: Vec<usize> =
            (0..self.open.len()).filter(|slot| self.open[*slot].is_some()).collect();
        if let Some((last, others)) = open.split_last() {
            for slot in others {
                self.flush(*slot, 0)?;
            }
            self.extra_buffers()?;
            self.flush(*last, FLAG_FLUSH_MARKER | self.options.loss_flags)?;
        } else {
            self.extra_buffers()?;
        }
        self.write_memory()?;
        for _ in 0..self.options.preallocated {
            let zeros = vec![0; self.options.buffer_size as usize];
            self.append(&zeros)?;
        }
        let buffers = 1 + match self.options.layout {
            BufferOrder::Sequential | BufferOrder::InMemory(_) => self.flushed,
            BufferOrder::Circular { max_buffers } => self.flushed.min(max_buffers),
        };
        let header = self.header_buffer(buffers);
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header)?;
        self.out.flush()?;
        Ok(FileSummary { events: self.events, buffers, bytes: self.end, last: self.last })
    }

    fn extra_buffers(&mut self) -> io::Result<()> {
        for extra in std::mem::take(&mut self.options.extra_buffers) {
            let header = BufferHeader {
                flags: extra.flags,
                buffer_type: extra.buffer_type,
                ..self.buffer_header(0, self.next_sequence)
            };
            self.next_sequence += 1;
            self.write_buffer(&header, &extra.content)?;
        }
        Ok(())
    }

    /// Writes the buffer that a processor is filling.
    fn flush(&mut self, slot: usize, flags: u16) -> io::Result<()> {
        let Some(open) = self.open[slot].take() else { return Ok(()) };
        let header = BufferHeader { flags, ..self.buffer_header(slot, open.sequence) };
        self.write_buffer(&header, &open.content)
    }

    /// Writes the buffers that an in-memory session kept.
    fn write_memory(&mut self) -> io::Result<()> {
        let BufferOrder::InMemory(Ring { renumbered, .. }) = self.options.layout else {
            return Ok(());
        };
        let mut kept: Vec<_> = std::mem::take(&mut self.in_memory).into();
        if renumbered {
            kept.sort_by_key(|(header, _)| header.sequence);
            kept.iter_mut().zip(1..).for_each(|((header, _), number)| header.sequence = number);
        }
        self.flushed = 0;
        kept.iter().try_for_each(|(header, content)| self.store(header, content))
    }

    fn write_buffer(&mut self, header: &BufferHeader, content: &[u8]) -> io::Result<()> {
        let BufferOrder::InMemory(Ring { buffers, per_processor, .. }) = self.options.layout else {
            return self.store(header, content);
        };
        self.in_memory.push_back((*header, content.to_vec()));
        let is_alike = |other: &BufferHeader| !per_processor || other.cpu == header.cpu;
        let alike = self.in_memory.iter().filter(|(other, _)| is_alike(other)).count();
        let oldest = self.in_memory.iter().position(|(other, _)| is_alike(other));
        if let Some(oldest) = oldest.filter(|_| alike > buffers) {
            self.in_memory.remove(oldest);
        }
        Ok(())
    }

    /// Puts a buffer into the file.
    fn store(&mut self, header: &BufferHeader, content: &[u8]) -> io::Result<()> {
        let bytes = if self.options.compressed {
            header.compressed(content)
        } else {
            header.plain(content, self.options.buffer_size as usize)
        };
        if let BufferOrder::Circular { max_buffers } = self.options.layout {
            // The header buffer stays first; the others take turns in the places after it.
            let place = 1 + self.flushed % max_buffers;
            self.end = place * u64::from(self.options.buffer_size);
        }
        self.flushed += 1;
        self.append(&bytes)?;
        if let BufferOrder::Circular { max_buffers } = self.options.layout {
            let places = 1 + self.flushed.min(max_buffers);
            self.end = places * u64::from(self.options.buffer_size);
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(self.end))?;
        self.out.write_all(bytes)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn buffer_header(&self, slot: usize, sequence: u64) -> BufferHeader {
        let time = if self.options.merged {
            self.options.filetime(self.last) + MERGE_DELAY
        } else {
            self.last
        };
        BufferHeader {
            time,
            sequence,
            cpu: slot as u16,
            logger_id: if self.options.merged { 0 } else { 28 },
            flags: 0,
            buffer_type: 0,
            wide_cpu_index: self.options.wide_cpu_index,
        }
    }

    /// Returns the header buffer for a file of `buffers`. In a compressed file it is as small as possible, a multiple
    /// of 512 bytes.
    fn header_buffer(&self, buffers: u64) -> Vec<u8> {
        let (pid, tid) = self.options.writer;
        let stamp = Stamp::new(self.options.base_raw(), pid, tid);
        let payload = self.options.trace_header(buffers, self.last).payload();
        let mut content = payload.event(HeaderKind::System, self.options.pointer, stamp);
        for event in &self.options.header_events {
            content.resize(content.len().next_multiple_of(8), 0);
            content.extend_from_slice(event);
        }
        content.resize(content.len().next_multiple_of(8), 0);
        let size = if self.options.compressed {
            (BUFFER_HEADER + content.len()).next_multiple_of(512)
        } else {
            self.options.buffer_size as usize
        };
        let header = BufferHeader {
            time: 0,
            flags: FLAG_FLUSH_MARKER,
            buffer_type: TYPE_HEADER,
            ..self.buffer_header(0, 0)
        };
        header.plain(&content, size)
    }
}
