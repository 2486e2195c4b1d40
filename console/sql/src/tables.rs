//! Presents the tables of the chosen traces as if they were from one. Rows are numbered on from file to file, and
//! columns that point to rows are shifted accordingly.

use std::sync::{Arc, mpsc};

use handlescope_model::tables::{Acquisitions, End, Objects, Origin};
use handlescope_model::{ColumnType, Table, Trace};
use polars::prelude::{
    BooleanChunked, Column, DataFrame, IntoColumn, NewChunkedArray, PlSmallStr, PolarsError,
    PolarsResult, Scalar, StringChunked, UInt32Chunked, polars_bail,
};

use super::columns::{TableColumn, ValueSource, failed};
use super::hex::hex_of;
use handlescope_query::{TypeNames, start_us};
use handlescope_session::cancel::Cancel;

/// A trace being queried.
pub struct QueriedTrace {
    /// Number of the trace in the session.
    pub file: u32,
    pub trace: Arc<Trace>,
}

/// Requests `depth`, `function` and `text` of the stacks of all traces from the thread that waits for the query's
/// answer, because that thread has the symbols.
pub type StackRequests = mpsc::Sender<mpsc::Sender<DataFrame>>;

/// The tables of all traces.
#[derive(Default)]
pub struct QueriedTables {
    pub traces: Vec<QueriedTrace>,
    pub stacks: Option<StackRequests>,
    pub stop: Cancel,
}

impl QueriedTables {
    /// Fails if the query was cancelled.
    pub fn check_stop(&self) -> PolarsResult<()> {
        self.stop.check().map_err(failed)
    }

    /// Returns the number of rows of a table.
    pub fn height(&self, table: Table) -> PolarsResult<usize> {
        self.traces.iter().try_fold(0, |sum, trace| Ok(sum + height(trace, table)?))
    }

    /// Returns the values of a column.
    pub fn column(&self, column: TableColumn) -> PolarsResult<Column> {
        self.check_stop()?;
        if matches!(column.values, ValueSource::OfFrames) {
            return self.stack_texts()?.column(column.spec.name).cloned();
        }
        let mut joined: Option<Column> = None;
        for (index, trace) in self.traces.iter().enumerate() {
            let values = self.trace_column(index, trace, column)?;
            match &mut joined {
                None => joined = Some(values),
                Some(joined) => {
                    joined.append_owned(values)?;
                }
            }
        }
        match joined {
            Some(column) => Ok(column.rechunk()),
            None => polars_bail!(ColumnNotFound: "{}", column.spec.name),
        }
    }

    /// Returns session starts by file number, in microseconds since 1970; `None` if a trace has no clock.
    pub fn starts_us(&self) -> PolarsResult<Vec<(u32, Option<i64>)>> {
        let start = |trace: &QueriedTrace| {
            let info = trace.trace.info().map_err(failed)?;
            Ok((trace.file, start_us(&info)))
        };
        self.traces.iter().map(start).collect()
    }

    fn stack_texts(&self) -> PolarsResult<DataFrame> {
        let (answer, texts) = mpsc::channel();
        // A cancelled query gets no answer.
        let request = self.stacks.as_ref().map(|stacks| stacks.send(answer));
        match request.and_then(|_| texts.recv().ok()) {
            Some(texts) => Ok(texts),
            None => polars_bail!(ComputeError: "the query was stopped"),
        }
    }

    fn trace_column(
        &self,
        index: usize,
        trace: &QueriedTrace,
        column: TableColumn,
    ) -> PolarsResult<Column> {
        let TableColumn { table, spec, values } = column;
        let name = PlSmallStr::from_static(spec.name);
        Ok(match values {
            ValueSource::FileIndex => {
                Column::new_scalar(name, Scalar::from(trace.file), height(trace, table)?)
            }
            ValueSource::Row => return self.rows(index, trace, table),
            ValueSource::ObjectId => {
                let rows = (1..).take(height(trace, table)?);
                UInt32Chunked::from_iter_values(name, rows).into_column()
            }
            ValueSource::TypeName => {
                let names = TypeNames::load(&trace.trace).map_err(failed)?;
                let types = trace.trace.values(Objects::type_id).map_err(failed)?;
                let texts = types.range(0..types.len()).map(|id| names.get(id));
                StringChunked::from_iter_values(name, texts).into_column()
            }
            ValueSource::Words(codes, word) => {
                let codes = trace.trace.column(table, codes).map_err(failed)?;
                let texts = codes.u32()?.iter().map(|code| word(code?));
                StringChunked::from_iter_options(name, texts).into_column()
            }
            ValueSource::OfLife(of) => {
                let origins = trace.trace.codes(Acquisitions::origin).map_err(failed)?;
                let ends = trace.trace.codes(Acquisitions::end).map_err(failed)?;
                let flags = origins.iter().zip(ends.iter()).map(|(origin, end)| {
                    let life =
                        Origin::from_code((*origin).into()).zip(End::from_code((*end).into()));
                    life.is_some_and(|(origin, end)| of(origin, end))
                });
                BooleanChunked::from_iter_values(name, flags).into_column()
            }
            ValueSource::Archive => {
                let column = trace.trace.column(table, spec.name).map_err(failed)?;
                match spec.rows_of() {
                    Some(target) => self.shifted(column, spec.dtype, index, target)?,
                    None => column,
                }
            }
            ValueSource::Time => {
                let column = trace.trace.column(table, spec.name).map_err(failed)?;
                if trace.trace.info().map_err(failed)?.has_clock() {
                    column
                } else {
                    Column::full_null(name, column.len(), column.dtype())
                }
            }
            ValueSource::Hex => hex_of(&trace.trace.column(table, spec.name).map_err(failed)?)?,
            ValueSource::OfFrames => polars_bail!(ColumnNotFound: "{name}"),
        })
    }

    fn rows(&self, index: usize, trace: &QueriedTrace, table: Table) -> PolarsResult<Column> {
        let first = self.first_row(index, table)?;
        let count = u32::try_from(height(trace, table)?).map_err(too_many)?;
        let end = first.checked_add(count).ok_or_else(|| too_many(()))?;
        Ok(UInt32Chunked::from_iter_values("row".into(), first..end).into_column())
    }

    /// Converts row numbers of one trace to row numbers of all traces.
    fn shifted(
        &self,
        column: Column,
        dtype: ColumnType,
        index: usize,
        target: Table,
    ) -> PolarsResult<Column> {
        let first = self.first_row(index, target)?;
        if first == 0 {
            return Ok(column);
        }
        if dtype == ColumnType::U32List {
            let lists = column.list()?.apply_to_inner(&|rows| Ok(&rows + first))?;
            return Ok(lists.into_column());
        }
        Ok((column.u32()?.clone() + first).into_column())
    }

    /// Returns the number of a trace's first row among those of all traces.
    fn first_row(&self, index: usize, table: Table) -> PolarsResult<u32> {
        let rows = self
            .traces
            .iter()
            .take(index)
            .map(|trace| height(trace, table))
            .sum::<PolarsResult<usize>>()?;
        u32::try_from(rows).map_err(too_many)
    }
}

fn height(trace: &QueriedTrace, table: Table) -> PolarsResult<usize> {
    trace.trace.height(table).map_err(failed)
}

/// The error if there are more rows than a row number can count.
pub const TOO_MANY_ROWS: &str = "too many rows in all files together";

fn too_many<E>(_: E) -> PolarsError {
    PolarsError::ComputeError(TOO_MANY_ROWS.into())
}
