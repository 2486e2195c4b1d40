//! `.plot` over a dataset: what is open over days, or over the duration of the traces.

use std::path::Path;

use super::plot::{MAX_GROUPS, Plot};
use super::{PictureArgs, check_file, parse_over_dataset};
use crate::shared::choice::saturated;
use crate::shared::fleet::{CHOICE, choices, fleet, warn_of};
use crate::shared::groups;
use crate::shared::options::force_option;
use crate::{Command, CommandError, DumpContext, OverDataset, Signature};
use handlescope_fleet::{GrowthAxis, fleet_growth};
use handlescope_query::GroupColumn;
use handlescope_render::output::Target;
use handlescope_render::pictures::{OpenTimeline, write_plot_svg, write_plot_text};
use handlescope_session::grammar::value::{NUMBER, OBJECT_TYPES, SWITCH, ValueKind, WORD};
use handlescope_session::grammar::{Example, Opt, OptionGroup, WordChoices, choice, to, words};
use handlescope_session::paths::stem;

pub static OF_FLEET: OverDataset<PictureArgs> = OverDataset {
    signature: &Signature {
        summary: "draw open handles over the days, or over the time of the traces",
        details: "The mean per trace: handles opened in a trace and still open at its end, by day, \
             or at each of its 60 steps. NAME.svg is a picture for a browser; without a file it is \
             drawn in the terminal. Groups are stacked.",
        examples: &Example::lines([
            ".plot",
            ".plot days.svg -GroupBy type -pn app",
            ".plot -Over trace",
        ]),
        ..Plot::SIGNATURE
    },
    options: &[
        OptionGroup {
            title: CHOICE,
            options: &choices(&(OBJECT_TYPES, |args: &mut PictureArgs, filter| {
                args.handles.criteria.object_type = Some(filter);
            })),
        },
        OptionGroup { title: groups::DISPLAY, options: DISPLAY },
        OptionGroup {
            title: groups::SCRIPTS,
            options: &[force_option(
                "days.svg -Force",
                &(SWITCH, |args: &mut PictureArgs, ()| args.options.shared.output.force = true),
            )],
        },
    ],
    table: None,
    parse: parse_over_dataset,
    answer: draw,
};

const DIVIDED_BY: [GroupColumn; 4] =
    [GroupColumn::Process, GroupColumn::Type, GroupColumn::Machine, GroupColumn::Build];

const OVER: &WordChoices<GrowthAxis> = &[
    ("days", "what is open at the end of the traces, by day", GrowthAxis::Days),
    ("trace", "the steps of all traces, averaged", GrowthAxis::Steps),
];

static DISPLAY: &[Opt<PictureArgs>] = &[
    Opt {
        names: &["-GroupBy"],
        help: "group by process, type, machine or build",
        details: "Default: the process that owns them.",
        example: "-GroupBy type",
        take: to(&(
            ValueKind { words: || GroupColumn::words_of_fleet(&DIVIDED_BY), ..WORD },
            |args, index| {
                args.handles.of_fleet.by = DIVIDED_BY.get(index).copied().into_iter().collect();
            },
        )),
    },
    Opt {
        names: &["-Over"],
        help: "draw over the days, or over the time of the traces",
        details: "Default: days, or the traces if all started on one day.",
        example: "-Over trace",
        take: to(&(ValueKind { words: || words(OVER), ..WORD }, |args, index| {
            args.options.axis = choice(OVER, index);
        })),
    },
    Opt {
        names: &["-Bytes"],
        help: "draw bytes allocated and not yet freed, instead of handles",
        details: "Of all kinds of allocations; -Type chooses some.",
        example: "-Bytes",
        take: to(&(SWITCH, |args: &mut PictureArgs, ()| args.options.of_bytes = true)),
    },
    Opt {
        names: &["-TopN"],
        help: "draw N groups, and the rest as one",
        details: "The groups with the most open at once. Default: 8.",
        example: "-TopN 3",
        take: to(&(NUMBER, |args, number| args.options.top = Some(number))),
    },
];

fn draw(args: &PictureArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    let PictureArgs { file, handles, options } = args;
    if let Some(file) = file {
        check_file(file, &["svg"], ".svg", dump)?;
    }
    let criteria = handles.fleet_criteria();
    let fleet = fleet(criteria.choice, dump)?;
    let by = handles.of_fleet.by.first().copied().unwrap_or(GroupColumn::Process);
    // A single day makes no line.
    let usual = if fleet.days().len() > 1 { GrowthAxis::Days } else { GrowthAxis::Steps };
    let axis = options.axis.unwrap_or(usual);
    let growth = fleet_growth(&fleet, &criteria, by, axis, options.of_bytes, dump.cancel)?;
    warn_of(&growth.caveats, dump.messages);
    let top = saturated(options.top.unwrap_or(MAX_GROUPS));
    let name = stem(fleet.dataset.root());
    let timeline = OpenTimeline::for_fleet(growth, Path::new(&name), top);
    if timeline.is_empty() {
        let reason = "none of the chosen handles or allocations is open in a trace";
        return Err(CommandError::EmptyPicture { reason });
    }
    let Some(path) = file.as_deref() else {
        let display = dump.display();
        return Ok(write_plot_text(&timeline, by.title_of_fleet(), &display, dump.out)?);
    };
    let target = Target { path, option: Plot::SIGNATURE.names[0], format: "SVG" };
    dump.write_file(target, |out| write_plot_svg(&[timeline], out))
}
