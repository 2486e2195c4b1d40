//! Tables of a dataset as frames.
//!
//! Columns that older traces lack are null, and those of newer versions are not read. Polars reads the partitions from
//! names of folders: a comparison with `date` or `trace` skips files, and other predicates skip row groups by their
//! statistics.

use std::path::PathBuf;
use std::sync::Arc;

use polars::prelude::{
    CastColumnsPolicy, DataFrame, DataType, ExtraColumnsPolicy, Field, Float64Chunked, HiveOptions,
    Int64Chunked, IntoLazy, LazyFrame, MissingColumnsPolicy, ParquetOptions, PlRefPath,
    PolarsResult, Schema, SchemaRef, StringChunked, UnifiedScanArgs, col,
};
use polars_plan::dsl::{DslBuilder, ScanSources};

use super::error::FleetError;
use crate::cancel::Cancel;
use crate::dataset::{Dataset, DatasetError, DatasetTable, Partition, TABLES};

/// Bytes of the files that are in memory at once, as they are on disk.
const BATCH_BYTES: u64 = 32 << 20;

/// Files that are open at once.
const BATCH_FILES: usize = 256;

/// Columns that the names of folders have.
pub(crate) const DATE: &str = "date";
pub(crate) const TRACE: &str = "trace";

/// A table by its name.
pub(crate) fn table(name: &str) -> Option<&'static DatasetTable> {
    TABLES.iter().find(|table| table.name.eq_ignore_ascii_case(name))
}

/// The files of a table; none for a trace that was added before there was such a table.
fn files<'p>(
    dataset: &Dataset,
    table: &str,
    traces: impl Iterator<Item = &'p Partition>,
) -> Result<Vec<(PathBuf, u64)>, DatasetError> {
    let files = traces.filter_map(|partition| {
        let length = dataset.part_bytes(table, partition).transpose()?;
        Some(length.map(|length| (dataset.part(table, partition), length)))
    });
    files.collect()
}

/// A frame over the rows that some traces have in a table.
///
/// # Errors
/// When the storage cannot be asked.
pub(crate) fn scan<'p>(
    dataset: &Dataset,
    table: &DatasetTable,
    traces: impl Iterator<Item = &'p Partition>,
) -> Result<LazyFrame, FleetError> {
    let files = files(dataset, table.name, traces)?;
    Ok(scan_files(files.into_iter().map(|(path, _)| path), (table.schema)())?)
}

fn scan_files(files: impl Iterator<Item = PathBuf>, schema: Schema) -> PolarsResult<LazyFrame> {
    let paths = files.map(PlRefPath::try_from_pathbuf).collect::<PolarsResult<Vec<_>>>()?;
    let partitions = Schema::from_iter([
        Field::new(DATE.into(), DataType::Date),
        Field::new(TRACE.into(), DataType::String),
    ]);
    if paths.is_empty() {
        let columns = [schema, partitions].into_iter().flatten();
        return Ok(DataFrame::empty_with_schema(&columns.collect()).lazy());
    }
    let options = ParquetOptions {
        schema: Some(SchemaRef::new(schema)),
        use_statistics: true,
        ..ParquetOptions::default()
    };
    let args = UnifiedScanArgs {
        hive_options: HiveOptions {
            enabled: Some(true),
            hive_start_idx: 0,
            schema: Some(Arc::new(partitions)),
            try_parse_dates: true,
        },
        glob: false,
        cast_columns_policy: CastColumnsPolicy {
            integer_upcast: true,
            datetime_convert_timezone: true,
            null_upcast: true,
            ..CastColumnsPolicy::ERROR_ON_MISMATCH
        },
        missing_columns_policy: MissingColumnsPolicy::Insert,
        extra_columns_policy: ExtraColumnsPolicy::Ignore,
        ..UnifiedScanArgs::default()
    };
    let sources = ScanSources::Paths(paths.into());
    Ok(DslBuilder::scan_parquet(sources, options, args)?.build().into())
}

/// Reads columns of a table, some files at a time.
///
/// # Errors
/// When a file cannot be read, `visit` fails, or `cancel` asks to stop.
pub(super) fn each<'p>(
    dataset: &Dataset,
    table_name: &'static str,
    columns: &[&'static str],
    traces: impl Iterator<Item = &'p Partition>,
    cancel: &Cancel,
    mut visit: impl FnMut(&mut dyn Iterator<Item = Row<'_>>) -> Result<(), FleetError>,
) -> Result<(), FleetError> {
    let Some(table) = table(table_name) else { return Ok(()) };
    let files = files(dataset, table.name, traces)?;
    let wanted: Vec<_> = columns.iter().map(|name| col(*name)).collect();
    let mut rest = files.as_slice();
    while !rest.is_empty() {
        cancel.check()?;
        let mut bytes = 0;
        let fitting = rest.iter().take(BATCH_FILES).take_while(|(_, length)| {
            bytes += length;
            bytes <= BATCH_BYTES
        });
        let count = fitting.count().max(1);
        let (batch, behind) = rest.split_at(count.min(rest.len()));
        let paths = batch.iter().map(|(path, _)| path.clone());
        let rows = scan_files(paths, (table.schema)())?.select(wanted.clone()).collect()?;
        let cells = Cells::of(&rows, columns)?;
        visit(&mut (0..rows.height()).map(|index| Row { cells: &cells, index }))?;
        rest = behind;
    }
    Ok(())
}

/// Columns of rows, by their names.
struct Cells(Vec<(&'static str, Values)>);

enum Values {
    Texts(StringChunked),
    Whole(Int64Chunked),
    Doubles(Float64Chunked),
}

impl Cells {
    fn of(rows: &DataFrame, columns: &[&'static str]) -> PolarsResult<Self> {
        let values = columns.iter().map(|name| {
            let column = rows.column(name)?.rechunk();
            let values = match column.dtype() {
                DataType::String => Values::Texts(column.str()?.clone()),
                DataType::Float64 => Values::Doubles(column.f64()?.clone()),
                _ => Values::Whole(column.cast(&DataType::Int64)?.i64()?.clone()),
            };
            Ok((*name, values))
        });
        values.collect::<PolarsResult<_>>().map(Self)
    }
}

/// A row of a table.
pub(super) struct Row<'c> {
    cells: &'c Cells,
    index: usize,
}

impl<'c> Row<'c> {
    fn values(&self, name: &str) -> Option<&'c Values> {
        self.cells.0.iter().find(|(known, _)| *known == name).map(|(_, values)| values)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'c str> {
        match self.values(name) {
            Some(Values::Texts(values)) => values.get(self.index),
            _ => None,
        }
    }

    pub(super) fn whole(&self, name: &str) -> Option<i64> {
        match self.values(name) {
            Some(Values::Whole(values)) => values.get(self.index),
            _ => None,
        }
    }

    pub(super) fn double(&self, name: &str) -> Option<f64> {
        match self.values(name) {
            Some(Values::Doubles(values)) => values.get(self.index),
            _ => None,
        }
    }
}
