//! `.export`: writes the tables and views of the loaded traces as files for other programs.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::iter;
use std::path::{Path, PathBuf};

use handlescope_model::{ArchiveError, Table, Trace, Untrusted, write_parquet_with};
use polars::prelude::{Column, DataFrame, PlSmallStr, PolarsResult, Scalar};

use super::shared::groups;
use super::shared::names::WatchedSymbols;
use super::shared::options::{csv_raw_option, files_option, force_option, format_option};
use super::sql::end_program;
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_query::start_us;
use handlescope_render::write_frame;
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::{LOADED_FILES, SWITCH, file_in};
use handlescope_session::grammar::{Arguments, Example, Opt, OptionGroup, ParseError, to};
use handlescope_session::paths::{Aside, Output, Overwrite, with_home, write_aside};
use handlescope_session::trace::LoadedTrace;
use handlescope_session::values::{
    CountedNoun, CsvText, Format, NamesFile, RequestedFormat, TABLE_FORMATS,
};
use handlescope_sql::{MemoryLimit, Queries, Relation, View, Views, calendar_times};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExportArgs {
    /// The folder for the files.
    pub folder: PathBuf,
    /// The formats of the files; Parquet if none is given.
    pub formats: Vec<RequestedFormat>,
    /// `-csvraw`
    pub csv_text: CsvText,
    /// `-Force`: replace files that this program has not written.
    pub force: bool,
    /// `-fd`: only loaded files with matching paths; all filters must match.
    pub files: Vec<Filter>,
}

impl ExportArgs {
    /// Returns the formats of the files, each with its extension.
    fn formats(&self) -> Vec<(Format, &'static str)> {
        let [(usual, _), ..] = &TABLE_FORMATS;
        if self.formats.is_empty() {
            return vec![(usual.format, usual.extension)];
        }
        self.formats
            .iter()
            .map(|format| (format.spec.with_text(self.csv_text), format.spec.extension))
            .collect()
    }
}

const fn format_at<const INDEX: usize>() -> Opt<ExportArgs> {
    let take = to(&(const { file_in(NamesFile::Never) }, |args: &mut ExportArgs, file| {
        RequestedFormat { spec: TABLE_FORMATS[INDEX].0, file }.add_to(&mut args.formats);
    }));
    format_option(&TABLE_FORMATS[INDEX].1, take)
}

static OPTIONS: [Opt<ExportArgs>; TABLE_FORMATS.len() + 3] = [
    format_at::<0>(),
    format_at::<1>(),
    format_at::<2>(),
    csv_raw_option("tables -csv -csvraw", &(SWITCH, |args, ()| args.csv_text = CsvText::Raw)),
    force_option("tables -Force", &(SWITCH, |args, ()| args.force = true)),
    files_option(&(LOADED_FILES, |args, filter| args.files.push(filter))),
];

pub struct Export;

impl Command for Export {
    type Args = ExportArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".export"],
        group: groups::QUERIES,
        usage: "FOLDER",
        arguments: Arguments::Folder,
        summary: "write the tables of the loaded traces for other programs",
        details: "One file per table and per built-in view, such as leaks, for DuckDB, pandas, \
             polars and the like: FOLDER/events.parquet and so on; see .schema. A calendar time \
             follows each time in ns since session start: time_utc after time_ns. With several \
             traces, each gets its own subfolder. All files of a trace have the same trace_id; if \
             one differs, an export was interrupted.",
        examples: &Example::lines([".export tables", ".export tables -csv -ndjson"]),
    };
    const OPTIONS: &'static [OptionGroup<ExportArgs>] =
        &[OptionGroup { title: "Options", options: &OPTIONS }];

    fn parse(entered: &EnteredLine<'_>) -> Result<ExportArgs, ParseError> {
        let (args, words) = entered.options_and_words(Self::OPTIONS)?;
        let folder = entered.at_most_one(&words, "one folder, in quotes if it has spaces")?;
        let folder = folder.ok_or_else(|| entered.missing("a folder for the files"))?;
        Ok(ExportArgs { folder: with_home(&folder), ..args })
    }

    /// Writes one file for each table and format; several traces get a folder each. A file gets its name when it is
    /// complete.
    fn run(args: ExportArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, cancel, out, messages, .. } = context;
        let selected = session.choose(&args.files, messages)?;
        messages.wait("exporting");
        let mut taken = HashSet::new();
        for (index, file) in &selected {
            let folder = match selected.len() {
                1 => args.folder.clone(),
                _ => args.folder.join(unused_name(file, *index, &mut taken)),
            };
            fs::create_dir_all(&folder).map_err(|source| failed(&folder, source))?;
            let overwrite = session.overwrite(args.force);
            messages.wait("exporting");
            let names = WatchedSymbols::new(session.symbolizer(), messages.spinner(), cancel);
            let system = session.settings.system_modules();
            let files = [(0, *file)];
            let queries = Queries::new(&files, Views::built_in(), &names, system);
            let rows_of = |view: &View| -> Result<DataFrame, CommandError> {
                let limit = MemoryLimit { most: None, end_program };
                Ok(queries.answer(&query(view), limit, cancel)?)
            };
            let rows = export_trace(&file.trace, rows_of, &folder, &args, &overwrite, cancel)?;
            let tables = Table::queried().count();
            let (views, rows) = (relations().count() - tables, CountedNoun(rows, "row"));
            writeln!(out, "{}: {tables} tables, {views} views, {rows}", Untrusted(folder))?;
        }
        Ok(())
    }
}

