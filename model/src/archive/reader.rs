use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use polars::prelude::{Column, DataFrame, ParquetReader, SerReader};
use polars_io::parquet::metadata::FileMetadataRef;
use sevenz_rust::{ArchiveReader, Password};

use super::claims::TableProblem;
use super::container::{Container, ContainerLimits, unpack_reason};
use super::error::ArchiveError;
use super::limits::ArchiveLimits;
use super::writer::{ArchiveWriter, is_full_disk, packing};
use crate::column::{Cell, ColumnSpec, Reference};
use crate::guard::{lock, quietly};
use crate::key::{Columns, Key};
use crate::table::Table;
use crate::tables::{Cells, SCHEMA_VERSION, TraceInfos};

/// The bytes of a member, which are not copied: they may be gigabytes.
#[derive(Clone)]
struct MemberBytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for MemberBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The content of one member, shared by the readers of its columns.
#[derive(Clone)]
struct Member {
    bytes: MemberBytes,
    metadata: FileMetadataRef,
}

impl Member {
    fn reader(&self) -> ParquetReader<Cursor<MemberBytes>> {
        let mut reader = ParquetReader::new(Cursor::new(self.bytes.clone()));
        reader.set_metadata(Arc::clone(&self.metadata));
        reader
    }
}

/// A trace in an opened archive.
///
/// Members are read when a column of theirs is first asked for; columns are decoded one by one
/// and kept, so that a query pays for what it touches.
pub struct Trace {
    path: PathBuf,
    limits: ArchiveLimits,
    archive: Mutex<ArchiveReader<BufReader<File>>>,
    members: Mutex<HashMap<Table, Option<Member>>>,
    columns: Mutex<HashMap<(Table, &'static str), Column>>,
}

impl Trace {
    /// Opens an archive and checks that it is an extract this program can read.
    ///
    /// # Errors
    /// When the file cannot be opened, is not a 7z archive or is refused, holds no trace table,
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
        copy_members(&self.path, &mut lock(&self.archive), to, wanted)
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
        let spec =
            table.column(name).ok_or_else(|| self.damaged(table, &format!("no column {name}")))?;
        let key = (table, spec.name);
        if let Some(column) = lock(&self.columns).get(&key) {
            return Ok(column.clone());
        }
        let column = match self.member(table)? {
            None => spec.nulls(0),
            Some(member) => {
                let height = member.metadata.num_rows;
                let column = self.decode(table, name, &member)?;
                let column = column.unwrap_or_else(|| spec.nulls(height));
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
        self.check_counts(table, spec, &column)?;
        lock(&self.columns).insert(key, column.clone());
        Ok(column)
    }

    /// One column, for expressions over frames.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn column_of<C: Columns, T: Cell>(&self, key: Key<C, T>) -> Result<Column, ArchiveError> {
        self.column(C::TABLE, key.name())
    }

    /// Typed access to a column.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn values<C: Columns, T: Cell>(&self, key: Key<C, T>) -> Result<T::Values, ArchiveError> {
        let column = self.column_of(key)?;
        T::values(&column).map_err(|error| self.damaged(C::TABLE, &error))
    }

    /// Refuses a table whose rows share more rows of another among them than that has, so that a reader
    /// passes over each row once.
    fn check_counts(
        &self,
        table: Table,
        spec: &ColumnSpec,
        column: &Column,
    ) -> Result<(), ArchiveError> {
        let Some(Reference::Count(other)) = spec.refers_to else { return Ok(()) };
        let counts = column.u32().map_err(|error| self.damaged(table, &error))?;
        let claimed: u64 = counts.iter().flatten().map(u64::from).sum();
        let rows = self.height(other)? as u64;
        if claimed <= rows {
            return Ok(());
        }
        let reason =
            format!("{} adds up to {claimed}, but {} has {rows} rows", spec.name, other.name());
        Err(self.damaged(table, &reason))
    }

