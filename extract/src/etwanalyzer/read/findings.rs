//! What was missing or odd in an extract, counted.

use std::cell::Cell;

use crate::options::ExtractWarning;

/// Kinds of what is missing or odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// No handle part.
    NoHandles,
    /// No stacks part, though there are handles.
    NoStacks,
    /// No start of the session.
    NoStart,
    /// Events or handles of a process number that is not in the file.
    UnknownProcess,
    /// Events with a stack number that is not in the file.
    UnknownStack,
    /// Objects that were left out because row numbers end.
    TooMany,
    /// A newer version of this program wrote it.
    Newer,
}

const TEXTS: [&str; 7] = [
    "no handle data in this extract",
    "no stacks in this extract",
    "no session start in this extract, so that absolute times are unknown",
    "handle event of an unknown process",
    "handle event with an unknown stack",
    "object left out because there are too many events",
    "written by a newer handlescope; what ETWAnalyzer would not know is left out",
];

/// How often each kind was found.
#[derive(Debug, Default)]
pub(super) struct Findings([Cell<u64>; TEXTS.len()]);

impl Findings {
    pub(super) fn count(&self, finding: Finding) {
        if let Some(count) = self.0.get(finding as usize) {
            count.set(count.get() + 1);
        }
    }

    /// Those that were found.
    pub(super) fn warnings(&self) -> Vec<ExtractWarning> {
        let warning = |(kind, count): (&&'static str, &Cell<u64>)| ExtractWarning {
            kind,
            count: count.get(),
            first_offset: None,
        };
        TEXTS.iter().zip(&self.0).map(warning).filter(|warning| warning.count > 0).collect()
    }
}
