//! The options of every kind of `.dump` and of `.sql`, and options about files that several commands have:
//!
//! * `-fd` selects loaded files.
//! * `-r` searches subfolders.
//! * `-etwanalyzer` decides what archives contain.
//! * `-MaxSize` decides which members of archives are read.
//! * `-Force` decides which files may be replaced.
//!
//! Also has options that ETWAnalyzer accepts and that do nothing here, so that its command lines still work.

use super::fields;
use super::groups::{DISPLAY, SCRIPTS, WITHOUT_EFFECT};
use crate::context::SharedArgs;
use crate::shared::Has;
use handlescope_render::output::COLUMNS;
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::{
    COLUMN, COLUMN_LIST, IGNORED, LOADED_FILES, SWITCH, TOP, ValueKind, file_in,
};
use handlescope_session::grammar::{Opt, OptionGroup, Take, To, to};
use handlescope_session::values::{CsvText, FORMATS, FormatOption, RequestedFormat, ValueError};

/// Options that every kind of `.dump` has in addition to its own.
pub const SHARED: &[OptionGroup<SharedArgs>] = &[
    OptionGroup { title: DISPLAY, options: &ROWS },
    OptionGroup { title: SCRIPTS, options: &format_options() },
    OptionGroup { title: WITHOUT_EFFECT, options: &ignored_of_dumps() },
];

/// The options about the rows of a kind and their columns.
const ROWS: [Opt<SharedArgs>; 3] = {
    let [top, sort] = row_options("-SortBy name");
    [top, sort, COLUMN_CHOICE]
};

const COLUMN_CHOICE: Opt<SharedArgs> = Opt {
    names: &[COLUMNS],
    help: "only these columns, in this order, or all",
    details: "Names as for -SortBy, separated by commas: -Columns process,pid; also columns that \
         text does not show by default. Tab and an unknown name list them. Documents always have \
         all columns, and multi-line rows become a table. If a terminal is too narrow for a table, \
         columns are left out until the rest fits, and a line below names them: Numbers, First, \
         Last, Ids, Stack, Free stack, Objects, Share, Duplicated, Unmapped, Closed, End, Allocated \
         by, Orphan frees, Frees, Allocs, Allocated, Created, Open, At exit, Bytes at exit, \
         Allocator, in this order, but none that -GroupBy or -SortBy names. With all, or if the \
         rest does not fit either, a group takes several lines. Processes leave out Session, \
         Parent, Exit code and End, modules Pdb, Size, Base and Loaded by, symbols Pdb.",
    example: "-Columns all",
    take: to(&(COLUMN_LIST, |args, columns| args.output.columns = columns)),
};

impl Has<SharedArgs> for SharedArgs {
    fn part(&mut self) -> &mut SharedArgs {
        self
    }
}

fields!(SharedArgs { notes: Notes });

/// Details of `-SortBy`: words of a single kind, followed by columns, which every kind has.
macro_rules! sort_details {
    ($($words:literal)?) => {
        concat!(
            $($words, " ",)?
            "Give the column's name in -csv or its heading in text, in any case. Numbers sort \
             from the largest, text from a to z, unknown values last. The rows of each file stay \
             together. An unknown name is an error that lists all columns."
        )
    };
}
pub(crate) use sort_details;

/// Returns the options that sort and limit the rows of a table.
pub const fn row_options<A: Has<SharedArgs>>(sort_example: &'static str) -> [Opt<A>; 2] {
    [
        Opt {
            names: &["-TopN"],
            help: "only N rows of each file, after skipping some",
            details: "In the order of the table or of -SortBy. Text counts the omitted rows.",
            example: "-TopN 10",
            take: to(&(TOP, |args, top| args.part().output.top = Some(top))),
        },
        sort_option(
            "sort by this column",
            sort_details!(),
            sort_example,
            &(COLUMN, |args, column| args.part().output.sort_by = Some(column)),
        ),
    ]
}

pub const fn sort_option<A>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
    set: &'static To<A, String>,
) -> Opt<A> {
    Opt { names: &["-SortBy"], help, details, example, take: to(set) }
}

