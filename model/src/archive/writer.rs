use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;

use super::error::ArchiveError;
use super::manifest::{self, Content, Manifest, StoredTable};
use super::parquet::ParquetFile;
use super::parts::{EncodedParts, write_parts};
use crate::cancel::Cancel;
use crate::noting::{Noting, Reason, is_full, plain};
use crate::output::{OutputFile, folder_of};
use crate::table::Table;
use polars::prelude::{DataFrame, PolarsResult};
use sevenz_rust::encoder_options::Lzma2Options;
use sevenz_rust::{ArchiveEntry, EncoderConfiguration, EncoderMethod};

/// Compression level of JSON: level 3 takes three times as long for 12 % less, and packing already takes nine tenths of
/// the time of JSON.
const LZMA_LEVEL: u32 = 1;

/// Bytes of JSON compressed independently, so that several threads share the work and Ctrl-C waits for at most one
/// chunk. A chunk is four times the dictionary of this level.
const LZMA_CHUNK: u64 = 4 << 20;

/// Bytes of a member read and written at a time; the library itself copies 4 KiB at a time.
const BUFFER: usize = 256 << 10;

/// Maximum number of compressing threads; each keeps some chunks in memory.
const MAX_THREADS: usize = 4;

/// Writes an archive member by member; nothing is visible under its name before [`Self::finish`].
///
/// Dropping an unfinished writer removes its temporary file.
pub struct ArchiveWriter {
    encoder: TableEncoder,
    archive: sevenz_rust::ArchiveWriter<BufWriter<OutputFile>>,
    /// Content of the tables written so far.
    manifest: Manifest,
}

/// Encodes tables for an archive; clones can do so on other threads.
#[derive(Debug, Clone)]
pub struct TableEncoder {
    path: PathBuf,
    folder: PathBuf,
    cancel: Cancel,
}

/// A table ready to become a member of its archive, in an unnamed temporary file.
#[derive(Debug)]
pub struct EncodedTable {
    table: Table,
    rows: u64,
    content: File,
}

impl ArchiveWriter {
    /// Starts an archive that will appear at `path`; its folder must exist.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn create(path: &Path) -> Result<Self, ArchiveError> {
        let folder = folder_of(path).to_path_buf();
        let file = OutputFile::beside(path).map_err(|source| ArchiveError::Io {
            path: path.to_path_buf(),
            action: "create a temporary file beside it",
            source,
        })?;
        let file = BufWriter::with_capacity(BUFFER, file);
        let archive = sevenz_rust::ArchiveWriter::new(file).map_err(|e| packing(path, &e))?;
        let encoder = TableEncoder { path: path.to_path_buf(), folder, cancel: Cancel::default() };
        Ok(Self { encoder, archive, manifest: Manifest::default() })
    }

    /// Makes the writer fail once `cancel` requests a stop: at the next row group, or within a packed member.
    #[must_use]
    pub fn stopped_by(mut self, cancel: &Cancel) -> Self {
        self.encoder.cancel = cancel.clone();
        self
    }

    /// Returns the path at which the archive will appear.
    pub fn path(&self) -> &Path {
        &self.encoder.path
    }

    /// Returns an encoder of tables for this archive.
    pub fn encoder(&self) -> TableEncoder {
        self.encoder.clone()
    }

    /// Writes a complete table.
    ///
    /// # Errors
    /// If the frame could not be made, does not fit the table, or cannot be written.
    pub fn table(
        &mut self,
        table: Table,
        frame: PolarsResult<DataFrame>,
    ) -> Result<(), ArchiveError> {
        let mut frame = Some(frame);
        self.table_in_parts(table, || frame.take())
    }

    /// Writes a table part by part. Each part is encoded once the one before is in the archive.
    ///
    /// `next` returns the parts, then `None`. Columns that a part lacks are written as nulls.
    ///
    /// # Errors
    /// If a part could not be made, does not fit the table, or cannot be written.
    pub fn table_in_parts(
        &mut self,
        table: Table,
        mut next: impl FnMut() -> Option<PolarsResult<DataFrame>>,
    ) -> Result<(), ArchiveError> {
        let not_encoded = |source| ArchiveError::Encode { table: table.name(), source };
        let mut parts = EncodedParts::new(table, &mut next).map_err(not_encoded)?;
        let content = self.push_until_stopped(&table.member(), &mut parts);
        let rows = parts.finish().map_err(not_encoded)?;
        self.note_table(table, StoredTable { rows, content: content? });
        Ok(())
    }

    /// Writes an encoded table.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&mut self, encoded: EncodedTable) -> Result<(), ArchiveError> {
        let EncodedTable { table, rows, content } = encoded;
        let content = BufReader::with_capacity(BUFFER, content);
        let content = self.push_until_stopped(&table.member(), content)?;
        self.note_table(table, StoredTable { rows, content });
        Ok(())
    }

    /// Records a written table for the manifest.
    pub fn note_table(&mut self, table: Table, stored: StoredTable) {
        self.manifest.insert(table, stored);
    }

    /// Writes a member that is not a table. JSON is compressed, anything else is stored.
    ///
    /// # Errors
    /// If the content cannot be read or the archive cannot be written.
    pub fn member(&mut self, name: &str, content: impl Read) -> Result<(), ArchiveError> {
        self.push_until_stopped(name, content).map(drop)
    }

    fn push_until_stopped(
        &mut self,
        member: &str,
        content: impl Read,
    ) -> Result<Content, ArchiveError> {
        let cancel = self.encoder.cancel.clone();
        self.push(member, &mut Cancellable { inner: content, cancel })
            .map_err(|e| packing(&self.encoder.path, &e))
    }

    /// Writes a member and returns its content as the table of contents lists it.
    pub fn push(
        &mut self,
        member: &str,
        content: &mut dyn Read,
    ) -> Result<Content, sevenz_rust::Error> {
        let method = if member.ends_with(".json") {
            let threads = thread::available_parallelism().map_or(1, |n| n.get().min(MAX_THREADS));
            Lzma2Options::from_level_mt(LZMA_LEVEL, threads as u32, LZMA_CHUNK).into()
        } else {
            EncoderConfiguration::new(EncoderMethod::COPY)
        };
        self.archive.set_content_methods(vec![method]);
        let entry = ArchiveEntry::new_file(member);
        let entry = self.archive.push_archive_entry(entry, Some(content))?;
        Content::new(entry).map_err(|problem| sevenz_rust::Error::Other(problem.to_string().into()))
    }

    /// Finishes the archive, gives it its name, and returns its size in bytes. Tables that were not written are empty.
    ///
    /// # Errors
    /// If the archive cannot be completed or renamed.
    pub fn finish(mut self) -> Result<u64, ArchiveError> {
        self.tie()?;
        let Self { encoder: TableEncoder { path, .. }, archive, .. } = self;
        let io = |source| ArchiveError::Io { path: path.clone(), action: "write", source };
        let output = archive.finish().map_err(io)?;
        let output = output.into_inner().map_err(|e| io(e.into_error()))?;
        output.file().sync_all().map_err(io)?;
        let size = output.file().metadata().map_err(io)?.len();
        output.persist(&path).map_err(|source| {
            if path.exists() {
                ArchiveError::Replace { path: path.clone(), source }
            } else {
                io(source)
            }
        })?;
        Ok(size)
    }

    /// Writes the tables that are still missing, and the manifest. An archive without the trace table gets neither.
    fn tie(&mut self) -> Result<(), ArchiveError> {
        let is_written = |writer: &Self, table| writer.manifest.get(table).is_some();
        if !is_written(self, Table::Trace) {
            return Ok(());
        }
        for table in Table::ALL {
            if !is_written(self, table) {
                self.table_in_parts(table, || None)?;
            }
        }
        let text = self.manifest.to_text();
        self.member(manifest::MEMBER, text.as_bytes())
    }
}

