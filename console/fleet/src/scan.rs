//! The tables of a dataset as frames.
//!
//! Columns that older traces lack are null, and columns of newer versions are not read. Polars gets the partitions from
//! folder names: a comparison with `date` or `trace` skips files, and other predicates skip row groups by their
//! statistics.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use handlescope_model::guard::quietly;
use polars::prelude::{
    AnyValue, CastColumnsPolicy, DataFrame, DataType, Expr, ExtraColumnsPolicy, Field, HiveOptions,
    IdxSize, IntoLazy, LazyFrame, MissingColumnsPolicy, NamedFrom, ParquetOptions, PlRefPath,
    PolarsError, PolarsResult, Schema, SchemaRef, Series, UnifiedScanArgs, UnionArgs, col, concat,
    lit,
};
use polars_plan::dsl::{DslBuilder, ScanSources};

use crate::FleetError;
use crate::dataset::{Dataset, DatasetTable, Partition, RowsFile, TABLES, TracesOfFile};
use handlescope_session::cancel::Cancel;

/// Maximum size on disk of the files that are read at once. A larger file is read in parts, because its columns may
/// take many times as many bytes in memory.
const BATCH_BYTES: u64 = 4 << 20;

/// Number of rows in a part of a larger file.
const BATCH_ROWS: IdxSize = 1 << 17;

/// Maximum number of files open at once.
const BATCH_FILES: usize = 256;

/// Columns that come from folder names.
pub const DATE: &str = "date";
pub const TRACE: &str = "trace";

/// The column with the path of a row's file, and the pattern for the partition at the end of the path.
const FILE: &str = "part_file";
const PARTITION: &str = r"date=([^/\\]+)[/\\]trace=([^/\\]+)[/\\][^/\\]+$";
const MERGED_DAY: &str = r"date=([^/\\]+)[/\\][^/\\]+$";

/// Finds a table by name.
pub fn table(name: &str) -> Option<&'static DatasetTable> {
    TABLES.iter().find(|table| table.name.eq_ignore_ascii_case(name))
}

/// A frame over the rows that some traces have in a table. The content of files of up to `compared` bytes is compared with
/// what was written before.
///
/// # Errors
/// If a file is missing or damaged, or `cancel` asks to stop.
pub fn scan<'p>(
    dataset: &Dataset,
    table: &DatasetTable,
    traces: impl Iterator<Item = &'p Partition>,
    compared: u64,
    cancel: &Cancel,
) -> Result<LazyFrame, FleetError> {
    let files = dataset.files_to_read(table.name, traces, compared, cancel)?;
    let mut frames = Vec::new();
    let is_alike = |one: &RowsFile, other: &RowsFile| {
        one.traces == other.traces && !matches!(one.traces, TracesOfFile::Some(_))
    };
    for alike in files.chunk_by(is_alike) {
        let frame = scan_files(dataset, alike, (table.schema)())?;
        frames.push(match alike {
            [RowsFile { traces: TracesOfFile::Some(traces), .. }] => frame.filter(is_of(traces)),
            _ => frame,
        });
    }
    match frames.len() {
        0 => Ok(scan_files(dataset, &[], (table.schema)())?),
        1 => Ok(frames.swap_remove(0)),
        _ => Ok(concat(frames, UnionArgs { rechunk: false, ..UnionArgs::default() })?),
    }
}

/// Whether a row is of one of some traces.
pub fn is_of(traces: &BTreeSet<String>) -> Expr {
    let ids = Series::new("".into(), traces.iter().map(String::as_str).collect::<Vec<_>>());
    col(TRACE).is_in(lit(ids).implode(false), false)
}

