//! What ETWAnalyzer accepts after `-dump` and nothing here needs.

use super::args::ObjectRefArgs;
use crate::{
    commands::shared::notes::{SELECTION, ignored, ignored_everywhere},
    grammar::Opt,
};

/// Options without effect, each with the reason.
pub(super) static WITHOUT_EFFECT: &[Opt<ObjectRefArgs>] = &{
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
    ]
};
