//! Options about totals and output.

use super::args::ObjectRefArgs;
use crate::commands::shared::options::{sort_details, sort_option};
use crate::grammar::{Choices, Opt, Take, chosen, words};
use crate::query::ShowTotal;
use crate::values::{CSV, NamesFile};

/// ETWAnalyzer's other commands group by method; of objects, it prints what File does.
const TOTALS_OF: &Choices<ShowTotal> = &[
    ("Total", "handles by object type", ShowTotal::Total),
    ("Process", "handles by process", ShowTotal::Process),
    ("File", "handles and totals of each file", ShowTotal::File),
    ("Method", "the same as File, as ETWAnalyzer prints for objects", ShowTotal::File),
    ("None", "list the objects, but no totals", ShowTotal::None),
];

/// Tables instead of objects.
pub(super) static TOTALS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-ShowTotal"],
        help: "count open or leaked handles: Total, Process, File, Method or None",
        details: "Counts the handles that the rundown at the end of the trace lists, of all \
                  objects that pass the filters; with -Leak or -LeakAtExit, what these print. A leaked handle \
                  that a child inherited counts for the parent, with -GroupBy process for the child.",
        example: "-ShowTotal Process",
        take: Take::Choice(
            || words(TOTALS_OF),
            |args, place| args.criteria.show_total = chosen(TOTALS_OF, place),
        ),
    },
    Opt {
        names: &["-TopN"],
        help: "only N objects or rows of -ShowTotal, leaving out the first SKIP",
        details: "Of -ShowTotal the N largest rows, the largest last unless -SortBy Handles puts it \
                  first; of the objects of each file \
                  the first N in the order they are printed in, which is that of creation or of \
                  -SortBy. What is left out is counted.",
        example: "-ShowTotal Total -TopN 5",
        take: Take::Top(|args| &mut args.criteria.top),
    },
    sort_option(
        "order: a column; of -ShowTotal Handles or a name, of -GroupBy a figure",
        sort_details!(
            "Of -ShowTotal, Handles puts the largest first, and Type, Process or File, whichever is counted, \
             sorts by name. Groups of -GroupBy are ordered by one of leaked, closed_at_exit, closed_unseen, open_at_end, \
             created, duplicated, closed, mapped, unmapped, objects, first_ns, last_ns."
        ),
        "-SortBy name",
        |args| &mut args.sort_by,
    ),
];

/// Files and documents instead of text.
pub(super) static SCRIPTS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-csv"],
        help: "write the events to a CSV file instead of printing them",
        details: "The columns are those of ETWAnalyzer, separated by semicolons; times are \
                  nanoseconds since session start. With -ShowStack, the first event of a stack \
                  has its text. The file has its name when all is written. \
                  Without FILE it is printed.",
        example: "-Leak -ShowStack -csv Leaks.csv",
        take: Take::Format(&CSV, NamesFile::Maybe, |args| &mut args.formats),
    },
    Opt {
        names: &["-NoCSVSeparator"],
        help: "no line `sep = ;` in front of the CSV file",
        details: "That line is for Excel; other programs take it for data.",
        example: "-csv Leaks.csv -NoCSVSeparator",
        take: Take::Switch(|args| &mut args.no_csv_separator),
    },
    Opt {
        names: &["-NoCmdLine"],
        help: "leave the command line column of the CSV file empty",
        details: "Command lines may be long and may hold secrets.",
        example: "-csv Leaks.csv -NoCmdLine",
        take: Take::Switch(|args| &mut args.no_command_line),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Figure;

    #[test]
    fn the_help_of_orders_names_all_figures() {
        let option = TOTALS.iter().find(|option| option.names.contains(&"-SortBy"));
        let names = Figure::ALL.map(|(_, name, _)| name).join(", ");
        assert!(option.is_some_and(|option| option.details.contains(&format!("one of {names}."))));
    }
}
