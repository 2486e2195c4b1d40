//! Trace files: events of several processors packed into buffers.
//!
//! [`EtlFile`] takes events in any order and sorts them; [`FileWriter`] streams events that are
//! in time order already, and keeps one buffer per processor in memory.

mod buffer;
mod coarse;
mod lz77;
mod options;
mod writer;

use std::fs::File;
use std::io::{self, Cursor, Seek, Write};
use std::path::Path;

pub use lz77::compress;
pub use options::{Clock, ExtraBuffer, FileOptions, Layout, Ring, SessionEnd};
pub use writer::{FileSummary, FileWriter};

/// A trace file in memory.
#[derive(Debug, Clone, Default)]
pub struct EtlFile {
    /// Options for writing the file.
    pub options: FileOptions,
    events: Vec<(i64, u16, Vec<u8>)>,
}

impl EtlFile {
    /// A file without events.
    #[must_use]
    pub fn new(options: FileOptions) -> Self {
        Self { options, events: Vec::new() }
    }

    /// Adds an encoded event of a processor at a raw time. Events of equal time keep the order in
    /// which they were added.
    pub fn push(&mut self, cpu: u16, time: i64, event: Vec<u8>) {
        self.events.push((time, cpu, event));
    }

    /// The events as (raw time, processor, bytes), in the order in which they were added.
    pub fn events(&self) -> impl Iterator<Item = (i64, u16, &[u8])> {
        self.events.iter().map(|(time, cpu, event)| (*time, *cpu, event.as_slice()))
    }

    /// The file as bytes.
    ///
    /// # Panics
    /// When an event does not fit a buffer or names a processor beyond the number of processors.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        self.write_to(&mut out).expect("writing to memory does not fail");
        out.into_inner()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
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

#[cfg(test)]
mod tests;
