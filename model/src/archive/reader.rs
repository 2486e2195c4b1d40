use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use polars::prelude::{ArrowSchema, Column, DataFrame};
use polars_io::parquet::metadata::FileMetadataRef;
use polars_parquet::read::infer_schema;
use sevenz_rust::ArchiveEntry;

use super::claims::{ArchiveLimits, TableProblem};
use super::container::{Container, ContainerLimits, unpack_reason};
use super::decode::ParquetTable;
use super::error::ArchiveError;
use super::manifest::{self, Content, ContentProblem, Manifest, StoredTable};
use super::members::{ArchiveMembers, MemberBytes};
use super::references;
use super::writer::{ArchiveWriter, is_full_disk, packing};
use crate::column::{Cell, ColumnSpec, RowSet, Sparse};
use crate::derived::{self, EventOrder, EventTable, EventTimes};
use crate::guard::{lock, quietly};
use crate::key::{Columns, Key};
use crate::table::Table;
use crate::tables::{Cells, ReferenceChanges, SCHEMA_VERSION, TableRows, TraceInfo, TraceInfos};

/// A selection is few rows if it is less than one row in this many.
const FEW: usize = 4;

/// A table of the archive, shared by the readers of its columns.
#[derive(Clone)]
struct TableMember {
    content: MemberBytes,
    metadata: FileMetadataRef,
    schema: Arc<ArrowSchema>,
}

/// A trace in an opened archive.
///
/// Columns are read and decoded when they are first requested, one by one, and cached, so a query pays only for the
/// columns it uses.
pub struct Trace {
    path: PathBuf,
    limits: ArchiveLimits,
    archive: ArchiveMembers,
    manifest: Manifest,
    members: Mutex<HashMap<Table, TableMember>>,
    columns: Mutex<HashMap<ColumnOf, Column>>,
    info: Mutex<Option<Arc<TraceInfo>>>,
    /// Columns of codes, one byte per row.
    codes: Mutex<HashMap<ColumnOf, Arc<[u8]>>>,
    /// The rows last read of each column that was read only in part.
    parts: Mutex<HashMap<ColumnOf, ReadRows>>,
    /// The events of objects, their times and their order, once requested.
    event_table: Mutex<Option<Arc<EventTable>>>,
    event_times: Mutex<Option<Arc<EventTimes>>>,
    event_order: Mutex<Option<Arc<EventOrder>>>,
}

