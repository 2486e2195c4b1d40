//! `.dump ObjectRef -GroupBy` over a dataset.

use super::{CHOICE, choices, fleet, min_leaked_option, warn_of};
use crate::dump;
use crate::shared::choice::{add_columns, show_stack_option};
use crate::shared::{fields, groups as headings};
use crate::{Command, CommandError, DumpContext, SharedArgs, Signature, Tabular};
use handlescope_fleet::{FleetColumn, FleetCriteria, LeaksOnly, fleet_groups};
use handlescope_render::{self as render, OutputOptions};
use handlescope_session::grammar::value::{NUMBER, SWITCH, ValueKind, WORD, WORDS};
use handlescope_session::grammar::{
    Example, Opt, OptionGroup, ParseError, WordChoices, choice, to, words,
};
use handlescope_session::settings::StackDisplayArgs;

pub struct FleetObjectRef;

/// `.dump` of a dataset.
pub const SIGNATURE: Signature = Signature {
    summary: "print tables of the loaded dataset",
    details: "Each KIND has its own options: see .help KIND. Names of kinds and options are \
         case-insensitive. > FILE at the end writes the output into a file, in the format of its \
         extension .csv, .json, .ndjson or .parquet; >> FILE appends it.",
    examples: &Example::lines([
        ".dump ObjectRef -Leak -GroupBy machine,process,createstack",
        ".dump Why -TopN 5",
    ]),
    ..dump::SIGNATURE
};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetGroupsArgs {
    criteria: FleetCriteria,
    by: Vec<FleetColumn>,
    /// `-ShowTotal`: the columns to sum up by.
    total: Option<&'static [FleetColumn]>,
    leaks: LeaksOnly,
    min_leaked: Option<u64>,
    stacks: StackDisplayArgs,
}

fields!(FleetGroupsArgs { criteria: FleetCriteria, stacks: StackDisplayArgs });

/// Default columns.
const USUAL: [FleetColumn; 3] =
    [FleetColumn::PROCESS, FleetColumn::TYPE, FleetColumn::CREATE_STACK];

/// A trace, with its machine and day.
const FILE: [FleetColumn; 3] = [FleetColumn::TRACE, FleetColumn::MACHINE, FleetColumn::DAY];

/// Words of `-ShowTotal`; they are the same as for traces.
const TOTALS_OF: &WordChoices<&[FleetColumn]> = &[
    ("Total", "by type", &[FleetColumn::TYPE]),
    ("Process", "by executable", &[FleetColumn::PROCESS]),
    ("File", "by trace, with machine and day", &FILE),
    ("Method", "like File", &FILE),
    ("None", "the groups, as without -ShowTotal", &USUAL),
];

impl Command for FleetObjectRef {
    type Args = FleetGroupsArgs;
    const SIGNATURE: Signature = Signature {
        names: &["ObjectRef"],
        summary: "handles, views and allocations of all traces in groups",
        details: "Sums over the traces of the dataset: number of machines and traces, leaked, \
             closed only by process exit, opened and closed. For single handles, open a trace with \
             .load ID, or query the table acquisitions with .sql.",
        examples: &[
            Example {
                goal: "which machines leak what",
                line: ".dump ObjectRef -Leak -GroupBy machine,process,createstack",
            },
            Example { goal: "leaks by day", line: ".dump ObjectRef -Leak -GroupBy day -pn app" },
            Example {
                goal: "the traces of one machine",
                line: ".dump ObjectRef -GroupBy trace,day,build -machine WS-001",
            },
        ],
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<FleetGroupsArgs>] = &[
        OptionGroup { title: CHOICE, options: &CHOICES },
        OptionGroup { title: "Group", options: GROUPS },
        OptionGroup { title: headings::DISPLAY, options: &[show_stack_option()] },
    ];

    const TABLE: Option<Tabular> =
        Some(Tabular::for_dataset(|| render::fleet_group_columns(&FleetColumn::ALL, true).names()));

