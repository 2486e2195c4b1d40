//! What ETWAnalyzer accepts and nothing here needs: its command lines keep working.

use crate::{
    command::ObjectRefArgs,
    registry::{Doc, Opt, Take},
};

/// Options without effect, each of which tells why.
pub(super) static WITHOUT_EFFECT: &[Opt<ObjectRefArgs>] = &[
    ignored(&["-recursive"], "-recursive", 0, "-recursive does nothing here; it belongs to .load"),
    ignored(&["-nocolor"], "-nocolor", 0, "-nocolor does nothing here; use --color never"),
    ignored(&["-debug"], "-debug", 0, "-debug does nothing; failures always say what is known"),
    ignored(&["-TestsPerRun"], "-TestsPerRun 1", 1, SELECTION),
    ignored(&["-SkipNTests"], "-SkipNTests 1", 1, SELECTION),
    ignored(&["-TestRunIndex", "-tri"], "-TestRunIndex 0", 1, SELECTION),
    ignored(&["-TestRunCount", "-trc"], "-TestRunCount 1", 1, SELECTION),
    ignored(&["-LastNDays"], "-LastNDays 2", 1, SELECTION),
    ignored(&["-MinMaxMsTestTimes"], "-MinMaxMsTestTimes 0 100", 2, SELECTION),
];

const SELECTION: &str = "test runs are not known here, so all files count; choose with -fd";

const fn ignored(
    names: &'static [&'static str],
    example: &'static str,
    values: usize,
    note: &'static str,
) -> Opt<ObjectRefArgs> {
    Opt {
        doc: Doc {
            names,
            help: "accepted without effect",
            details: "ETWAnalyzer has it, so it is accepted, with a note that says why it does \
                      nothing.",
            example,
        },
        take: Take::Ignored(values, note, |args| &mut args.notes),
    }
}
