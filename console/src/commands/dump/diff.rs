//! `.dump Diff`, and `.diff`, which is the same with its points as words.

use std::path::{Path, PathBuf};

use crate::{
    commands::{
        AnyCommand, AnyKind, CommandError, DumpContext, Entered, Flow, Invocation, Kind,
        KindSignature, SharedArgs, Signature,
        converttime::recorded_ns,
        shared::{
            caveats::{write_caveats, write_warnings},
            choice::process_option,
            groups,
            stack_display::{
                ShowsStacks, show_address_option, show_line_option, show_stack_option,
            },
        },
    },
    filter::Filter,
    grammar::{
        Arguments, Example, GroupView, Opt, OptionGroup, ParseError, Quotes, Take, Texts, Token,
        parse,
    },
    paths::has_extension,
    query::{self, AllocationsDiff, DiffCriteria, ResourceCriteria, Span, trace_info},
    render::{self, Format, output::Target, pictures::FlameGraph},
    settings::{Display, StackDisplayArgs},
    trace::{CaveatKind, LoadedTrace},
};

/// What the kind is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DiffArgs {
    /// `-From`: a snapshot or a time; none for the start.
    from: Option<String>,
    /// `-To`: a snapshot or a time; none for the end.
    to: Option<String>,
    /// `-flame`: the file to write.
    flame: Option<PathBuf>,
    /// `-Kind`: allocations of such kinds instead of handles.
    kind: Option<Filter>,
    criteria: DiffCriteria,
}

/// The kind, which has every option and format that kinds have.
pub(crate) struct Diff;

/// The command.
pub(crate) struct DiffCommand;

/// The option that names a picture.
const FLAME: &str = "-flame";

const SUMMARY: &str = "what is opened and still open between two points, or lost more of in the second of two \
     traces";

const DETAILS: &str = "With one trace, or with a point in time: handles and views that were opened after A (the \
     start) and are still open at B (the end), by process, type and create stack, like !htrace -diff. A and B \
     are names of .snapshot or times; without both, A is the last !htrace -snapshot of a debugger's text. With two traces and no point: what the second one, the one recorded \
     later, loses more of than the first, by name of the process, type and functions of the create stack. \
     Lost is what nothing but the end of a process closed. A group is new or gone when one of the traces loses \
     nothing of it, worse or better when a test of the rates (95 % for all groups together) and a factor of \
     1.5 say so, else same. It got worse, also when it is new, only by that test, and never when its growth \
     is balanced: .help growth. When something got worse, the exit status of handlescope is 1, and a warning \
     says so.";

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
        ],
    };
    const OPTIONS: &'static [OptionGroup<DiffArgs>] = OPTIONS;

    fn columns() -> Vec<String> {
        let (stacks, display) = (StackDisplayArgs::default(), Display::default());
        let answer =
            query::TracesDiff { files: Vec::new(), minutes: Vec::new(), groups: Vec::new() };
        let mut columns = render::columns(render::diff_points(&[], ["", ""], stacks, &display));
        let allocations = AllocationsDiff { files: Vec::new(), groups: Vec::new() };
        let of_allocations = render::diff_allocations(&allocations, stacks, &display);
        let of_traces = render::columns(render::diff_traces(&answer, stacks, &display));
        for column in of_traces.into_iter().chain(render::columns(of_allocations)) {
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
        let others = [
            (args.flame.is_some(), FLAME),
            (args.from.is_some(), "-From"),
            (args.to.is_some(), "-To"),
            (args.criteria.object_type.is_some(), "-Type"),
        ];
        let other = others.into_iter().find(|(is, _)| *is && args.kind.is_some());
        let (option, reason) = ("-Kind", "allocations of two traces are compared, as a table");
        other.map_or(Ok(()), |(_, other)| Err(ParseError::Conflict { option, other, reason }))
    }

    fn answer(args: &DiffArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        if let Some(kind) = &args.kind {
            return compare_allocations(kind, args, dump);
        }
        if let Some(path) = &args.flame {
            if !has_extension(path, &["svg"]) {
                return Err(CommandError::PictureName { path: path.clone(), endings: ".svg" });
            }
            dump.overwrite().replacing(path)?;
        }
        let for_programs = matches!(dump.shared.output.format(), Format::Json(_));
        let all_open = args.flame.is_some();
        let criteria = DiffCriteria { for_programs, all_open, ..args.criteria.clone() };
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
    let files = dump.sources.iter().filter_map(|source| dump.session.files.get(source.index));
    let spans: Result<Vec<Span>, CommandError> = files.map(|file| span(file, args)).collect();
    // Without points a span needs nothing of the session.
    let mut spans = spans?;
    spans.resize(dump.sources.len(), Span { after_ns: None, until_ns: None });
    let answers = query::opened_between(dump.sources, &spans, criteria, dump.names, dump.cancel)?;
    answers.iter().for_each(|answer| write_caveats(&answer.file, dump.messages));
    let points = [args.from.as_deref().unwrap_or("start"), args.to.as_deref().unwrap_or("end")];
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

/// Writes a picture in the place of the answer.
fn draw(
    path: &Path,
    graph: &FlameGraph,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    let target = Target { path, option: FLAME, format: "SVG" };
    dump.write_file(target, |out| graph.write_svg(out))
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
            return Err(CommandError::NothingToCompare { path: file.path().to_path_buf() });
        }
        write_caveats(file, dump.messages);
    }
    match &args.flame {
        Some(path) => match FlameGraph::of_traces(&answer) {
            // For who asks whether something got worse that is no failure.
            graph if graph.is_empty() => {
                dump.messages.note(format_args!("no picture: nothing is lost in the second trace"));
            }
            graph => draw(path, &graph, dump)?,
        },
        None => {
            let display = dump.display();
            dump.write(render::diff_traces(&answer, criteria.stacks, &display)?)?;
        }
    }
    got_worse(answer.worse(), "handles", dump);
    Ok(())
}

