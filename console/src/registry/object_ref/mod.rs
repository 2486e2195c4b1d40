//! The options of `.dump ObjectRef`, one file per purpose.

mod display;
mod etw_analyzer;
mod objects;
mod output;
mod shares;
mod stacks;

use super::{Example, OptionGroup, kinds::SCRIPTS};
use crate::command::ObjectRefArgs;

/// All options, under the headings of the help.
pub(crate) static GROUPS: &[OptionGroup<ObjectRefArgs>] = &[
    OptionGroup { title: "Find what leaks", options: objects::LEAKS },
    OptionGroup { title: "Choose objects and events", options: objects::CHOICE },
    OptionGroup { title: "Find out who did it: stacks", options: stacks::STACKS },
    OptionGroup { title: "Find what processes or threads share", options: shares::SHARED },
    OptionGroup { title: "Look at file mappings", options: shares::MAPPINGS },
    OptionGroup { title: "Count", options: output::TOTALS },
    OptionGroup { title: "Change how it is printed", options: display::DISPLAY },
    OptionGroup { title: SCRIPTS, options: output::SCRIPTS },
    OptionGroup {
        title: "Known from ETWAnalyzer, without effect",
        options: etw_analyzer::WITHOUT_EFFECT,
    },
];

/// From the question to the command line.
pub(super) static EXAMPLES: &[Example] = &[
    Example {
        goal: "who holds the most handles",
        line: ".dump ObjectRef -ShowTotal Process -TopN 5",
    },
    Example {
        goal: "leaked handles, and who opened them",
        line: ".dump ObjectRef -pn leaky -Leak -ss",
    },
    Example {
        goal: "one type, some names",
        line: ".dump ObjectRef -Type Event -ObjectName *Signal_4* -Leak",
    },
    Example {
        goal: "what one function opened",
        line: ".dump ObjectRef -CreateStack *Session::Connect*",
    },
    Example {
        goal: "opened by two threads at once",
        line: ".dump ObjectRef -pn leaky -Overlapped -ss",
    },
    Example {
        goal: "never closed, but for threads",
        line: ".dump ObjectRef -MinMaxDuration 9999 -Type !Thread",
    },
    Example {
        goal: "the history of a handle value",
        line: ".dump ObjectRef -pn leaky -Handle 0xC0",
    },
];
