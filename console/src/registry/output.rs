//! Options about how an answer is written, declared once for every kind that takes them.

use super::{
    Doc, Opt, Take,
    kinds::{CommonArgs, files_option},
};
use crate::{
    command::{ModuleArgs, ObjectRefArgs, ProcessArgs, SqlArgs, StackArgs, StatsArgs, SymbolsArgs},
    render::{JsonMode, OutputOptions},
};

/// Arguments that say how the answer is written.
pub(super) trait TakesOutput {
    /// What they say.
    fn output(&mut self) -> &mut OutputOptions;
}

macro_rules! takes_output {
    ($($args:ty),*) => {$(
        impl TakesOutput for $args {
            fn output(&mut self) -> &mut OutputOptions {
                &mut self.output
            }
        }
    )*};
}

takes_output!(ObjectRefArgs, ProcessArgs, ModuleArgs, StackArgs, SymbolsArgs, StatsArgs, SqlArgs);

/// The options that order and cut the rows of a table.
pub(super) const fn row_options<A: TakesOutput>(sort_example: &'static str) -> [Opt<A>; 2] {
    const TOP: &str = "In the order of the table or of -SortBy. Text counts the rows left out.";
    let sort = sort_by_option(
        "sort the rows by this column",
        "By its name in -csv or its heading in the text, in any case: numbers from the largest, text \
         from a to z, unknown values last. The rows of each file stay together.",
        sort_example,
    );
    [top_option("only N rows of each file, after skipping some", TOP, "-TopN 10"), sort]
}

/// The files and formats of a table.
pub(super) const fn table_options<A: CommonArgs + TakesOutput>() -> [Opt<A>; 6] {
    let csv = csv_option(
        "print comma-separated values, or write them into FILE",
        "With a header; an unknown value is empty, a list is written as in JSON.",
        "-csv rows.csv",
    );
    let (json, pretty) = (json_option(), json_pretty_option());
    [files_option(), json, pretty, csv, ndjson_option(), parquet_option()]
}

/// `-json`
pub(super) const fn json_option<A: TakesOutput>() -> Opt<A> {
    Opt {
        doc: Doc {
            names: &["-json"],
            help: "print one JSON document, one line per element",
            details: "The fields are the stable interface for scripts, see docs/dump-json.md.",
            example: "-json",
        },
        take: Take::Set(|args| args.output().json = JsonMode::Lines),
    }
}

/// `-json-pretty`
pub(super) const fn json_pretty_option<A: TakesOutput>() -> Opt<A> {
    Opt {
        doc: Doc {
            names: &["-json-pretty"],
            help: "print the same JSON document indented",
            details: "For reading; the content is that of -json.",
            example: "-json-pretty",
        },
        take: Take::Set(|args| args.output().json = JsonMode::Pretty),
    }
}

/// `-csv`, which means different files to different commands.
pub(super) const fn csv_option<A: TakesOutput>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
) -> Opt<A> {
    Opt {
        doc: Doc { names: &["-csv"], help, details, example },
        take: Take::MaybeFile(|args| &mut args.output().csv),
    }
}

/// `-ndjson`
pub(super) const fn ndjson_option<A: TakesOutput>() -> Opt<A> {
    Opt {
        doc: Doc {
            names: &["-ndjson"],
            help: "print the rows as JSON, one object a line",
            details: "The columns of -csv, for programs that read line by line. > FILE behind the \
                      command writes a file.",
            example: "-ndjson",
        },
        take: Take::Switch(|args| &mut args.output().ndjson),
    }
}

/// `-parquet`
pub(super) const fn parquet_option<A: TakesOutput>() -> Opt<A> {
    Opt {
        doc: Doc {
            names: &["-parquet"],
            help: "write the rows into a Parquet file",
            details: "The columns of -csv with their types, for DuckDB, pandas, polars and the like. \
                      An existing file is replaced when all is written.",
            example: "-parquet rows.parquet",
        },
        take: Take::File(|args| &mut args.output().parquet),
    }
}

/// `-TopN`
pub(super) const fn top_option<A: TakesOutput>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
) -> Opt<A> {
    Opt {
        doc: Doc { names: &["-TopN"], help, details, example },
        take: Take::Top(|args| &mut args.output().top),
    }
}

/// `-SortBy`
pub(super) const fn sort_by_option<A: TakesOutput>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
) -> Opt<A> {
    Opt {
        doc: Doc { names: &["-SortBy"], help, details, example },
        take: Take::Text("COLUMN", 1, |args| &mut args.output().sort_by),
    }
}
