//! Functions in addition to those of polars. With them, views follow row numbers without joins. Polars would execute a
//! join even if nothing from it is used, and would reorder the rows.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use handlescope_model::{Table, guard::lock};
use polars::{
    prelude::{
        BaseColumnUdf, ChunkAgg, Column, DataType, Field, IdxCa, Int64Chunked, IntoColumn as _,
        NewChunkedArray, PolarsResult, Schema, TimeUnit, TimeZone, UserDefinedFunction,
        polars_bail, polars_ensure,
    },
    sql::FunctionRegistry,
};
use polars_plan::prelude::FunctionOptions;

use super::columns::{TableColumn, ValueSource};
use super::exact::Exact;
use super::hex::{HEX, NUMBER, hex_of, number_of};
use super::tables::QueriedTables;

/// The function that converts columns like `opened_ns` to calendar times.
const UTC_TIME: &str = "utc_time";

/// Our own functions, and no others.
pub struct Functions {
    /// Tables of traces; `None` if a dataset is queried.
    tables: Option<Arc<QueriedTables>>,
    /// Functions in use, kept so that two calls with equal arguments are equal, for example in `SELECT` and `GROUP BY`.
    called: Mutex<HashMap<String, UserDefinedFunction>>,
}

/// A function; most take one value.
#[derive(Debug, Clone, Copy)]
enum SqlFunction {
    Hex,
    /// The number of a hex text.
    Number,
    /// The value of a column in the row with this number.
    InRow(TableColumn),
    /// The calendar time of nanoseconds since session start. With several traces, it also takes a file number.
    UtcTime,
    Exact(Exact),
}

impl Functions {
    pub fn new(tables: Option<Arc<QueriedTables>>) -> Functions {
        Functions { tables, called: Mutex::default() }
    }

    fn named(&self, name: &str) -> Option<SqlFunction> {
        let function = SqlFunction::named(name)?;
        let is_of_traces = matches!(function, SqlFunction::InRow(_) | SqlFunction::UtcTime);
        (self.tables.is_some() || !is_of_traces).then_some(function)
    }
}

impl FunctionRegistry for Functions {
    fn register(&mut self, name: &str, _: UserDefinedFunction) -> PolarsResult<()> {
        polars_bail!(SQLInterface: "functions like {name} cannot be added");
    }

    fn get_udf(&self, name: &str) -> PolarsResult<Option<UserDefinedFunction>> {
        let Some(function) = self.named(name) else { return Ok(None) };
        let mut known = lock(&self.called);
        let called = known.entry(name.to_owned());
        let tables = self.tables.clone().unwrap_or_default();
        Ok(Some(called.or_insert_with(|| function.called(name, tables)).clone()))
    }

    fn contains(&self, name: &str) -> bool {
        self.named(name).is_some()
    }
}

impl SqlFunction {
    /// Finds `hex`, `number`, `utc_time`, or a table and column like `processes_name`.
    fn named(name: &str) -> Option<SqlFunction> {
        if name.eq_ignore_ascii_case(HEX) {
            return Some(SqlFunction::Hex);
        }
        if name.eq_ignore_ascii_case(NUMBER) {
            return Some(SqlFunction::Number);
        }
        if name.eq_ignore_ascii_case(UTC_TIME) {
            return Some(SqlFunction::UtcTime);
        }
        if let Some(exact) = Exact::named(name) {
            return Some(SqlFunction::Exact(exact));
        }
        Table::queried().find_map(|table| {
            let column = name.strip_prefix(table.name())?.strip_prefix('_')?;
            TableColumn::named(table, column).map(SqlFunction::InRow)
        })
    }

    /// Returns the function in the form polars calls it.
    fn called(self, name: &str, tables: Arc<QueriedTables>) -> UserDefinedFunction {
        let called = name.to_owned();
        let run = move |arguments: &mut [Column]| match (self, arguments) {
            (SqlFunction::Exact(exact), arguments) => exact.run(arguments),
            (SqlFunction::UtcTime, [times, files]) => utc_times(times, Some(files), &tables),
            (function, [numbers]) => function.run(numbers, &tables),
            _ => polars_bail!(SQLInterface: "{called} takes one value"),
        };
        let called = name.to_owned();
        let field = move |_: &Schema, arguments: &[Field]| self.field(&called, arguments);
        let function = UserDefinedFunction::new(name.into(), BaseColumnUdf::new(run, field));
        UserDefinedFunction { options: FunctionOptions::elementwise(), ..function }
    }

