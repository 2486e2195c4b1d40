//! Options about totals and output.

use super::args::ObjectRefArgs;
use crate::shared::options::{sort_details, sort_option};
use handlescope_query::CountBy;
use handlescope_session::grammar::value::{COLUMN, MAYBE_FILE, MAYBE_WORD, SWITCH, TOP, ValueKind};
use handlescope_session::grammar::{Opt, WordChoices, choice, to, words};
use handlescope_session::values::{CSV, RequestedFormat};

/// Words of `-ShowTotal`. ETWAnalyzer's other commands total by method; for objects, Method prints the same as File.
const TOTALS_OF: &WordChoices<Option<CountBy>> = &[
    ("Total", "handles by object type", Some(CountBy::Type)),
    ("Process", "handles by process", Some(CountBy::Process)),
    ("File", "handles and totals of each file", Some(CountBy::File)),
    ("Method", "like File, as ETWAnalyzer prints for objects", Some(CountBy::File)),
    ("None", "list the objects, but no totals", None),
];

/// Options for tables instead of objects.
pub static TOTALS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-ShowTotal"],
        help: "count open or leaked handles: Total (the default), Process, File, Method or None",
        details: "Counts handles in the rundown at the end of the trace, of all objects that pass \
             the filters; with -Leak or -LeakAtExit, the handles these print. A leaked handle \
             that a child inherited counts for the parent; with -GroupBy process for the child.",
        example: "-ShowTotal Process",
        take: to(&(ValueKind { words: || words(TOTALS_OF), ..MAYBE_WORD }, |args, index| {
            args.criteria.count_by = choice(TOTALS_OF, index).flatten();
            args.criteria.without_totals = args.criteria.count_by.is_none();
        })),
    },
    Opt {
        names: &["-TopN"],
        help: "only N objects or rows of -ShowTotal, skipping the first SKIP",
        details: "With -ShowTotal the N largest rows, largest last, or first with -SortBy \
             Handles; otherwise the first N objects of each file in printed order (creation or \
             -SortBy). Omitted rows are counted.",
        example: "-ShowTotal Total -TopN 5",
        take: to(&(TOP, |args, top| args.criteria.top = Some(top))),
    },
    sort_option(
        "sort by a column; -ShowTotal by Handles or a name, -GroupBy by a figure",
        sort_details!(
            "With -ShowTotal, Handles puts the largest first, and Type, Process or File, \
             whichever is counted, sorts by name. -GroupBy sorts by one of leaked, \
             closed_at_exit, closed_unseen, open_at_end, created, duplicated, closed, mapped, \
             unmapped, objects, first_ns, last_ns."
        ),
        "-SortBy name",
        &(COLUMN, |args, column| args.sort_by = Some(column)),
    ),
];

/// Options for files and documents instead of text.
pub static SCRIPTS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-csv"],
        help: "write the events to a CSV file instead of printing them",
        details: "The columns are those of ETWAnalyzer, separated by semicolons; times are \
             nanoseconds since session start. With -ShowStack, the first event of a stack has its \
             text. The file appears when it is complete. Without FILE it is printed.",
        example: "-Leak -ShowStack -csv Leaks.csv",
        take: to(&(MAYBE_FILE, |args, file| {
            RequestedFormat { spec: &CSV, file }.add_to(&mut args.formats);
        })),
    },
    Opt {
        names: &["-NoCSVSeparator"],
        help: "omit the line `sep = ;` at the start of the CSV file",
        details: "The line is for Excel; other programs read it as data.",
        example: "-csv Leaks.csv -NoCSVSeparator",
        take: to(&(SWITCH, |args, ()| args.no_csv_separator = true)),
    },
    Opt {
        names: &["-NoCmdLine"],
        help: "leave the command line column of the CSV file empty",
        details: "Command lines may be long and contain secrets.",
        example: "-csv Leaks.csv -NoCmdLine",
        take: to(&(SWITCH, |args, ()| args.no_command_line = true)),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use handlescope_query::Stat;

    #[test]
    fn the_help_of_orders_names_all_figures() {
        let option = TOTALS.iter().find(|option| option.names.contains(&"-SortBy"));
        let names = Stat::ALL.map(|(_, name, ..)| name).join(", ");
        assert!(option.is_some_and(|option| option.details.contains(&format!("one of {names}."))));
    }
}
