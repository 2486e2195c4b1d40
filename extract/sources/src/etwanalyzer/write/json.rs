//! Writes JSON while its content is being read, without a tree in between. Also the errors of writing an extract.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use handlescope_model::output::folder_of;
use handlescope_model::{ArchiveError, Cancel, Cancelled, Reason, TableRows, Trace, Untrusted};
use serde::ser::{Error, Serialize, SerializeSeq, Serializer};

/// ETWAnalyzer reads a member into one block of memory, which cannot be larger.
pub const MEMBER_LIMIT: u64 = 1 << 31;

/// Bytes written at once.
const BUFFER: usize = 256 << 10;

/// Rows in memory at once.
pub const PART_ROWS: usize = 1 << 16;

/// A list whose elements are computed while they are written.
pub struct Each<F>(pub F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// A list whose elements may fail to be read.
pub struct TryEach<F>(pub RefCell<F>);

impl<F> TryEach<F> {
    /// Creates the list of what `next` returns before `None`. It can be written only once.
    pub fn new<T>(next: F) -> Self
    where
        F: FnMut() -> Result<Option<T>, ArchiveError>,
    {
        Self(RefCell::new(next))
    }
}

impl<T: Serialize, F: FnMut() -> Result<Option<T>, ArchiveError>> Serialize for TryEach<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut next = self.0.borrow_mut();
        while let Some(element) = next().map_err(S::Error::custom)? {
            list.serialize_element(&element)?;
        }
        list.end()
    }
}

/// Returns all rows of a table; only a part of them is in memory at a time.
pub fn rows_of<'a, T: TableRows + 'a>(
    trace: &'a Trace,
) -> TryEach<impl FnMut() -> Result<Option<T::Row>, ArchiveError> + 'a> {
    let mut window = TableWindow::<T>::new(trace);
    let mut next = 0;
    TryEach::new(move || {
        next += 1;
        window.row(next - 1)
    })
}

/// A table read from the first row to the last; only a part of it is in memory.
pub struct TableWindow<'a, T> {
    trace: &'a Trace,
    first: usize,
    rows: Option<T>,
}

impl<'a, T: TableRows> TableWindow<'a, T> {
    pub fn new(trace: &'a Trace) -> Self {
        Self { trace, first: 0, rows: None }
    }

    /// Returns a row; `None` after the last.
    pub fn row(&mut self, row: usize) -> Result<Option<T::Row>, ArchiveError> {
        let here = self.first..self.first + PART_ROWS;
        if self.rows.is_none() || !here.contains(&row) {
            self.first = row;
            self.rows = Some(T::read_rows(self.trace, row, PART_ROWS)?);
        }
        Ok(self.rows.as_ref().and_then(|rows| rows.row(row - self.first)))
    }
}

/// Writes a document into an unnamed file beside the archive. It must be smaller than `limit`.
pub fn document(
    member: &str,
    content: &impl Serialize,
    output: &Path,
    limit: u64,
    cancel: &Cancel,
) -> Result<File, SaveError> {
    let failed = |source: io::Error| SaveError::Write {
        path: output.to_path_buf(),
        member: member.to_owned(),
        source,
    };
    let file = tempfile::tempfile_in(folder_of(output)).map_err(failed)?;
    let watched = BoundedWriter { inner: file, written: 0, limit, cancel };
    let mut out = BufWriter::with_capacity(BUFFER, watched);
    let result = serde_json::to_writer(&mut out, content).map_err(io::Error::from);
    let result = result.and_then(|()| out.flush());
    // After an error, what is left in the buffer is of no use.
    let (BoundedWriter { inner: mut file, written, .. }, _) = out.into_parts();
    cancel.check()?;
    if written >= limit {
        let (path, member) = (output.to_path_buf(), member.to_owned());
        return Err(SaveError::TooLarge { path, member, limit });
    }
    result.and_then(|()| file.seek(SeekFrom::Start(0))).map_err(failed)?;
    Ok(file)
}

/// Counts the bytes written, and fails if they are too many or the work is cancelled.
struct BoundedWriter<'a> {
    inner: File,
    written: u64,
    limit: u64,
    cancel: &'a Cancel,
}

impl Write for BoundedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written += bytes.len() as u64;
        if self.written >= self.limit || self.cancel.is_cancelled() {
            return Err(io::Error::other("given up"));
        }
        self.inner.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// An extract that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// A member could not be written.
    #[error("{}: cannot write {}: {}", Untrusted(.path), Untrusted(.member), Reason(.source))]
    Write { path: PathBuf, member: String, source: io::Error },
    /// A member would be larger than ETWAnalyzer can read.
    #[error(
        "{}: {member} would have {limit} bytes or more, which ETWAnalyzer cannot read; without \
         --etwanalyzer, the trace is written as tables only",
        Untrusted(.path)
    )]
    TooLarge {
        path: PathBuf,
        member: String,
        /// The size from which a member is too large.
        limit: u64,
    },
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The trace cannot be read, or the archive cannot be written.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_document_ends_where_etw_analyzer_cannot_read_on() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.json7z");
        let written = |limit| document("a.json", &[1, 2, 3], &output, limit, &Cancel::default());
        let mut text = String::new();
        written(8).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "[1,2,3]");
        let error = written(7).unwrap_err();
        assert!(matches!(&error, SaveError::TooLarge { limit: 7, .. }), "{error}");
    }

    #[test]
    fn an_element_that_does_not_come_is_an_error() {
        let mut left = 2;
        let elements = TryEach::new(|| {
            left -= 1;
            let path = Path::new("a").to_path_buf();
            if left > 0 { Ok(Some(left)) } else { Err(ArchiveError::NotAnExtract { path }) }
        });
        assert!(serde_json::to_string(&elements).is_err());
    }
}
