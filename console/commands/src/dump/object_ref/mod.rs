//! `.dump ObjectRef`. Its options are in one file per purpose.

mod args;
mod display;
mod groups;
mod objects;
mod of_fleet;
mod output;
mod shares;
mod stacks;

pub use self::args::ObjectRefArgs;

use crate::shared::groups as headings;
use crate::shared::write_caveats;
use crate::{Command, CommandError, DumpContext, OverDataset, SharedArgs, Signature, Tabular};
use handlescope_query::{self as query, AcquisitionCriteria, Stat};
use handlescope_render::{self as render, OutputOptions};
use handlescope_session::grammar::{Example, OptionGroup, ParseError};
use handlescope_session::values::Format;

pub struct ObjectRef;

impl Command for ObjectRef {
    type Args = ObjectRefArgs;
    const SIGNATURE: Signature = Signature {
        names: &["ObjectRef"],
        summary: "kernel objects with their handles, references, mappings and stacks",
        details: "Prints objects that pass all filters, their events and totals. An id is the same in \
                  every query.",
        examples: EXAMPLES,
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<ObjectRefArgs>] = &[
        LEAKS,
        CHOICE,
        OptionGroup { title: "Find the code: stacks", options: stacks::STACKS },
        SHARED,
        MAPPINGS,
        OptionGroup { title: "Count", options: output::TOTALS },
        OptionGroup { title: "Group", options: groups::GROUPS },
        OptionGroup { title: headings::DISPLAY, options: display::DISPLAY },
        OptionGroup { title: headings::SCRIPTS, options: output::SCRIPTS },
    ];

    /// The columns of events only: files contain nothing else, and totals have their own order.
    const TABLE: Option<Tabular> = Some(Tabular {
        choices: || render::tree_columns().map(str::to_owned).collect(),
        ..Tabular::new(|| render::object_orders().names())
    });

    const FOR_DATASET: Option<&'static OverDataset<ObjectRefArgs>> = Some(&of_fleet::OF_FLEET);

    fn add_output(args: &ObjectRefArgs, output: &mut OutputOptions) {
        output.formats.splice(..0, args.formats.iter().cloned());
        output.sort_by.clone_from(&args.sort_by);
    }

    fn check(args: &ObjectRefArgs, shared: &SharedArgs) -> Result<(), ParseError> {
        let output = &shared.output;
        check_groups(args, output)?;
        if args.criteria.count_by.is_none() {
            return Ok(());
        }
        let refuse =
            |option, reason| Err(ParseError::Conflict { option, other: "-ShowTotal", reason });
        if args.order(output).is_none() {
            let reason = "totals can be sorted by Handles, or by Type, Process or File, whichever is counted";
            return refuse("-SortBy", reason);
        }
        match (output.format(), output.format_option()) {
            (Format::Text | Format::Json(_), _) | (_, None) => Ok(()),
            (_, Some(option)) => {
                refuse(option, "that format has events, not totals; text and -json have totals")
            }
        }
    }

    fn answer(args: &ObjectRefArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        if let Some(option) = args.option_without_groups(&dump.shared.output) {
            dump.messages.note(format_args!("note: {option} has no effect without -GroupBy"));
        }
        if let Some(option) = args.criteria.stacks.option_without_stacks() {
            dump.messages.note(format_args!("note: {option} has no effect without -ShowStack"));
        }
        if args.criteria.stacks.show && args.criteria.count_by.is_some() {
            dump.messages.note(format_args!("note: -ShowStack has no effect with -ShowTotal"));
        }
        if args.criteria.show_target && !args.lists_objects() {
            let beside = "-ShowTotal or -GroupBy";
            dump.messages.note(format_args!("note: -ShowTarget has no effect with {beside}"));
        }
        let output = &dump.shared.output;
        let mut criteria = AcquisitionCriteria {
            plain_process_names: args.display.plain_process_names,
            with_identities: output.is_document(),
            order: args.order(output).unwrap_or_default(),
            ..args.criteria.clone().narrowed_to_leaks_of_suspect()
        };
        criteria.groups.order = output.sort_by.as_deref().and_then(Stat::named);
        let (sources, names, cancel) = (dump.sources, dump.names, dump.cancel);
        let mut answer = query::object_ref(sources, &criteria, names, cancel)?;
        if matches!(output.format(), Format::Text | Format::Json(_)) {
            answer.add_gui_handles(sources, &criteria, names, cancel)?;
        }
        answer.files.iter().for_each(|file| write_caveats(file, dump.session, dump.messages));
        let display = output.display(dump.display_as(&args.display));
        let style = args.style(&criteria, &dump.shared.text);
        let overwrite = dump.overwrite();
        Ok(render::object_ref(answer, &style, output, &display, &overwrite, cancel, dump.out)?)
    }
}

/// Checks whether the options about groups fit the other options.
fn check_groups(args: &ObjectRefArgs, output: &OutputOptions) -> Result<(), ParseError> {
    if args.criteria.groups.by.is_none() {
        return Ok(());
    }
    let conflict = |option, reason| Err(ParseError::Conflict { option, other: "-GroupBy", reason });
    match (args.criteria.count_by, &output.sort_by) {
        (None, None) => Ok(()),
        (None, Some(column)) if Stat::named(column).is_some() => Ok(()),
        (_, Some(_)) => {
            conflict("-SortBy", "groups can be sorted by one of their figures, such as leaked")
        }
        _ => conflict("-ShowTotal", "both count handles; choose one"),
    }
}

/// The options that select handles, for every command that does.
pub static FILTERS: &[OptionGroup<ObjectRefArgs>] = &[LEAKS, CHOICE, STACKS, SHARED, MAPPINGS];

/// Like [`FILTERS`], for a command about all leaks, which it compares with what is closed.
pub static LEAK_FILTERS: &[OptionGroup<ObjectRefArgs>] = &[CHOICE, STACKS, SHARED, MAPPINGS];

const LEAKS: OptionGroup<ObjectRefArgs> =
    OptionGroup { title: "Find what leaks", options: objects::LEAKS };
const CHOICE: OptionGroup<ObjectRefArgs> =
    OptionGroup { title: "Choose objects and events", options: objects::CHOICE };
const STACKS: OptionGroup<ObjectRefArgs> =
    OptionGroup { title: "Choose by stacks", options: stacks::FILTERS };
const SHARED: OptionGroup<ObjectRefArgs> =
    OptionGroup { title: "Find what processes or threads share", options: shares::SHARED };
const MAPPINGS: OptionGroup<ObjectRefArgs> =
    OptionGroup { title: "Look at file mappings", options: shares::MAPPINGS };

/// Questions, with the command lines that answer them.
static EXAMPLES: &[Example] = &[
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
        goal: "which code leaks what, the worst first",
        line: ".dump ObjectRef -Leak -LeakAtExit -GroupBy process,type,createstack -ss",
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