/// `-csvraw`
pub const fn csv_raw_option<A>(example: &'static str, set: &'static To<A, ()>) -> Opt<A> {
    Opt {
        names: &["-csvraw"],
        help: "write text into CSV as it is",
        details: "By default a ' is put in front of text that starts with =, +, - or @ and is not \
             a number, because a spreadsheet would run it as a formula; also after line ends, \
             tabs, commas and semicolons. Use this for programs that compare names.",
        example,
        take: to(set),
    }
}

/// Returns the option for a format.
pub const fn format_option<A>(option: &'static FormatOption, take: &'static dyn Take<A>) -> Opt<A> {
    let FormatOption { names, help, details, example } = option;
    Opt { names, help, details, example, take }
}

/// Returns the option for the format at this index.
const fn format_at<A: Has<SharedArgs>, const INDEX: usize>() -> Opt<A> {
    let take = to(&(const { file_in(FORMATS[INDEX].file) }, |args: &mut A, file| {
        RequestedFormat { spec: FORMATS[INDEX], file }.add_to(&mut args.part().output.formats);
    }));
    format_option(&FORMATS[INDEX].option, take)
}

/// Returns the options for the files and formats of a table.
pub const fn format_options<A: Has<SharedArgs>>() -> [Opt<A>; FORMATS.len() + 3] {
    [
        files_option(&(LOADED_FILES, |args, filter| args.part().files.push(filter))),
        format_at::<A, 0>(),
        format_at::<A, 1>(),
        format_at::<A, 2>(),
        format_at::<A, 3>(),
        format_at::<A, 4>(),
        csv_raw_option(
            "-csv rows.csv -csvraw",
            &(SWITCH, |args, ()| args.part().output.csv_text = CsvText::Raw),
        ),
        force_option("-csv rows.csv -Force", &(SWITCH, |args, ()| args.part().output.force = true)),
    ]
}

pub const fn files_option<A>(set: &'static To<A, Filter>) -> Opt<A> {
    Opt {
        names: &["-fd", "-filedir"],
        help: "only files whose path matches; in a shell, traces to load",
        details: "Compared with the full path and with the file name. Given twice, both must \
             match. On the command line of a shell it names the files to load.",
        example: "-fd *leaky*",
        take: to(set),
    }
}

/// `-r`, for commands that take queries.
pub const fn recursive_queries_option<A>(example: &'static str, set: &'static To<A, ()>) -> Opt<A> {
    let help = "include subfolders";
    recursive_option(help, "Applies to every QUERY of the line, in any position.", example, set)
}

pub const fn recursive_option<A>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
    set: &'static To<A, ()>,
) -> Opt<A> {
    Opt { names: &["-r", "-rec", "-recursive"], help, details, example, take: to(set) }
}

pub const fn etwanalyzer_option<A>(
    details: &'static str,
    example: &'static str,
    set: &'static To<A, ()>,
) -> Opt<A> {
    let (names, help) = (&["-etwanalyzer", "--etwanalyzer"], "also write ETWAnalyzer's members");
    Opt { names, help, details, example, take: to(set) }
}

pub const fn max_size_option<A>(example: &'static str, set: &'static To<A, u64>) -> Opt<A> {
    Opt {
        names: &["-MaxSize", "--max-size"],
        help: "maximum size of an archive member",
        details: "Protects against archives that would fill the disk. Default: 64 GiB for a trace \
             in an archive, 16 GiB for a table of an extract, 4 GiB for a part of an \
             ETWAnalyzer extract, and no compression ratio above 1000.",
        example,
        take: to(set),
    }
}

pub const fn force_option<A>(example: &'static str, set: &'static To<A, ()>) -> Opt<A> {
    Opt {
        names: &["-Force"],
        help: "replace a file that handlescope did not write",
        details: "By default an existing file is replaced only if handlescope wrote it and \
             nothing changed it since. Loaded traces and extracts, and the trace of a loaded \
             extract, are never replaced. Also applies to > FILE.",
        example,
        take: to(set),
    }
}

/// Why options about test runs do nothing.
pub const SELECTION: &str = "test runs are not supported here, so all files count; choose with -fd";

/// Why `-nocolor` does nothing after a console command.
const NO_COLOR: &str = "-nocolor does nothing here; use --color never";

