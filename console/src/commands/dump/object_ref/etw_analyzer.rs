//! What ETWAnalyzer accepts behind `-dump` and nothing here needs.

use super::args::ObjectRefArgs;
use crate::{
    commands::shared::notes::{DEBUG, NO_COLOR, SELECTION, ignored},
    grammar::Opt,
};

/// Options without effect, each with the reason.
pub(super) static WITHOUT_EFFECT: &[Opt<ObjectRefArgs>] = &[
    ignored(&["-recursive"], "-recursive", 0, "-recursive does nothing here; it belongs to .load"),
    ignored(&["-nocolor"], "-nocolor", 0, NO_COLOR),
    ignored(&["-debug"], "-debug", 0, DEBUG),
    ignored(&["-TestsPerRun"], "-TestsPerRun 1", 1, SELECTION),
    ignored(&["-SkipNTests"], "-SkipNTests 1", 1, SELECTION),
    ignored(&["-TestRunIndex", "-tri"], "-TestRunIndex 0", 1, SELECTION),
    ignored(&["-TestRunCount", "-trc"], "-TestRunCount 1", 1, SELECTION),
    ignored(&["-LastNDays"], "-LastNDays 2", 1, SELECTION),
    ignored(&["-MinMaxMsTestTimes"], "-MinMaxMsTestTimes 0 100", 2, SELECTION),
];
