//! `.dump Why` and `.why`, which are the same.

use std::collections::HashSet;

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use crate::shared::choice::{
    command_line_option, new_process_option, process_option, show_address_option, show_line_option,
    show_stack_option, suspect_option, type_of_handles_option,
};
use crate::shared::fleet::{CHOICE, choices, fleet, warn_of};
use crate::shared::gate::{Gate, fail_on_option, format_option, no_other_format};
use crate::shared::ignore::{IgnoreArgs, ignore_option, ignored_option, warn_of_unused};
use crate::shared::write_caveats;
use crate::shared::{fields, groups};
use crate::{
    Command, CommandError, DumpContext, Flow, KindCommand, OverDataset, SharedArgs, Signature,
    Tabular,
};
use handlescope_fleet::{FleetChoice, FleetCriteria, fleet_why};
use handlescope_query::{
    self as query, PRIVATE_HEAP, PickedSuspect, ProcessCriteria, StackTrims, Suspect, WhyAnswer,
    WhyCriteria,
};
use handlescope_render::{self as render, Look, OutputOptions};
use handlescope_session::grammar::value::{
    self, LENGTH, NUMBER, OBJECT_TYPES, SINCE, SUSPECT, SWITCH, Which,
};
use handlescope_session::grammar::{Example, Opt, OptionGroup, ParseError, to};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::trace::{NamedSuspect, Session, filter_of};
use handlescope_session::values::{CountedNoun, Format, TopN};

/// The option of the gate, as written in a shell.
const FAIL_ON: &str = "--fail-on";

/// The kind, with all options and formats of kinds.
pub struct Why;

/// Arguments of `.dump Why`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WhyArgs {
    pub criteria: WhyCriteria,
    pub gate: Gate,
    pub ignore: IgnoreArgs,
    /// Traces of a dataset.
    fleet: FleetChoice,
}

fields!(WhyArgs {
    criteria.owners: ProcessCriteria,
    criteria.handles.stacks: StackDisplayArgs,
    gate: Gate,
    ignore: IgnoreArgs,
    fleet: FleetChoice,
});

pub static COMMAND: KindCommand = KindCommand {
    signature: &Signature {
        names: &[".why"],
        examples: &Example::lines([
            ".why",
            ".why -Which 3",
            ".why -pn leaky -ShowStack",
            ".why -json",
        ]),
        ..Why::SIGNATURE
    },
    kind: &Why,
    words: (&["-Which", "-Which"], "at most processes, and a rank or id"),
    over_dataset: Some(&KindCommand {
        signature: &Signature {
            names: &[".why"],
            examples: &Example::lines([
                ".why",
                ".why -day 2026-11-16..2026-11-22 -pn app",
                ".why -json",
            ]),
            ..*OF_FLEET.signature
        },
        kind: &OF_FLEET,
        words: (&[], ""),
        over_dataset: None,
    }),
};

impl Command for Why {
    type Args = WhyArgs;
    const SIGNATURE: Signature = Signature {
        names: &["Why"],
        summary: "what leaks, worst first, how fast and why",
        details: "Lists what leaks: handles or allocations of one program and type, opened by one \
             function or on one create stack. Each suspect comes with the program's functions, its \
             growth, the causes that the events prove, and the .dump command that shows the leaked \
             handles. Ranked by handles never closed: a steady leak counts in full, a burst half, a \
             few handles a quarter, and a cache filled at the start a tenth. Groups much smaller \
             than the worst are only counted; -All lists them. .help growth, causes and allocations \
             explain the words.",
        examples: &[
            Example { goal: "what leaks, and why", line: ".dump Why" },
            Example { goal: "one process, with all frames", line: ".dump Why -pn leaky -ss" },
            Example { goal: "the worst leaks of events", line: ".dump Why -Type Event -TopN 3" },
        ],
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<WhyArgs>] = &[
        OptionGroup { title: "Which handles", options: WHICH },
        OptionGroup { title: groups::KNOWN, options: &[ignore_option(), ignored_option()] },
        OptionGroup { title: groups::DISPLAY, options: DISPLAY },
        OptionGroup { title: groups::SCRIPTS, options: &[fail_on_option(), format_option()] },
    ];

    const TABLE: Option<Tabular> = Some(Tabular::new(|| render::why_columns().names()));

    const FOR_DATASET: Option<&'static OverDataset<WhyArgs>> = Some(&OF_FLEET);

    fn check(args: &WhyArgs, shared: &SharedArgs) -> Result<(), ParseError> {
        no_other_format(&args.gate, shared)
    }