/// A frame over files of a dataset, whose partitions are those of the path within it. Files are of one trace each, or all
/// merged.
pub fn scan_files(
    dataset: &Dataset,
    files: &[RowsFile],
    schema: Schema,
) -> PolarsResult<LazyFrame> {
    let is_merged = files.iter().any(|file| file.traces != TracesOfFile::OfFolder);
    let root = dataset.resolved_root();
    let within = |file: &RowsFile| match file.path.strip_prefix(dataset.root()) {
        Ok(name) => root.join(name),
        Err(_) => file.path.clone(),
    };
    let paths = files.iter().map(within).map(source).collect::<PolarsResult<Vec<_>>>()?;
    // Polars takes names of folders above the dataset for partitions, too.
    let is_hive = !root.to_string_lossy().contains('=');
    let date = Field::new(DATE.into(), DataType::Date);
    let trace = Field::new(TRACE.into(), DataType::String);
    if paths.is_empty() {
        let partitions = Schema::from_iter([date, trace]);
        let columns = [schema, partitions].into_iter().flatten();
        return Ok(DataFrame::empty_with_schema(&columns.collect()).lazy());
    }
    let names: Vec<_> = schema.iter_names().map(|name| col(name.clone())).collect();
    let (schema, partitions) = if is_merged {
        let columns = [schema, Schema::from_iter([trace])].into_iter().flatten();
        (columns.collect(), Schema::from_iter([date]))
    } else {
        (schema, Schema::from_iter([date, trace]))
    };
    let options = ParquetOptions {
        schema: Some(SchemaRef::new(schema)),
        use_statistics: true,
        ..ParquetOptions::default()
    };
    let args = UnifiedScanArgs {
        hive_options: HiveOptions {
            enabled: Some(is_hive),
            schema: is_hive.then(|| Arc::new(partitions)),
            try_parse_dates: true,
            ..HiveOptions::default()
        },
        include_file_paths: (!is_hive).then(|| FILE.into()),
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
    let frame: LazyFrame = DslBuilder::scan_parquet(sources, options, args)?.build().into();
    if is_hive {
        let partitions = vec![col(DATE), col(TRACE)];
        return Ok(if is_merged { frame.select([names, partitions].concat()) } else { frame });
    }
    let part = |pattern: &str, group| col(FILE).str().extract(lit(pattern), group);
    let date = part(if is_merged { MERGED_DAY } else { PARTITION }, 1);
    let trace = if is_merged { col(TRACE) } else { part(PARTITION, 2).alias(TRACE) };
    let partitions = vec![date.cast(DataType::Date).alias(DATE), trace];
    Ok(frame.select([names, partitions].concat()))
}

/// Converts a path to what polars should read. Polars maps files given as paths, but reads only what it needs of files
/// given as URLs. Only URLs therefore allow files larger than the process's address space.
fn source(path: PathBuf) -> PolarsResult<PlRefPath> {
    let path = PlRefPath::try_from_pathbuf(path)?;
    if cfg!(not(unix)) || path.has_scheme() {
        return Ok(path);
    }
    let absolute = path.to_absolute_path()?.into_owned();
    // Polars would decode `%` in the URL back to a path and map the file; control characters are not allowed in URLs.
    let is_no_url =
        absolute.as_str().contains(|letter: char| letter == '%' || letter.is_ascii_control());
    Ok(if is_no_url { absolute } else { PlRefPath::new(format!("file://{absolute}")) })
}

/// Reads columns of a table, several files at a time, and calls `visit` at least once.
///
/// # Errors
/// If a file cannot be read, `visit` fails, or `cancel` asks to stop.
pub fn each<'p>(
    dataset: &Dataset,
    table_name: &'static str,
    columns: &[&str],
    traces: impl Iterator<Item = &'p Partition>,
    cancel: &Cancel,
    mut visit: impl FnMut(DataFrame) -> Result<(), FleetError>,
) -> Result<(), FleetError> {
    let Some(table) = table(table_name) else { return Ok(()) };
    let traces: Vec<&Partition> = traces.collect();
    let files = dataset.files_to_read(table.name, traces.iter().copied(), u64::MAX, cancel)?;
    let damaged = |error: PolarsError| -> FleetError {
        let damage = dataset.first_damage(table.name, traces.iter().copied(), cancel);
        damage.map_or(error.into(), FleetError::from)
    };
    let wanted: Vec<_> = columns.iter().map(|name| col(*name)).collect();
    let read: BTreeSet<&str> = columns.iter().copied().chain([TRACE]).collect();
    let read: Vec<_> = read.into_iter().map(col).collect();
    let mut rest = files.as_slice();
    loop {
        let mut bytes = 0;
        let first = rest.first().map(|file| &file.traces);
        let fitting = rest.iter().take(BATCH_FILES).take_while(|file| {
            bytes += file.bytes;
            bytes <= BATCH_BYTES && Some(&file.traces) == first
        });
        let (batch, behind) = rest.split_at(fitting.count().max(1).min(rest.len()));
        let some = match first {
            Some(TracesOfFile::Some(traces)) => Some(traces),
            _ => None,
        };
        let columns = if some.is_some() { &read } else { &wanted };
        let frame = scan_files(dataset, batch, (table.schema)())?.select(columns.clone());
        let is_large = batch.iter().any(|file| file.bytes > BATCH_BYTES);
        for first in (0..).step_by(BATCH_ROWS as usize) {
            cancel.check()?;
            let part =
                if is_large { frame.clone().slice(first, BATCH_ROWS) } else { frame.clone() };
            let rows = collect(part).map_err(damaged)?;
            let height = rows.height();
            // Behind the part: a filter in front of it would read all parts before it again.
            let rows = match some {
                Some(traces) => collect(rows.lazy().filter(is_of(traces)).select(wanted.clone()))?,
                None => rows,
            };
            visit(rows)?;
            if !is_large || height < BATCH_ROWS as usize {
                break;
            }
        }
        rest = behind;
        if rest.is_empty() {
            return Ok(());
        }
    }
}

