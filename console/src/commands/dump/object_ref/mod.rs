//! `.dump ObjectRef`. Its options have one file per purpose.

mod args;
mod display;
mod etw_analyzer;
mod objects;
mod output;
mod shares;
mod stacks;

pub(crate) use self::args::ObjectRefArgs;

use crate::{
    cancel::Cancelled,
    commands::{
        CommandError, DumpContext, Kind, KindSignature, SharedArgs,
        shared::{groups::SCRIPTS, notes::write_notes},
    },
    grammar::{Example, OptionGroup, ParseError},
    query::{self, ObjectCriteria, ShowTotal},
    render,
    values::JsonMode,
};

pub(crate) struct ObjectRef;

impl Kind for ObjectRef {
    type Args = ObjectRefArgs;
    const SIGNATURE: KindSignature = KindSignature {
        name: "ObjectRef",
        summary: "kernel objects with their handles, references, mappings and stacks",
        details: "Prints every object that passes all filters, with its events, and a line of \
                  totals. An object's id is the same in every query.",
        examples: EXAMPLES,
    };
    const OPTIONS: &'static [OptionGroup<ObjectRefArgs>] = OPTIONS;

    /// A CSV file holds the events of objects, and nothing but them.
    fn check(args: &ObjectRefArgs, shared: &SharedArgs) -> Result<(), ParseError> {
        let has_table = !matches!(args.criteria.show_total, None | Some(ShowTotal::None));
        let (other, reason) = match () {
            () if args.csv.is_none() => return Ok(()),
            () if shared.json == JsonMode::Lines => ("-json", "choose one"),
            () if shared.json == JsonMode::Pretty => ("-json-pretty", "choose one"),
            () if has_table => {
                ("-ShowTotal", "the file holds events, not totals; for totals leave out -csv")
            }
            () => return Ok(()),
        };
        Err(ParseError::Conflict { option: "-csv", other, reason })
    }

    fn answer(args: &ObjectRefArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        write_notes(&args.notes, dump.messages);
        let criteria = ObjectCriteria {
            plain_process_names: args.display.plain_process_names,
            for_programs: dump.shared.json != JsonMode::Off,
            ..args.criteria.clone()
        };
        let answer = query::object_ref(dump.sources, &criteria, dump.names, dump.cancel)?;
        let display = dump.session.settings.display(&args.display, dump.screen);
        let style = args.style(&criteria, &dump.shared.text);
        let Some(path) = &args.csv else {
            return Ok(render::object_ref(&answer, &style, dump.shared.json, &display, dump.out)?);
        };
        let failed = |source| match dump.cancel.check() {
            Ok(()) => CommandError::Csv { path: path.clone(), source },
            Err(Cancelled) => CommandError::Cancelled,
        };
        let written = render::csv(&answer, &style, &display, path).map_err(failed)?;
        writeln!(dump.out, "CSV export was successful. File is: {}", written.display())?;
        Ok(())
    }
}

/// All options, under the headings of the help.
static OPTIONS: &[OptionGroup<ObjectRefArgs>] = &[
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
