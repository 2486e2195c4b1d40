//! `.dump Process`

use crate::context::write_notes;
use crate::shared::choice::{
    command_line_option, new_process_option, process_option, time_digits_option, time_format_option,
};
use crate::shared::options::{Idle, Notes, ignored, sort_details, sort_option};
use crate::shared::{fields, groups};
use crate::{Command, CommandError, DumpContext, Signature, Tabular};
use handlescope_query::{self as query, ProcessCriteria, ProcessListCriteria, ProcessOrder};
use handlescope_render::{self as render, OutputOptions};
use handlescope_session::grammar::value::{COLUMN, PROCESSES, SWITCH};
use handlescope_session::grammar::{Example, Opt, OptionGroup, to};
use handlescope_session::settings::DisplayArgs;
use handlescope_session::values::TimeFormat;

/// Arguments of `.dump Process`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessArgs {
    pub criteria: ProcessListCriteria,
    display: DisplayArgs,
    /// `-SortBy`: one of [`ORDERS`], or a column.
    sort_by: Option<String>,
    /// Options that were accepted without effect, each with the reason.
    notes: Vec<&'static str>,
}

fields!(ProcessArgs { notes: Notes, criteria.processes: ProcessCriteria, display: DisplayArgs });

/// Why ETWAnalyzer's options about rows and columns do nothing.
const ALL_SHOWN: &str = "-Details, -ShowUser, -ShowFileOnLine, -ShowAllProcesses and -ZeroProcessName do nothing here; \
                         all processes are listed, by file";

pub struct Process;

/// Orders of processes other than columns.
const ORDERS: [(&str, ProcessOrder); 4] = [
    ("Default", ProcessOrder::Pid),
    ("Time", ProcessOrder::Start),
    ("StopTime", ProcessOrder::End),
    ("Tree", ProcessOrder::Tree),
];

impl Command for Process {
    type Args = ProcessArgs;
    const SIGNATURE: Signature = Signature {
        names: &["Process"],
        summary: "processes with their start, end and command line",
        details: "One row per lifetime: a reused pid is another process. Times are printed in the \
             format of .timefmt; files have nanoseconds since session start.",
        examples: &[
            Example { goal: "all processes", line: ".dump Process" },
            Example { goal: "one program", line: ".dump Process -pn leaky" },
            Example { goal: "ended processes that handles keep", line: ".dump Process -Zombie" },
            Example {
                goal: "who started what, and when",
                line: ".dump Process -NewProcess 1 -SortBy Tree -TimeFmt s",
            },
        ],
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<ProcessArgs>] = &[
        OptionGroup { title: "Which processes", options: WHICH },
        OptionGroup { title: groups::DISPLAY, options: DISPLAY },
        OptionGroup { title: groups::WITHOUT_EFFECT, options: WITHOUT_EFFECT },
    ];

    const TABLE: Option<Tabular> = Some(Tabular::new(|| {
        let orders = ORDERS.iter().map(|(name, _)| (*name).to_owned());
        orders.chain(render::process_columns(TimeFormat::default()).names()).collect()
    }));

    fn answer(args: &ProcessArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        write_notes(&args.notes, dump.messages);
        let word = args.sort_by.as_deref();
        let order =
            ORDERS.iter().find(|(name, _)| word.is_some_and(|w| w.eq_ignore_ascii_case(name)));
        let mut criteria = args.criteria.clone();
        criteria.order = order.map_or_else(ProcessOrder::default, |(_, order)| *order);
        let column = args.sort_by.clone().filter(|_| order.is_none());
        let output = OutputOptions { sort_by: column, ..dump.shared.output.clone() };
        let answers = query::processes(dump.sources, &criteria, dump.cancel)?;
        dump.note_no_match(&answers);
        let display = dump.display_as(&args.display);
        let table = render::processes(&answers, &display)?;
        let written = dump.write_as(table, &output, &display);
        let orders = ORDERS.map(|(name, _)| name);
        Ok(written.map_err(|error| error.with_other_orders(&orders))?)
    }
}

static WHICH: &[Opt<ProcessArgs>] = &[
    process_option(
        "processes with this name or pid",
        "The name may go without .exe; a number is a pid; ! in front excludes.",
    ),
    Opt {
        names: &["-Parent"],
        help: "children of processes with this name or pid",
        details: "The parent is the process that had this pid when the child started. If it is \
             not in the trace, only its pid is known.",
        example: "-Parent explorer",
        take: to(&(PROCESSES, |args, processes| args.criteria.parent = Some(processes))),
    },
    command_line_option("processes with this command line"),
    new_process_option("processes that started or ended in the trace"),
    Opt {
        names: &["-Zombie"],
        help: "processes that have ended and are still in memory",
        details: "Nearly always an open handle keeps them. The rundown of a trace lists them, in \
                  recent versions of Windows with their end time. Their start and command line are \
                  known only if they ran in the trace.",
        example: "-Zombie",
        take: to(&(SWITCH, |args, ()| args.criteria.zombies = true)),
    },
];

static DISPLAY: &[Opt<ProcessArgs>] = &[
    time_format_option(),
    time_digits_option(),
    sort_option(
        "sort by Default, Time, StopTime, Tree, or a column",
        sort_details!(
            "Default is by pid, Time by start, StopTime by end; unknown times come first. Tree lists \
             children below their parents, with their names indented."
        ),
        "-SortBy Tree",
        &(COLUMN, |args, column| args.sort_by = Some(column)),
    ),
];

static WITHOUT_EFFECT: &[Opt<ProcessArgs>] = &[
    ignored(&["-Details"], "-Details", &Idle(0, ALL_SHOWN)),
    ignored(&["-ShowUser"], "-ShowUser", &Idle(0, ALL_SHOWN)),
    ignored(&["-ShowFileOnLine"], "-ShowFileOnLine", &Idle(0, ALL_SHOWN)),
    ignored(&["-ShowAllProcesses"], "-ShowAllProcesses", &Idle(0, ALL_SHOWN)),
    ignored(&["-ZeroProcessName"], "-ZeroProcessName a", &Idle(1, ALL_SHOWN)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_orders_names_all() {
        let option = DISPLAY.iter().find(|option| option.names.contains(&"-SortBy"));
        let names = ORDERS.map(|(name, _)| name).join(", ");
        let help = format!("sort by {names}, or a column");
        assert_eq!(option.map(|option| option.help), Some(help.as_str()));
    }
}
