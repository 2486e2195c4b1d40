//! `.dump Process`: the processes of a trace.

use std::path::Path;

use handlescope_model::tables::Process;
use handlescope_model::{ArchiveError, Table, Trace};

use super::pretty_names::pretty_name;
use super::{QueryError, Source};
use crate::cancel::Cancel;
use crate::filter::ProcessFilter;
use crate::query::ProcessCriteria;
use crate::trace::columns::{I32s, I64s, Texts, U32s, U64s};

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
    args: &ProcessCriteria,
    cancel: &Cancel,
) -> Result<Vec<ProcessAnswer<'a>>, QueryError> {
    let answer = |source: &Source<'a>| {
        cancel.check()?;
        let mut processes = process_rows(source.trace)?;
        if let Some(filter) = &args.process {
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

fn process_rows(trace: &Trace) -> Result<Vec<Process>, ArchiveError> {
    let u32s = |name| U32s::load(trace, Table::Processes, name);
    let texts = |name| Texts::load(trace, Table::Processes, name);
    let i64s = |name| I64s::load(trace, Table::Processes, name);
    let (pid, parent, session) = (u32s("pid")?, u32s("parent_pid")?, u32s("session_id")?);
    let key = U64s::load(trace, Table::Processes, "key")?;
    let (name, path) = (texts("name")?, texts("image_path")?);
    let (command_line, sid) = (texts("command_line")?, texts("sid")?);
    let (start, end) = (i64s("start_ns")?, i64s("end_ns")?);
    let exit_code = I32s::load(trace, Table::Processes, "exit_code")?;
    let process = |row| Process {
        pid: pid.get(row).unwrap_or_default(),
        parent_pid: parent.get(row).unwrap_or_default(),
        key: key.get(row).unwrap_or_default(),
        name: name.text(row).to_owned(),
        image_path: path.get(row).map(str::to_owned),
        command_line: command_line.text(row).to_owned(),
        session_id: session.get(row),
        sid: sid.get(row).map(str::to_owned),
        start_ns: start.get(row),
        end_ns: end.get(row),
        exit_code: exit_code.get(row),
    };
    Ok((0..name.len()).map(process).collect())
}
