//! `.dump Diff`, and `.diff`, which is the same with its points as words. Its arguments, its options, its points and
//! what it says of allocations have a file each.

mod allocations;
mod args;
mod options;
mod output;
mod points;

use self::args::DiffArgs;
use self::options::{FLAME, OPTIONS};
use self::output::{Compared, check_choice, compared, draw};

use crate::{
    commands::{
        AnyCommand, AnyKind, CommandError, DumpContext, Entered, Invocation, Kind, KindSignature,
        SharedArgs, Signature,
        shared::{
            caveats::{kind_option, note_allocations, write_caveats},
            groups,
        },
    },
    grammar::{Arguments, Example, GroupView, OptionGroup, ParseError, Quotes, Token, parse},
    paths::has_extension,
    query::{self, DiffCriteria},
    render::{self, pictures::FlameGraph},
    settings::Display,
    trace::{CaveatKind, LoadedTrace},
};

/// The kind, which has every option and format that kinds have.
pub(crate) struct Diff;

pub(crate) struct DiffCommand;

const SUMMARY: &str = "what is opened and still open between two points, or lost more of in the second of two \
     traces";

const DETAILS: &str = "With one trace, or with a point in time: handles and views that were opened after A (the \
     start) and are still open at B (the end), by process, type and create stack, like !htrace -diff. A and B \
     are names of .snapshot or times; without both, A is the last !htrace -snapshot of a debugger's text. With two traces and no point: what the second one, the one recorded \
     later, loses more of than the first, by name of the process, type and functions of the create stack. \
     Lost is what nothing but the end of a process closed. A group is new or gone when one of the traces loses \
     nothing of it, worse or better when a test of the rates (95 % for all groups together) and a factor of \
     1.5 both show it, else same. It got worse, also when it is new, only by that test, and never when its growth \
     is balanced: .help growth. When something got worse, the exit status of handlescope is 1, with a warning; when \
     lost events may explain it, 2. handlescope diff fails with 2, too. With -Kind it is about allocations instead.";

static SIGNATURE: Signature = Signature {
    names: &[".diff"],
    group: groups::QUERIES,
    usage: "[A [B]] [OPTION…]",
    arguments: Arguments::Points(2),
    summary: SUMMARY,
    details: DETAILS,
    examples: &[
        ".diff",
        ".diff 0.5s 1.5s -ShowStack",
        ".diff 0.5s -pn leaky -json",
        ".diff 0.5s -flame grown.svg",
    ],
};

impl AnyCommand for DiffCommand {
    fn signature(&self) -> &'static Signature {
        &SIGNATURE
    }

    fn groups(&self) -> Vec<GroupView> {
        AnyKind::groups(&Diff)
    }

    fn parse(&self, entered: &Entered<'_>) -> Result<Box<dyn Invocation>, ParseError> {
        let options = AnyKind::options(&Diff);
        let points = parse::words(&options, entered.tokens);
        if let Some(third) = points.get(2) {
            return Err(entered.too_many("at most two points, A and B", third));
        }
        let is_point = |token: &&Token| points.iter().any(|point| point.span == token.span);
        let others = entered.tokens.iter().filter(|token| !is_point(token)).cloned();
        let named = ["-From", "-To"].into_iter().zip(&points).flat_map(|(name, point)| {
            let (text, span) = (name.to_owned(), point.span.clone());
            [Token { text, span, quotes: Quotes::No }, (*point).clone()]
        });
        let tokens: Vec<Token> = others.chain(named).collect();
        AnyKind::parse(&Diff, &Entered { tokens: &tokens, ..*entered })
    }
}

impl Kind for Diff {
    type Args = DiffArgs;
    const SIGNATURE: KindSignature = KindSignature {
        name: "Diff",
        summary: SUMMARY,
        details: DETAILS,
        examples: &[
            Example { goal: "what was opened and is still open", line: ".dump Diff" },
            Example {
                goal: "the same between two points in time, with all frames",
                line: ".dump Diff -From 0.5s -To 1.5s -ss",
            },
            Example {
                goal: "memory that was allocated in that time and is still allocated at its end",
                line: ".dump Diff -From 0.5s -To 1.5s -Kind heap",
            },
        ],
    };
    const OPTIONS: &'static [OptionGroup<DiffArgs>] = OPTIONS;

