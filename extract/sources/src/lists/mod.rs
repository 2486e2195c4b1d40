//! Reads lists of open handles into the tables of a trace: output of Sysinternals' `handle.exe` as text or CSV, and
//! tables of System Informer as CSV.
//!
//! `grammar` and `csv` parse a line, and [`ListParser`] combines the lines. Each handle is an object of its own,
//! because a list does not show which handles share one. Counts (`handle.exe -s`) become handles without values and
//! names.

mod csv;
mod grammar;

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::path::Path;

use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::{ExtractError, ExtractObserver, ExtractSummary};
use handlescope_model::Cancel;
use handlescope_model::tables::{HANDLE_LIST, NO_CLOCK, Process, Processes, TraceInfo};

use self::csv::CsvLayout;
pub use self::grammar::is_title;
use self::grammar::{HandleLine, ListLine, is_type};
use crate::operations::{
    ListedHandle, OpenHandleList, OpenList, OperationHandles, OperationTables,
};
use crate::text::{Lines, ReadProgress, TextFile, TextLine, each_line, line_warnings, tidy};

/// Reads lines in sequence. Offsets in `findings` are line numbers.
#[derive(Default)]
pub struct ListParser {
    open: OpenHandleList,
    findings: Diagnostics,
    /// Name and pid of each process, and the row of each.
    processes: Vec<(String, u32)>,
    rows: HashMap<(String, u32), u32>,
    /// Handles already read.
    known: HashSet<(u32, u64)>,
    /// The process whose handles follow, if the text names it.
    process: Option<u32>,
    /// Whether the last lines are output of `handle.exe`.
    is_in_output: bool,
    is_in_summary: bool,
    csv: Option<CsvLayout>,
    /// Counts by process and type, and their sum since the last summary.
    counts: Vec<(u32, String, u64)>,
    sum: u64,
    number: u64,
}

impl ListParser {
    /// Whether a handle or a count was read.
    pub fn has_found(&self) -> bool {
        !self.open.handles.is_empty() || !self.counts.is_empty()
    }

