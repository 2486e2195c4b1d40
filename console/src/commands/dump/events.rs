//! `.dump Events`

use crate::{
    commands::{CommandError, DumpContext, Kind, KindSignature},
    grammar::{Example, Opt, OptionGroup, Take, Texts},
    query::{self, EventCriteria},
    render,
};

pub(crate) struct Events;

impl Kind for Events {
    type Args = EventCriteria;
    const SIGNATURE: KindSignature = KindSignature {
        name: "Events",
        summary: "all events of the trace, counted by provider and event",
        details: "Of every event of the source, whether an extract keeps it or not: how often it \
                  occurs, and when first and last. Names are those of the metadata in the trace: \
                  EventInfo records, TraceLogging, manifests of EventSource. An event that nothing \
                  names goes by its id, a provider by its GUID.",
        examples: &[
            Example { goal: "what is in this trace?", line: ".dump Events" },
            Example { goal: "the events of the kernel", line: ".dump Events -Provider *kernel*" },
            Example {
                goal: "the most frequent events",
                line: ".dump Events -SortBy count -TopN 10",
            },
        ],
    };
    const OPTIONS: &'static [OptionGroup<EventCriteria>] =
        &[OptionGroup { title: "Which events", options: WHICH }];

    fn columns() -> Vec<String> {
        render::columns(render::event_counts(&[]))
    }

    fn answer(args: &EventCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::event_counts(dump.sources, args, dump.cancel)?;
        dump.write(render::event_counts(&answers)?)
    }
}

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
];
