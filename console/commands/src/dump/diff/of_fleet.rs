//! `.diff -build` and `.dump Diff` over a dataset.

use thiserror::Error;

use super::options::DiffArgs;
use super::warn_of_worse;
use crate::shared::choice::show_stack_option;
use crate::shared::fleet::{CHOICE, choices, fleet, warn_of};
use crate::shared::groups;
use crate::shared::ignore::{ignore_option, ignored_option};
use crate::{Command, CommandError, DumpContext, KindCommand, OverDataset, Signature, Tabular};
use handlescope_fleet::{FleetCriteria, compare_builds};
use handlescope_render as render;
use handlescope_session::grammar::value::{OBJECT_TYPES, PAIR, ValueKind};
use handlescope_session::grammar::{Example, Opt, OptionGroup, ParseError, to};
use handlescope_session::values::CountedNoun;

/// A comparison without builds.
#[derive(Debug, Error)]
#[error(
    "a dataset is compared by builds: .diff -build BEFORE AFTER; .dump ObjectRef -GroupBy build \
     lists them"
)]
struct NoBuilds;

pub static COMMAND: KindCommand = KindCommand {
    signature: &Signature {
        names: &[".diff"],
        usage: "-build BEFORE AFTER [OPTION…]",
        examples: &Example::lines([
            ".diff -build 1.3.0.0 1.4.0.0",
            ".diff -build 1.3.0.0 1.4.0.0 -pn app -json",
        ]),
        ..*OF_FLEET.signature
    },
    kind: &OF_FLEET,
    words: (&[], ""),
    over_dataset: None,
};

pub static OF_FLEET: OverDataset<DiffArgs> = OverDataset {
    signature: &Signature {
        summary: "compare what two builds leak",
        details: "Groups that leak more in the second build than in the first, by process name, \
             type and stack, including handles closed only by process exit, over all traces in \
             which processes of the builds ran. The rule is the same as for .diff of two traces: a \
             group is worse if its rates per process time differ by a factor of 1.5 and by more \
             than chance (95 % confidence for all groups together); traces that differ from each \
             other more than chance allows count for less. If anything got worse, a warning says so \
             and the exit status of handlescope is 1; if lost events may explain it, 2.",
        examples: &[
            Example { goal: "what got worse", line: ".dump Diff -build 1.3.0.0 1.4.0.0" },
            Example {
                goal: "of one process, with all frames",
                line: ".dump Diff -build 1.3.0.0 1.4.0.0 -pn app -ss",
            },
            Example {
                goal: "on some machines",
                line: ".dump Diff -build 1.3.0.0 1.4.0.0 -machine WS-0*",
            },
        ],
        ..super::Diff::SIGNATURE
    },
    options: &[
        OptionGroup { title: CHOICE, options: &CHOICES },
        OptionGroup { title: groups::KNOWN, options: &[ignore_option(), ignored_option()] },
        OptionGroup { title: groups::DISPLAY, options: &[show_stack_option()] },
    ],
    table: Some(Tabular::new(|| render::fleet_diff_columns().names())),
    parse: OverDataset::table_options,
    answer,
};

static CHOICES: [Opt<DiffArgs>; 5] = {
    let [machine, _, day, process, object_type] =
        choices(&(OBJECT_TYPES, |args: &mut DiffArgs, filter| {
            args.criteria.object_type = Some(filter);
        }));
    let builds = Opt {
        names: &["-build"],
        help: "the two builds, before and after",
        details: "Names as .dump ObjectRef -GroupBy build lists them.",
        example: "-build 1.3.0.0 1.4.0.0",
        take: to(&(
            ValueKind { placeholder: "BEFORE AFTER", ..PAIR },
            |args: &mut DiffArgs, pair| args.builds = Some(pair),
        )),
    };
    [builds, machine, day, process, object_type]
};

fn answer(args: &DiffArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    let Some(builds) = &args.builds else { return Err(ParseError::refused(NoBuilds).into()) };
    let criteria = FleetCriteria {
        choice: &args.fleet,
        process: args.criteria.owners.name.as_ref(),
        object_type: args.criteria.object_type.as_ref(),
    };
    let fleet = fleet(&args.fleet, dump)?;
    let ignoring = args.ignore.read(&dump.session.settings, dump.messages)?;
    let answer = compare_builds(&fleet, &criteria, builds, &ignoring, dump.cancel)?;
    warn_of(&answer.caveats, dump.messages);
    let groups = |number| CountedNoun(number as u64, "group").to_string();
    warn_of_worse(&answer.totals(), groups, "traces lost events", dump);
    let display = dump.display();
    let system = dump.session.settings.system_modules();
    let table = render::fleet_diff(&answer, args.criteria.stacks.show, system, &display)?;
    dump.write(table)
}
