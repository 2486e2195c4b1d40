//! `.dump Events`

use std::path::Path;

use handlescope_model::Untrusted;

use crate::{
    commands::{
        CommandError, DumpContext, Kind, KindSignature,
        shared::{
            caveats::write_no_match,
            choice::{process_option, time_option},
            groups,
        },
    },
    grammar::{Example, Opt, OptionGroup, Take, Texts},
    query::{self, EventCriteria},
    render::{self, OutputOptions},
    terminal::Messages,
};

pub(crate) struct Events;

impl Kind for Events {
    type Args = EventCriteria;
    const SIGNATURE: KindSignature = KindSignature {
        name: "Events",
        summary: "all events of the trace, counted by provider and event",
        details: "Of every event of the source, whether an extract keeps it or not: how often it \
                  occurs, and when first and last. Names are those of the metadata in the trace: \
                  EventInfo records, TraceLogging, manifests of EventSource. An event without a \
                  name is listed by its id, a provider by its GUID. Single events, and events of some \
                  time or process, are known where the trace was extracted with -events.",
        examples: &[
            Example { goal: "what is in this trace?", line: ".dump Events" },
            Example { goal: "the events of the kernel", line: ".dump Events -Provider *kernel*" },
            Example {
                goal: "the most frequent events",
                line: ".dump Events -SortBy count -TopN 10",
            },
        ],
    };
    const OPTIONS: &'static [OptionGroup<EventCriteria>] = &[
        OptionGroup { title: "Which events", options: WHICH },
        OptionGroup { title: groups::DISPLAY, options: DISPLAY },
    ];

    fn columns() -> Vec<String> {
        render::event_columns().names()
    }

    fn answer(args: &EventCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        if args.fields || args.stacks.show {
            return single_events(args, dump);
        }
        let is_of_single = args.process.is_some() || args.time.is_some();
        let count = if is_of_single { query::chosen_event_counts } else { query::event_counts };
        let answers = count(dump.sources, args, dump.cancel)?;
        if is_of_single {
            let without = answers.iter().filter(|answer| answer.total == 0);
            note_without_events(without.map(|answer| answer.path), dump.messages);
        }
        answers
            .iter()
            .for_each(|own| write_no_match(own.path, own.no_match.as_ref(), dump.messages));
        dump.write(render::event_counts(&answers)?)
    }
}

fn single_events(args: &EventCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    let output = &dump.shared.output;
    // Fields are read only of events that are shown, if the order decides which.
    let (top, rest) = match output.sort_by {
        None => (output.top, None),
        Some(_) => (None, output.top),
    };
    let criteria = EventCriteria { top, ..args.clone() };
    let answers = query::provider_events(dump.sources, &criteria, dump.names, dump.cancel)?;
    let without = answers.iter().filter(|answer| answer.kept == 0);
    note_without_events(without.map(|answer| answer.path), dump.messages);
    answers.iter().for_each(|own| write_no_match(own.path, own.no_match.as_ref(), dump.messages));
    let (output, display) = (OutputOptions { top: rest, ..output.clone() }, dump.display());
    let table = render::provider_events(&answers, args.fields, args.stacks, &display)?;
    table.write(&output, &display, &dump.overwrite(), dump.cancel, dump.out)?;
    Ok(())
}

/// Says of which traces no single events are known.
fn note_without_events<'a>(paths: impl Iterator<Item = &'a Path>, messages: &mut Messages<'_>) {
    for path in paths {
        messages.note(format_args!(
            "note: {}: single events are not kept; extract it with -events PROVIDER, or -events all",
            Untrusted(path)
        ));
    }
}

static DISPLAY: &[Opt<EventCriteria>] = &[
    Opt {
        names: &["-ShowFields"],
        help: "single events in time order, with their fields",
        details: "Of a trace that was extracted with -events.",
        example: "-ShowFields",
        take: Take::Switch(|args| &mut args.fields),
    },
    Opt {
        names: &["-Stack"],
        help: "single events in time order, with the stacks that they carry",
        details: "Of a trace that was extracted with -events.",
        example: "-Stack",
        take: Take::Switch(|args| &mut args.stacks.show),
    },
];

static WHICH: &[Opt<EventCriteria>] = &[
    Opt {
        names: &["-Provider"],
        help: "events of these providers",
        details: "By name or GUID. Events of the kernel have the provider Windows Kernel.",
        example: "-Provider *kernel*",
        take: Take::Filter(Texts::Other, |args| &mut args.provider),
    },
    Opt {
        names: &["-Event"],
        help: "events of these names",
        details: "By name, id, or kind as in hook:1120.",
        example: "-Event *Handle*",
        take: Take::Filter(Texts::Other, |args| &mut args.event),
    },
    process_option(
        "events that these processes logged",
        "By the header of the event. Of a trace that was extracted with -events. The name may go without .exe; a \
         number is a pid; ! in front excludes.",
        |args| &mut args.process,
    ),
    time_option(
        "events in this time since session start",
        "In seconds; units as in 10ms work. Of a trace that was extracted with -events.",
        |args| &mut args.time,
    ),
];