/// What traces leave allocated: one by itself, of two the difference.
fn compare_allocations(
    kind: &Filter,
    args: &DiffArgs,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    let (kind, process, stacks) =
        (Some(kind.clone()), args.criteria.process.clone(), args.criteria.stacks);
    let criteria = ResourceCriteria { kind, process, stacks, ..ResourceCriteria::default() };
    match dump.sources.len() {
        2 => {}
        1 => return left(&ResourceCriteria { leak: true, ..criteria }, dump),
        files => return Err(CommandError::CompareAllocations { files }),
    }
    let answer = query::compare_allocations(dump.sources, &criteria, dump.names, dump.cancel)?;
    for file in &answer.files {
        if file.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoResourceEvents) {
            return Err(CommandError::NoAllocations { path: file.path.to_path_buf() });
        }
        write_warnings(file.path, &file.caveats, dump.messages);
    }
    let display = dump.display();
    dump.write(render::diff_allocations(&answer, stacks, &display)?)?;
    got_worse(answer.worse(), "allocations", dump);
    Ok(())
}

/// What one trace leaves allocated.
fn left(criteria: &ResourceCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    let (format, display) = (dump.shared.output.format(), dump.display());
    let for_document = matches!(format, Format::Json(_));
    let criteria = ResourceCriteria { for_document, ..criteria.clone() };
    let answers = query::resources(dump.sources, &criteria, dump.names, dump.cancel)?;
    for answer in &answers {
        write_warnings(answer.path, &answer.caveats, dump.messages);
    }
    let command = &dump.shared.text;
    dump.write(render::resources(&answers, &criteria, command, format, &display)?)
}

/// Says that groups got worse, and ends with the status that says so.
fn got_worse(worse: usize, what: &str, dump: &mut DumpContext<'_, '_>) {
    if worse > 0 {
        let groups = if worse == 1 { "1 group".to_owned() } else { format!("{worse} groups") };
        dump.messages.warning(format_args!("{groups} of {what} got worse"));
        dump.flow = Flow::Worse;
    }
}

