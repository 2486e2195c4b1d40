//! `.plot`: open handles over time, as a picture or in the terminal.

use std::path::Path;

use super::allocations::{ALLOCATIONS, ask as ask_allocations, criteria};
use super::plot_of_fleet::OF_FLEET;
use super::{FILES, PictureArgs, PictureOptions, ask, groups as option_groups, parse};
use crate::context::answer;
use crate::dump::object_ref::FILTERS;
use crate::shared::choice::saturated;
use crate::shared::groups;
use crate::{Command, CommandError, Context, DumpContext, EnteredLine, OverDataset, Signature};
use handlescope_query::{AcquisitionCriteria, GroupColumn, GroupCriteria};
use handlescope_render::output::Target;
use handlescope_render::pictures::{
    Measure, OpenTimeline, columns, write_plot_svg, write_plot_text,
};
use handlescope_session::grammar::value::{NUMBER, ValueKind, WORD};
use handlescope_session::grammar::{
    Arguments, Example, GroupView, Opt, OptionGroup, ParseError, WordChoices, choice, to, words,
};
use handlescope_session::paths::{has_extension, names_apart, stem};

/// Number of time intervals in a picture.
const BUCKETS: usize = 400;

/// Default number of groups shown separately.
pub const MAX_GROUPS: u64 = 8;

pub struct Plot;

static OPTIONS: &[OptionGroup<PictureOptions>] = &[
    ALLOCATIONS,
    OptionGroup { title: groups::DISPLAY, options: DISPLAY },
    OptionGroup { title: groups::SCRIPTS, options: FILES },
];

const DIVIDED_BY: &WordChoices<GroupColumn> = &[
    ("process", "owner of the handle", GroupColumn::Process),
    ("type", "type of the object", GroupColumn::Type),
    (
        "stack",
        "stack that opened the handle, shown as the first function of the program on it",
        GroupColumn::CreateStack,
    ),
];

static DISPLAY: &[Opt<PictureOptions>] = &[
    Opt {
        names: &["-GroupBy"],
        help: "group handles by process, type or stack",
        details: "Default: the process that owns them. The type of an allocation is its kind and \
             allocator.",
        example: "-GroupBy stack",
        take: to(&(ValueKind { words: || words(DIVIDED_BY), ..WORD }, |args, index| {
            args.by = choice(DIVIDED_BY, index);
        })),
    },
    Opt {
        names: &["-TopN"],
        help: "draw N groups, and the rest as one",
        details: "The groups with the most handles open at once. Default: 8.",
        example: "-TopN 3",
        take: to(&(NUMBER, |args, number| args.top = Some(number))),
    },
];

impl Command for Plot {
    type Args = PictureArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".plot"],
        group: groups::QUERIES,
        usage: "[FILE] [OPTION…]",
        arguments: Arguments::Files,
        summary: "draw open handles over time",
        details: "NAME.svg is a picture for a browser; without a file it is drawn in the \
             terminal. Groups are stacked. Only handles opened in the trace count, until they are \
             closed, by process exit too. Other options choose handles as for .dump ObjectRef. \
             With -Kind it draws bytes allocated and not yet freed, with -Count the number of \
             allocations.",
        examples: &Example::lines([
            ".plot",
            ".plot handles.svg -pn leaky",
            ".plot leaks.svg -Leak -GroupBy stack -TopN 5",
        ]),
    };

    const FOR_DATASET: Option<&'static OverDataset<PictureArgs>> = Some(&OF_FLEET);

    fn groups() -> Vec<GroupView> {
        option_groups(FILTERS, OPTIONS)
    }

    fn parse(entered: &EnteredLine<'_>) -> Result<PictureArgs, ParseError> {
        let args = parse(entered, FILTERS, OPTIONS)?;
        criteria(&args, columns_of(GroupColumn::Process)).map(|_| args)
    }

    fn run(args: PictureArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        if let Some(file) = args.file.as_ref().filter(|file| !has_extension(file, &["svg"])) {
            return Err(CommandError::PictureName { path: file.clone(), endings: ".svg" });
        }
        answer(false, &args.options.shared, context, |dump| draw(&args, dump))
    }
}

