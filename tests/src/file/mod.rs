//! Trace files: events of several processors packed into buffers.
//!
//! [`EtlFile`] takes events in any order and sorts them. [`FileWriter`] streams events that are already in time order,
//! and keeps one buffer per processor in memory.

mod buffer;
mod lz77;
mod options;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::File;
use std::io::{self, Cursor, Seek, Write};
use std::path::Path;

pub use self::lz77::compress;
pub use self::options::{BufferOrder, ExtraBuffer, FileOptions, RawClock, Ring, SessionEnd};
pub use self::writer::{FileSummary, FileWriter};

/// A trace file in memory.
#[derive(Debug, Clone, Default)]
pub struct EtlFile {
    /// Options for writing the file.
    pub options: FileOptions,
    events: Vec<(i64, u16, Vec<u8>)>,
}

impl EtlFile {
    /// Creates a file without events.
    #[must_use]
    pub fn new(options: FileOptions) -> Self {
        Self { options, events: Vec::new() }
    }

    /// Adds an encoded event of a processor at a raw time. Events with equal times keep the order in which they were
    /// added.
    pub fn push(&mut self, cpu: u16, time: i64, event: Vec<u8>) {
        self.events.push((time, cpu, event));
    }

    /// Returns the events as (raw time, processor, bytes), in the order in which they were added.
    pub fn events(&self) -> impl Iterator<Item = (i64, u16, &[u8])> {
        self.events.iter().map(|(time, cpu, event)| (*time, *cpu, event.as_slice()))
    }

    /// Returns the file as bytes.
    ///
    /// # Panics
    /// If an event does not fit a buffer, or its processor is beyond the number of processors.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        self.write_to(&mut out).expect("writing to memory does not fail");
        out.into_inner()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    ///
    /// # Panics
    /// See [`EtlFile::to_bytes`].
    pub fn write(self, path: &Path) -> io::Result<FileSummary> {
        self.write_to(File::create(path)?)
    }

    fn write_to<W: Write + Seek>(mut self, out: W) -> io::Result<FileSummary> {
        self.events.sort_by_key(|(time, _, _)| *time);
        let mut writer = FileWriter::new(out, self.options)?;
        for (time, cpu, event) in &self.events {
            writer.push(*cpu, *time, event)?;
        }
        writer.finish()
    }
}

/// Hook ids of stack events that start with the time of the event they belong to.
const STACKS: [u16; 3] = [0x1820, 0x1825, 0x1826];

impl EtlFile {
    /// Rounds event times to a clock that advances in steps of `step` 100 ns units. The options must use
    /// [`RawClock::SystemTime`]. Events on a processor keep the order of their exact times.
    ///
    /// # Panics
    /// If the clock is another one, or an event header has no known place for the time.
    #[must_use]
    pub fn on_coarse_clock(mut self, step: i64) -> Self {
        assert_eq!(self.options.clock, RawClock::SystemTime, "other clocks do not stand still");
        self.events.sort_by_key(|(time, _, _)| *time);
        let base = self.options.base_raw();
        let shown = |time: i64| base + (time - base).div_euclid(step) * step;
        for (time, _, event) in &mut self.events {
            *time = shown(*time);
            let at = time_offset(event);
            event[at..at + 8].copy_from_slice(&time.to_le_bytes());
            let hook = u16::from_le_bytes([event[6], event[7]]);
            if is_kernel(event) && STACKS.contains(&hook) {
                let at = at + 8 + if event[2] <= 2 { 8 } else { 0 };
                let bytes = event[at..at + 8].try_into().expect("eight bytes");
                event[at..at + 8].copy_from_slice(&shown(i64::from_le_bytes(bytes)).to_le_bytes());
            }
        }
        self.options = FileOptions { timer_resolution: step as u32, ..self.options };
        self
    }
}

fn is_kernel(event: &[u8]) -> bool {
    matches!(event[2], 1..=4 | 0x10 | 0x11)
}

/// Returns the offset of the time in an event header.
fn time_offset(event: &[u8]) -> usize {
    match event[2] {
        0x10 | 0x11 => 8,
        1..=4 | 10..=13 | 18..=21 => 16,
        other => panic!("a header of type {other} has its time elsewhere"),
    }
}
