//! `.dump Stack`

use crate::shared::choice::{
    command_line_option, new_process_option, process_option, show_address_option, show_line_option,
    show_stack_option, stack_filter_option, time_option,
};
use crate::shared::{fields, groups};
use crate::{Command, CommandError, DumpContext, Signature, Tabular};
use handlescope_query::{self as query, ProcessCriteria, StackCriteria};
use handlescope_render as render;
use handlescope_session::grammar::value::{COUNTS, FRAMES, TIMES};
use handlescope_session::grammar::{Example, Opt, OptionGroup, to};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::values::Format;

pub struct Stack;

impl Command for Stack {
    type Args = StackCriteria;
    const SIGNATURE: Signature = Signature {
        names: &["Stack"],
        summary: "call stacks by how often they were recorded",
        details: "The most frequent stacks first, each process by itself. The innermost frame is \
             the first one outside the system modules; see .sys. Stacks come from handle events, or \
             from every event, CPU samples too, if the trace was extracted with -stacks all. Kept \
             provider events (-events) add their own stacks.",
        examples: EXAMPLES,
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<StackCriteria>] = &[
        OptionGroup { title: "Which stacks", options: WHICH },
        OptionGroup { title: groups::DISPLAY, options: DISPLAY },
    ];

    const TABLE: Option<Tabular> = Some(Tabular::new(|| render::stack_columns(true).names()));

    fn answer(args: &StackCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        dump.note_stacks_beside_columns(args.stacks);
        let (top, output) = dump.rows_first();
        let is_text = output.format() == Format::Text;
        let mut criteria = StackCriteria { with_identities: !is_text, top, ..args.clone() };
        criteria.stacks.show |= args.ids.is_some();
        let answers = query::call_stacks(dump.sources, &criteria, dump.names, dump.cancel)?;
        dump.note_no_match(&answers);
        // The text already says so.
        if !is_text && answers.iter().any(|answer| !answer.list.has_every_stack) {
            dump.messages.note(
                "note: only stacks of handle events, allocations and kept provider events; \
                 extract with -stacks all for those of every event",
            );
        }
        let display = dump.display();
        let table = render::call_stacks(&answers, criteria.stacks, output.format(), &display)?;
        Ok(dump.write_as(table, &output, &display)?)
    }
}

fields!(StackCriteria { processes: ProcessCriteria, stacks: StackDisplayArgs });

/// Questions, with the command lines that answer them.
static EXAMPLES: &[Example] = &[
    Example { goal: "the most frequent stacks", line: ".dump Stack -TopN 10" },
    Example {
        goal: "what one program was doing",
        line: ".dump Stack -pn leaky -TopN 3 -ShowStack",
    },
    Example { goal: "the frames of one stack", line: ".dump Stack -Id 18" },
    Example { goal: "stacks through one function", line: ".dump Stack -StackFilter *CreateEvent*" },
];

static WHICH: &[Opt<StackCriteria>] = &[
    Opt {
        names: &["-Id"],
        help: "the stack with this number, with its frames",
        details: "The number after \"Stack:\" in .dump ObjectRef; two numbers are a range.",
        example: "-Id 18",
        take: to(&(COUNTS, |args, range| args.ids = Some(range))),
    },
    process_option(
        "stacks of events that happened in these processes",
        "Stacks of handles and allocations belong to the owner. The name may go without .exe; a \
         number is a pid; ! in front excludes.",
    ),
    command_line_option("stacks of events in processes with this command line"),
    new_process_option("stacks of events in processes that started or ended in the trace"),
    stack_filter_option(
        "stacks with a matching frame",
        "A filter is compared with each line module!function of the stack; an exclusion \
                  must match no line.",
        &(FRAMES, |args, filter| args.stack_filter = Some(filter)),
    ),
    time_option(
        "stacks of events in this time range, since session start",
        "In seconds, or with a unit: 10ms.",
        &(TIMES, |args, times| args.time = Some(times)),
    ),
];

static DISPLAY: &[Opt<StackCriteria>] =
    &[show_stack_option(), show_address_option(), show_line_option()];
