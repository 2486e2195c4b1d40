//! The options of `.dump Stack`.

use super::{
    Doc, Example, Opt, OptionGroup, Take, Texts,
    kinds::{ROWS, SCRIPTS},
    output::{row_options, table_options},
    stack_display::{show_address_option, show_line_option, show_stack_option},
};
use crate::command::StackArgs;

/// From the question to the command line.
pub(super) static EXAMPLES: &[Example] = &[
    Example { goal: "the most frequent stacks", line: ".dump Stack -TopN 10" },
    Example {
        goal: "what one program was doing",
        line: ".dump Stack -pn leaky -TopN 3 -ShowStack",
    },
    Example { goal: "through one function", line: ".dump Stack -StackFilter *CreateEvent*" },
];

/// All options, under the headings of the help.
pub(crate) static GROUPS: &[OptionGroup<StackArgs>] = &[
    OptionGroup { title: "Which stacks", options: WHICH },
    OptionGroup { title: ROWS, options: ORDER },
    OptionGroup { title: "Change how they are printed", options: DISPLAY },
    OptionGroup { title: SCRIPTS, options: &table_options() },
];

static WHICH: &[Opt<StackArgs>] = &[
    Opt {
        doc: Doc {
            names: &["-pn", "-ProcessName"],
            help: "stacks of processes of this name or pid",
            details: "The name may go without .exe; a number is a pid; ! in front excludes.",
            example: "-pn leaky;!4",
        },
        take: Take::Processes(|args| &mut args.process),
    },
    Opt {
        doc: Doc {
            names: &["-sf", "-StackFilter"],
            help: "stacks with a matching frame",
            details: "A filter is compared with each line module!function of the stack; an exclusion \
                      must match no line.",
            example: "-StackFilter *Session::Connect*",
        },
        take: Take::Filter(Texts::Frames, |args| &mut args.stack_filter),
    },
    Opt {
        doc: Doc {
            names: &["-MinMaxTime"],
            help: "stacks of events in this time since session start",
            details: "In seconds; units as in 10ms work.",
            example: "-MinMaxTime 0 1.5s",
        },
        take: Take::Seconds(|args| &mut args.time),
    },
];

static ORDER: &[Opt<StackArgs>] = &row_options("-SortBy depth");

static DISPLAY: &[Opt<StackArgs>] =
    &[show_stack_option(), show_address_option(), show_line_option()];