    fn columns() -> Vec<String> {
        let mut columns = render::point_columns().names();
        let of_traces = render::trace_columns().names().into_iter();
        let of_allocations = render::allocation_columns().names().into_iter();
        let of_allocated = render::allocated_columns().names();
        for column in of_traces.chain(of_allocations).chain(of_allocated) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns
    }

    fn check(args: &DiffArgs, shared: &SharedArgs) -> Result<(), ParseError> {
        let (option, reason) = (FLAME, "the picture has all groups and no rows");
        if let Some(other) = shared.output.of_rows().next().filter(|_| args.flame.is_some()) {
            return Err(ParseError::Conflict { option, other, reason });
        }
        if args.kind.is_some() && args.criteria.object_type.is_some() {
            let (option, other) = ("-Kind", "-Type");
            let reason = "allocations have kinds, and only objects have types";
            return Err(ParseError::Conflict { option, other, reason });
        }
        Ok(())
    }

    fn answer(args: &DiffArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        if let Some(path) = &args.flame {
            if !has_extension(path, &["svg"]) {
                return Err(CommandError::PictureName { path: path.clone(), endings: ".svg" });
            }
            dump.overwrite().replacing(path)?;
        }
        dump.note_stacks_beside_columns(args.criteria.stacks);
        if let Some(kind) = &args.kind {
            return allocations::answer(kind, args, dump);
        }
        let with_identities = dump.shared.output.is_document();
        let all_open = args.flame.is_some();
        let criteria = DiffCriteria { with_identities, all_open, ..args.criteria.clone() };
        let has_points = args.from.is_some() || args.to.is_some();
        match dump.sources.len() {
            2 if !has_points => compare(args, &criteria, dump),
            files if files > 2 && !has_points => Err(CommandError::CompareSeveral { files }),
            1 if !has_points => {
                let file = dump.sources.first();
                let file = file.and_then(|source| dump.session.files.get(source.index));
                let from = file.and_then(LoadedTrace::last_of_debugger).map(|own| own.name.clone());
                between(&DiffArgs { from, ..args.clone() }, &criteria, dump)
            }
            _ => between(args, &criteria, dump),
        }
    }
}

/// Between two points of each trace.
fn between(
    args: &DiffArgs,
    criteria: &DiffCriteria,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    let spans = points::spans(args, dump)?;
    let answers = query::opened_between(dump.sources, &spans, criteria, dump.names, dump.cancel)?;
    for answer in &answers {
        write_caveats(&answer.file, dump.messages);
        note_allocations(&answer.file, dump.messages)?;
    }
    let points = points::names(args);
    if let Some(path) = &args.flame {
        let graph = FlameGraph::of_points(&answers, points);
        let reason = "nothing that was opened in the trace is open at the second point";
        return match graph.is_empty() {
            true => Err(CommandError::EmptyPicture { reason }),
            false => draw(path, &graph, dump),
        };
    }
    let display = dump.display();
    let table = render::diff_points(&answers, points, criteria.stacks, &display)?;
    dump.write(table)
}

/// Of two traces.
fn compare(
    args: &DiffArgs,
    criteria: &DiffCriteria,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    let answer = query::compare_traces(dump.sources, criteria, dump.names, dump.cancel)?;
    for file in &answer.files {
        if file.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoHandleEvents) {
            let (path, option) = (file.path().to_path_buf(), kind_option(file.file.trace)?);
            return Err(CommandError::NothingToCompare { path, option });
        }
        write_caveats(file, dump.messages);
    }
    let table = |display: &Display| render::diff_traces(&answer, criteria.stacks, display);
    let words = Compared { what: "handles", nothing: "nothing is lost" };
    compared(&answer, words, args.flame.as_deref(), table, dump)?;
    check_choice(answer.no_match())
}
