//! `.dump ObjectRef` over a dataset: groups.

use super::ObjectRef;
use super::args::ObjectRefArgs;
use crate::shared::choice::{add_columns, show_stack_option};
use crate::shared::fleet::{CHOICE, choices, fleet, warn_of};
use crate::shared::groups as headings;
use crate::{
    Command, CommandError, DumpContext, EnteredLine, OverDataset, ParsedArgs, Signature, Tabular,
};
use handlescope_fleet::{FleetChoice, FleetCriteria, LeaksOnly, fleet_groups};
use handlescope_query::GroupColumn;
use handlescope_render::{self as render, OutputOptions};
use handlescope_session::grammar::value::{NUMBER, OBJECT_TYPES, SWITCH, ValueKind, WORD, WORDS};
use handlescope_session::grammar::{
    Example, Opt, OptionGroup, ParseError, WordChoices, choice, to, words,
};

/// Arguments that only a dataset has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetGroupsArgs {
    pub choice: FleetChoice,
    /// `-GroupBy`
    pub by: Vec<GroupColumn>,
    /// `-ShowTotal`: the columns to sum up by.
    total: Option<&'static [GroupColumn]>,
    /// `-MinLeaked`
    min_leaked: Option<u64>,
}

pub static OF_FLEET: OverDataset<ObjectRefArgs> = OverDataset {
    signature: &Signature {
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
        ..ObjectRef::SIGNATURE
    },
    options: &[
        OptionGroup { title: CHOICE, options: &CHOICES },
        OptionGroup { title: "Group", options: GROUPS },
        OptionGroup { title: headings::DISPLAY, options: &[show_stack_option()] },
    ],
    table: Some(Tabular::new(|| render::fleet_group_columns(&GroupColumn::OF_FLEET, true).names())),
    parse,
    answer,
};

/// Default columns.
const USUAL: [GroupColumn; 3] = [GroupColumn::Process, GroupColumn::Type, GroupColumn::CreateStack];

/// A trace, with its machine and day.
const FILE: [GroupColumn; 3] = [GroupColumn::Trace, GroupColumn::Machine, GroupColumn::Day];

/// Words of `-ShowTotal`; they are the same as for traces.
const TOTALS_OF: &WordChoices<&[GroupColumn]> = &[
    ("Total", "by type", &[GroupColumn::Type]),
    ("Process", "by executable", &[GroupColumn::Process]),
    ("File", "by trace, with machine and day", &FILE),
    ("Method", "like File", &FILE),
    ("None", "the groups, as without -ShowTotal", &USUAL),
];

static CHOICES: [Opt<ObjectRefArgs>; 8] = {
    let [machine, build, day, process, object_type] =
        choices(&(OBJECT_TYPES, |args: &mut ObjectRefArgs, filter| {
            args.criteria.object_type = Some(filter);
        }));
    let leak = Opt {
        names: &["-Leak"],
        help: "only groups that leak something",
        details: "Groups of one process, type and stack where something is never released. With \
                  -LeakAtExit, also groups where something is released only by process exit.",
        example: "-Leak",
        take: to(&(SWITCH, |args: &mut ObjectRefArgs, ()| args.criteria.leak = true)),
    };
    let at_exit = Opt {
        names: &["-LeakAtExit"],
        help: "only groups where something is released only by process exit",
        details: "Handles and allocations released only by the end of their process.",
        example: "-LeakAtExit",
        take: to(&(SWITCH, |args: &mut ObjectRefArgs, ()| args.criteria.leak_at_exit = true)),
    };
    let least = Opt {
        names: &["-MinLeaked"],
        help: "only what leaked at least this many in all traces",
        details: "Counts what is leaked or closed only by process exit.",
        example: "-MinLeaked 100",
        take: to(&(NUMBER, |args: &mut ObjectRefArgs, number| {
            args.of_fleet.min_leaked = Some(number);
        })),
    };
    [machine, build, day, process, object_type, leak, at_exit, least]
};

static GROUPS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-GroupBy"],
        help: "columns of the groups",
        details: "In any order, separated by commas; groups that leak most come first. Stacks with \
             the same program functions count as one on all machines and in all builds. Default: \
             process,type,createstack.",
        example: "-GroupBy machine,process,createstack",
        take: to(&(
            ValueKind { words: || GroupColumn::words_of_fleet(&GroupColumn::OF_FLEET), ..WORDS },
            |args, indices| {
                add_columns(&mut args.of_fleet.by, &GroupColumn::OF_FLEET, &indices);
            },
        )),
    },
    Opt {
        names: &["-ShowTotal"],
        help: "sums: Total, Process, File, Method or None",
        details: "Counts what was opened and allocated in the traces: a dataset does not have \
                  handles that were open before. -SortBy takes Handles and File, too.",
        example: "-ShowTotal Process",
        take: to(&(ValueKind { words: || words(TOTALS_OF), ..WORD }, |args, index| {
            args.of_fleet.total = choice(TOTALS_OF, index);
        })),
    },
];

fn parse(
    command: &OverDataset<ObjectRefArgs>,
    entered: &EnteredLine<'_>,
) -> ParsedArgs<ObjectRefArgs> {
    let (args, shared) = command.table_options(entered)?;
    if args.of_fleet.total.is_some() && !args.of_fleet.by.is_empty() {
        let (option, other) = ("-ShowTotal", "-GroupBy");
        return Err(ParseError::Conflict { option, other, reason: "both count; choose one" });
    }
    Ok((args, shared))
}

fn answer(args: &ObjectRefArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    let ObjectRefArgs { criteria, of_fleet, .. } = args;
    let leaks = LeaksOnly { leak: criteria.leak, at_exit: criteria.leak_at_exit };
    let chosen = args.fleet_criteria();
    let fleet = fleet(chosen.choice, dump)?;
    let usual = of_fleet.total.unwrap_or(&USUAL);
    let by = if of_fleet.by.is_empty() { usual } else { &of_fleet.by };
    let mut answer = fleet_groups(&fleet, &chosen, by, leaks, dump.cancel)?;
    let least = i64::try_from(of_fleet.min_leaked.unwrap_or_default()).unwrap_or(i64::MAX);
    answer.groups.retain(|group| group.unreleased() >= least);
    warn_of(&answer.caveats, dump.messages);
    let (display, command) = (dump.display(), &dump.shared.text);
    let table = render::fleet_groups(&answer, command, criteria.stacks.show, &display)?;
    let output = &dump.shared.output;
    let sort_by = output.sort_by.as_deref().and_then(|word| of_fleet.column(word));
    let output = OutputOptions { sort_by: sort_by.map(str::to_owned), ..output.clone() };
    Ok(dump.write_as(table, &output, &display)?)
}

impl ObjectRefArgs {
    /// Returns the criteria that a dataset can test.
    pub fn fleet_criteria(&self) -> FleetCriteria<'_> {
        FleetCriteria {
            choice: &self.of_fleet.choice,
            process: self.criteria.creator.name.as_ref(),
            object_type: self.criteria.object_type.as_ref(),
        }
    }
}

impl FleetGroupsArgs {
    /// Returns the column that `-SortBy` means; `None` for the order of the groups. With `-ShowTotal` it takes the same
    /// words as for traces.
    fn column<'w>(&self, word: &'w str) -> Option<&'w str> {
        match self.total {
            Some(_) if word.eq_ignore_ascii_case("Handles") => None,
            Some(_) if word.eq_ignore_ascii_case("File") => Some(GroupColumn::Trace.word()),
            _ => Some(word),
        }
    }
}