    /// Number of rows of a table; 0 when the archive lacks it.
    ///
    /// # Errors
    /// When the member is damaged.
    pub fn height(&self, table: Table) -> Result<usize, ArchiveError> {
        match self.member(table)? {
            None => Ok(0),
            Some(member) => Ok(member.metadata.num_rows),
        }
    }

    fn check_version(&self) -> Result<(), ArchiveError> {
        let version = self.values(TraceInfos::schema_version)?;
        let found = version.get(0).ok_or_else(|| self.damaged(Table::Trace, &"no row"))?;
        if found > SCHEMA_VERSION {
            return Err(ArchiveError::NewerSchema {
                path: self.path.clone(),
                found,
                supported: SCHEMA_VERSION,
            });
        }
        Ok(())
    }

    fn member(&self, table: Table) -> Result<Option<Member>, ArchiveError> {
        let mut members = lock(&self.members);
        if let Some(member) = members.get(&table) {
            return Ok(member.clone());
        }
        let checked = |bytes: MemberBytes| {
            self.limits.check_table(bytes.as_ref())?;
            let mut reader = ParquetReader::new(Cursor::new(bytes.clone()));
            Ok(Member { metadata: Arc::clone(reader.get_metadata()?), bytes })
        };
        let bytes = self.read_member(&table.member())?;
        let member = bytes
            .map(|bytes| decoded(|| checked(bytes)))
            .transpose()
            .map_err(|problem| self.damaged(table, &problem))?;
        members.insert(table, member.clone());
        Ok(member)
    }

    fn read_member(&self, name: &str) -> Result<Option<MemberBytes>, ArchiveError> {
        let mut archive = lock(&self.archive);
        if !archive.archive().files.iter().any(|file| file.name == name) {
            return Ok(None);
        }
        let bytes = archive.read_file(name).map_err(|e| ArchiveError::Member {
            path: self.path.clone(),
            member: name.to_owned(),
            reason: unpack_reason(&e),
        })?;
        Ok(Some(MemberBytes(Arc::new(bytes))))
    }

    /// Decodes one column; `None` when the member lacks it.
    fn decode(
        &self,
        table: Table,
        name: &str,
        member: &Member,
    ) -> Result<Option<Column>, ArchiveError> {
        decoded(|| {
            let mut reader = member.reader().set_rechunk(true);
            if !reader.schema()?.contains(name) {
                return Ok(None);
            }
            self.limits.check_column(member.bytes.as_ref(), &member.metadata, name)?;
            let frame = reader.with_columns(Some(vec![name.to_owned()])).finish()?;
            Ok(Some(frame.column(name)?.rechunk()))
        })
        .map_err(|problem| self.damaged(table, &problem))
    }

    fn damaged(&self, table: Table, reason: &dyn fmt::Display) -> ArchiveError {
        ArchiveError::Member {
            path: self.path.clone(),
            member: table.member(),
            reason: reason.to_string(),
        }
    }
}

impl Cells for Trace {
    type Error = ArchiveError;

    fn cells<C: Columns, T: Cell>(
        &self,
        key: Key<C, T>,
        first: usize,
        count: usize,
    ) -> Result<Vec<T>, ArchiveError> {
        let column = self.column(C::TABLE, key.name())?;
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        T::read(&column.slice(first, count)).map_err(|error| self.damaged(C::TABLE, &error))
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

/// Copies the members whose names `wanted` picks from one archive into another.
pub(super) fn copy_members(
    path: &Path,
    from: &mut ArchiveReader<BufReader<File>>,
    to: &mut ArchiveWriter,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), ArchiveError> {
    from.for_each_entries(|entry, content| {
        if wanted(&entry.name) {
            to.push(&entry.name, content)?;
        }
        Ok(true)
    })
    .map_err(|error| match is_full_disk(&error) {
        true => packing(to.path(), &error),
        false => packing(path, &error),
    })
}

/// Runs the Parquet decoder, which panics on some damaged tables. The checksum of a member catches
/// accidental damage before.
fn decoded<T>(decode: impl FnOnce() -> Result<T, TableProblem>) -> Result<T, TableProblem> {
    quietly(decode)?
}
