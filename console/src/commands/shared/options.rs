//! The options that every kind of `.dump` has, and `.sql`.

use super::{
    files::{files_option, force_option},
    groups::{DISPLAY, SCRIPTS, WITHOUT_EFFECT},
    notes::{TakesNotes, ignored_of_dumps},
};
use crate::{
    commands::context::SharedArgs,
    grammar::{Opt, OptionGroup, ParseError, Take},
    render::{OutputOptions, output::COLUMNS},
    values::{AskedFormat, CsvText, FORMATS, FormatOption, FormatSpec, NamesFile},
};

/// What every kind of `.dump` takes beside its own options.
pub(crate) const SHARED: &[OptionGroup<SharedArgs>] = &[
    OptionGroup { title: DISPLAY, options: &ROWS },
    OptionGroup { title: SCRIPTS, options: &format_options() },
    OptionGroup { title: WITHOUT_EFFECT, options: &ignored_of_dumps() },
];

/// The options about the rows of a kind, and about their columns.
const ROWS: [Opt<SharedArgs>; 3] = {
    let [top, sort] = row_options("-SortBy name");
    [top, sort, COLUMN_CHOICE]
};

const COLUMN_CHOICE: Opt<SharedArgs> = Opt {
    names: &[COLUMNS],
    help: "only these columns, in this order, or all",
    details: "Names as in -SortBy, divided by commas, as in -Columns process,pid. A document always has all, and rows \
              that are several lines become a table. Where a terminal is too narrow for a table of groups, columns are \
              left out until the others fit, and a line below names them: First, Last, Ids, Stack, Free stack, \
              Objects, Share, Numbers, Duplicated, Unmapped, Closed, End, By, Orphan frees, Frees, Allocs, Allocated, \
              Created, Open, At exit, Bytes at exit, Allocator, in this order, but none that -GroupBy or -SortBy \
              names. With all, or where even the others do not fit, a group is several lines.",
    example: "-Columns all",
    take: Take::Columns(|args| &mut args.output.columns),
};

impl AsMut<SharedArgs> for SharedArgs {
    fn as_mut(&mut self) -> &mut SharedArgs {
        self
    }
}

impl TakesNotes for SharedArgs {
    fn notes(&mut self) -> &mut Vec<&'static str> {
        &mut self.notes
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
            "A column is given by its name in -csv or its heading in the text, in any case: numbers from the \
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
        details: "Otherwise a ' is written in front of what starts with =, +, - or @ and is no number, because a \
                  spreadsheet would take it for a formula: at the start of a text, and in it behind a line end, a \
                  tab, and what separates values in other files (, or ;). For programs that compare names.",
        example,
        take: Take::Set(set),
    }
}

/// The option that asks for a format.
pub(crate) const fn format_option<A>(
    spec: &'static FormatSpec,
    option: &'static FormatOption,
    file: NamesFile,
    field: fn(&mut A) -> &mut Vec<AskedFormat>,
) -> Opt<A> {
    let FormatOption { names, help, details, example } = option;
    Opt { names, help, details, example, take: Take::Format(spec, file, field) }
}

/// The files and formats of a table.
pub(crate) const fn format_options<A: AsMut<SharedArgs>>() -> [Opt<A>; FORMATS.len() + 3] {
    let mut options = [const { files_option(|args: &mut A| &mut args.as_mut().files) }; _];
    let mut at = 0;
    while at < FORMATS.len() {
        let spec = FORMATS[at];
        options[at + 1] =
            format_option(spec, &spec.option, spec.file, |args| &mut args.as_mut().output.formats);
        at += 1;
    }
    options[at + 1] = csv_raw_option("-csv rows.csv -csvraw", |args| {
        args.as_mut().output.csv_text = CsvText::Raw;
    });
    options[at + 2] = force_option("-csv rows.csv -Force", |args| &mut args.as_mut().output.force);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::output::LEFT_OUT;

    #[test]
    fn the_help_of_columns_says_in_which_order_they_are_left_out() {
        let order = format!("a line below names them: {}, in this order", LEFT_OUT.join(", "));
        assert!(COLUMN_CHOICE.details.contains(&order), "{}", COLUMN_CHOICE.details);
    }
}
