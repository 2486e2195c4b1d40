//! Options about totals and output.

use crate::{
    command::{ObjectRefArgs, ShowTotal},
    registry::{
        Choice, Doc, Opt, Take,
        output::{
            csv_option, json_option, json_pretty_option, ndjson_option, parquet_option, top_option,
        },
    },
};

/// Tables instead of objects.
pub(super) static TOTALS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        doc: Doc {
            names: &["-ShowTotal"],
            help: "count handles open at the end: Total, Process, File or None",
            details: "Counts the handles that the rundown at the end of the trace lists, of all \
                      objects that pass the filters.",
            example: "-ShowTotal Process",
        },
        take: Take::Choice(&[
            Choice {
                word: "Total",
                help: "open handles by object type",
                set: |args| args.show_total = Some(ShowTotal::Total),
            },
            Choice {
                word: "Process",
                help: "open handles by process",
                set: |args| args.show_total = Some(ShowTotal::Process),
            },
            Choice {
                word: "File",
                help: "only the totals of each file",
                set: |args| args.show_total = Some(ShowTotal::File),
            },
            Choice {
                word: "None",
                help: "list the objects, but no totals",
                set: |args| args.show_total = Some(ShowTotal::None),
            },
        ]),
    },
    top_option(
        "only the N largest rows of -ShowTotal, leaving out the SKIP largest",
        "The largest row comes last.",
        "-ShowTotal Total -TopN 5",
    ),
];

/// Files and documents instead of text.
pub(super) static SCRIPTS: &[Opt<ObjectRefArgs>] = &[
    json_option(),
    json_pretty_option(),
    csv_option(
        "write the events to a CSV file instead of printing them",
        "The columns are those of ETWAnalyzer, separated by semicolons; times are nanoseconds since \
         session start. With -ShowStack, the first event of a stack has its text. An existing file \
         is replaced when all is written. Without FILE it is printed.",
        "-Leak -ShowStack -csv Leaks.csv",
    ),
    ndjson_option(),
    parquet_option(),
    Opt {
        doc: Doc {
            names: &["-NoCSVSeparator"],
            help: "no line `sep = ;` in front of the CSV file",
            details: "That line is for Excel; other programs take it for data.",
            example: "-csv Leaks.csv -NoCSVSeparator",
        },
        take: Take::Switch(|args| &mut args.no_csv_separator),
    },
    Opt {
        doc: Doc {
            names: &["-NoCmdLine"],
            help: "leave the command line column of the CSV file empty",
            details: "Command lines may be long and may hold secrets.",
            example: "-csv Leaks.csv -NoCmdLine",
        },
        take: Take::Switch(|args| &mut args.no_command_line),
    },
];
