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
