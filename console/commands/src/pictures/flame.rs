//! `.flame`: the stacks that opened leaked handles, as a flame graph.

use std::path::Path;

use super::allocations::{ALLOCATIONS, ask as ask_allocations, criteria};
use super::{FILES, PictureArgs, PictureOptions, ask, groups as option_groups, parse};
use crate::context::answer;
use crate::dump::object_ref::FILTERS;
use crate::shared::groups;
use crate::{Command, CommandError, Context, DumpContext, EnteredLine, Signature};
use handlescope_query::{
    self as query, AcquisitionCriteria, GroupColumn, GroupCriteria, GroupStats, ObjectRefAnswer,
    WhyCriteria,
};
use handlescope_render::output::Target;
use handlescope_render::pictures::{FlameGraph, PprofProfile, SuspectIds, Weight};
use handlescope_session::grammar::{Arguments, Example, GroupView, OptionGroup, ParseError};

pub struct Flame;

static OPTIONS: &[OptionGroup<PictureOptions>] =
    &[ALLOCATIONS, OptionGroup { title: groups::SCRIPTS, options: FILES }];

/// The file that the command needs.
const FILE_TO_WRITE: &str = "the file to write, NAME.svg, NAME.speedscope.json or NAME.pb.gz";

impl Command for Flame {
    type Args = PictureArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".flame"],
        group: groups::QUERIES,
        usage: "FILE [OPTION…]",
        arguments: Arguments::Files,
        summary: "draw the stacks of leaked handles as a flame graph",
        details: "NAME.svg is a picture for a browser: click to zoom, Ctrl-F to search. \
             NAME.speedscope.json is for https://www.speedscope.app, NAME.pb.gz for pprof, Grafana \
             Pyroscope and Parca. The width of a frame is the number of handles and views opened there and not closed, or closed only by process \
             exit; with -Leak or -LeakAtExit only these. The process is at the bottom, the type \
             on top. Other options choose handles as for .dump ObjectRef. With -Kind, the width \
             is bytes allocated and not freed.",
        examples: &Example::lines([
            ".flame leaks.svg",
            ".flame leaks.svg -pn leaky -Type Event",
            ".flame leaks.speedscope.json -FoldStack *!std::*",
            ".flame leaks.pb.gz -pn leaky",
        ]),
    };

    fn groups() -> Vec<GroupView> {
        option_groups(FILTERS, OPTIONS)
    }

    fn parse(entered: &EnteredLine<'_>) -> Result<PictureArgs, ParseError> {
        let args = parse(entered, FILTERS, OPTIONS)?;
        match args.file {
            Some(_) => criteria(&args, &GroupColumn::DRAWN).map(|_| args),
            None => Err(entered.missing(FILE_TO_WRITE)),
        }
    }

    fn run(args: PictureArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let file = args.file.clone().unwrap_or_default();
        let format = FlameFormat::new(&file)?;
        answer(false, &args.options.shared, context, |dump| format.draw(&file, &args, dump))
    }
}

/// The format of the picture.
#[derive(Clone, Copy)]
enum FlameFormat {
    Svg,
    Speedscope,
    Pprof,
}

impl FlameFormat {
    fn new(file: &Path) -> Result<Self, CommandError> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let formats = [(".svg", Self::Svg), (".json", Self::Speedscope), (".pb.gz", Self::Pprof)];
        let format = formats
            .into_iter()
            .find(|(ending, _)| name.strip_suffix(ending).is_some_and(|stem| !stem.is_empty()));
        format.map(|(_, format)| format).ok_or_else(|| CommandError::PictureName {
            path: file.to_owned(),
            endings: ".svg or, for speedscope, .json, for pprof .pb.gz",
        })
    }

    fn draw(
        self,
        file: &Path,
        args: &PictureArgs,
        dump: &mut DumpContext<'_, '_>,
    ) -> Result<(), CommandError> {
        dump.overwrite().replacing(file)?;
        let target = |format| Target { path: file, option: Flame::SIGNATURE.names[0], format };
        if let Self::Pprof = self {
            let profile = profile(args, dump)?;
            return dump.write_file(target("Pprof"), |out| profile.write(out));
        }
        let (graph, reason) = match criteria(args, &GroupColumn::DRAWN)? {
            Some(mut criteria) => {
                // Only leaked allocations have a width.
                let has_no_choice = !criteria.is_of_leaks();
                criteria.leak |= has_no_choice;
                criteria.leak_at_exit |= has_no_choice;
                let answers = ask_allocations(&criteria, dump)?;
                let graph = FlameGraph::from_allocations(&answers, args.options.by_count);
                (graph, "none of the chosen allocations leaks")
            }
            None => {
                let answer = handles(args, dump)?;
                let graph = FlameGraph::new(&answer.files, weight(&args.handles.criteria));
                (graph, "none of the chosen handles leaks")
            }
        };
        if graph.is_empty() {
            return Err(CommandError::EmptyPicture { reason });
        }
        if let Self::Svg = self {
            return dump.write_file(target("SVG"), |out| graph.write_svg(out));
        }
        dump.write_file(target("Speedscope"), |out| graph.write_speedscope(out))
    }
}

/// Makes a profile of all that was opened or allocated, with the suspects of `.why`.
fn profile(
    args: &PictureArgs,
    dump: &mut DumpContext<'_, '_>,
) -> Result<PprofProfile, CommandError> {
    let chosen = &args.handles.criteria;
    let groups = GroupCriteria { trims: chosen.groups.trims.clone(), ..GroupCriteria::default() };
    let plain_process_names = chosen.plain_process_names;
    let all = AcquisitionCriteria { groups, plain_process_names, ..AcquisitionCriteria::default() };
    let criteria_of_why = WhyCriteria { handles: all, ..WhyCriteria::default() };
    let answers = query::why(dump.sources, &criteria_of_why, dump.names, dump.cancel)?;
    let suspects = SuspectIds::from_answers(&answers);
    let (profile, reason) = match criteria(args, &GroupColumn::DRAWN)? {
        Some(criteria) => {
            let answers = ask_allocations(&criteria, dump)?;
            let profile =
                PprofProfile::from_allocations(&answers, args.options.by_count, &suspects);
            (profile, "none of the chosen allocations was made in the trace")
        }
        None => {
            let answer = handles(args, dump)?;
            let profile = PprofProfile::from_handles(&answer.files, weight(chosen), &suspects);
            (profile, "none of the chosen handles was opened in the trace")
        }
    };
    if profile.is_empty() {
        return Err(CommandError::EmptyPicture { reason });
    }
    Ok(profile)
}

/// Groups of handles by process, stack and type.
fn handles<'a>(
    args: &PictureArgs,
    dump: &mut DumpContext<'a, '_>,
) -> Result<ObjectRefAnswer<'a>, CommandError> {
    let groups =
        GroupCriteria::new([GroupColumn::Process, GroupColumn::CreateStack, GroupColumn::Type]);
    ask(&args.handles, groups, dump)
}

/// Returns how to count handles: all leaked ones, or only some of them if the options say so.
fn weight(criteria: &AcquisitionCriteria) -> Weight {
    match (criteria.leak, criteria.leak_at_exit) {
        (true, false) => |stats: &GroupStats| stats.leaked,
        (false, true) => |stats: &GroupStats| stats.closed_at_exit,
        _ => GroupStats::unreleased,
    }
}
