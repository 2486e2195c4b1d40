//! `.dump Process`

use std::{io, rc::Rc};

use handlescope_model::tables::Process;

use super::index;
use crate::{
    no_match::{NoMatchRow, first_no_match, list_document},
    table::{AnswerTable, Columns, FileRows, Show},
    text::line_of_zombies,
    time::TraceClock,
};
use handlescope_query::{ListedProcess, ProcessAnswer, pretty_name};
use handlescope_session::settings::Display;
use handlescope_session::values::{CountedNoun, TimeFormat};

/// The line below an empty list of zombies.
const NO_ZOMBIES: &str = "no ended process is known to be still in memory";

/// Number of spaces that indent a child.
const INDENT: usize = 2;

/// Depth from which children are not indented further: a damaged trace may have a long chain of them.
const DEEPEST: usize = 32;

/// A process and the format of its times.
pub struct ProcessListRow<'a> {
    answer: &'a ProcessAnswer<'a>,
    listed: &'a ListedProcess,
    clock: Rc<TraceClock>,
}

/// Declares the columns of a process. Its times are seconds in text unless they have their own format.
pub fn process_columns<'a>(times: TimeFormat) -> Columns<'a, ProcessListRow<'a>> {
    let shown = if times == TimeFormat::Seconds { Show::Seconds } else { Show::Plain };
    let mut columns = Columns::<ProcessListRow<'a>>::default();
    columns.add("file", "index of the trace", |row| index(row.answer.index));
    columns.add("pid", "process id", |row| row.process().pid).title("Pid").rank(-2);
    columns
        .add(
            "parent_pid",
            "id of the parent; null in dumps and text, which do not name it",
            ProcessListRow::parent_pid,
        )
        .title("Parent");
    let name =
        columns.add("name", "executable, as in `\"cmd.exe\"`", |row| row.process().name.as_str());
    name.title("Name").texts(ProcessListRow::indented_name).rank(-1);
    columns
        .add(
            "pretty_name",
            "a better name, as in `\"svchost RDP Service\"`; omitted if there is none",
            ProcessListRow::pretty_name,
        )
        .omit_unknown(|row| row.pretty_name().is_some());
    columns
        .add("image_path", "path of the executable", |row| row.process().image_path.as_deref())
        .show(Show::Clipped);
    let command_line = columns.add(
        "command_line",
        "command line; Windows cuts it at 1024 characters; null where a dump or text \
         lacks it",
        ProcessListRow::command_line,
    );
    command_line.title("Command line").show(Show::Clipped).rank(1);
    columns.add("session_id", "Windows session", |row| row.process().session_id).title("Session");
    columns.add(
        "sid",
        "security identifier of the user; in ETWAnalyzer's extracts it may be the name",
        |row| row.process().sid.as_deref(),
    );
    let start =
        columns.add("start_ns", "start; null outside of the trace", |row| row.process().start_ns);
    start.title("Start").show(shown).texts(|row| row.clock.text(row.process().start_ns));
    let end = columns.add("end_ns", "end; null outside of the trace, except of zombies", |row| {
        row.process().end_ns
    });
    end.title("End").show(shown).texts(|row| row.clock.text(row.process().end_ns));
    let exit_code = columns.add("exit_code", "exit code, signed", |row| row.process().exit_code);
    exit_code.title("Exit code").show(Show::ExitCode);
    columns.add("is_new", "whether the trace contains its start", |row| {
        row.process().start_ns.is_some()
    });
    columns.add("has_ended", "whether the trace contains its end", |row| {
        row.process().end_ns.is_some_and(|end| end >= 0)
    });
    columns.add("is_zombie", "whether it has ended and is still in memory", |row| {
        row.listed.is_zombie
    });
    columns
}

/// Returns a row for each process.
///
/// # Errors
/// None that a caller could do anything about.
pub fn processes<'a>(
    answers: &'a [ProcessAnswer<'_>],
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let rows = answers.iter().flat_map(|answer| {
        let clock = Rc::new(TraceClock::below_heading(&answer.info, display));
        let processes = answer.list.processes.iter();
        processes.map(move |listed| ProcessListRow { answer, listed, clock: Rc::clone(&clock) })
    });
    let file_rows = answers.iter().map(|answer| {
        let count = answer.list.processes.len();
        let file_rows = FileRows::new(answer.path, count).started(&answer.info, display);
        if let Some(zombies) = &answer.list.zombies {
            let line = line_of_zombies(zombies);
            return file_rows.below(line.unwrap_or_else(|| NO_ZOMBIES.to_owned()));
        }
        let started =
            answer.list.processes.iter().filter(|listed| listed.process.start_ns.is_some());
        let processes = CountedNoun(count as u64, "process");
        file_rows.below(format!("{processes}, {} started in the trace", started.count()))
    });
    let table = AnswerTable::new(process_columns(display.time_format), rows.collect(), file_rows)?;
    let table = table.within(process_document(), first_no_match(answers));
    Ok(table.with_spare(["Session", "Parent", "Exit code", "End"]))
}

impl<'a> ProcessListRow<'a> {
    fn process(&self) -> &'a Process {
        &self.listed.process
    }

    /// Whether the source is a trace, which has process events; dumps and text do not.
    fn is_traced(&self) -> bool {
        self.answer.info.has_clock()
    }

    fn parent_pid(&self) -> Option<u32> {
        let parent = self.process().parent_pid;
        Some(parent).filter(|parent| *parent != 0 || self.is_traced())
    }

    fn command_line(&self) -> Option<&'a str> {
        let line = self.process().command_line.as_str();
        Some(line).filter(|line| !line.is_empty() || self.is_traced())
    }

    fn pretty_name(&self) -> Option<&'static str> {
        pretty_name(&self.process().name, &self.process().command_line)
    }

    fn indented_name(&self) -> String {
        let width = self.listed.depth.min(DEEPEST) * INDENT;
        format!("{:width$}{}", "", self.process().name)
    }
}

/// Declares the document of `.dump Process`.
pub fn process_document<'a>() -> Columns<'a, Option<NoMatchRow<'a>>> {
    list_document(
        "processes",
        "the processes, by file, then pid, then start; a reused pid has several",
        "only if nothing matches: the filter that removed everything, as in `.dump ObjectRef`; \
         `before` counts processes",
    )
}
