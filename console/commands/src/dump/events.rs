//! `.dump Events` and `.dump Stats`: the contents of a trace.

use std::path::Path;

use handlescope_model::Untrusted;

use crate::shared::choice::{command_line_option, new_process_option, process_option, time_option};
use crate::shared::{fields, groups};
use crate::{Command, CommandError, DumpContext, Signature, Tabular};
use handlescope_query::{self as query, EventCriteria, ProcessCriteria};
use handlescope_render as render;
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::{SWITCH, TEXTS, TIMES};
use handlescope_session::grammar::{Example, Opt, OptionGroup, to};
use handlescope_session::terminal::Messages;

pub struct Events;

impl Command for Events {
    type Args = EventCriteria;
    const SIGNATURE: Signature = Signature {
        names: &["Events"],
        summary: "all events of the trace, counted by provider and event",
        details: "Counts every event of the source, kept in the extract or not, with first and \
             last time. Names come from metadata in the trace: EventInfo records, TraceLogging, \
             EventSource manifests. An event without a name is listed by its id, a provider by \
             its GUID. Single events, and events of a time range or process, need a trace \
             extracted with -events.",
        examples: &[
            Example { goal: "what is in this trace?", line: ".dump Events" },
            Example { goal: "the events of the kernel", line: ".dump Events -Provider *kernel*" },
            Example {
                goal: "the most frequent events",
                line: ".dump Events -SortBy count -TopN 10",
            },
        ],
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<EventCriteria>] = &[
        OptionGroup { title: "Which events", options: WHICH },
        OptionGroup { title: groups::DISPLAY, options: DISPLAY },
    ];

    const TABLE: Option<Tabular> = Some(Tabular::new(|| render::event_columns().names()));

    fn answer(args: &EventCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        if args.fields || args.stacks.show {
            return single_events(args, dump);
        }
        let is_of_single = !args.processes.is_empty() || args.time.is_some();
        let count = if is_of_single { query::single_event_counts } else { query::event_counts };
        let answers = count(dump.sources, args, dump.cancel)?;
        if is_of_single {
            let without = answers.iter().filter(|answer| answer.list.total == 0);
            note_without_events(without.map(|answer| answer.path), dump.messages);
        }
        dump.note_no_match(&answers);
        dump.write(render::event_counts(&answers)?)
    }
}

fn single_events(args: &EventCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    let (top, output) = dump.rows_first();
    let criteria = EventCriteria { top, ..args.clone() };
    let answers = query::provider_events(dump.sources, &criteria, dump.names, dump.cancel)?;
    let without = answers.iter().filter(|answer| answer.list.kept == 0);
    note_without_events(without.map(|answer| answer.path), dump.messages);
    dump.note_no_match(&answers);
    let display = dump.display();
    let table = render::provider_events(&answers, args.fields, args.stacks, &display)?;
    Ok(dump.write_as(table, &output, &display)?)
}

/// Reports which traces have no single events.
fn note_without_events<'a>(paths: impl Iterator<Item = &'a Path>, messages: &mut Messages<'_>) {
    for path in paths {
        messages.note(format_args!(
            "note: {}: the extract has no single events; extract again with -events PROVIDER, or \
             -events all",
            Untrusted(path)
        ));
    }
}

fields!(EventCriteria { processes: ProcessCriteria });

static DISPLAY: &[Opt<EventCriteria>] = &[
    Opt {
        names: &["-ShowFields"],
        help: "single events in time order, with their fields",
        details: "Needs a trace extracted with -events.",
        example: "-ShowFields",
        take: to(&(SWITCH, |args, ()| args.fields = true)),
    },
    Opt {
        names: &["-Stack"],
        help: "single events in time order, with their stacks",
        details: "Needs a trace extracted with -events.",
        example: "-Stack",
        take: to(&(SWITCH, |args, ()| args.stacks.show = true)),
    },
];

static WHICH: &[Opt<EventCriteria>] = &[
    Opt {
        names: &["-Provider"],
        help: "events of these providers",
        details: "By name or GUID. Events of the kernel have the provider Windows Kernel.",
        example: "-Provider *kernel*",
        take: to(&(TEXTS, |args, filter| args.provider = Some(filter))),
    },
    Opt {
        names: &["-Event"],
        help: "events with these names",
        details: "By name, id, or kind as in hook:1120.",
        example: "-Event *Handle*",
        take: to(&(TEXTS, |args, filter| args.event = Some(filter))),
    },
    process_option(
        "events that these processes logged",
        "By the process in the header of the event. Needs a trace extracted with -events. The name \
         may go without .exe; a number is a pid; ! in front excludes.",
    ),
    command_line_option("events that processes with this command line logged"),
    new_process_option("events logged by processes that started or ended in the trace"),
    time_option(
        "events in this time range, since session start",
        "In seconds, or with a unit: 10ms. Needs a trace extracted with -events.",
        &(TIMES, |args, times| args.time = Some(times)),
    ),
];

pub struct Stats;

impl Command for Stats {
    /// `-Properties`: the names of the properties to print, instead of all.
    type Args = Option<Filter>;
    const SIGNATURE: Signature = Signature {
        names: &["Stats"],
        summary: "what is in the traces: machine, clock, events by kind, lost events",
        details: "Includes what could not be decoded or attributed; nothing is dropped silently.",
        examples: &[
            Example { goal: "is the trace complete?", line: ".dump Stats" },
            Example { goal: "which machine", line: ".dump Stats -Properties computer;os_*" },
            Example {
                goal: "what was lost, for scripts",
                line: ".dump Stats -Properties *_lost -json",
            },
        ],
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<Option<Filter>>] = &[OptionGroup {
        title: "What is printed",
        options: &[Opt {
            names: &["-Properties"],
            help: "only these properties, in every format",
            details: "The names are those of -json: computer, os_version, cpu_count, \
                      session_start_utc and so on; * lists all. Those of ETWAnalyzer work too: \
                      Machine, OSVersion, NumberOfProcessors, SessionStart.",
            example: "-Properties os_*;!os_build",
            take: to(&(TEXTS, |properties, filter| *properties = Some(filter))),
        }],
    }];

    const TABLE: Option<Tabular> = Some(Tabular::new(|| render::stats_columns().names()));

    fn answer(
        properties: &Option<Filter>,
        dump: &mut DumpContext<'_, '_>,
    ) -> Result<(), CommandError> {
        let answers = query::stats(dump.sources, dump.cancel)?;
        match properties {
            None => dump.write(render::stats(&answers, &dump.display())?),
            Some(filter) => {
                let filter = &divided_by_commas(filter);
                for name in render::unknown_properties(&answers, filter)? {
                    let name = Untrusted(&name);
                    dump.messages.note(format_args!(
                        "note: no property has the name {name}; -Properties * lists all"
                    ));
                }
                dump.write(render::properties(&answers, filter)?)
            }
        }
    }
}

/// Splits the names in a filter at commas, as ETWAnalyzer's guides write them; no property name contains a comma.
fn divided_by_commas(filter: &Filter) -> Filter {
    Filter::new(&filter.text().replace(',', ";")).unwrap_or_else(|_| filter.clone())
}