/// The points of a trace that were asked for.
fn span(file: &LoadedTrace, args: &DiffArgs) -> Result<Span, CommandError> {
    let at = |text: &Option<String>| text.as_ref().map(|text| point(file, text)).transpose();
    let (after, until) = (at(&args.from)?, at(&args.to)?);
    // The end of a trace is behind all that is in it.
    let ns = |point: Option<i64>| point.unwrap_or(i64::MAX);
    if after.is_some_and(|after| ns(after) >= ns(until.flatten())) {
        let text =
            |text: &Option<String>, default: &str| text.clone().unwrap_or(default.to_owned());
        let (from, to) = (text(&args.from, "start"), text(&args.to, "end"));
        return Err(CommandError::PointOrder { from, to });
    }
    Ok(Span { after_ns: after.map(ns), until_ns: until.flatten() })
}

/// A snapshot of a trace, or a time in it; `None` for its end.
fn point(file: &LoadedTrace, text: &str) -> Result<Option<i64>, CommandError> {
    if let Some(snapshot) = file.snapshot(text) {
        return Ok(snapshot.ns);
    }
    let no_point = || CommandError::NoPoint { point: text.to_owned(), path: file.path.clone() };
    let info = trace_info(&file.trace)?;
    let time = recorded_ns(text, &info).ok().flatten().filter(|_| info.has_clock());
    time.map(Some).ok_or_else(no_point)
}

/// All options, under the headings of the help.
static OPTIONS: &[OptionGroup<DiffArgs>] = &[
    OptionGroup { title: "Which handles", options: WHICH },
    OptionGroup { title: groups::DISPLAY, options: DISPLAY },
    OptionGroup { title: groups::SCRIPTS, options: PICTURES },
];

static WHICH: &[Opt<DiffArgs>] = &[
    Opt {
        names: &["-From"],
        help: "handles that were opened after this point",
        details: "A name of .snapshot or a time as for .converttime; in quotes when it has a space. The \
                  start of the trace unless it is given. Behind .diff the name of the option may be left out.",
        example: "-From 0.5s",
        take: Take::Point("A", |args| &mut args.from),
    },
    Opt {
        names: &["-To"],
        help: "handles that are open at this point",
        details: "Written as for -From. The end of the trace unless it is given.",
        example: "-To 1.5s",
        take: Take::Point("B", |args| &mut args.to),
    },
    process_option(
        "handles that processes of this name or pid own",
        "The name may go without .exe; a number is a pid; ! in front excludes.",
        |args| &mut args.criteria.process,
    ),
    Opt {
        names: &["-Type"],
        help: "handles of objects of such a type",
        details: "As in -Type of .dump ObjectRef.",
        example: "-Type Event;Thread",
        take: Take::Filter(Texts::ObjectTypes, |args| &mut args.criteria.object_type),
    },
    Opt {
        names: &["-Kind"],
        help: "allocations of these kinds instead of handles: heap, commit, reserve…",
        details: "Of one trace, what nothing freed, as .dump Resource -Leak. Of two: what nothing freed, or only the end of the process, by program, kind, allocator and \
                  functions of the stack that allocated it; heaps count as one allocator, because their handles \
                  differ. More is worse when it is more than 1.5 times as many bytes and 64 KiB, in the same \
                  time; of what has no bytes, 5 more.",
        example: "-Kind heap",
        take: Take::Filter(Texts::AllocationKinds, |args| &mut args.kind),
    },
];

static DISPLAY: &[Opt<DiffArgs>] =
    &[show_stack_option(), show_address_option(), show_line_option()];

static PICTURES: &[Opt<DiffArgs>] = &[Opt {
    names: &[FLAME],
    help: "draw the difference as a flame graph instead",
    details: "NAME.svg is a picture for a browser. Between two points a frame is as wide as handles that \
              were opened there are open at B; the type on top is red where these are more than at A, blue \
              where they are fewer. Of two traces it is as wide as handles are lost in the second one, and the type \
              is red or blue where these are more or fewer than expected from the first one in the same time.",
    example: "-flame grown.svg",
    take: Take::File(|args| &mut args.flame),
}];

impl ShowsStacks for DiffArgs {
    fn stacks(&mut self) -> &mut StackDisplayArgs {
        &mut self.criteria.stacks
    }
}