    fn run(self, numbers: &Column, tables: &QueriedTables) -> PolarsResult<Column> {
        match self {
            SqlFunction::Exact(exact) => exact.run(std::slice::from_ref(numbers)),
            SqlFunction::UtcTime => utc_times(numbers, None, tables),
            SqlFunction::Hex => hex_of(&number_of(HEX, numbers)?),
            SqlFunction::Number => number_of(NUMBER, numbers),
            SqlFunction::InRow(column) => {
                // Negative and too large numbers refer to no row.
                let rows = numbers.cast(&DataType::UInt32)?;
                let rows = within(rows.u32()?, tables.height(column.table)?);
                let name = numbers.name().clone();
                if !matches!(column.values, ValueSource::Hex) {
                    return Ok(tables.column(column)?.take(&rows)?.with_name(name));
                }
                // Only the values of these rows are converted to text.
                let stored = TableColumn { values: ValueSource::Archive, ..column };
                Ok(hex_of(&tables.column(stored)?.take(&rows)?)?.with_name(name))
            }
        }
    }

    fn field(self, called: &str, arguments: &[Field]) -> PolarsResult<Field> {
        let number = match (self, arguments) {
            (SqlFunction::Exact(exact), arguments) => return exact.field(arguments),
            (SqlFunction::UtcTime, [number, _]) | (_, [number]) => number,
            _ => polars_bail!(SQLInterface: "{called} takes one value"),
        };
        let (name, dtype) = (number.name(), number.dtype());
        let is_hex = matches!(self, SqlFunction::Hex | SqlFunction::Number) && dtype.is_string();
        polars_ensure!(
            is_hex || dtype.is_integer() || dtype.is_null() || dtype.is_unknown(),
            SQLInterface: "{called} takes a number, but {name} is {dtype}"
        );
        let dtype = match self {
            SqlFunction::Hex => DataType::String,
            SqlFunction::Number => DataType::UInt64,
            SqlFunction::UtcTime => utc(),
            SqlFunction::Exact(_) => dtype.clone(),
            SqlFunction::InRow(column) => column.spec.dtype.dtype(),
        };
        Ok(Field::new(name.clone(), dtype))
    }
}

/// Returns the type of calendar times, which a dataset uses as well.
fn utc() -> DataType {
    DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC))
}

/// Returns calendar times; null in traces without a clock.
fn utc_times(
    times: &Column,
    files: Option<&Column>,
    tables: &QueriedTables,
) -> PolarsResult<Column> {
    let starts = tables.starts_us()?;
    let mut distinct: Vec<Option<i64>> = starts.iter().map(|(_, start)| *start).collect();
    distinct.dedup();
    polars_ensure!(
        files.is_some() || distinct.len() < 2,
        SQLInterface: "the traces started at different times; write {UTC_TIME}(opened_ns, file_index)"
    );
    let files = match files {
        Some(files) => files.cast(&DataType::UInt32)?,
        None => Column::full_null("file".into(), times.len(), &DataType::UInt32),
    };
    let start = |file: Option<u32>| match file {
        Some(file) => starts.iter().find(|(known, _)| *known == file).and_then(|(_, start)| *start),
        None => distinct.first().copied().flatten(),
    };
    calendar_times(times, files.u32()?.iter().map(start))
}

/// Converts nanoseconds since session start to calendar times. `starts_us` has the start of each row in microseconds
/// since 1970; a row without a start has no calendar time.
///
/// # Errors
/// If the times are not numbers.
pub fn calendar_times(
    times: &Column,
    starts_us: impl Iterator<Item = Option<i64>>,
) -> PolarsResult<Column> {
    let name = times.name().clone();
    let times = times.cast(&DataType::Int64)?;
    // Rounds down, even before the session start.
    let times = times
        .i64()?
        .iter()
        .zip(starts_us)
        .map(|(time, start)| start?.checked_add(time?.div_euclid(1_000)));
    Int64Chunked::from_iter_options(name, times).into_column().cast(&utc())
}

/// Returns row numbers, without those a damaged file makes up.
fn within(rows: &IdxCa, height: usize) -> IdxCa {
    let is_within = |row: &u32| (*row as usize) < height;
    if rows.max().as_ref().is_none_or(is_within) {
        return rows.clone();
    }
    let known = rows.iter().map(|row| row.filter(is_within));
    IdxCa::from_iter_options(rows.name().clone(), known)
}
