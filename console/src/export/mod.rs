//! `.export`: the tables of the loaded traces as files that other programs read.

use std::{
    collections::HashSet,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use handlescope_model::{Table, Trace, write_parquet};
use indicatif::HumanCount;
use polars::prelude::DataFrame;

use crate::{
    cancel::Cancel,
    command::{ExportArgs, ExportFormat},
    error::CommandError,
    file::write_whole,
    file_filter,
    messages::Messages,
    render::{Clean, Format, write_frame},
    session::{LoadedTrace, Session},
};

/// Writes the tables of the loaded traces into a folder, one file for each table and format; of
/// several traces into a folder of its own for each. A file appears under its name when it is
/// complete.
///
/// # Errors
/// When nothing is loaded or left, a trace cannot be read, a file cannot be written, or `cancel` asks
/// to stop.
pub fn export(
    session: &Session,
    args: &ExportArgs,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let chosen = file_filter::choose(session.files(), &args.files, messages)?;
    messages.wait("exporting");
    let mut taken = HashSet::new();
    for (index, file) in &chosen {
        let folder = match chosen.len() {
            1 => args.folder.clone(),
            _ => args.folder.join(unused_name(file, *index, &mut taken)),
        };
        fs::create_dir_all(&folder).map_err(|source| failed(&folder, source))?;
        let rows = export_trace(&file.trace, &folder, args, cancel)?;
        let (tables, rows) = (Table::ALL.len(), HumanCount(rows));
        let folder = folder.display().to_string();
        writeln!(out, "{}: {tables} tables, {rows} rows", Clean(&folder))?;
    }
    Ok(())
}

/// The name of a trace, with its number where another one has the name.
fn unused_name(file: &LoadedTrace, index: usize, taken: &mut HashSet<String>) -> String {
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if taken.insert(stem.to_lowercase()) {
        return stem;
    }
    let numbered = format!("{stem}-{index}");
    taken.insert(numbered.to_lowercase());
    numbered
}

/// Returns the number of rows of all tables.
fn export_trace(
    trace: &Trace,
    folder: &Path,
    args: &ExportArgs,
    cancel: &Cancel,
) -> Result<u64, CommandError> {
    let mut rows = 0;
    for table in Table::ALL {
        cancel.check()?;
        let frame = trace.frame(table)?;
        rows += frame.height() as u64;
        for format in args.formats() {
            let path = folder.join(format!("{}.{}", table.name(), format.extension()));
            write_whole(&path, |out| write_table(table, &frame, format, cancel, out)).map_err(
                |source| match cancel.check() {
                    Ok(()) => failed(&path, source),
                    Err(cancelled) => cancelled.into(),
                },
            )?;
        }
    }
    Ok(rows)
}

fn write_table(
    table: Table,
    frame: &DataFrame,
    format: ExportFormat,
    cancel: &Cancel,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        ExportFormat::Parquet => write_parquet(table, frame.clone(), out).map_err(io::Error::other),
        ExportFormat::Csv => write_frame(frame.clone(), Format::Csv, cancel, out),
        ExportFormat::NdJson => write_frame(frame.clone(), Format::NdJson, cancel, out),
    }
}

fn failed(path: &Path, source: io::Error) -> CommandError {
    CommandError::Export { path: PathBuf::from(path), source }
}