/// A reader or writer that fails once the work is cancelled.
struct Cancellable<T> {
    inner: T,
    cancel: Cancel,
}

impl<T: Read> Read for Cancellable<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.cancel.check().map_err(io::Error::other)?;
            match self.inner.read(buffer) {
                // The packer does not read again after a signal.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl<T: Write> Write for Cancellable<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.cancel.check().map_err(io::Error::other)?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl TableEncoder {
    /// Encodes a table part by part, so that a large one is never in memory as a whole.
    ///
    /// `next` returns the parts, then `None`. Columns that a part lacks are written as nulls.
    ///
    /// # Errors
    /// If a part could not be made, does not fit the table, or cannot be written.
    pub fn encode_in_parts(
        &self,
        table: Table,
        mut next: impl FnMut() -> Option<PolarsResult<DataFrame>>,
    ) -> Result<EncodedTable, ArchiveError> {
        let mut content = tempfile::tempfile_in(&self.folder).map_err(|e| self.io(e))?;
        let mut noting = Noting::new(&mut content);
        let out = BufWriter::new(Cancellable { inner: &mut noting, cancel: self.cancel.clone() });
        let rows = match write_parts(table, &mut next, out) {
            Ok(rows) => rows,
            Err(source) => {
                return Err(match noting.failed() {
                    Some(error) => self.io(error),
                    None => ArchiveError::Encode { table: table.name(), source },
                });
            }
        };
        content.seek(SeekFrom::Start(0)).map_err(|e| self.io(e))?;
        Ok(EncodedTable { table, rows, content })
    }

    fn io(&self, source: io::Error) -> ArchiveError {
        ArchiveError::Io { path: self.path.clone(), action: "write", source }
    }
}

/// Writes a table as a Parquet file of its own, encoded like a member of an archive.
///
/// # Errors
/// If the frame does not fit the table, or `out` cannot be written.
pub fn write_parquet(table: Table, frame: DataFrame, out: impl Write) -> PolarsResult<()> {
    let mut frame = Some(Ok(frame));
    write_parts(table, &mut || frame.take(), out).map(drop)
}

/// Writes any columns as a Parquet file, with key-value pairs in its footer.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_parquet_with(
    frame: &DataFrame,
    pairs: Vec<(String, String)>,
    out: impl Write,
) -> PolarsResult<()> {
    let mut file = ParquetFile::new(frame.schema(), |_| true, out)?;
    file.write(frame)?;
    file.finish(pairs)
}

pub fn packing(path: &Path, error: &sevenz_rust::Error) -> ArchiveError {
    let path = path.to_path_buf();
    match error {
        sevenz_rust::Error::Io(source, _) if is_full(source) => {
            ArchiveError::Io { path, action: "write", source: plain(source) }
        }
        sevenz_rust::Error::Io(source, context) => {
            ArchiveError::Pack { path, reason: format!("{context}: {}", Reason(&plain(source))) }
        }
        error => ArchiveError::Pack { path, reason: error.to_string() },
    }
}

/// Whether writing failed for lack of space.
pub fn is_full_disk(error: &sevenz_rust::Error) -> bool {
    matches!(error, sevenz_rust::Error::Io(source, _) if is_full(source))
}