fn draw(args: &PictureArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    let display = dump.display();
    if let Some(file) = &args.file {
        dump.overwrite().replacing(file)?;
    }
    let buckets = if args.file.is_some() { BUCKETS } else { 2 * columns(&display) };
    let by = args.options.by.unwrap_or(GroupColumn::Process);
    let top = saturated(args.options.top.unwrap_or(MAX_GROUPS));
    let (mut timelines, reason) = match criteria(args, columns_of(by))? {
        Some(criteria) => {
            let reason = "none of the chosen allocations was made in the trace";
            (of_allocations(args, criteria, buckets, top, dump)?, reason)
        }
        None => {
            let reason = "none of the chosen handles was opened in the trace";
            (of_handles(args, by, buckets, top, dump)?, reason)
        }
    };
    timelines.retain(|timeline| !timeline.is_empty());
    if timelines.is_empty() {
        return Err(CommandError::EmptyPicture { reason });
    }
    dump.cancel.check()?;
    let Some(path) = args.file.as_deref() else {
        for timeline in &timelines {
            write_plot_text(timeline, title(by, args), &display, dump.out)?;
        }
        return Ok(());
    };
    let target = Target { path, option: Plot::SIGNATURE.names[0], format: "SVG" };
    dump.write_file(target, |out| write_plot_svg(&timelines, out))
}

fn of_allocations(
    args: &PictureArgs,
    mut criteria: AcquisitionCriteria,
    buckets: usize,
    top: usize,
    dump: &mut DumpContext<'_, '_>,
) -> Result<Vec<OpenTimeline>, CommandError> {
    criteria.groups.keeps_members = true;
    let answers = ask_allocations(&criteria, dump)?;
    let mut groups = answers.iter().flat_map(|answer| answer.shown_groups());
    let has_bytes = groups.any(|group| group.stats.allocated.bytes != 0);
    let measure = Measure::for_bytes(has_bytes && !args.options.by_count);
    let timeline = |answer| OpenTimeline::for_allocations(answer, measure, buckets, top);
    Ok(named_apart(answers.iter().map(|answer| (answer.about.path, timeline(answer)))))
}

fn of_handles(
    args: &PictureArgs,
    by: GroupColumn,
    buckets: usize,
    top: usize,
    dump: &mut DumpContext<'_, '_>,
) -> Result<Vec<OpenTimeline>, CommandError> {
    let groups = GroupCriteria { keeps_members: true, ..GroupCriteria::new([by]) };
    let answer = ask(&args.handles, groups, dump)?;
    if let Some(file) = answer.files.iter().find(|file| !file.about.info.has_clock()) {
        return Err(CommandError::NoTimes { path: file.about.path.to_path_buf() });
    }
    let timelines =
        answer.files.iter().map(|file| (file.about.path, OpenTimeline::new(file, buckets, top)));
    Ok(named_apart(timelines))
}

/// Returns the timelines of traces with distinct names.
fn named_apart<'a>(
    timelines: impl Iterator<Item = (&'a Path, Option<OpenTimeline>)>,
) -> Vec<OpenTimeline> {
    let (paths, timelines): (Vec<_>, Vec<_>) = timelines.unzip();
    names_apart(&paths, stem)
        .into_iter()
        .zip(timelines)
        .filter_map(|(name, timeline)| Some(timeline?.named(&name)))
        .collect()
}

/// Returns the columns that group allocations as `by` groups handles.
fn columns_of(by: GroupColumn) -> &'static [GroupColumn] {
    match by {
        GroupColumn::Type => &[GroupColumn::Kind, GroupColumn::Allocator],
        GroupColumn::CreateStack => &[GroupColumn::CreateStack],
        _ => &[GroupColumn::Process],
    }
}

fn title(by: GroupColumn, args: &PictureArgs) -> &'static str {
    match by {
        GroupColumn::Type => "Type",
        GroupColumn::CreateStack if args.options.kind.is_some() => "Allocated by",
        GroupColumn::CreateStack => "Opened by",
        _ => "Process",
    }
}