/// Returns the name of a trace, with its number if another trace has the same name.
fn unused_name(file: &LoadedTrace, index: usize, taken: &mut HashSet<String>) -> String {
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if taken.insert(stem.to_lowercase()) {
        return stem;
    }
    let numbered = format!("{stem}-{index}");
    taken.insert(numbered.to_lowercase());
    numbered
}

/// The column, and the key in the footer of Parquet files, that is the same in all tables of a trace.
const TRACE_ID: &str = "trace_id";

/// The unit of columns that are followed by calendar times.
const SINCE_START: &str = "ns since session start";
/// Suffixes of such a column, and of its calendar time.
const NS: &str = "_ns";
const UTC: &str = "_utc";

/// A table or view that is written, but does not have its name yet.
struct PendingExport {
    relation: Relation<'static>,
    is_empty: bool,
    file: Aside,
    output: Output,
}

impl PendingExport {
    /// Returns the sort key for the order in which tables get their names. Empty text tables do not show which trace
    /// they are from, so they come later. The table `trace` comes last, so that it contradicts the other tables until
    /// all are in place.
    fn sort_key(&self) -> (bool, bool) {
        (self.relation == Relation::Table(Table::Trace), self.is_empty)
    }
}

/// Returns the tables, with the view instead of the stored acquisitions, followed by the program's other views.
fn relations() -> impl Iterator<Item = Relation<'static>> {
    let is_table = |name: &str| Table::queried().any(|table| table.name() == name);
    let tables = Table::queried().filter_map(|table| Relation::named(table.name()));
    tables.chain(Relation::all().filter(move |relation| !is_table(relation.name())))
}

/// Exports all tables and views, and returns their number of rows. All are written before the first one gets its name,
/// even if it replaces those of another trace.
fn export_trace(
    trace: &Trace,
    rows_of: impl Fn(&View) -> Result<DataFrame, CommandError>,
    folder: &Path,
    args: &ExportArgs,
    overwrite: &Overwrite,
    cancel: &Cancel,
) -> Result<u64, CommandError> {
    let path = |name: &str, extension| folder.join(format!("{name}.{extension}"));
    for relation in relations() {
        for (_, extension) in args.formats() {
            overwrite.replacing(&path(relation.name(), extension))?;
        }
    }
    let (id, mut rows, mut written) = (trace.id(), 0, Vec::new());
    let start_us = start_us(&*trace.info()?);
    for relation in relations() {
        cancel.check()?;
        let frame = match relation {
            Relation::View(view) => rows_of(view)?,
            Relation::Table(table) => trace.frame(table)?,
        };
        let frame = completed(&frame, relation, start_us, &id)
            .map_err(|source| ArchiveError::Encode { table: relation.name(), source })?;
        rows += frame.height() as u64;
        for (format, extension) in args.formats() {
            let output = overwrite.replacing(&path(relation.name(), extension))?;
            let file =
                write_aside(&output, cancel, |out| write_table(&frame, &id, format, cancel, out))
                    .map_err(|source| match cancel.check() {
                    Ok(()) => failed(output.path(), source),
                    Err(cancelled) => cancelled.into(),
                })?;
            written.push(PendingExport { relation, is_empty: frame.height() == 0, file, output });
        }
    }
    cancel.check()?;
    written.sort_by_key(PendingExport::sort_key);
    for PendingExport { file, output, .. } in written {
        file.appear(&output).map_err(|source| failed(output.path(), source))?;
    }
    Ok(rows)
}

/// Returns the query for the rows of a view. It has names instead of row numbers and codes, but not the texts of
/// stacks, which would be repeated in every row.
fn query(view: &View) -> String {
    const EXCLUDED: [&str; 2] = ["file_index", "stack_text"];
    let excluded =
        EXCLUDED.into_iter().filter(|name| view.columns.iter().any(|column| column.name == *name));
    let excluded: Vec<&str> = excluded.collect();
    if excluded.is_empty() {
        format!("SELECT * FROM {}", view.file.name)
    } else {
        format!("SELECT * EXCLUDE ({}) FROM {}", excluded.join(", "), view.file.name)
    }
}

/// Adds calendar times after times since session start, and the id of the trace to each row.
fn completed(
    frame: &DataFrame,
    relation: Relation<'static>,
    start_us: Option<i64>,
    id: &str,
) -> PolarsResult<DataFrame> {
    let specs = relation.columns();
    let times: HashSet<&str> =
        specs.iter().filter(|spec| spec.unit == SINCE_START).map(|spec| &*spec.name).collect();
    let mut columns = Vec::new();
    for column in frame.columns() {
        columns.push(column.clone());
        let name = column.name().as_str();
        if times.contains(name) {
            let utc = format!("{}{UTC}", name.strip_suffix(NS).unwrap_or(name));
            let times = calendar_times(column, iter::repeat(start_us))?;
            columns.push(times.with_name(utc.into()));
        }
    }
    let id = Scalar::from(PlSmallStr::from(id));
    columns.push(Column::new_scalar(TRACE_ID.into(), id, frame.height()));
    DataFrame::new(frame.height(), columns)
}

fn write_table(
    frame: &DataFrame,
    id: &str,
    format: Format,
    cancel: &Cancel,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Parquet => {
            let pairs = vec![(TRACE_ID.to_owned(), id.to_owned())];
            write_parquet_with(frame, pairs, out).map_err(io::Error::other)
        }
        format => write_frame(frame.clone(), format, cancel, out),
    }
}

fn failed(path: &Path, source: io::Error) -> CommandError {
    let instead = "use another folder";
    CommandError::Unwritten { path: PathBuf::from(path), source, instead }
}
