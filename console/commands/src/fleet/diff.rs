//! `.diff -build` over a dataset.

use thiserror::Error;

use super::{CHOICE, choices, fleet, warn_of};
use crate::dump::diff::warn_of_worse;
use crate::shared::choice::show_stack_option;
use crate::shared::ignore::{IgnoreArgs, ignore_option, ignored_option};
use crate::shared::{fields, groups};
use crate::{Command, CommandError, DumpContext, KindCommand, Signature, Tabular};
use handlescope_fleet::{FleetCriteria, compare_builds};
use handlescope_render as render;
use handlescope_session::grammar::value::{PAIR, ValueKind};
use handlescope_session::grammar::{Example, Opt, OptionGroup, ParseError, to};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::values::CountedNoun;

pub struct FleetDiff;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetDiffArgs {
    criteria: FleetCriteria,
    builds: Option<[String; 2]>,
    stacks: StackDisplayArgs,
    ignore: IgnoreArgs,
}

fields!(FleetDiffArgs { criteria: FleetCriteria, stacks: StackDisplayArgs, ignore: IgnoreArgs });

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
        ..FleetDiff::SIGNATURE
    },
    kind: &FleetDiff,
    words: (&[], ""),
};

impl Command for FleetDiff {
    type Args = FleetDiffArgs;
    const SIGNATURE: Signature = Signature {
        names: &["Diff"],
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
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<FleetDiffArgs>] = &[
        OptionGroup { title: CHOICE, options: &CHOICES },
        OptionGroup { title: groups::KNOWN, options: &[ignore_option(), ignored_option()] },
        OptionGroup { title: groups::DISPLAY, options: &[show_stack_option()] },
    ];

    const TABLE: Option<Tabular> =
        Some(Tabular::for_dataset(|| render::fleet_diff_columns().names()));

    fn answer(args: &FleetDiffArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let Some(builds) = &args.builds else { return Err(ParseError::refused(NoBuilds).into()) };
        let fleet = fleet(&args.criteria, dump)?;
        let ignoring = args.ignore.read(&dump.session.settings, dump.messages)?;
        let answer = compare_builds(&fleet, &args.criteria, builds, &ignoring, dump.cancel)?;
        warn_of(&answer.caveats, dump.messages);
        let groups = |number| CountedNoun(number as u64, "group").to_string();
        warn_of_worse(&answer.totals(), groups, "traces lost events", dump);
        let display = dump.display();
        let system = dump.session.settings.system_modules();
        let table = render::fleet_diff(&answer, args.stacks.show, system, &display)?;
        dump.write(table)
    }
}

static CHOICES: [Opt<FleetDiffArgs>; 5] = {
    let [machine, _, day, process, object_type] = choices();
    let builds = Opt {
        names: &["-build"],
        help: "the two builds, before and after",
        details: "Names as .dump ObjectRef -GroupBy build lists them.",
        example: "-build 1.3.0.0 1.4.0.0",
        take: to(&(
            ValueKind { placeholder: "BEFORE AFTER", ..PAIR },
            |args: &mut FleetDiffArgs, pair| args.builds = Some(pair),
        )),
    };
    [builds, machine, day, process, object_type]
};
