//! `.dump ObjectRef -GroupBy` over a dataset.

use super::{
    CHOICE, build_option, day_option, fleet, machine_option, min_leaked_option, row_options,
    warn_of,
};
use crate::commands::shared::choice::{add_column, show_stack_option};
use crate::commands::shared::{fields, groups};
use crate::commands::{CommandError, DumpContext, Kind, KindSignature};
use crate::fleet::{FleetColumn, FleetCriteria, LeaksOnly, fleet_groups};
use crate::grammar::{Example, Opt, OptionGroup, Take};
use crate::render;
use crate::settings::StackDisplayArgs;

pub(crate) struct FleetObjectRef;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FleetGroupsArgs {
    criteria: FleetCriteria,
    by: Vec<FleetColumn>,
    leaks: LeaksOnly,
    min_leaked: Option<u64>,
    stacks: StackDisplayArgs,
}

fields!(FleetGroupsArgs { criteria: FleetCriteria, stacks: StackDisplayArgs });

/// Columns unless others are named.
const USUAL: [FleetColumn; 3] = [FleetColumn::Process, FleetColumn::Type, FleetColumn::CreateStack];

impl Kind for FleetObjectRef {
    type Args = FleetGroupsArgs;
    const SIGNATURE: KindSignature = KindSignature {
        name: "ObjectRef",
        summary: "handles, views and allocations of all traces in groups",
        details: "Sums over the traces of the dataset: number of machines and traces, leaked, \
             closed only by process exit, opened and closed. Single handles are in the traces: \
             .load ID opens one, and .sql has the table acquisitions.",
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
    };
    const OPTIONS: &'static [OptionGroup<FleetGroupsArgs>] = OPTIONS;
    const OVER_DATASET: bool = true;

    fn columns() -> Vec<String> {
        render::fleet_group_columns(&FleetColumn::ALL, true).names()
    }

    fn answer(args: &FleetGroupsArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let fleet = fleet(&args.criteria, dump)?;
        let by = if args.by.is_empty() { &USUAL[..] } else { &args.by };
        let mut answer = fleet_groups(&fleet, &args.criteria, by, args.leaks, dump.cancel)?;
        let least = i64::try_from(args.min_leaked.unwrap_or_default()).unwrap_or(i64::MAX);
        answer.groups.retain(|group| group.unreleased() >= least);
        warn_of(&answer.caveats, dump.messages);
        let (display, command) = (dump.display(), &dump.shared.text);
        let table = render::fleet_groups(&answer, command, args.stacks.show, &display)?;
        dump.write(table)
    }
}

static OPTIONS: &[OptionGroup<FleetGroupsArgs>] = &[
    OptionGroup { title: CHOICE, options: &CHOICES },
    OptionGroup { title: "Group", options: GROUPS },
    OptionGroup { title: groups::DISPLAY, options: &[show_stack_option()] },
];

static CHOICES: [Opt<FleetGroupsArgs>; 8] = {
    let [process, object_type] = row_options();
    let least = min_leaked_option(|args: &mut FleetGroupsArgs| &mut args.min_leaked);
    let leak = Opt {
        names: &["-Leak"],
        help: "only what leaks: groups of the traces that leak something",
        details: "Groups of one process, type and stack of which something is never released. \
             With -LeakAtExit also those of which only process exit releases something.",
        example: "-Leak",
        take: Take::Switch(|args: &mut FleetGroupsArgs| &mut args.leaks.leak),
    };
    let at_exit = Opt {
        names: &["-LeakAtExit"],
        help: "only groups of which process exit released something",
        details: "Handles and allocations that only the end of their process released.",
        example: "-LeakAtExit",
        take: Take::Switch(|args: &mut FleetGroupsArgs| &mut args.leaks.at_exit),
    };
    [machine_option(), build_option(), day_option(), process, object_type, leak, at_exit, least]
};

static GROUPS: &[Opt<FleetGroupsArgs>] = &[Opt {
    names: &["-GroupBy"],
    help: "columns of the groups",
    details: "In any order, separated by commas; groups that leak most come first. Stacks are \
         equal on all machines and in all builds if the functions of the program are. Default: \
         process,type,createstack.",
    example: "-GroupBy machine,process,createstack",
    take: Take::List(FleetColumn::words, |args, index| {
        add_column(&mut args.by, FleetColumn::ALL.get(index));
    }),
}];
