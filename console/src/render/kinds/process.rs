//! `.dump Process`

use std::io;

use handlescope_model::tables::Process;

use super::index;
use crate::{
    query::{ProcessAnswer, pretty_name},
    render::table::{Columns, Part, Show, Table},
};

/// A row for each process.
///
/// # Errors
/// None that a caller could do anything about.
pub fn processes<'a>(answers: &[ProcessAnswer<'_>]) -> io::Result<Table<'a>> {
    let rows: Vec<(u32, &Process)> = answers
        .iter()
        .flat_map(|answer| answer.processes.iter().map(|process| (index(answer.index), process)))
        .collect();
    let mut columns = Columns::of(&rows);
    columns.add("file", |(file, _)| *file);
    columns.add("pid", |(_, process)| process.pid).title("Pid").place(-2);
    columns.add("parent_pid", |(_, process)| process.parent_pid).title("Parent");
    columns.add("name", |(_, process)| process.name.as_str()).title("Name").place(-1);
    let pretty = |process: &Process| pretty_name(&process.name, &process.command_line);
    columns.add("pretty_name", |(_, process)| pretty(process)).omit_unknown();
    columns.add("image_path", |(_, process)| process.image_path.as_deref());
    let command_line = columns.add("command_line", |(_, process)| process.command_line.as_str());
    command_line.title("Command line").place(1);
    columns.add("session_id", |(_, process)| process.session_id).title("Session");
    columns.add("sid", |(_, process)| process.sid.as_deref());
    columns.add("start_ns", |(_, process)| process.start_ns).title("Start").show(Show::Seconds);
    columns.add("end_ns", |(_, process)| process.end_ns).title("End").show(Show::Seconds);
    let exit_code = columns.add("exit_code", |(_, process)| process.exit_code);
    exit_code.title("Exit code").show(Show::ExitCode);
    columns.add("is_new", |(_, process)| process.start_ns.is_some());
    columns.add("has_ended", |(_, process)| process.end_ns.is_some());
    let parts = answers.iter().map(|answer| {
        let count = answer.processes.len();
        let new = answer.processes.iter().filter(|process| process.start_ns.is_some()).count();
        Part::of(answer.path, count).below(format!("{count} processes, {new} started in the trace"))
    });
    Table::new("processes", columns, parts)
}