/// Collects the rows of a frame. Turns panics into errors, because some decoders of polars panic on damaged files.
pub fn collect(frame: LazyFrame) -> PolarsResult<DataFrame> {
    let rows = quietly(|| frame.collect());
    rows.unwrap_or_else(|panicked| Err(PolarsError::ComputeError(panicked.message.into())))
}

/// A row of an answer; a missing column is null.
#[derive(Clone, Copy)]
pub struct AnswerRow<'f> {
    rows: &'f DataFrame,
    index: usize,
}

/// Returns the rows of an answer.
pub fn records(rows: &DataFrame) -> impl Iterator<Item = AnswerRow<'_>> {
    (0..rows.height()).map(|index| AnswerRow { rows, index })
}

impl<'f> AnswerRow<'f> {
    /// Returns the first row of an answer; without rows, all values are null.
    pub fn first(rows: &'f DataFrame) -> Self {
        Self { rows, index: 0 }
    }

    fn value(self, name: &str) -> Option<AnyValue<'f>> {
        self.rows.column(name).ok()?.get(self.index).ok()
    }

    pub fn text(self, name: &str) -> Option<String> {
        Some(self.value(name)?.get_str()?.to_owned())
    }

    pub fn number(self, name: &str) -> Option<f64> {
        self.value(name)?.extract()
    }

    /// Returns a number without its fraction; 0 for null.
    pub fn count(self, name: &str) -> i64 {
        self.number(name).unwrap_or_default() as i64
    }

    /// Returns the texts in a list.
    pub fn texts(self, name: &str) -> Vec<String> {
        self.list(name, |text| Some(text.get_str()?.to_owned()))
    }

    /// Returns the numbers in a list.
    pub fn numbers(self, name: &str) -> Vec<f64> {
        self.list(name, |number| number.extract())
    }

    fn list<T>(self, name: &str, read: impl Fn(&AnyValue<'_>) -> Option<T>) -> Vec<T> {
        match self.value(name) {
            Some(AnyValue::List(values)) => {
                values.iter().filter_map(|value| read(&value)).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use handlescope_model::ParquetFile;
    use polars::prelude::Column;
    use tempfile::TempDir;

    use super::*;

    /// Creates a dataset of traces with these columns in `suspects`; each trace has its own partition.
    fn dataset(traces: &[Vec<Column>]) -> (TempDir, Dataset, Vec<Partition>) {
        // Uses characters that have a meaning in URLs.
        dataset_in("a #?ü", traces)
    }

    fn dataset_in(name: &str, traces: &[Vec<Column>]) -> (TempDir, Dataset, Vec<Partition>) {
        let folder = tempfile::tempdir().expect("a folder");
        let dataset = Dataset::create(&folder.path().join(name)).expect("a dataset");
        let partitions = traces.iter().enumerate().map(|(number, columns)| {
            let date = format!("2026-11-2{number}").parse().expect("a day");
            let partition = Partition { date, trace: format!("{number:032}") };
            let path = dataset.part("suspects", &partition);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            let rows = DataFrame::new_infer_height(columns.clone()).expect("rows");
            let file = std::fs::File::create(path).expect("a file");
            let mut file = ParquetFile::new(rows.schema(), |_| true, file).expect("a file");
            file.write(&rows).expect("rows");
            file.finish(Vec::new()).expect("a file");
            dataset.write_manifest_of("suspects", &partition);
            partition
        });
        let partitions = partitions.collect();
        (folder, dataset, partitions)
    }

    fn column<const N: usize>(name: &str, texts: [&str; N]) -> Column {
        Column::new(name.into(), texts)
    }

    #[test]
    fn columns_of_other_versions_are_null_or_not_read() {
        let older = vec![column("process", ["a.exe"])];
        let newer = vec![
            column("later", ["x", "y"]),
            column("process", ["b.exe", "c.exe"]),
            column("machine", ["WS-1", "WS-2"]),
        ];
        let (_folder, dataset, partitions) = dataset(&[older, newer]);
        let mut rows = Vec::new();
        let columns = ["process", "machine", "score", DATE, TRACE];
        let chosen = partitions.iter();
        each(&dataset, "suspects", &columns, chosen, &Cancel::default(), |read| {
            rows.extend(records(&read).map(|row| {
                let text = |name| row.text(name).unwrap_or_else(|| "null".to_owned());
                (text("process"), text("machine"), row.number("score"), text(TRACE))
            }));
            Ok(())
        })
        .expect("rows");
        let traces = [0, 1].map(|number| format!("{number:032}"));
        let row = |process: &str, machine: &str, trace: usize| {
            (process.to_owned(), machine.to_owned(), None, traces[trace].clone())
        };
        let expected = [row("a.exe", "null", 0), row("b.exe", "WS-1", 1), row("c.exe", "WS-2", 1)];
        assert_eq!(rows, expected);
    }

    #[test]
    fn partitions_are_columns_that_skip_files() {
        let rows = || vec![column("process", ["a.exe"])];
        let (_folder, dataset, partitions) = dataset(&[rows(), rows()]);
        // A skipped file is not read.
        std::fs::write(dataset.part("suspects", &partitions[0]), "damaged").expect("a file");
        dataset.write_manifest_of("suspects", &partitions[0]);
        let table = table("suspects").expect("a table");
        let read = |trace: &str| {
            let frame = scan(&dataset, table, partitions.iter(), u64::MAX, &Cancel::default());
            let frame = frame.expect("a frame").filter(col(TRACE).eq(lit(trace)));
            frame.select([col("process")]).collect()
        };
        assert_eq!(read(&partitions[1].trace).expect("a row").height(), 1);
        assert!(read(&partitions[0].trace).is_err());
    }

    #[test]
    fn partitions_are_those_within_the_dataset() {
        for name in
            ["date=2020-01-01", "trace=x", "a=b/date=1/trace=2", "tab\t%20", "a/../b", "a\\b"]
        {
            let rows = vec![column("process", ["a.exe"])];
            let (_folder, dataset, partitions) = dataset_in(name, &[rows]);
            let table = table("suspects").expect("a table");
            let frame = scan(&dataset, table, partitions.iter(), u64::MAX, &Cancel::default());
            let frame =
                frame.expect("a frame").select([col(DATE).cast(DataType::String), col(TRACE)]);
            let rows = frame.collect().unwrap_or_else(|error| panic!("{name}: {error}"));
            let text = |column: &str| {
                rows.column(column).unwrap().str().unwrap().get(0).map(str::to_owned)
            };
            let Partition { date, trace } = &partitions[0];
            assert_eq!(
                (text(DATE), text(TRACE)),
                (Some(date.to_string()), Some(trace.clone())),
                "{name}"
            );
        }
    }

    #[test]
    fn files_are_read_by_url_unless_their_path_would_mean_another_file_in_one() {
        let url = |path: &str| source(PathBuf::from(path)).expect("a source").as_str().to_owned();
        if cfg!(unix) {
            assert_eq!(url("/a #?ü/x"), "file:///a #?ü/x");
            assert!(url("fleet").starts_with("file:///"), "{}", url("fleet"));
        }
        assert_eq!(url("/a%20/x"), "/a%20/x");
        assert_eq!(url("/a\t/x"), "/a\t/x");
        assert_eq!(url("s3://bucket/x"), "s3://bucket/x");
    }

    #[test]
    fn a_table_without_files_is_empty() {
        let (_folder, dataset, _) = dataset(&[]);
        let table = table("Suspects").expect("a table");
        let frame = scan(&dataset, table, [].iter(), u64::MAX, &Cancel::default());
        let rows = frame.expect("a frame").select([col(DATE), col("score")]).collect();
        assert_eq!(rows.expect("no rows").height(), 0);
    }
}
