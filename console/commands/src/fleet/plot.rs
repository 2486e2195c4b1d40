//! `.plot` for a dataset: what is open over days, or over the duration of the traces.

use std::path::{Path, PathBuf};

use super::{CHOICE, choices, fleet, warn_of};
use crate::context::answer;
use crate::shared::options::force_option;
use crate::shared::{fields, groups};
use crate::{Command, CommandError, Context, DumpContext, EnteredLine, SharedArgs, Signature};
use handlescope_fleet::{FleetColumn, FleetCriteria, GrowthAxis, fleet_growth};
use handlescope_render::output::Target;
use handlescope_render::pictures::{OpenTimeline, write_plot_svg, write_plot_text};
use handlescope_session::grammar::value::{NUMBER, SWITCH, ValueKind, WORD};
use handlescope_session::grammar::{
    Arguments, Example, Opt, OptionGroup, ParseError, WordChoices, choice, to, words,
};
use handlescope_session::paths::{has_extension, stem, with_home};

pub struct FleetPlot;

/// Name of the command in messages.
const PLOT: &str = ".plot";

/// Default number of separate lines.
const MAX_LINES: u64 = 8;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetPlotArgs {
    file: Option<PathBuf>,
    criteria: FleetCriteria,
    by: Option<FleetColumn>,
    axis: Option<GrowthAxis>,
    top: Option<u64>,
    /// `-Bytes`: bytes of allocations instead of handles.
    of_bytes: bool,
    shared: SharedArgs,
}

fields!(FleetPlotArgs { criteria: FleetCriteria });

impl Command for FleetPlot {
    type Args = FleetPlotArgs;
    const SIGNATURE: Signature = Signature {
        names: &[PLOT],
        group: groups::QUERIES,
        usage: "[FILE] [OPTION…]",
        arguments: Arguments::Files,
        summary: "draw open handles over the days, or over the time of the traces",
        details: "The mean per trace: handles opened in a trace and still open at its end, by day, \
             or at each of its 60 steps. NAME.svg is a picture for a browser; without a file it is \
             drawn in the terminal. Groups are stacked.",
        examples: &Example::lines([
            ".plot",
            ".plot days.svg -GroupBy type -pn app",
            ".plot -Over trace",
        ]),
    };
    const OPTIONS: &'static [OptionGroup<FleetPlotArgs>] = &[
        OptionGroup { title: CHOICE, options: &choices() },
        OptionGroup { title: groups::DISPLAY, options: DISPLAY },
        OptionGroup {
            title: groups::SCRIPTS,
            options: &[force_option(
                "days.svg -Force",
                &(SWITCH, |args, ()| args.shared.output.force = true),
            )],
        },
    ];

    fn parse(entered: &EnteredLine<'_>) -> Result<FleetPlotArgs, ParseError> {
        let (mut args, words): (FleetPlotArgs, _) = entered.options_and_words(Self::OPTIONS)?;
        let takes = "one file, in quotes if its name has spaces";
        args.file = entered.at_most_one(&words, takes)?.as_deref().map(with_home);
        args.shared.text = entered.line.to_owned();
        Ok(args)
    }

    fn run(args: FleetPlotArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        if let Some(file) = args.file.as_ref().filter(|file| !has_extension(file, &["svg"])) {
            return Err(CommandError::PictureName { path: file.clone(), endings: ".svg" });
        }
        answer(true, &args.shared, context, |dump| draw(&args, dump))
    }
}

fn draw(args: &FleetPlotArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    if let Some(file) = &args.file {
        dump.overwrite().replacing(file)?;
    }
    let fleet = fleet(&args.criteria, dump)?;
    let (by, of_bytes) = (args.by.unwrap_or(FleetColumn::PROCESS), args.of_bytes);
    // A single day makes no line.
    let usual = if fleet.days().len() > 1 { GrowthAxis::Days } else { GrowthAxis::Steps };
    let axis = args.axis.unwrap_or(usual);
    let growth = fleet_growth(&fleet, &args.criteria, by, axis, of_bytes, dump.cancel)?;
    warn_of(&growth.caveats, dump.messages);
    let top = usize::try_from(args.top.unwrap_or(MAX_LINES)).unwrap_or(usize::MAX);
    let name = stem(fleet.dataset.root());
    let timeline = OpenTimeline::for_fleet(growth, Path::new(&name), top);
    if timeline.is_empty() {
        let reason = "none of the chosen handles or allocations is open in a trace";
        return Err(CommandError::EmptyPicture { reason });
    }
    let Some(path) = args.file.as_deref() else {
        let display = dump.display();
        return Ok(write_plot_text(&timeline, by.title, &display, dump.out)?);
    };
    let target = Target { path, option: PLOT, format: "SVG" };
    dump.write_file(target, |out| write_plot_svg(&[timeline], out))
}

const DIVIDED_BY: &WordChoices<FleetColumn> = &[
    ("process", "executable of the owner", FleetColumn::PROCESS),
    ("type", "type of the object, or kind of allocations", FleetColumn::TYPE),
    ("machine", "computer that recorded the trace", FleetColumn::MACHINE),
    ("build", "build of the process", FleetColumn::BUILD),
];

const OVER: &WordChoices<GrowthAxis> = &[
    ("days", "what is open at the end of the traces, by day", GrowthAxis::Days),
    ("trace", "the steps of all traces, averaged", GrowthAxis::Steps),
];

static DISPLAY: &[Opt<FleetPlotArgs>] = &[
    Opt {
        names: &["-GroupBy"],
        help: "group by process, type, machine or build",
        details: "Default: the process that owns them.",
        example: "-GroupBy type",
        take: to(&(ValueKind { words: || words(DIVIDED_BY), ..WORD }, |args, index| {
            args.by = choice(DIVIDED_BY, index);
        })),
    },
    Opt {
        names: &["-Over"],
        help: "draw over the days, or over the time of the traces",
        details: "Default: days, or the traces if all started on one day.",
        example: "-Over trace",
        take: to(&(ValueKind { words: || words(OVER), ..WORD }, |args, index| {
            args.axis = choice(OVER, index);
        })),
    },
    Opt {
        names: &["-Bytes"],
        help: "draw bytes allocated and not yet freed, instead of handles",
        details: "Of all kinds of allocations; -Type chooses some.",
        example: "-Bytes",
        take: to(&(SWITCH, |args, ()| args.of_bytes = true)),
    },
    Opt {
        names: &["-TopN"],
        help: "draw N groups, and the rest as one",
        details: "The groups with the most open at once. Default: 8.",
        example: "-TopN 3",
        take: to(&(NUMBER, |args, number| args.top = Some(number))),
    },
];