    fn check(args: &FleetGroupsArgs, _: &SharedArgs) -> Result<(), ParseError> {
        if args.total.is_some() && !args.by.is_empty() {
            let (option, other) = ("-ShowTotal", "-GroupBy");
            return Err(ParseError::Conflict { option, other, reason: "both count; choose one" });
        }
        Ok(())
    }

    fn answer(args: &FleetGroupsArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let fleet = fleet(&args.criteria, dump)?;
        let usual = args.total.unwrap_or(&USUAL);
        let by = if args.by.is_empty() { usual } else { &args.by };
        let mut answer = fleet_groups(&fleet, &args.criteria, by, args.leaks, dump.cancel)?;
        let least = i64::try_from(args.min_leaked.unwrap_or_default()).unwrap_or(i64::MAX);
        answer.groups.retain(|group| group.unreleased() >= least);
        warn_of(&answer.caveats, dump.messages);
        let (display, command) = (dump.display(), &dump.shared.text);
        let table = render::fleet_groups(&answer, command, args.stacks.show, &display)?;
        let output = &dump.shared.output;
        let sort_by = output.sort_by.as_deref().and_then(|word| args.column(word));
        let output = OutputOptions { sort_by: sort_by.map(str::to_owned), ..output.clone() };
        Ok(dump.write_as(table, &output, &display)?)
    }
}

impl FleetGroupsArgs {
    /// Returns the column that `-SortBy` means; `None` for the order of the groups. With `-ShowTotal` it takes the same
    /// words as for traces.
    fn column<'w>(&self, word: &'w str) -> Option<&'w str> {
        match self.total {
            Some(_) if word.eq_ignore_ascii_case("Handles") => None,
            Some(_) if word.eq_ignore_ascii_case("File") => Some(FleetColumn::TRACE.word),
            _ => Some(word),
        }
    }
}

static CHOICES: [Opt<FleetGroupsArgs>; 8] = {
    let [machine, build, day, process, object_type] = choices();
    let least = min_leaked_option(&(NUMBER, |args: &mut FleetGroupsArgs, number| {
        args.min_leaked = Some(number);
    }));
    let leak = Opt {
        names: &["-Leak"],
        help: "only groups that leak something",
        details: "Groups of one process, type and stack where something is never released. With \
                  -LeakAtExit, also groups where something is released only by process exit.",
        example: "-Leak",
        take: to(&(SWITCH, |args: &mut FleetGroupsArgs, ()| args.leaks.leak = true)),
    };
    let at_exit = Opt {
        names: &["-LeakAtExit"],
        help: "only groups where something is released only by process exit",
        details: "Handles and allocations released only by the end of their process.",
        example: "-LeakAtExit",
        take: to(&(SWITCH, |args: &mut FleetGroupsArgs, ()| args.leaks.at_exit = true)),
    };
    [machine, build, day, process, object_type, leak, at_exit, least]
};

static GROUPS: &[Opt<FleetGroupsArgs>] = &[
    Opt {
        names: &["-GroupBy"],
        help: "columns of the groups",
        details: "In any order, separated by commas; groups that leak most come first. Stacks with \
             the same program functions count as one on all machines and in all builds. Default: \
             process,type,createstack.",
        example: "-GroupBy machine,process,createstack",
        take: to(&(ValueKind { words: FleetColumn::words, ..WORDS }, |args, indices| {
            add_columns(&mut args.by, &FleetColumn::ALL, &indices);
        })),
    },
    Opt {
        names: &["-ShowTotal"],
        help: "sums: Total, Process, File, Method or None",
        details: "Counts what was opened and allocated in the traces: a dataset does not have \
                  handles that were open before. -SortBy takes Handles and File, too.",
        example: "-ShowTotal Process",
        take: to(&(ValueKind { words: || words(TOTALS_OF), ..WORD }, |args, index| {
            args.total = choice(TOTALS_OF, index);
        })),
    },
];
