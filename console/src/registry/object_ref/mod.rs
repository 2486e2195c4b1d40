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
    OptionGroup { title: "Find leaks", options: objects::LEAKS },
    OptionGroup { title: "Which objects", options: objects::IDENTITY },
    OptionGroup { title: "Which events", options: objects::EVENTS },
    OptionGroup { title: "By stack", options: stacks::STACKS },
    OptionGroup { title: "Shared by processes or threads", options: shares::SHARED },
    OptionGroup { title: "File mappings", options: shares::MAPPINGS },
    OptionGroup { title: "Totals", options: output::TOTALS },
    OptionGroup { title: "How it is printed", options: display::DISPLAY },
    OptionGroup { title: SCRIPTS, options: output::SCRIPTS },
    OptionGroup { title: "Known from ETWAnalyzer", options: etw_analyzer::WITHOUT_EFFECT },
];

/// From the question to the command line.
pub(super) static EXAMPLES: &[Example] = &[
    Example {
        goal: "Leaked handles with the stacks that opened them",
        line: ".dump ObjectRef -Leak -ShowStack",
    },
    Example {
        goal: "Who holds the most handles?",
        line: ".dump ObjectRef -ShowTotal Process -TopN 5",
    },
    Example {
        goal: "Leaked events of one program, by name",
        line: ".dump ObjectRef -pn leaky -Type Event -ObjectName *Leaky_Signal* -Leak",
    },
    Example {
        goal: "What one function opened",
        line: ".dump ObjectRef -CreateStack *EventCache::GetOrCreate*",
    },
    Example {
        goal: "Two threads that opened the same object",
        line: ".dump ObjectRef -pn leaky -Overlapped -ShowStack",
    },
    Example {
        goal: "Objects that were never closed, without threads",
        line: ".dump ObjectRef -MinMaxDuration 9999 -Type !Thread",
    },
    Example {
        goal: "The history of one handle value",
        line: ".dump ObjectRef -pn leaky -Handle 0xC0",
    },
];
