//! Reading an archive.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use polars::prelude::{Column, DataFrame, ParquetReader, PolarsError, PolarsResult, SerReader};
use sevenz_rust::{ArchiveReader, Password};

use super::container::unpack_reason;
use super::writer::packing;
use super::{ArchiveError, ArchiveLimits, ArchiveWriter, Container, ContainerLimits};
use crate::column::null_column;
use crate::guard::{lock, quietly};
use crate::{Cell, SCHEMA_VERSION, Table};

/// Columns that say how many rows of another table belong to a row.
const SLICES: [(Table, &str, Table); 2] = [
    (Table::Objects, "event_count", Table::Events),
    (Table::Objects, "existing_count", Table::ExistingHandles),
];

/// The content of one member, shared by the readers of its columns.
type Bytes = Arc<[u8]>;

/// A trace in an opened archive.
///
/// Members are read when a column of theirs is first asked for; columns are decoded one by one
/// and kept, so that a query pays for what it touches.
pub struct Trace {
    path: PathBuf,
    limits: ArchiveLimits,
    archive: Mutex<ArchiveReader<BufReader<File>>>,
    members: Mutex<HashMap<Table, Option<Bytes>>>,
    columns: Mutex<HashMap<(Table, &'static str), Column>>,
}

impl Trace {
    /// Opens an archive and checks that it is an extract this program can read.
    ///
    /// # Errors
    /// When the file cannot be opened, is no 7z archive or one that is refused, holds no trace table,
    /// or was made by a newer version.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        Self::open_within(path, ArchiveLimits::default())
    }

