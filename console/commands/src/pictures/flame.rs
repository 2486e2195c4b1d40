//! `.flame`: the stacks that opened leaked handles, as a flame graph.

use std::path::Path;

use super::allocations::{ALLOCATIONS, ask as ask_allocations, criteria};
use super::{FILES, PictureArgs, PictureOptions, ask, groups as option_groups, parse};
use crate::context::answer;
use crate::dump::object_ref::FILTERS;
use crate::shared::groups;
use crate::{Command, CommandError, Context, DumpContext, Entered, Signature};
use handlescope_query::{GroupColumn, GroupCriteria, ObjectCriteria, ResourceColumn, Stats};
use handlescope_render::output::Target;
use handlescope_render::pictures::{FlameGraph, Weight};
use handlescope_session::grammar::{Arguments, Example, GroupView, OptionGroup, ParseError};

pub struct Flame;

static OPTIONS: &[OptionGroup<PictureOptions>] =
    &[ALLOCATIONS, OptionGroup { title: groups::SCRIPTS, options: FILES }];

/// The columns that group allocations.
const BY: [ResourceColumn; 4] = [
    ResourceColumn::Process,
    ResourceColumn::CreateStack,
    ResourceColumn::Kind,
    ResourceColumn::Allocator,
];

impl Command for Flame {
    type Args = PictureArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".flame"],
        group: groups::QUERIES,
        usage: "FILE [OPTION…]",
        arguments: Arguments::Files,
        summary: "draw the stacks of leaked handles as a flame graph",
        details: "NAME.svg is a picture for a browser: click to zoom, Ctrl-F to search. \
             NAME.speedscope.json is for https://www.speedscope.app. The width of a frame is the \
             number of handles and views opened there and not closed, or closed only by process \
             exit; with -Leak or -LeakAtExit only these. The process is at the bottom, the type \
             on top. Other options choose handles as for .dump ObjectRef. With -Kind, the width \
             is bytes allocated and not freed.",
        examples: &Example::lines([
            ".flame leaks.svg",
            ".flame leaks.svg -pn leaky -Type Event",
            ".flame leaks.speedscope.json -FoldStack *!std::*",
        ]),
    };

    fn groups() -> Vec<GroupView> {
        option_groups(FILTERS, OPTIONS)
    }

    fn parse(entered: &Entered<'_>) -> Result<PictureArgs, ParseError> {
        let args = parse(entered, FILTERS, OPTIONS)?;
        match args.file {
            Some(_) => criteria(&args, &BY).map(|_| args),
            None => Err(entered.missing("the file to write, NAME.svg or NAME.speedscope.json")),
        }
    }

    fn run(args: PictureArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let file = args.file.clone().unwrap_or_default();
        let format = Format::of(&file)?;
        answer(false, &args.options.shared, context, |dump| format.draw(&file, &args, dump))
    }
}

/// The format of the picture.
#[derive(Clone, Copy)]
enum Format {
    Svg,
    Speedscope,
}

impl Format {
    fn of(file: &Path) -> Result<Self, CommandError> {
        let extension = file.extension().unwrap_or_default();
        let formats = [("svg", Self::Svg), ("json", Self::Speedscope)];
        let format = formats.into_iter().find(|(ending, _)| extension.eq_ignore_ascii_case(ending));
        format.map(|(_, format)| format).ok_or_else(|| CommandError::PictureName {
            path: file.to_owned(),
            endings: ".svg or, for speedscope, .json",
        })
    }

    fn draw(
        self,
        file: &Path,
        args: &PictureArgs,
        dump: &mut DumpContext<'_, '_>,
    ) -> Result<(), CommandError> {
        dump.overwrite().replacing(file)?;
        let (graph, reason) = match criteria(args, &BY)? {
            Some(mut criteria) => {
                // Only leaked allocations have a width.
                let has_no_choice = !criteria.is_of_leaks();
                criteria.leak |= has_no_choice;
                criteria.leak_at_exit |= has_no_choice;
                let answers = ask_allocations(&criteria, dump)?;
                let graph = FlameGraph::of_allocations(&answers, args.options.by_count);
                (graph, "none of the chosen allocations leaks")
            }
            None => (of_handles(args, dump)?, "none of the chosen handles leaks"),
        };
        if graph.is_empty() {
            return Err(CommandError::EmptyPicture { reason });
        }
        let target = |format| Target { path: file, option: Flame::SIGNATURE.names[0], format };
        match self {
            Self::Svg => dump.write_file(target("SVG"), |out| graph.write_svg(out)),
            Self::Speedscope => {
                dump.write_file(target("Speedscope"), |out| graph.write_speedscope(out))
            }
        }
    }
}

fn of_handles(
    args: &PictureArgs,
    dump: &mut DumpContext<'_, '_>,
) -> Result<FlameGraph, CommandError> {
    let by = vec![GroupColumn::Process, GroupColumn::CreateStack, GroupColumn::Type];
    let groups = GroupCriteria { by, ..GroupCriteria::default() };
    let answer = ask(&args.handles, groups, dump)?;
    Ok(FlameGraph::of(&answer.files, weight(&args.handles.criteria)))
}

/// Returns how to count handles: all leaked ones, or only some of them if the options say so.
fn weight(criteria: &ObjectCriteria) -> Weight {
    match (criteria.leak, criteria.leak_at_exit) {
        (true, false) => |stats: &Stats| stats.leaked,
        (false, true) => |stats: &Stats| stats.closed_at_exit,
        _ => Stats::unreleased,
    }
}
