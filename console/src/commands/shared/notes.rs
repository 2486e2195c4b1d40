//! What ETWAnalyzer accepts and nothing here needs: its command lines keep working.

use crate::{
    grammar::{Opt, Take},
    terminal::Messages,
};

/// Why options for test runs do nothing.
pub(crate) const SELECTION: &str =
    "test runs are not supported here, so all files count; choose with -fd";

/// Why `-nocolor` does nothing after a command of the console.
const NO_COLOR: &str = "-nocolor does nothing here; use --color never";

/// Why `-debug` does nothing.
pub(crate) const DEBUG: &str = "-debug does nothing; failures always print what is known";

/// Arguments with a place for notes about options without effect.
pub(crate) trait TakesNotes {
    /// Why options that were given have no effect.
    fn notes(&mut self) -> &mut Vec<&'static str>;
}

/// An option of so many values at most that has no effect, for the reason in the note.
pub(crate) const fn ignored<A: TakesNotes>(
    names: &'static [&'static str],
    example: &'static str,
    values: usize,
    note: &'static str,
) -> Opt<A> {
    Opt {
        names,
        help: "accepted without effect",
        details: "ETWAnalyzer has it, so it is accepted, with a note that gives the \
                  reason.",
        example,
        take: Take::Ignored(values, note, |args| args.notes()),
    }
}

/// Why options about how objects are printed do nothing for other kinds of `.dump`.
const OBJECTS_ONLY: &str = "-Clip, -NoDigitSep, -ProcessFmt, -ppn, -sffn, -NoCSVSeparator and -NoCmdLine do nothing \
                            here; they concern ObjectRef";

/// What ETWAnalyzer accepts after each kind of `-dump`. A kind for which one does something has it as its own.
pub(crate) const fn ignored_of_dumps<A: TakesNotes>() -> [Opt<A>; 16] {
    let [no_color, debug, days, runs, skip, index, count] = ignored_everywhere();
    [
        ignored(
            &["-recursive"],
            "-recursive",
            0,
            "-recursive does nothing here; it belongs to .load",
        ),
        no_color,
        debug,
        runs,
        skip,
        index,
        count,
        days,
        ignored(&["-MinMaxMsTestTimes"], "-MinMaxMsTestTimes 0 100", 2, SELECTION),
        ignored(&["-Clip"], "-Clip", 0, OBJECTS_ONLY),
        ignored(&["-NoDigitSep"], "-NoDigitSep", 0, OBJECTS_ONLY),
        ignored(&["-ProcessFmt"], "-ProcessFmt s", 1, OBJECTS_ONLY),
        ignored(&["-ppn", "-PlainProcessNames"], "-ppn", 0, OBJECTS_ONLY),
        ignored(&["-sffn", "-ShowFullFileName"], "-sffn", 0, OBJECTS_ONLY),
        ignored(&["-NoCSVSeparator"], "-NoCSVSeparator", 0, OBJECTS_ONLY),
        ignored(&["-NoCmdLine"], "-NoCmdLine", 0, OBJECTS_ONLY),
    ]
}

/// What ETWAnalyzer accepts after each of its commands.
pub(crate) const fn ignored_everywhere<A: TakesNotes>() -> [Opt<A>; 7] {
    [
        ignored(&["-nocolor"], "-nocolor", 0, NO_COLOR),
        ignored(&["-debug"], "-debug", 0, DEBUG),
        ignored(&["-LastNDays"], "-LastNDays 1", 1, SELECTION),
        ignored(&["-TestsPerRun"], "-TestsPerRun 1", 1, SELECTION),
        ignored(&["-SkipNTests"], "-SkipNTests 1", 1, SELECTION),
        ignored(&["-TestRunIndex", "-tri"], "-TestRunIndex 0", 1, SELECTION),
        ignored(&["-TestRunCount", "-trc"], "-TestRunCount 1", 1, SELECTION),
    ]
}

/// Prints notes about options without effect, each once.
pub(crate) fn write_notes(notes: &[&str], messages: &mut Messages<'_>) {
    for (at, note) in notes.iter().enumerate() {
        if !notes.iter().take(at).any(|seen| seen == note) {
            messages.note(format_args!("note: {note}"));
        }
    }
}
