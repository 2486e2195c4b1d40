//! `.dump Process`

use std::io;

use handlescope_model::tables::Process;

use super::index;
use crate::{
    query::{ListedProcess, ProcessAnswer, pretty_name},
    render::{
        table::{Columns, Part, Show, Table},
        time::Clock,
    },
    settings::Display,
    values::{Counted, TimeFormat},
};

/// Columns by which a child is indented.
const INDENT: usize = 2;

/// Deeper children are indented no further: a damaged trace may have a long chain of them.
const DEEPEST: usize = 32;

/// A row for each process.
///
/// # Errors
/// None that a caller could do anything about.
pub fn processes<'a>(answers: &'a [ProcessAnswer<'_>], display: &Display) -> io::Result<Table<'a>> {
    let listed =
        || answers.iter().flat_map(|answer| answer.processes.iter().map(move |p| (answer, p)));
    let rows: Vec<(u32, &Process)> =
        listed().map(|(answer, listed)| (index(answer.index), &listed.process)).collect();
    let times = |time: fn(&Process) -> Option<i64>| {
        let texts = answers.iter().flat_map(|answer| {
            let clock = Clock::new(&answer.info, display.time_format, display.time_digits);
            let times = answer.processes.iter().map(move |listed| time(&listed.process));
            times.map(move |time| time.map_or_else(String::new, |ns| clock.at(ns).to_string()))
        });
        texts.collect::<Vec<String>>()
    };
    let shown = match display.time_format {
        TimeFormat::Seconds => Show::Seconds,
        _ => Show::Plain,
    };
    let names = listed().map(|(_, ListedProcess { process, depth, .. })| {
        format!("{:width$}{}", "", process.name, width = (*depth).min(DEEPEST) * INDENT)
    });
    let mut columns = Columns::of(&rows);
    columns.add("file", |(file, _)| *file);
    columns.add("pid", |(_, process)| process.pid).title("Pid").place(-2);
    columns.add("parent_pid", |(_, process)| process.parent_pid).title("Parent");
    columns
        .add("name", |(_, process)| process.name.as_str())
        .title("Name")
        .texts(names.collect())
        .place(-1);
    let pretty = |process: &Process| pretty_name(&process.name, &process.command_line);
    columns.add("pretty_name", |(_, process)| pretty(process)).omit_unknown();
    columns.add("image_path", |(_, process)| process.image_path.as_deref());
    let command_line = columns.add("command_line", |(_, process)| process.command_line.as_str());
    command_line.title("Command line").place(1);
    columns.add("session_id", |(_, process)| process.session_id).title("Session");
    columns.add("sid", |(_, process)| process.sid.as_deref());
    let start = columns.add("start_ns", |(_, process)| process.start_ns).title("Start");
    start.show(shown).texts(times(|process| process.start_ns));
    let end = columns.add("end_ns", |(_, process)| process.end_ns).title("End");
    end.show(shown).texts(times(|process| process.end_ns));
    let exit_code = columns.add("exit_code", |(_, process)| process.exit_code);
    exit_code.title("Exit code").show(Show::ExitCode);
    columns.add("is_new", |(_, process)| process.start_ns.is_some());
    columns.add("has_ended", |(_, process)| process.end_ns.is_some());
    let parts = answers.iter().map(|answer| {
        let count = answer.processes.len();
        let is_new = |listed: &&ListedProcess| listed.process.start_ns.is_some();
        let new = answer.processes.iter().filter(is_new).count();
        let processes = Counted(count as u64, "process");
        Part::of(answer.path, count).below(format!("{processes}, {new} started in the trace"))
    });
    let no_match = answers.iter().find_map(|own| Some((own.index, own.no_match.as_ref()?)));
    Ok(Table::new("processes", columns, parts)?.with_no_match(no_match))
}
