//! The options that every kind of `.dump` has, and `.sql`.

use super::{
    files::{files_option, force_option},
    groups::{DISPLAY, SCRIPTS},
};
use crate::{
    commands::context::SharedArgs,
    grammar::{Opt, OptionGroup, ParseError, Take},
    render::OutputOptions,
    values::{CsvText, JsonMode},
};

/// What every kind of `.dump` takes beside its own options.
pub(crate) const SHARED: &[OptionGroup<SharedArgs>] = &[
    OptionGroup { title: DISPLAY, options: &row_options("-SortBy name") },
    OptionGroup { title: SCRIPTS, options: &format_options() },
];

impl AsMut<SharedArgs> for SharedArgs {
    fn as_mut(&mut self) -> &mut SharedArgs {
        self
    }
}

/// Refuses options of which one makes the other useless.
pub(crate) fn check_output(output: &OutputOptions) -> Result<(), ParseError> {
    match output.conflict() {
        None => Ok(()),
        Some((option, other)) => Err(ParseError::Conflict { option, other, reason: "choose one" }),
    }
}

/// What `-SortBy` means exactly: the words that only one kind has, then columns, which every kind has.
macro_rules! sort_details {
    ($($words:literal)?) => {
        concat!(
            $($words, " ",)?
            "A column goes by its name in -csv or its heading in the text, in any case: numbers from the \
             largest, text from a to z, unknown values last. The rows of each file stay together. An unknown \
             column is an error that lists all of them."
        )
    };
}
pub(crate) use sort_details;

/// The options that order and cut the rows of a table.
pub(crate) const fn row_options<A: AsMut<SharedArgs>>(sort_example: &'static str) -> [Opt<A>; 2] {
    [
        Opt {
            names: &["-TopN"],
            help: "only N rows of each file, after skipping some",
            details: "In the order of the table or of -SortBy. Text counts the rows left out.",
            example: "-TopN 10",
            take: Take::Top(|args| &mut args.as_mut().output.top),
        },
        sort_option("sort by this column", sort_details!(), sort_example, |args| {
            &mut args.as_mut().output.sort_by
        }),
    ]
}

pub(crate) const fn sort_option<A>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
    field: fn(&mut A) -> &mut Option<String>,
) -> Opt<A> {
    Opt { names: &["-SortBy"], help, details, example, take: Take::Column(field) }
}

/// `-csvraw`
pub(crate) const fn csv_raw_option<A>(example: &'static str, set: fn(&mut A)) -> Opt<A> {
    Opt {
        names: &["-csvraw"],
        help: "write text into CSV as it is",
        details: "Otherwise a ' stands in front of text that starts with =, +, -, @, a tab or a line \
                  end and is no number, because a spreadsheet would take it for a formula. For programs \
                  that compare names.",
        example,
        take: Take::Set(set),
    }
}

/// The files and formats of a table.
pub(crate) const fn format_options<A: AsMut<SharedArgs>>() -> [Opt<A>; 8] {
    [
        files_option(|args| &mut args.as_mut().files),
        Opt {
            names: &["-json"],
            help: "print one JSON document, one line per element",
            details: "The fields are the stable interface for scripts, see docs/dump-json.md.",
            example: "-json",
            take: Take::Set(|args| args.as_mut().output.json = JsonMode::Lines),
        },
        Opt {
            names: &["-json-pretty"],
            help: "print the same JSON document indented",
            details: "For reading; the content is that of -json.",
            example: "-json-pretty",
            take: Take::Set(|args| args.as_mut().output.json = JsonMode::Pretty),
        },
        Opt {
            names: &["-csv"],
            help: "print comma-separated values, or write them into FILE",
            details: "With a header; an unknown value is empty, a list is written as in JSON.",
            example: "-csv rows.csv",
            take: Take::MaybeFile(|args| &mut args.as_mut().output.csv),
        },
        csv_raw_option("-csv rows.csv -csvraw", |args| {
            args.as_mut().output.csv_text = CsvText::Raw;
        }),
        Opt {
            names: &["-ndjson"],
            help: "print the rows as JSON, one object a line",
            details: "For programs that read line by line. > FILE at the end of the command \
                      writes a file, whatever the format.",
            example: "-ndjson",
            take: Take::Switch(|args| &mut args.as_mut().output.ndjson),
        },
        Opt {
            names: &["-parquet"],
            help: "write the rows into a Parquet file",
            details: "The columns of -ndjson with their types, for DuckDB, pandas, polars and \
                      the like. It has its name when all is written.",
            example: "-parquet rows.parquet",
            take: Take::File(|args| &mut args.as_mut().output.parquet),
        },
        force_option("-csv rows.csv -Force", |args| &mut args.as_mut().output.force),
    ]
}