/// A table and the name of a column.
type ColumnOf = (Table, &'static str);

/// Some rows of a column, and their values.
type ReadRows = (Arc<RowSet>, Column);

impl Trace {
    /// Opens an archive and checks that it is an extract this program can read.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a 7z archive or is refused, holds no trace table, or was made by another
    /// version; or if a table is missing or is not the one that was written with the others.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        Self::open_within(path, ArchiveLimits::default())
    }

    /// Opens an archive like [`Self::open`], within other limits.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_within(path: &Path, limits: ArchiveLimits) -> Result<Self, ArchiveError> {
        let archive = open_archive(path, &limits.container)?;
        let mut trace = Self {
            path: path.to_path_buf(),
            limits,
            archive,
            manifest: Manifest::default(),
            members: Mutex::default(),
            columns: Mutex::default(),
            info: Mutex::default(),
            codes: Mutex::default(),
            parts: Mutex::default(),
            event_table: Mutex::default(),
            event_times: Mutex::default(),
            event_order: Mutex::default(),
        };
        trace.check_layout()?;
        trace.manifest = trace.read_manifest()?;
        trace.check_tables()?;
        Ok(trace)
    }

    /// Returns the archive's path, as it was given to [`Self::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the limits that the archive was opened with.
    pub fn limits(&self) -> ArchiveLimits {
        self.limits
    }

    /// Returns the identity of the content: 16 hexadecimal digits that depend on the content of all tables and not on
    /// the file name.
    pub fn id(&self) -> String {
        self.manifest.id()
    }

    /// Returns the names of all members.
    pub fn members(&self) -> Vec<String> {
        self.archive.entries().iter().map(|entry| entry.name.clone()).collect()
    }

    /// Copies the members whose names `is_selected` selects into another archive.
    ///
    /// # Errors
    /// If a member is damaged or too large, or the other archive cannot be written.
    pub fn copy_members(
        &self,
        to: &mut ArchiveWriter,
        is_selected: impl Fn(&str) -> bool,
    ) -> Result<(), ArchiveError> {
        let copied = self.archive.for_each(|entry, content| {
            if entry.name == manifest::MEMBER || !is_selected(&entry.name) {
                return Ok(true);
            }
            let copy = to.push(&entry.name, content)?;
            let table = Table::ALL.into_iter().find(|table| table.member() == entry.name);
            let stored = table.and_then(|table| Some((table, self.manifest.get(table)?)));
            if let Some((table, stored)) = stored {
                // The archive may contain more or less than it claims.
                stored
                    .check(copy)
                    .map_err(|problem| sevenz_rust::Error::Other(problem.to_string().into()))?;
                to.note_table(table, stored);
            }
            Ok(true)
        });
        copied.map(drop).map_err(|error| {
            if is_full_disk(&error) {
                packing(to.path(), &error)
            } else {
                packing(&self.path, &error)
            }
        })
    }

    /// Reads all members and verifies their checksums, for an archive that may be damaged but can be made again.
    ///
    /// # Errors
    /// If a member is damaged.
    pub fn verify(&self) -> Result<(), ArchiveError> {
        self.members().iter().try_for_each(|member| self.read_member(member).map(drop))
    }

    /// Reads a whole table.
    ///
    /// # Errors
    /// If the member is damaged.
    pub fn frame(&self, table: Table) -> Result<DataFrame, ArchiveError> {
        let columns: Result<Vec<_>, _> =
            table.columns().iter().map(|spec| self.column(table, spec.name)).collect();
        let columns = columns?;
        let height = columns.first().map_or(0, Column::len);
        DataFrame::new(height, columns).map_err(|e| self.damaged(table, &e))
    }

    /// Returns a column of a table in one chunk and with the declared type.
    ///
    /// # Errors
    /// If the member is damaged or lacks the column, or the table has no such column.
    pub fn column(&self, table: Table, name: &str) -> Result<Column, ArchiveError> {
        let spec =
            table.column(name).ok_or_else(|| self.damaged(table, &format!("no column {name}")))?;
        let key = (table, spec.name);
        if let Some(column) = lock(&self.columns).get(&key) {
            return Ok(column.clone());
        }
        let column = if table.is_derived() {
            self.derive(table, spec)?
        } else {
            let column = self.decode(table, spec, None)?;
            self.check_references(table, spec, &column)?;
            column
        };
        lock(&self.columns).insert(key, column.clone());
        lock(&self.parts).remove(&key);
        Ok(column)
    }

    fn derive(&self, table: Table, spec: &ColumnSpec) -> Result<Column, ArchiveError> {
        let column = derived::event_column(self, spec)?;
        if !spec.nullable && column.null_count() > 0 {
            Err(self.damaged(table, &format!("column {} has nulls", spec.name)))
        } else {
            Ok(column)
        }
    }

    /// Returns the one row about the trace itself, or its defaults if there is none.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn info(&self) -> Result<Arc<TraceInfo>, ArchiveError> {
        made_once(&self.info, || Ok(TraceInfos::read(self)?.row(0).unwrap_or_default()))
    }

    /// Returns the events of objects by number.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn event_table(&self) -> Result<Arc<EventTable>, ArchiveError> {
        made_once(&self.event_table, || EventTable::load(self))
    }

    /// Returns the times of the events of objects.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn event_times(&self) -> Result<Arc<EventTimes>, ArchiveError> {
        made_once(&self.event_times, || EventTimes::load(self))
    }

    /// Returns the order of the events of all objects.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn event_order(&self) -> Result<Arc<EventOrder>, ArchiveError> {
        made_once(&self.event_order, || EventOrder::new(self))
    }

    /// Returns a column, for expressions over frames.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn column_of<C: Columns, T: Cell>(&self, key: Key<C, T>) -> Result<Column, ArchiveError> {
        self.column(C::TABLE, key.name())
    }

    /// Returns typed access to a column.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn values<C: Columns, T: Cell>(&self, key: Key<C, T>) -> Result<T::Values, ArchiveError> {
        let column = self.column_of(key)?;
        T::values(&column).map_err(|error| self.damaged(C::TABLE, &error))
    }

    /// Returns the codes of a column, one byte each; larger codes, which mean nothing, become [`u8::MAX`].
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn codes<C: Columns>(&self, key: Key<C, u32>) -> Result<Arc<[u8]>, ArchiveError> {
        let (table, name) = (C::TABLE, key.name());
        if let Some(codes) = lock(&self.codes).get(&(table, name)) {
            return Ok(Arc::clone(codes));
        }
        let codes = self.parquet(table, |parquet| parquet.codes(name))?;
        let codes =
            codes.ok_or_else(|| self.damaged(table, &format!("it has no column {name}")))?;
        let codes: Arc<[u8]> = codes.into();
        lock(&self.codes).insert((table, name), Arc::clone(&codes));
        Ok(codes)
    }

    /// Returns the number of nulls in a column according to its file; `None` if the file does not say.
    pub(crate) fn null_count<C: Columns, T: Cell>(
        &self,
        key: Key<C, T>,
    ) -> Result<Option<u64>, ArchiveError> {
        self.parquet(C::TABLE, |parquet| Ok(parquet.null_count(key.name())))
    }

    /// Returns typed access to a column of the reference changes, without reading it if there are none, as in most
    /// traces.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn changes<T: Cell<Values: Default>>(
        &self,
        key: Key<ReferenceChanges, T>,
    ) -> Result<T::Values, ArchiveError> {
        match self.height(Table::ReferenceChanges)? {
            0 => Ok(T::Values::default()),
            _ => self.values(key),
        }
    }

    /// Returns typed access to some rows of a column. Only these rows are read into memory, unless they are most of the
    /// column or all of it is there already.
    ///
    /// # Errors
    /// As [`Self::column`].
    pub fn values_at<C: Columns, T: Cell>(
        &self,
        key: Key<C, T>,
        rows: &Arc<RowSet>,
    ) -> Result<Sparse<T::Values>, ArchiveError> {
        let (table, spec) = (C::TABLE, key.spec());
        let is_few = rows.len() < rows.height() / FEW;
        let is_known = lock(&self.columns).contains_key(&(table, spec.name));
        let is_compared = references::counted(&spec).is_some();
        let is_whole = table.is_derived() || is_known || is_compared || !is_few;
        if is_whole || rows.height() != self.height(table)? {
            return Ok(Sparse::new(self.values(key)?, None));
        }
        let known = lock(&self.parts).get(&(table, spec.name)).cloned();
        let (rows, column) = match known.filter(|(known, _)| known.has_all(rows)) {
            Some(known) => known,
            None => {
                let part = (Arc::clone(rows), self.decode(table, &spec, Some(rows))?);
                lock(&self.parts).insert((table, spec.name), part.clone());
                part
            }
        };
        let values = T::values(&column).map_err(|error| self.damaged(table, &error))?;
        Ok(Sparse::new(values, Some(rows)))
    }

    /// Refuses a column that counts more rows of another table than there are.
    fn check_references(
        &self,
        table: Table,
        spec: &ColumnSpec,
        column: &Column,
    ) -> Result<(), ArchiveError> {
        let Some(counted) = references::counted(spec) else { return Ok(()) };
        let rows = self.height(counted)? as u64;
        references::check_counts(spec, column, counted, rows)
            .map_err(|misfit| self.damaged(table, &misfit))
    }

    /// Returns the number of rows of a table.
    ///
    /// # Errors
    /// If there are more than this platform can count.
    pub fn height(&self, table: Table) -> Result<usize, ArchiveError> {
        if table.is_derived() {
            return Ok(self.event_order()?.events.len());
        }
        let stored = self.stored(table)?;
        usize::try_from(stored.rows).map_err(|error| self.damaged(table, &error))
    }

    /// Refuses a layout that this program cannot read.
    fn check_layout(&self) -> Result<(), ArchiveError> {
        let version = self.values(TraceInfos::schema_version)?;
        let version = version.get(0).ok_or_else(|| self.damaged(Table::Trace, &"no row"))?;
        if version == SCHEMA_VERSION {
            return Ok(());
        }
        let remedy = if version > SCHEMA_VERSION {
            "use a newer handlescope"
        } else {
            "extract the trace again"
        };
        Err(ArchiveError::Layout {
            path: self.path.clone(),
            version,
            supported: SCHEMA_VERSION,
            remedy,
        })
    }

    fn read_manifest(&self) -> Result<Manifest, ArchiveError> {
        let member = manifest::MEMBER;
        let unlike = || self.damaged_member(member, &"it is not a list of tables");
        let entry = self.entry(member).ok_or_else(|| self.missing(member))?;
        if entry.size > manifest::MAX_BYTES {
            return Err(unlike());
        }
        let content = self.read_member(member)?;
        let text = self.bytes(&content, 0..content.len());
        let text = text.map_err(|problem| self.damaged_member(member, &problem))?;
        Manifest::parse(&text).ok_or_else(unlike)
    }

    /// Refuses an archive that lacks a table or has one that was not written with the others.
    fn check_tables(&self) -> Result<(), ArchiveError> {
        for table in Table::ALL {
            let member = table.member();
            let content = self.content(&member).ok_or_else(|| self.missing(&member))?;
            let stored = self.stored(table)?;
            content
                .and_then(|content| stored.check(content))
                .map_err(|problem| self.damaged(table, &problem))?;
        }
        Ok(())
    }

    /// Returns the manifest's entry for a table; the manifest lists all tables.
    fn stored(&self, table: Table) -> Result<StoredTable, ArchiveError> {
        self.manifest.get(table).ok_or_else(|| self.missing(&table.member()))
    }

    /// Returns the content of a member according to the table of contents, if the member exists.
    fn content(&self, member: &str) -> Option<Result<Content, ContentProblem>> {
        self.entry(member).map(Content::new)
    }

    fn entry(&self, member: &str) -> Option<&ArchiveEntry> {
        self.archive.entries().iter().find(|entry| entry.name == member)
    }

    fn member(&self, table: Table) -> Result<TableMember, ArchiveError> {
        let mut members = lock(&self.members);
        if let Some(member) = members.get(&table) {
            return Ok(member.clone());
        }
        let checked = |content: MemberBytes| {
            let metadata =
                self.limits.checked_metadata(content.len(), |range| self.bytes(&content, range))?;
            let metadata = Arc::new(metadata);
            match self.manifest.get(table) {
                Some(stored) if stored.rows != metadata.num_rows as u64 => {
                    Err(TableProblem::Rows { rows: metadata.num_rows, written: stored.rows })
                }
                _ => {
                    let schema = Arc::new(infer_schema(&metadata)?);
                    Ok(TableMember { content, metadata, schema })
                }
            }
        };
        let content = self.read_member(&table.member())?;
        let member =
            decoded(|| checked(content)).map_err(|problem| self.damaged(table, &problem))?;
        members.insert(table, member.clone());
        Ok(member)
    }

    /// Reads a member and checks that it is as long as the archive says.
    fn read_member(&self, name: &str) -> Result<MemberBytes, ArchiveError> {
        let entry = self.entry(name).ok_or_else(|| self.missing(name))?;
        // The checksum is verified at the end of a member, so a member without one must be refused here.
        if let Err(problem) = Content::new(entry) {
            return Err(self.damaged_member(name, &problem));
        }
        let content = self.archive.content(entry);
        content.map_err(|error| self.damaged_member(name, &unpack_reason(&error)))
    }

    /// Returns a range of a member's content.
    fn bytes(&self, content: &MemberBytes, range: Range<u64>) -> Result<Vec<u8>, TableProblem> {
        self.archive.bytes(content, range)?.ok_or(TableProblem::Outside)
    }

    /// Decodes a column, or only some of its rows.
    fn decode(
        &self,
        table: Table,
        spec: &ColumnSpec,
        rows: Option<&RowSet>,
    ) -> Result<Column, ArchiveError> {
        let name = spec.name;
        let bits = rows.map(RowSet::bits);
        let (column, whole) = self.parquet(table, |parquet| {
            Ok((parquet.column(name, bits.as_ref())?, parquet.metadata.num_rows))
        })?;
        let column =
            column.ok_or_else(|| self.damaged(table, &format!("it has no column {name}")))?;
        let height = rows.map_or(whole, RowSet::len);
        if column.len() != height {
            let rows = column.len();
            let reason = format!("column {name} has {rows} rows, the table {height}");
            return Err(self.damaged(table, &reason));
        }
        let dtype = spec.dtype.dtype();
        if column.dtype() != &dtype {
            let reason = format!("column {name} is {}, expected {dtype}", column.dtype());
            return Err(self.damaged(table, &reason));
        }
        if !spec.nullable && column.null_count() > 0 {
            return Err(self.damaged(table, &format!("column {name} has nulls")));
        }
        Ok(column)
    }

    /// Runs `read` on a table, guarded against panics of the decoder.
    fn parquet<T>(
        &self,
        table: Table,
        read: impl FnOnce(&ParquetTable<'_>) -> Result<T, TableProblem>,
    ) -> Result<T, ArchiveError> {
        let TableMember { content, metadata, schema } = self.member(table)?;
        let most = self.limits.most_of_column(content.len());
        let bytes = |range| self.bytes(&content, range);
        let parquet = ParquetTable { metadata: &metadata, schema: &schema, most, read: &bytes };
        decoded(|| read(&parquet)).map_err(|problem| self.damaged(table, &problem))
    }

    fn damaged(&self, table: Table, reason: &dyn fmt::Display) -> ArchiveError {
        self.damaged_member(&table.member(), reason)
    }

    fn damaged_member(&self, member: &str, reason: &dyn fmt::Display) -> ArchiveError {
        let (path, member) = (self.path.clone(), member.to_owned());
        ArchiveError::Member { path, member, reason: reason.to_string() }
    }

    fn missing(&self, member: &str) -> ArchiveError {
        ArchiveError::Missing { path: self.path.clone(), member: member.to_owned() }
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

/// Returns the cached value, made by `make` on the first request.
fn made_once<T>(
    known: &Mutex<Option<Arc<T>>>,
    make: impl FnOnce() -> Result<T, ArchiveError>,
) -> Result<Arc<T>, ArchiveError> {
    let mut known = lock(known);
    if let Some(known) = known.as_ref() {
        return Ok(Arc::clone(known));
    }
    let made = Arc::new(make()?);
    *known = Some(Arc::clone(&made));
    Ok(made)
}

/// Opens an extract and checks its table of contents before anything is unpacked.
fn open_archive(path: &Path, limits: &ContainerLimits) -> Result<ArchiveMembers, ArchiveError> {
    let Container { archive, source, packed } = Container::open(path, limits)?;
    let tables = Table::ALL.map(Table::member);
    let is_member_of_extract =
        |entry: &&ArchiveEntry| tables.contains(&entry.name) || entry.name == manifest::MEMBER;
    let trace = Table::Trace.member();
    if !archive.files.iter().any(|entry| entry.name == trace) {
        let path = path.to_path_buf();
        // Tables without the trace table are the remains of an extract.
        return Err(if archive.files.iter().any(|entry| is_member_of_extract(&entry)) {
            ArchiveError::Missing { path, member: trace }
        } else {
            ArchiveError::NotAnExtract { path }
        });
    }
    let content = archive.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
    for entry in archive.files.iter().filter(is_member_of_extract) {
        limits.check_size(path, &entry.name, entry.size)?;
    }
    limits.check_content(path, packed, content)?;
    limits.check_decoders(path, &archive.blocks)?;
    Ok(ArchiveMembers::new(archive, source))
}

/// Runs the Parquet decoder, which panics on some damaged tables. The member's checksum catches accidental damage
/// earlier.
fn decoded<T>(decode: impl FnOnce() -> Result<T, TableProblem>) -> Result<T, TableProblem> {
    quietly(decode)?
}