/// Why `-debug` does nothing.
pub const DEBUG: &str = "-debug does nothing; failures always print what is known";

/// Why options that were given have no effect.
pub type Notes = Vec<&'static str>;

/// Takes at most this many values, ignores them, and notes why.
pub struct Idle(pub usize, pub &'static str);

impl<A: Has<Notes>> Take<A> for Idle {
    fn value(&self) -> ValueKind<()> {
        ValueKind {
            arity: (0, self.0), placeholder: if self.0 == 0 { "" } else { "…" }, ..IGNORED
        }
    }

    fn apply(&self, args: &mut A, _: &[&str]) -> Result<(), ValueError> {
        args.part().push(self.1);
        Ok(())
    }
}

/// Declares an option that has no effect.
pub const fn ignored<A: Has<Notes>>(
    names: &'static [&'static str],
    example: &'static str,
    idle: &'static Idle,
) -> Opt<A> {
    Opt {
        names,
        help: "accepted, without effect",
        details: "Accepted because ETWAnalyzer has it, with a note that gives the reason.",
        example,
        take: idle,
    }
}

/// Why options about printing objects do nothing for other kinds of `.dump`.
const OBJECTS_ONLY: &str = "-Clip, -NoDigitSep, -ProcessFmt, -ppn, -sffn, -NoCSVSeparator and -NoCmdLine do nothing \
                            here; they concern ObjectRef";

/// Returns the options that ETWAnalyzer accepts after each kind of `-dump`. A kind that supports one declares it
/// itself.
const fn ignored_of_dumps<A: Has<Notes>>() -> [Opt<A>; 16] {
    let [no_color, debug, days, runs, skip, index, count] = ignored_everywhere();
    [
        ignored(
            &["-recursive"],
            "-recursive",
            &Idle(0, "-recursive does nothing here; it belongs to .load"),
        ),
        no_color,
        debug,
        runs,
        skip,
        index,
        count,
        days,
        ignored(&["-MinMaxMsTestTimes"], "-MinMaxMsTestTimes 0 100", &Idle(2, SELECTION)),
        ignored(&["-Clip"], "-Clip", &Idle(0, OBJECTS_ONLY)),
        ignored(&["-NoDigitSep"], "-NoDigitSep", &Idle(0, OBJECTS_ONLY)),
        ignored(&["-ProcessFmt"], "-ProcessFmt s", &Idle(1, OBJECTS_ONLY)),
        ignored(&["-ppn", "-PlainProcessNames"], "-ppn", &Idle(0, OBJECTS_ONLY)),
        ignored(&["-sffn", "-ShowFullFileName"], "-sffn", &Idle(0, OBJECTS_ONLY)),
        ignored(&["-NoCSVSeparator"], "-NoCSVSeparator", &Idle(0, OBJECTS_ONLY)),
        ignored(&["-NoCmdLine"], "-NoCmdLine", &Idle(0, OBJECTS_ONLY)),
    ]
}

/// Returns the options that ETWAnalyzer accepts after each of its commands.
pub const fn ignored_everywhere<A: Has<Notes>>() -> [Opt<A>; 7] {
    [
        ignored(&["-nocolor"], "-nocolor", &Idle(0, NO_COLOR)),
        ignored(&["-debug"], "-debug", &Idle(0, DEBUG)),
        ignored(&["-LastNDays"], "-LastNDays 1", &Idle(1, SELECTION)),
        ignored(&["-TestsPerRun"], "-TestsPerRun 1", &Idle(1, SELECTION)),
        ignored(&["-SkipNTests"], "-SkipNTests 1", &Idle(1, SELECTION)),
        ignored(&["-TestRunIndex", "-tri"], "-TestRunIndex 0", &Idle(1, SELECTION)),
        ignored(&["-TestRunCount", "-trc"], "-TestRunCount 1", &Idle(1, SELECTION)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use handlescope_render::output::LEFT_OUT;

    #[test]
    fn the_help_of_columns_says_in_which_order_they_are_left_out() {
        let order = format!("a line below names them: {}, in this order", LEFT_OUT.join(", "));
        assert!(COLUMN_CHOICE.details.contains(&order), "{}", COLUMN_CHOICE.details);
    }
}