    fn answer(args: &WhyArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let WhyArgs { criteria, gate, ignore, .. } = args;
        dump.note_stacks_beside_columns(criteria.handles.stacks);
        let mut criteria = criteria.clone();
        criteria.ignoring = ignore.read(&dump.session.settings, dump.messages)?;
        let output = &dump.shared.output;
        criteria.handles.with_identities = output.is_document();
        let display = dump.display();
        let commands = Commands::new(dump.session, &criteria);
        let command = |file, suspect: &_| commands.show(file, suspect);
        let is_text = output.format() == Format::Text && gate.format.is_none();
        // -TopN would limit the rows again.
        let again = if output.top.is_some() { ".why" } else { &dump.shared.text };
        let look = match &criteria.picked {
            Some(_) => Look::Whole,
            None if criteria.all || !is_text => Look::All,
            None if output.top.is_some() || output.sort_by.is_some() => Look::Large(again),
            None => Look::First(again),
        };
        let shows_all = matches!(look, Look::All | Look::Whole);
        criteria.shown = match (output.top, &output.sort_by) {
            (Some(TopN { take, skip }), None) if shows_all => Some(take.saturating_add(skip)),
            // Which suspects are small is only known after all are counted; another order may need frame names.
            (_, None) if !shows_all => Some(0),
            _ => None,
        };
        let mut answers = query::why(dump.sources, &criteria, dump.names, dump.cancel)?;
        note_suspects(dump.session, &answers);
        if is_whole(&criteria, dump.shared) {
            let used = answers.iter().flat_map(|answer| &answer.ignored);
            warn_of_unused(&criteria.ignoring.list, used, dump.messages);
        }
        let failures = answers.iter().map(|answer| gate.failures(answer)).collect::<Vec<_>>();
        decide(gate, &answers, &failures, dump);
        let stacks = criteria.handles.stacks;
        let is_cut = output.top.is_some() && (output.sort_by.is_some() || gate.format.is_some());
        let mut rows: Option<Vec<HashSet<usize>>> = None;
        if !shows_all || is_cut {
            let table = render::why(&answers, &command, look, stacks, &display)?;
            let left = table.rows_left(output)?.into_iter();
            let left: Vec<HashSet<usize>> = left.map(|rows| rows.into_iter().collect()).collect();
            for (answer, rows) in answers.iter_mut().zip(&left) {
                answer.show(|index| rows.contains(&index))?;
            }
            rows = Some(left);
        }
        answers.iter().for_each(|answer| write_caveats(&answer.file, dump.session, dump.messages));
        if let Some(format) = gate.format {
            // Without a gate, all count as failed.
            let failures = (!gate.fail_on.is_empty()).then_some(failures.as_slice());
            let findings = render::why_findings(&answers, failures, rows.as_deref(), &command);
            return Ok(render::write_findings(&findings, format, dump.out)?);
        }
        let table = render::why(&answers, &command, look, stacks, &display)?;
        dump.write(table)
    }
}

/// Whether no option limits the leaks of the loaded traces.
fn is_whole(criteria: &WhyCriteria, shared: &SharedArgs) -> bool {
    let WhyCriteria { handles, owners, min_leaked, .. } = criteria;
    let is_of_all = handles.object_type.is_none() && handles.time.is_none() && owners.is_empty();
    is_of_all && min_leaked.is_none() && !criteria.names_suspect() && shared.files.is_empty()
}