    /// Opens an archive as [`Self::open`] does, within other limits.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_within(path: &Path, limits: ArchiveLimits) -> Result<Self, ArchiveError> {
        let archive = open_archive(path, &limits.container)?;
        let trace = Self {
            path: path.to_path_buf(),
            limits,
            archive: Mutex::new(archive),
            members: Mutex::default(),
            columns: Mutex::default(),
        };
        trace.check_version()?;
        Ok(trace)
    }

    /// The archive's path, as it was given to [`Self::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the archive was opened within.
    pub fn limits(&self) -> ArchiveLimits {
        self.limits
    }

    /// The names of all members.
    pub fn members(&self) -> Vec<String> {
        lock(&self.archive).archive().files.iter().map(|file| file.name.clone()).collect()
    }

    /// Copies the members whose names `wanted` picks into another archive.
    ///
    /// # Errors
    /// When a member is damaged or too large, or the other archive cannot be written.
    pub fn copy_members(
        &self,
        to: &mut ArchiveWriter,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), ArchiveError> {
        let mut archive = lock(&self.archive);
        archive
            .for_each_entries(|entry, content| {
                if wanted(&entry.name) {
                    to.push(&entry.name, content)?;
                }
                Ok(true)
            })
            .map_err(|error| packing(&self.path, &error))
    }

    /// A whole table.
    ///
    /// # Errors
    /// When the member is damaged.
    pub fn frame(&self, table: Table) -> Result<DataFrame, ArchiveError> {
        let columns: Result<Vec<_>, _> =
            table.columns().iter().map(|spec| self.column(table, spec.name)).collect();
        let columns = columns?;
        let height = columns.first().map_or(0, Column::len);
        DataFrame::new(height, columns).map_err(|e| self.damaged(table, &e))
    }

    /// One column of a table, in one chunk and with the declared type.
    ///
    /// A column the archive lacks reads as nulls if the table says it may, and a table the archive
    /// lacks as empty.
    ///
    /// # Errors
    /// When the member is damaged, or the table has no such column.
    pub fn column(&self, table: Table, name: &str) -> Result<Column, ArchiveError> {
        let spec = table
            .columns()
            .iter()
            .find(|spec| spec.name == name)
            .ok_or_else(|| self.damaged(table, &format!("no column {name}")))?;
        let key = (table, spec.name);
        if let Some(column) = lock(&self.columns).get(&key) {
            return Ok(column.clone());
        }
        let column = match self.member(table)? {
            None => null_column(spec, 0),
            Some(bytes) => {
                let height = self.height(table)?;
                let column = self.decode(table, name, &bytes)?;
                let column = column.unwrap_or_else(|| null_column(spec, height));
                if column.len() != height {
                    let rows = column.len();
                    let reason = format!("column {name} has {rows} rows, the table {height}");
                    return Err(self.damaged(table, &reason));
                }
                column
            }
        };
        let dtype = spec.dtype.dtype();
        if column.dtype() != &dtype {
            let reason = format!("column {name} is {}, expected {dtype}", column.dtype());
            return Err(self.damaged(table, &reason));
        }
        if !spec.nullable && column.null_count() > 0 {
            return Err(self.damaged(table, &format!("column {name} has nulls")));
        }
        self.check_slices(table, &column)?;
        lock(&self.columns).insert(key, column.clone());
        Ok(column)
    }

    /// Refuses a table whose rows share more rows of another among them than that has, so that nobody
    /// passes over a row more than once.
    fn check_slices(&self, table: Table, column: &Column) -> Result<(), ArchiveError> {
        let is_meant =
            |(of, name, _): &&(Table, &str, Table)| *of == table && column.name() == name;
        let Some((_, name, other)) = SLICES.iter().find(is_meant) else { return Ok(()) };
        let counts = column.u32().map_err(|error| self.damaged(table, &error))?;
        let claimed: u64 = counts.iter().flatten().map(u64::from).sum();
        let rows = self.height(*other)? as u64;
        if claimed <= rows {
            return Ok(());
        }
        let reason = format!("{name} adds up to {claimed}, but {} has {rows} rows", other.name());
        Err(self.damaged(table, &reason))
    }

    /// Copies at most `count` values of a column, from the row `first` on.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn cells<T: Cell>(
        &self,
        table: Table,
        name: &str,
        first: usize,
        count: usize,
    ) -> Result<Vec<T>, ArchiveError> {
        let column = self.column(table, name)?;
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        T::read(&column.slice(first, count)).map_err(|error| self.damaged(table, &error))
    }

    /// Number of rows of a table; 0 when the archive lacks it.
    ///
    /// # Errors
    /// When the member is damaged.
    pub fn height(&self, table: Table) -> Result<usize, ArchiveError> {
        match self.member(table)? {
            None => Ok(0),
            Some(bytes) => decoded(|| ParquetReader::new(Cursor::new(bytes)).num_rows())
                .map_err(|reason| self.damaged(table, &reason)),
        }
    }

    fn check_version(&self) -> Result<(), ArchiveError> {
        let version = self.column(Table::Trace, "schema_version")?;
        let found = version
            .u32()
            .ok()
            .and_then(|v| v.get(0))
            .ok_or_else(|| self.damaged(Table::Trace, &"no row"))?;
        if found > SCHEMA_VERSION {
            return Err(ArchiveError::NewerSchema {
                path: self.path.clone(),
                found,
                supported: SCHEMA_VERSION,
            });
        }
        Ok(())
    }

    fn member(&self, table: Table) -> Result<Option<Bytes>, ArchiveError> {
        let mut members = lock(&self.members);
        if let Some(bytes) = members.get(&table) {
            return Ok(bytes.clone());
        }
        let bytes = self.read_member(&table.member())?;
        if let Some(bytes) = &bytes {
            let problem = decoded(|| self.limits.check_table(bytes));
            if let Some(reason) = problem.unwrap_or_else(Some) {
                return Err(self.damaged(table, &reason));
            }
        }
        members.insert(table, bytes.clone());
        Ok(bytes)
    }

    fn read_member(&self, name: &str) -> Result<Option<Bytes>, ArchiveError> {
        let mut archive = lock(&self.archive);
        if !archive.archive().files.iter().any(|file| file.name == name) {
            return Ok(None);
        }
        archive.read_file(name).map(|bytes| Some(bytes.into())).map_err(|e| ArchiveError::Member {
            path: self.path.clone(),
            member: name.to_owned(),
            reason: unpack_reason(&e),
        })
    }

    /// Decodes one column; `None` when the member lacks it.
    fn decode(
        &self,
        table: Table,
        name: &str,
        bytes: &Bytes,
    ) -> Result<Option<Column>, ArchiveError> {
        decoded(|| {
            let mut reader = ParquetReader::new(Cursor::new(Arc::clone(bytes))).set_rechunk(true);
            if !reader.schema()?.contains(name) {
                return Ok(None);
            }
            if let Some(problem) = self.limits.check_column(bytes, reader.get_metadata()?, name) {
                return Err(PolarsError::ComputeError(problem.into()));
            }
            let frame = reader.with_columns(Some(vec![name.to_owned()])).finish()?;
            frame.column(name).map(|column| Some(column.rechunk()))
        })
        .map_err(|reason| self.damaged(table, &reason))
    }

    fn damaged(&self, table: Table, reason: &dyn fmt::Display) -> ArchiveError {
        ArchiveError::Member {
            path: self.path.clone(),
            member: table.member(),
            reason: reason.to_string(),
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Opens an extract and looks at its table of contents before anything of it is unpacked.
pub(super) fn open_archive(
    path: &Path,
    limits: &ContainerLimits,
) -> Result<ArchiveReader<BufReader<File>>, ArchiveError> {
    let Container { archive, source, packed } = Container::open(path, limits)?;
    let trace = Table::Trace.member();
    if !archive.files.iter().any(|entry| entry.name == trace) {
        return Err(ArchiveError::NotAnExtract { path: path.to_path_buf() });
    }
    let content = archive.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
    let tables = Table::ALL.map(Table::member);
    for entry in archive.files.iter().filter(|entry| tables.contains(&entry.name)) {
        limits.check_size(path, &entry.name, entry.size)?;
    }
    limits.check_content(path, packed, content)?;
    limits.check_decoders(path, &archive.blocks)?;
    let mut reader = ArchiveReader::from_archive(archive, source, Password::empty());
    // Members are stored as a rule; each thread more would take memory of its own.
    reader.set_thread_count(1);
    Ok(reader)
}

/// Runs the Parquet decoder; what it says, or that it panicked, as it does on some damaged tables. The
/// checksum of a member catches accidental damage before.
fn decoded<T>(decode: impl FnOnce() -> PolarsResult<T>) -> Result<T, String> {
    match quietly(decode) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("the Parquet decoder gave up".to_owned()),
    }
}