    /// What the last lines seem to be.
    pub fn subject(&self) -> &'static str {
        if self.csv.is_some() { "the table of handles" } else { "handle.exe" }
    }

    /// Takes the next line; returns whether it belongs to a list.
    pub fn line(&mut self, line: &TextLine<'_>) -> bool {
        self.number = line.number;
        let text = line.text.trim();
        if text.is_empty() {
            return false;
        }
        if let Some(layout) = CsvLayout::from_titles(text) {
            self.csv = Some(layout);
            return true;
        }
        let had = self.open.handles.len() + self.counts.len();
        let is_known = self.read_csv(text) || self.read(text) || self.read(&tidy(text));
        let has_more = self.open.handles.len() + self.counts.len() > had;
        if has_more && line.is_long {
            self.findings.count(WarningKind::LongLine, Some(self.number));
        }
        if has_more && line.text.contains(char::REPLACEMENT_CHARACTER) {
            self.findings.count(WarningKind::LossyText, Some(self.number));
        }
        is_known
    }

    fn read_csv(&mut self, text: &str) -> bool {
        let Some(layout) = &self.csv else { return false };
        if let Some(row) = layout.row(text) {
            let process = row.process.as_ref().map(|(name, pid)| self.process_row(name, *pid));
            let process = process.unwrap_or_else(|| self.unknown_process());
            if row.handle.is_some() {
                self.add(process, row.row());
            } else {
                self.push(process, row.row());
            }
            return true;
        }
        // A program that starts prints its own lines first.
        let is_other = ListLine::parse(text).is_some();
        if is_other {
            self.csv = None;
        } else {
            self.findings.count(WarningKind::BadListLine, Some(self.number));
        }
        !is_other && self.has_found()
    }

    fn read(&mut self, text: &str) -> bool {
        if let Some((_, command)) = text.split_once('>') {
            self.command(command);
        }
        match ListLine::parse(text) {
            None => {
                self.is_in_summary = false;
                false
            }
            Some(ListLine::Banner) => {
                self.is_in_output |= is_title(text);
                self.is_in_summary = false;
                true
            }
            Some(ListLine::Nothing) => false,
            Some(ListLine::Process { name, pid }) => {
                self.process = Some(self.process_row(name, pid));
                self.is_in_output = true;
                true
            }
            Some(ListLine::Found { name, pid, row }) => {
                let process = self.process_row(name, pid);
                self.add(process, row);
                true
            }
            Some(ListLine::Row(row)) if self.is_in_output || row.has_known_type() => {
                let process = self.process.unwrap_or_else(|| self.unknown_process());
                self.add(process, row);
                true
            }
            Some(ListLine::Row(_)) => false,
            Some(ListLine::Summary) => {
                (self.is_in_summary, self.sum) = (true, 0);
                true
            }
            Some(ListLine::Count { type_name, count }) if self.is_in_summary => {
                let process = self.process.unwrap_or_else(|| self.unknown_process());
                self.counts.push((process, type_name.to_owned(), count));
                self.sum = self.sum.saturating_add(count);
                true
            }
            Some(ListLine::Count { .. }) => false,
            Some(ListLine::Total(total)) => {
                if self.is_in_summary && total != self.sum {
                    self.findings.count(WarningKind::ListCountMismatch, Some(self.number));
                }
                std::mem::take(&mut self.is_in_summary)
            }
        }
    }

    /// Records the process a command asks for: `C:\> handle.exe -s -p 1234`.
    fn command(&mut self, command: &str) {
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default().to_ascii_lowercase();
        let program = program.rsplit(['\\', '/']).next().unwrap_or_default();
        let name = program.strip_suffix(".exe").unwrap_or(program);
        if !["handle", "handle64", "handle64a"].contains(&name) {
            return;
        }
        let process = words.skip_while(|word| !word.eq_ignore_ascii_case("-p")).nth(1);
        let pid = process.and_then(|process| process.parse().ok());
        let program = process.filter(|name| name.to_ascii_lowercase().ends_with(".exe"));
        self.process = match (program, pid) {
            (None, None) => None,
            (program, pid) => {
                Some(self.process_row(program.unwrap_or_default(), pid.unwrap_or_default()))
            }
        };
    }

    /// Returns the row of a process; it may lack the name or the pid.
    fn process_row(&mut self, name: &str, pid: u32) -> u32 {
        let key = (name.to_owned(), pid);
        let next = self.processes.len() as u32;
        let row = *self.rows.entry(key.clone()).or_insert(next);
        if row == next {
            self.processes.push(key);
        }
        row
    }

    fn unknown_process(&mut self) -> u32 {
        self.process_row("", 0)
    }

    /// Adds a handle with a value.
    fn add(&mut self, process: u32, row: HandleLine<'_>) {
        if self.known.insert((process, row.handle)) {
            self.push(process, row);
        } else {
            self.findings.count(WarningKind::ListedAgain, Some(self.number));
        }
    }

    fn push(&mut self, process: u32, row: HandleLine<'_>) {
        let is_known = is_type(row.type_name);
        let type_id = is_known.then(|| self.open.type_id(row.type_name)).flatten();
        let name = (!row.name.is_empty()).then(|| self.open.name(row.name));
        let (handle, type_id) = (row.handle, type_id.unwrap_or_default());
        self.open.handles.push(ListedHandle {
            handle,
            process,
            type_id,
            name,
            ..ListedHandle::default()
        });
    }

    /// Returns the handles after the last line. If any handles are listed, the counts are ignored, because they count
    /// the same ones.
    fn finish(mut self) -> Self {
        if self.open.handles.is_empty() {
            let mut beyond = 0_u64;
            for (process, type_name, count) in std::mem::take(&mut self.counts) {
                let left_out = self.open.add_counted(process, &type_name, count);
                beyond = beyond.saturating_add(left_out);
            }
            self.findings.add(WarningKind::TooManyListed, beyond, None);
        }
        self
    }

    fn process_table(&self) -> Processes {
        let row = |(name, pid): &(String, u32)| Process {
            pid: *pid,
            name: name.clone(),
            ..Process::default()
        };
        self.processes.iter().map(row).collect()
    }
}

/// Reads the list `input` and writes the archive `output`, whose folder must exist.
///
/// # Errors
/// If the list cannot be read or changed meanwhile, the archive cannot be written, or `cancel` is set.
pub fn extract(
    input: &Path,
    output: &Path,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<ExtractSummary, ExtractError> {
    let file = TextFile { path: input, observer, cancel };
    file.extract(output, parse, |list, source| Ok(tables(list, source)))
}

fn parse(lines: Lines<impl Read>, progress: &ReadProgress<'_>) -> io::Result<ListParser> {
    let mut parser = ListParser::default();
    each_line(lines, progress, |line| {
        parser.line(line);
    })?;
    parser.findings.add(WarningKind::LossyText, progress.replaced.get(), None);
    Ok(parser.finish())
}

/// Returns the tables of a list; `source` tells where it comes from.
fn tables(mut list: ListParser, source: TraceInfo) -> OperationTables {
    let open = OpenList { handles: &list.open.handles, is_complete: true };
    let handles = OperationHandles::new(&[], |_| false, Some(open), &mut list.findings);
    OperationTables {
        info: TraceInfo {
            source_format: Some(HANDLE_LIST.to_owned()),
            clock: NO_CLOCK.to_owned(),
            ..source
        },
        processes: list.process_table(),
        object_types: list.open.types(),
        names: list.open.names(),
        handles,
        warnings: line_warnings(&list.findings),
        ..OperationTables::default()
    }
}

#[cfg(test)]
mod tests;
