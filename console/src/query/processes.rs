//! `.dump Process`: the processes of a trace.

use std::path::Path;

use handlescope_model::TableRows;
use handlescope_model::tables::{Process, Processes};

use super::error::QueryError;
use super::pretty_names::pretty_name;
use super::source::Source;
use crate::cancel::Cancel;
use crate::filter::ProcessFilter;

/// The processes of one trace.
pub struct ProcessAnswer<'a> {
    /// The file as it was named.
    pub path: &'a Path,
    /// Its number in the session.
    pub index: usize,
    /// Those that passed, by pid and then by start.
    pub processes: Vec<Process>,
}

/// Answers `.dump Process`, one answer for each trace.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn processes<'a>(
    sources: &[Source<'a>],
    filter: Option<&ProcessFilter>,
    cancel: &Cancel,
) -> Result<Vec<ProcessAnswer<'a>>, QueryError> {
    let answer = |source: &Source<'a>| {
        cancel.check()?;
        let mut processes: Vec<Process> = Processes::read(source.trace)?.rows().collect();
        if let Some(filter) = filter {
            processes.retain(|process| is_meant(process, filter));
        }
        processes.sort_by_key(|process| (process.pid, process.start_ns));
        Ok(ProcessAnswer { path: source.path, index: source.index, processes })
    };
    sources.iter().map(answer).collect()
}

/// Whether a filter means a process, by either of its names.
fn is_meant(process: &Process, filter: &ProcessFilter) -> bool {
    let pretty = pretty_name(&process.name, &process.command_line);
    filter.matches_any(pretty.into_iter().chain([process.name.as_str()]), process.pid)
}
