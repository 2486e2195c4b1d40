//! What ETWAnalyzer accepts and nothing here needs: its command lines keep working.

use super::{Doc, Opt, Take};
use crate::command::{ExtractArgs, ObjectRefArgs};

/// Why options for test runs do nothing.
pub(super) const SELECTION: &str =
    "test runs are not known here, so all files count; choose with -fd";

/// Why `-nocolor` does nothing behind a command of the console.
pub(super) const NO_COLOR: &str = "-nocolor does nothing here; use --color never";

/// Why `-debug` does nothing.
pub(crate) const DEBUG: &str = "-debug does nothing; failures always say what is known";

/// Arguments with a place for what is to be told about them.
pub(super) trait TakesNotes {
    /// Options that were accepted without effect, each with the reason.
    fn notes(&mut self) -> &mut Vec<&'static str>;
}

macro_rules! takes_notes {
    ($($args:ty),*) => {$(
        impl TakesNotes for $args {
            fn notes(&mut self) -> &mut Vec<&'static str> {
                &mut self.notes
            }
        }
    )*};
}

takes_notes!(ObjectRefArgs, ExtractArgs);

/// An option of so many values at most that does nothing but tell why.
pub(super) const fn ignored<A: TakesNotes>(
    names: &'static [&'static str],
    example: &'static str,
    values: usize,
    note: &'static str,
) -> Opt<A> {
    Opt {
        doc: Doc {
            names,
            help: "accepted without effect",
            details: "ETWAnalyzer has it, so it is accepted, with a note that says why it does \
                      nothing.",
            example,
        },
        take: Take::Ignored(values, note, |args| args.notes()),
    }
}
