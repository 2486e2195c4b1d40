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
    AnyValue, CastColumnsPolicy, DataFrame, DataType, ExtraColumnsPolicy, HiveOptions, IdxSize,
    IntoLazy, LazyFrame, MissingColumnsPolicy, NamedFrom, ParquetOptions, PlRefPath, PolarsError,
    PolarsResult, SchemaRef, Series, UnifiedScanArgs, UnionArgs, col, concat, lit,
};
use polars_plan::dsl::{DslBuilder, ScanSources};

use crate::FleetError;
use crate::dataset::{
    DATE, Dataset, DatasetTable, PARTITIONS, Partition, RowsFile, TABLES, TRACE, TracesOfFile,
    schema,
};
use handlescope_session::cancel::Cancel;

/// Maximum size on disk of the files that are read at once. A larger file is read in parts, because its columns may
/// take many times as many bytes in memory.
pub const BATCH_BYTES: u64 = 4 << 20;

/// Number of rows in a part of a larger file.
const BATCH_ROWS: IdxSize = 1 << 17;

/// Maximum number of files open at once.
pub const BATCH_FILES: usize = 256;

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
    let frames = split(&files, u64::MAX, usize::MAX)
        .map(|alike| Ok(of_traces(alike, scan_files(dataset, alike, table)?)))
        .collect::<PolarsResult<Vec<_>>>()?;
    Ok(match <[LazyFrame; 1]>::try_from(frames) {
        Ok([frame]) => frame,
        Err(frames) => concat(frames, UnionArgs { rechunk: false, ..UnionArgs::default() })?,
    })
}

/// Splits files into those that one frame can read: files of one trace each, merged files of which all rows count, or one
/// file of which only some count, which may be there again for other traces. A part has at most so many bytes and files,
/// but one file at least. No files are one part.
pub fn split(
    files: &[RowsFile],
    max_bytes: u64,
    max_files: usize,
) -> impl Iterator<Item = &[RowsFile]> {
    let (mut bytes, mut count) = (files.first().map_or(0, |file| file.bytes), 1);
    let parts = files.chunk_by(move |one, next| {
        let is_alike = match (&one.traces, &next.traces) {
            (TracesOfFile::Some(_), TracesOfFile::Some(_)) => one.path == next.path,
            (one, next) => one == next,
        };
        (bytes, count) = (bytes.saturating_add(next.bytes), count + 1);
        let fits = is_alike && bytes <= max_bytes && count <= max_files;
        if !fits {
            (bytes, count) = (next.bytes, 1);
        }
        fits
    });
    parts.chain(files.is_empty().then_some(files))
}

/// Drops the rows that do not count in a part of [`split`].
pub fn of_traces(files: &[RowsFile], rows: LazyFrame) -> LazyFrame {
    let some = files.iter().filter_map(|file| match &file.traces {
        TracesOfFile::Some(traces) => Some(traces),
        TracesOfFile::OfFolder | TracesOfFile::All => None,
    });
    let ids: Vec<&str> = some.flatten().map(String::as_str).collect();
    if ids.is_empty() {
        return rows;
    }
    rows.filter(col(TRACE).is_in(lit(Series::new("".into(), ids)).implode(false), false))
}

/// A frame over files of a dataset, whose partitions are those of the path within it. Files are of one trace each, or all
/// merged.
pub fn scan_files(
    dataset: &Dataset,
    files: &[RowsFile],
    table: &DatasetTable,
) -> PolarsResult<LazyFrame> {
    let is_merged = files.iter().any(|file| file.traces != TracesOfFile::OfFolder);
    let root = dataset.resolved_root();
    let within = |file: &RowsFile| match file.path.strip_prefix(dataset.root()) {
        Ok(name) => root.join(name),
        Err(_) => file.path.clone(),
    };
    let mut paths = files.iter().map(within).map(source).collect::<PolarsResult<Vec<_>>>()?;
    paths.dedup();
    let mut partitions = schema(&PARTITIONS);
    if paths.is_empty() {
        let columns = [table.schema(), partitions].into_iter().flatten().collect();
        return Ok(DataFrame::empty_with_schema(&columns).lazy());
    }
    // Polars takes names of folders above the dataset for partitions, too.
    let is_hive = !root.to_string_lossy().contains('=');
    let columns = if is_merged { table.merged_schema() } else { table.schema() };
    if is_merged {
        partitions.shift_remove(TRACE);
    }
    let options = ParquetOptions {
        schema: Some(SchemaRef::new(columns)),
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
    let part = |pattern: &str, group| col(FILE).str().extract(lit(pattern), group);
    let day = |pattern| part(pattern, 1).cast(DataType::Date).alias(DATE);
    let of_row = match (is_hive, is_merged) {
        (true, _) => [col(DATE), col(TRACE)],
        (false, true) => [day(MERGED_DAY), col(TRACE)],
        (false, false) => [day(PARTITION), part(PARTITION, 2).alias(TRACE)],
    };
    let names = table.schema().iter_names().map(|name| col(name.clone())).collect::<Vec<_>>();
    Ok(frame.select([&names[..], &of_row].concat()))
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

/// Reads columns of a table and `trace`, several files at a time, and calls `visit` at least once.
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
    let columns: BTreeSet<&str> = columns.iter().copied().chain([TRACE]).collect();
    let columns: Vec<_> = columns.into_iter().map(col).collect();
    for batch in split(&files, BATCH_BYTES, BATCH_FILES) {
        let frame = scan_files(dataset, batch, table)?.select(&columns);
        let is_large = batch.iter().any(|file| file.bytes > BATCH_BYTES);
        for first in (0..).step_by(BATCH_ROWS as usize) {
            cancel.check()?;
            let part =
                if is_large { frame.clone().slice(first, BATCH_ROWS) } else { frame.clone() };
            let rows = collect(part).map_err(damaged)?;
            let height = rows.height();
            // Behind the part: a filter in front of it would read all parts before it again.
            visit(collect(of_traces(batch, rows.lazy()))?)?;
            if !is_large || height < BATCH_ROWS as usize {
                break;
            }
        }
    }
    Ok(())
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
    fn files_are_split_into_what_one_frame_can_read() {
        let file = |path: &str, bytes, traces| RowsFile { path: path.into(), bytes, traces };
        let some = |id: &str| TracesOfFile::Some(BTreeSet::from([id.to_owned()]));
        let files = [
            file("a", 1, TracesOfFile::OfFolder),
            file("b", 1, TracesOfFile::OfFolder),
            file("c", 2, TracesOfFile::OfFolder),
            file("merged", 1, TracesOfFile::All),
            file("part", 1, some("x")),
            file("part", 1, some("y")),
            file("other", 1, some("z")),
        ];
        let sizes = |max_bytes, max_files| -> Vec<usize> {
            split(&files, max_bytes, max_files).map(<[RowsFile]>::len).collect()
        };
        assert_eq!(sizes(u64::MAX, usize::MAX), [3, 1, 2, 1]);
        assert_eq!(sizes(2, usize::MAX), [2, 1, 1, 2, 1]);
        assert_eq!(sizes(u64::MAX, 1), [1; 7]);
        assert_eq!(split(&[], 1, 1).map(<[RowsFile]>::len).collect::<Vec<_>>(), [0]);
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