/// Sets the exit status that the gate asks for, and says why. This happens before the answer is written, because its
/// reader may leave early.
fn decide(
    gate: &Gate,
    answers: &[WhyAnswer<'_>],
    failures: &[Vec<bool>],
    dump: &mut DumpContext<'_, '_>,
) {
    if gate.fail_on.is_empty() {
        return;
    }
    let is_empty = |answer: &&WhyAnswer<'_>| !answer.has_events && answer.allocations == 0;
    for answer in answers.iter().filter(is_empty) {
        let path = Untrusted(answer.file.about.path);
        dump.messages.warning(format_args!("{path}: no handle events, so {FAIL_ON} cannot decide"));
        dump.flow = Flow::Undecided;
    }
    if let failed @ 1.. = failures.iter().flatten().filter(|fails| **fails).count() {
        let suspects = CountedNoun(failed as u64, "suspect");
        dump.messages.warning(format_args!("{suspects} fail {FAIL_ON}"));
        dump.flow = Flow::Worse;
    }
}

/// Remembers the suspects of each trace for completion.
pub fn note_suspects(session: &Session, answers: &[WhyAnswer<'_>]) {
    for answer in answers {
        let named = answer.suspects.iter().map(|suspect| {
            let Suspect { id, counts, type_name, process, .. } = suspect;
            let (count, leaked) = (HumanCount(counts.unreleased()), suspect.unreleased());
            let description = format!("{type_name}, {process}, {count} {leaked}");
            NamedSuspect { id: id.clone(), description }
        });
        if let Some(file) = session.files.get(answer.file.about.index) {
            file.values.note_suspects(named.collect());
        }
    }
}

/// Builds the commands that show what suspects leaked.
pub struct Commands {
    /// Filter that selects each file, if several are loaded.
    files: Vec<Option<String>>,
    /// Options that trim frames from stacks; ids depend on them.
    trims: Vec<String>,
    /// Option that excludes what was opened at other times.
    time: Option<String>,
}

impl Commands {
    pub fn new(session: &Session, criteria: &WhyCriteria) -> Commands {
        let files = &session.files;
        let numbers = (0..files.len()).filter(|_| files.len() > 1);
        let StackTrims { fold, from } = &criteria.handles.groups.trims;
        let trims = [("-FoldStack", fold), ("-StackFrom", from)].into_iter();
        let trims = trims.filter_map(|(option, filter)| {
            Some(format!("{option} {}", quoted(filter.as_ref()?.text())))
        });
        Commands {
            files: numbers.map(|number| filter_of(files, number)).collect(),
            trims: trims.collect(),
            time: criteria.handles.time.map(|time| format!("-MinMaxTime {time}")),
        }
    }

    /// Returns the command for a suspect; `file` is the file number.
    pub fn show(&self, file: usize, suspect: &Suspect) -> String {
        let is_of_handles = suspect.bytes.is_none();
        let (kind, process) = if is_of_handles {
            (".dump ObjectRef", "-RelatedProcess")
        } else {
            (".dump Resource", "-pn")
        };
        let mut words = vec![kind.to_owned()];
        let filter = self.files.get(file).and_then(Option::as_deref);
        words.extend(filter.map(|filter| format!("-fd {}", quoted(filter))));
        words.push(format!("-Suspect {}", suspect.id));
        words.extend(suspect.filter.iter().map(|filter| format!("{process} {}", quoted(filter))));
        words.extend(self.trims.iter().filter(|_| is_of_handles).cloned());
        words.extend(self.time.clone());
        let is_of_heaps = suspect.type_name == PRIVATE_HEAP;
        words.extend(is_of_heaps.then(|| "-GroupBy allocator,createstack".to_owned()));
        words.push("-ShowStack".to_owned());
        words.join(" ")
    }
}

/// Quotes a filter for the command line, if needed.
fn quoted(filter: &str) -> String {
    let filter = filter.replace('"', "?");
    let is_plain = !filter.starts_with('-') && !filter.contains([' ', '\t', '>', '#']);
    if is_plain { filter } else { format!("\"{filter}\"") }
}

static WHICH: &[Opt<WhyArgs>] = &[
    process_option(
        "handles and allocations that these processes own",
        "The owner, not the creator as for -pn of .dump ObjectRef. The name may go without .exe; \
         a number is a pid; ! in front excludes.",
    ),
    command_line_option("handles and allocations owned by processes with this command line"),
    new_process_option(
        "handles and allocations owned by processes that started or ended in the trace",
    ),
    type_of_handles_option(&(OBJECT_TYPES, |args, filter| {
        args.criteria.handles.object_type = Some(filter);
    })),
    suspect_option(
        "only this suspect",
        &(SUSPECT, |args, id| args.criteria.handles.suspect = Some(id)),
    ),
    Opt {
        names: &["-Which"],
        help: "one suspect in full, by rank or id; or all suspects of these processes",
        details: "All frames, growth over time, processes, names and causes of the suspect. .why 3 and .why leaky need \
             no option name. A name means -pn.",
        example: "-Which 3",
        take: to(&(value::WHICH, |args, which| match which {
            Which::Rank(rank) => args.criteria.picked = Some(PickedSuspect::Rank(rank)),
            Which::Id(id) => args.criteria.picked = Some(PickedSuspect::Id(id)),
            Which::Processes(processes) => args.criteria.owners.name = Some(processes),
        })),
    },
    MIN_LEAKED,
    Opt {
        names: &["-Since"],
        help: "only handles and allocations opened at this time or later, since session start",
        details: "Handles and allocations opened earlier are left out of counts, growth and \
             causes. Units: s, ms, us, ns.",
        example: "-Since 1.5s",
        take: to(&(SINCE, |args, times| args.criteria.handles.time = Some(times))),
    },
    Opt {
        names: &["-ByProcess"],
        help: "judge each process separately, not all processes of a program together",
        details: "By default all processes of a program (same executable and, for svchost.exe, \
             same service) that leak one type on one stack are one suspect, with the processes \
             listed.",
        example: "-ByProcess",
        take: to(&(SWITCH, |args, ()| args.criteria.scope.by_process = true)),
    },
    Opt {
        names: &["-ByStack"],
        help: "judge each create stack separately, not a function with its callers",
        details: "By default stacks that begin with the same function of the program are one \
             suspect if its callers leak alike, with the callers listed.",
        example: "-ByStack",
        take: to(&(SWITCH, |args, ()| args.criteria.scope.by_stack = true)),
    },
    Opt {
        names: &["-RaceWindow"],
        help: "maximum time between two opens of a race",
        details: "A race is two threads of a process that open the same object within this time, \
                  and one of the handles leaks. Default: 1 ms. Units: s, ms, us, ns.",
        example: "-RaceWindow 500us",
        take: to(&(LENGTH, |args, ns| args.criteria.race_window_ns = Some(ns))),
    },
];

const MIN_LEAKED: Opt<WhyArgs> = Opt {
    names: &["-MinLeaked"],
    help: "only suspects that leaked at least this many",
    details: "Counts handles or allocations of a suspect that are leaked or closed only by \
         process exit. Ranks do not change.",
    example: "-MinLeaked 10",
    take: to(&(NUMBER, |args, number| args.criteria.min_leaked = Some(number))),
};

static DISPLAY: &[Opt<WhyArgs>] = &[
    Opt {
        names: &["-All"],
        help: "include suspects much smaller than the worst",
        details: "By default the text only counts them below the others: suspects that are neither \
                  a steady leak nor a burst and have less than a tenth of the largest score and \
                  amount, if all suspects below them are small, too; and one or two handles closed \
                  only by process exit, with only system frames on their stack. Other formats \
                  always have all suspects.",
        example: "-All",
        take: to(&(SWITCH, |args, ()| args.criteria.all = true)),
    },
    show_stack_option(),
    show_address_option(),
    show_line_option(),
];

/// Maximum number of suspects of a dataset in the text, unless `-TopN` is given.
const SHOWN: usize = 20;

/// `.why` and `.dump Why` over a dataset.
static OF_FLEET: OverDataset<WhyArgs> = OverDataset {
    signature: &Signature {
        summary: "what leaks on how many machines, worst first, and since which build",
        details: "Lists call sites that leak, over all traces of the dataset: suspects with the \
                  same process, type and program functions on the stack count as one. Each comes \
                  with the number of machines it affects, of those that ran the program; its rate \
                  per minute on the median machine and at most; its first and last build and day; \
                  and the trace where it is worst, with the commands that show it there. Ranked by \
                  the number of machines, times the median over these machines of the score that \
                  .why gives the worst trace of each. Text shows the first 20; -TopN shows more.",
        examples: &[
            Example { goal: "what leaks where", line: ".dump Why" },
            Example { goal: "on some machines", line: ".dump Why -machine WS-0*" },
            Example { goal: "of one build, with all frames", line: ".dump Why -build 1.4.* -ss" },
        ],
        ..Why::SIGNATURE
    },
    options: &[
        OptionGroup { title: CHOICE, options: &CHOICES },
        OptionGroup { title: groups::KNOWN, options: &[ignore_option(), ignored_option()] },
        OptionGroup { title: groups::DISPLAY, options: &[show_stack_option()] },
    ],
    table: Some(Tabular::new(|| render::fleet_why_columns().names())),
    parse: OverDataset::table_options,
    answer: of_fleet,
};

static CHOICES: [Opt<WhyArgs>; 6] = {
    let [machine, build, day, process, object_type] =
        choices(&(OBJECT_TYPES, |args: &mut WhyArgs, filter| {
            args.criteria.handles.object_type = Some(filter);
        }));
    [machine, build, day, process, object_type, MIN_LEAKED]
};

fn of_fleet(args: &WhyArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    let WhyArgs { criteria: WhyCriteria { handles, owners, min_leaked, .. }, .. } = args;
    let criteria = FleetCriteria {
        choice: &args.fleet,
        process: owners.name.as_ref(),
        object_type: handles.object_type.as_ref(),
    };
    let fleet = fleet(&args.fleet, dump)?;
    let ignoring = args.ignore.read(&dump.session.settings, dump.messages)?;
    let least = min_leaked.unwrap_or_default();
    let answer = fleet_why(&fleet, &criteria, least, &ignoring, dump.cancel)?;
    warn_of(&answer.caveats, dump.messages);
    if criteria.is_empty() && min_leaked.is_none() {
        warn_of_unused(&ignoring.list, answer.ignored.iter(), dump.messages);
    }
    let display = dump.display();
    let system = dump.session.settings.system_modules();
    let table = render::fleet_why(&answer, handles.stacks.show, system, &display)?;
    let output = &dump.shared.output;
    let is_cut = output.format() == Format::Text && output.top.is_none();
    let top = if is_cut { Some(TopN { take: SHOWN, skip: 0 }) } else { output.top };
    Ok(dump.write_as(table, &OutputOptions { top, ..output.clone() }, &display)?)
}
