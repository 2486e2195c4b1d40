//! `.why` and `.dump Why` over a dataset.

use super::{CHOICE, choices, fleet, min_leaked_option, warn_of};
use crate::shared::choice::show_stack_option;
use crate::shared::ignore::{IgnoreArgs, ignore_option, ignored_option, warn_of_unused};
use crate::shared::{fields, groups};
use crate::{Command, CommandError, DumpContext, KindCommand, Signature, Tabular};
use handlescope_fleet::{FleetCriteria, fleet_why};
use handlescope_render::{self as render, OutputOptions};
use handlescope_session::grammar::value::NUMBER;
use handlescope_session::grammar::{Example, Opt, OptionGroup};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::values::{Format, TopN};

pub struct FleetWhy;

/// Number of suspects in the text, unless `-TopN` is given.
const SHOWN: usize = 20;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetWhyArgs {
    criteria: FleetCriteria,
    min_leaked: Option<u64>,
    stacks: StackDisplayArgs,
    ignore: IgnoreArgs,
}

fields!(FleetWhyArgs { criteria: FleetCriteria, stacks: StackDisplayArgs, ignore: IgnoreArgs });

pub static COMMAND: KindCommand = KindCommand {
    signature: &Signature {
        names: &[".why"],
        examples: &Example::lines([
            ".why",
            ".why -day 2026-11-16..2026-11-22 -pn app",
            ".why -json",
        ]),
        ..FleetWhy::SIGNATURE
    },
    kind: &FleetWhy,
    words: (&[], ""),
};

impl Command for FleetWhy {
    type Args = FleetWhyArgs;
    const SIGNATURE: Signature = Signature {
        names: &["Why"],
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
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<FleetWhyArgs>] = &[
        OptionGroup { title: CHOICE, options: &CHOICES },
        OptionGroup { title: groups::KNOWN, options: &[ignore_option(), ignored_option()] },
        OptionGroup { title: groups::DISPLAY, options: &[show_stack_option()] },
    ];

    const TABLE: Option<Tabular> =
        Some(Tabular::for_dataset(|| render::fleet_why_columns().names()));

    fn answer(args: &FleetWhyArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let fleet = fleet(&args.criteria, dump)?;
        let min_leaked = args.min_leaked.unwrap_or_default();
        let ignoring = args.ignore.read(&dump.session.settings, dump.messages)?;
        let answer = fleet_why(&fleet, &args.criteria, min_leaked, &ignoring, dump.cancel)?;
        warn_of(&answer.caveats, dump.messages);
        if args.criteria == FleetCriteria::default() && args.min_leaked.is_none() {
            warn_of_unused(&ignoring.list, answer.ignored.iter(), dump.messages);
        }
        let display = dump.display();
        let system = dump.session.settings.system_modules();
        let table = render::fleet_why(&answer, args.stacks.show, system, &display)?;
        let output = &dump.shared.output;
        let is_cut = output.format() == Format::Text && output.top.is_none();
        let top = if is_cut { Some(TopN { take: SHOWN, skip: 0 }) } else { output.top };
        Ok(dump.write_as(table, &OutputOptions { top, ..output.clone() }, &display)?)
    }
}

static CHOICES: [Opt<FleetWhyArgs>; 6] = {
    let [machine, build, day, process, object_type] = choices();
    let least = min_leaked_option(&(NUMBER, |args: &mut FleetWhyArgs, number| {
        args.min_leaked = Some(number);
    }));
    [machine, build, day, process, object_type, least]
};
