//! The options of `.sql`.

use super::{
    Doc, Opt, OptionGroup, OptionSpec, Take,
    kinds::{files_option, json_option, json_pretty_option},
    views,
};
use crate::command::SqlArgs;

/// Options of `.sql`.
pub(crate) static SQL: &[OptionGroup<SqlArgs>] =
    &[OptionGroup { title: "Options", options: OPTIONS }];

static OPTIONS: &[Opt<SqlArgs>] = &[
    json_option(),
    json_pretty_option(),
    Opt {
        doc: Doc {
            names: &["-csv"],
            help: "print comma-separated values, or write them into FILE",
            details: "With a header; an unknown value is empty, a list is written as in JSON.",
            example: "-csv leaks.csv",
        },
        take: Take::MaybeFile(|args| &mut args.csv),
    },
    files_option(),
];

/// What looks like an option of `.sql`.
pub(crate) fn sql_options() -> Vec<&'static dyn OptionSpec> {
    views(SQL).into_iter().flat_map(|group| group.options).collect()
}
