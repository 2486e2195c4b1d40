//! `.dump Diff`, and `.diff`, which is the same but takes its points as words. The arguments are in their own file.

mod of_fleet;
mod options;

use self::options::{DiffArgs, FLAME, OPTIONS};

use std::path::Path;

use crate::converttime::recorded_ns;
use crate::shared::gate::no_other_format;
use crate::shared::{kind_option, note_allocations, write_caveats};
use crate::{
    Command, CommandError, DumpContext, Flow, KindCommand, OverDataset, SharedArgs, Signature,
    Tabular,
};
use handlescope_query::{
    self as query, self, ComparableAnswer, ComparisonTotals, DiffCriteria, Domain, FileAnswer,
    PointSpan, PointsDiff, ResourcesAnswer, TraceAnswer, TracesDiff,
};
use handlescope_render as render;
use handlescope_render::output::Target;
use handlescope_render::pictures::FlameGraph;
use handlescope_session::grammar::{Arguments, Example, OptionGroup, ParseError};
use handlescope_session::paths::has_extension;
use handlescope_session::terminal::Messages;
use handlescope_session::trace::{CaveatKind, LoadedTrace, Session};

/// The kind, with all options and formats of kinds.
pub struct Diff;

pub static COMMAND: KindCommand = KindCommand {
    signature: &Signature {
        names: &[".diff"],
        usage: "[A [B]] [OPTION…]",
        arguments: Arguments::Points(2),
        examples: &Example::lines([
            ".diff",
            ".diff 0.5s 1.5s -ShowStack",
            ".diff 0.5s -pn leaky -json",
            ".diff 0.5s -flame grown.svg",
        ]),
        ..Diff::SIGNATURE
    },
    kind: &Diff,
    words: (&["-From", "-To"], "at most two points, A and B"),
    over_dataset: Some(&of_fleet::COMMAND),
};

impl Command for Diff {
    type Args = DiffArgs;
    const SIGNATURE: Signature = Signature {
        names: &["Diff"],
        summary: "compare two points in time, or two traces",
        details: "With one trace, or with a point in time: handles and views that were opened after \
             A (default: the start of the trace) and are still open at B (default: its end), by \
             process, type and create stack, like !htrace -diff. A and B are .snapshot names or \
             times; in text of !htrace, A defaults to the last !htrace -snapshot. With two traces \
             and no point: groups that leak more in the trace recorded later, by process name, type \
             and functions of the create stack, including handles closed only by process exit. A \
             group is new or gone if only one trace leaks it, and worse or better if its rates \
             differ by a factor of 1.5 and by more than chance (95 % confidence for all groups \
             together). A new group counts as worse only if it is beyond chance, and a balanced one \
             never does (.help growth). If anything got worse, a warning says so and the exit \
             status of handlescope is 1; if lost events may explain it, 2. handlescope diff also \
             fails with 2. With two minidumps, all open handles are compared; handles without a \
             stack by the names of their objects. -Kind compares allocations instead.",
        examples: &[
            Example { goal: "handles opened and still open", line: ".dump Diff" },
            Example {
                goal: "between two points in time, with all frames",
                line: ".dump Diff -From 0.5s -To 1.5s -ss",
            },
            Example {
                goal: "memory allocated in that time and still allocated at its end",
                line: ".dump Diff -From 0.5s -To 1.5s -Kind heap",
            },
        ],
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<DiffArgs>] = OPTIONS;

    const TABLE: Option<Tabular> = Some(Tabular::new(|| {
        let mut columns: Vec<String> = Vec::new();
        for domain in [Domain::Handles, Domain::Allocations] {
            let of_points = render::point_columns(domain).names();
            for column in of_points.into_iter().chain(render::trace_columns(domain).names()) {
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
        }
        columns
    }));

    const FOR_DATASET: Option<&'static OverDataset<DiffArgs>> = Some(&of_fleet::OF_FLEET);

    fn check(args: &DiffArgs, shared: &SharedArgs) -> Result<(), ParseError> {
        no_other_format(&args.gate, shared)?;
        if args.gate.format.is_some() && args.flame.is_some() {
            let (option, other) = ("-Format", FLAME);
            return Err(ParseError::Conflict { option, other, reason: "an answer has one format" });
        }
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
        let criteria = DiffCriteria {
            ignoring: args.ignore.read(&dump.session.settings, dump.messages)?,
            with_identities: dump.shared.output.is_document(),
            all_open: args.flame.is_some(),
            object_type: args.kind.clone().or(args.criteria.object_type.clone()),
            ..args.criteria.clone()
        };
        match args.kind {
            Some(_) => answer::<ResourcesAnswer<'_>>(args, &criteria, dump),
            None => answer::<FileAnswer<'_>>(args, &criteria, dump),
        }
    }
}

/// Refuses to compare a trace that lacks events of handles or of allocations, because a gate would pass.
fn check_events<'a>(
    answer: &impl TraceAnswer<'a>,
    session: &Session,
    messages: &mut Messages<'_>,
) -> Result<(), CommandError> {
    let about = answer.about();
    let lacks = |kind| about.caveats.iter().any(|caveat| caveat.kind == kind);
    let path = about.path.to_path_buf();
    if lacks(CaveatKind::NoHandleEvents) {
        let option = kind_option(about.trace)?;
        return Err(CommandError::NothingToCompare { path, option });
    }
    if lacks(CaveatKind::NoResourceEvents) {
        // The caveats say why there are none.
        write_caveats(answer, session, messages);
        return Err(CommandError::NoAllocations { path });
    }
    Ok(())
}

fn answer<'a, F: ComparableAnswer<'a>>(
    args: &DiffArgs,
    criteria: &DiffCriteria,
    dump: &mut DumpContext<'a, '_>,
) -> Result<(), CommandError> {
    let has_points = args.from.is_some() || args.to.is_some();
    match dump.sources.len() {
        2 if !has_points => compare::<F>(args, criteria, dump),
        files if files > 2 && !has_points => Err(CommandError::CompareSeveral { files }),
        1 if !has_points && args.kind.is_none() => {
            let file = dump.sources.first();
            let file = file.and_then(|source| dump.session.files.get(source.index));
            let snapshot = file.and_then(LoadedTrace::last_of_debugger);
            let from = snapshot.map(|snapshot| snapshot.name.clone());
            between::<F>(&DiffArgs { from, ..args.clone() }, criteria, dump)
        }
        _ => between::<F>(args, criteria, dump),
    }
}

/// Compares two points of each trace.
fn between<'a, F: ComparableAnswer<'a>>(
    args: &DiffArgs,
    criteria: &DiffCriteria,
    dump: &mut DumpContext<'a, '_>,
) -> Result<(), CommandError> {
    if args.gate.format.is_some() {
        return Err(CommandError::FindingsOfOne);
    }
    let spans = spans(args, dump)?;
    let answers: Vec<PointsDiff<F>> =
        query::between_points(dump.sources, &spans, criteria, dump.names, dump.cancel)?;
    for answer in &answers {
        write_caveats(&answer.file, dump.session, dump.messages);
        note_allocations(&answer.file, dump.messages)?;
    }
    let points = point_names(args);
    if let Some(path) = &args.flame {
        let ignored = answers.iter().map(|answer| answer.ignored).sum();
        note_ignored(ignored, args, dump.messages);
        let graph = FlameGraph::from_points(&answers, points);
        let reason = match F::DOMAIN {
            Domain::Handles => "nothing opened in the trace is still open at the second point",
            Domain::Allocations => {
                "nothing allocated in the trace is still allocated at the second point"
            }
        };
        return if graph.is_empty() {
            Err(CommandError::EmptyPicture { reason })
        } else {
            draw(path, &graph, dump)
        };
    }
    let (display, is_plain) = (dump.display(), criteria.with_identities);
    let table = render::diff_points(&answers, points, is_plain, criteria.stacks, &display)?;
    dump.write(table)
}

/// Compares two traces.
fn compare<'a, F: ComparableAnswer<'a>>(
    args: &DiffArgs,
    criteria: &DiffCriteria,
    dump: &mut DumpContext<'a, '_>,
) -> Result<(), CommandError> {
    let answer: TracesDiff<F> =
        query::compare_traces(dump.sources, criteria, dump.names, dump.cancel)?;
    for file in &answer.files {
        check_events(file, dump.session, dump.messages)?;
        write_caveats(file, dump.session, dump.messages);
    }
    let doubt = if answer.are_of_one_moment() { FORGOTTEN } else { LOST };
    let (noun, nothing) = match F::DOMAIN {
        Domain::Handles => ("handles", "nothing leaks"),
        Domain::Allocations => ("allocations", "nothing is left allocated"),
    };
    let groups = |number| match number {
        1 => format!("1 group of {noun}"),
        number => format!("{number} groups of {noun}"),
    };
    warn_of_worse(&answer.totals(), groups, doubt, dump);
    match &args.flame {
        None if let Some(format) = args.gate.format => {
            render::write_findings(&[render::diff_findings(&answer)], format, dump.out)?;
        }
        None => {
            let table = render::diff_traces(&answer, criteria.stacks, &dump.display())?;
            dump.write(table)?;
        }
        Some(path) => {
            note_ignored(answer.ignored, args, dump.messages);
            match FlameGraph::from_traces(&answer) {
                // If the question is whether something got worse, an empty picture is not a failure.
                graph if graph.is_empty() => {
                    dump.messages.note(format_args!("no picture: {nothing} in the second trace"));
                }
                graph => draw(path, &graph, dump)?,
            }
        }
    }
    // Otherwise, a mistyped name would pass any gate.
    match answer.no_match {
        Some(no_match) => Err(CommandError::NothingChosen { no_match }),
        None => Ok(()),
    }
}

/// Says how many groups are missing in a picture because they are known leaks.
fn note_ignored(ignored: usize, args: &DiffArgs, messages: &mut Messages<'_>) {
    let line = render::line_of_ignored(ignored, "group");
    if let Some(line) = line.filter(|_| !args.ignore.shows_ignored()) {
        messages.note(line);
    }
}

/// Writes a picture instead of the answer.
fn draw(
    path: &Path,
    graph: &FlameGraph,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    let target = Target { path, option: FLAME, format: "SVG" };
    dump.write_file(target, |out| graph.write_svg(out))
}

/// Reasons to doubt that a group got worse, with remedies.
const LOST: &str = "events were lost; record again with more or larger buffers";
const FORGOTTEN: &str = "one dump lacks stacks of handles of these types, because handle tracing \
                         was off or has dropped them; trace from the start of the program, with \
                         Application Verifier";

/// Reports groups that got worse, or may have, and sets the exit status. This happens before the answer is written,
/// because its reader may leave early. `groups` names a number of groups.
pub fn warn_of_worse(
    totals: &ComparisonTotals,
    groups: impl Fn(usize) -> String,
    doubt: &str,
    dump: &mut DumpContext<'_, '_>,
) {
    if totals.uncertain > 0 {
        let groups = groups(totals.uncertain);
        dump.messages
            .warning(format_args!("{groups} may or may not have got worse, because {doubt}"));
        dump.flow = Flow::Undecided;
    }
    if totals.worse > 0 {
        dump.messages.warning(format_args!("{} got worse", groups(totals.worse)));
        dump.flow = Flow::Worse;
    }
}

/// Returns the names of the points for display.
fn point_names(args: &DiffArgs) -> [&str; 2] {
    [args.from.as_deref().unwrap_or("start"), args.to.as_deref().unwrap_or("end")]
}

/// Returns the points of each queried trace.
fn spans(args: &DiffArgs, dump: &DumpContext<'_, '_>) -> Result<Vec<PointSpan>, CommandError> {
    let files = dump.sources.iter().filter_map(|source| dump.session.files.get(source.index));
    let spans: Result<Vec<PointSpan>, CommandError> = files.map(|file| span(file, args)).collect();
    // A span without points needs nothing from the session.
    let mut spans = spans?;
    spans.resize(dump.sources.len(), PointSpan { after_ns: None, until_ns: None });
    Ok(spans)
}

/// Returns the requested points of a trace.
fn span(file: &LoadedTrace, args: &DiffArgs) -> Result<PointSpan, CommandError> {
    let point_of = |text: &Option<String>| text.as_ref().map(|text| point(file, text)).transpose();
    let (after, until) = (point_of(&args.from)?, point_of(&args.to)?);
    // The end of a trace is after everything in it.
    let ns = |point: Option<i64>| point.unwrap_or(i64::MAX);
    // Two equal points are fine: nothing is opened between them.
    if after.is_some_and(|after| ns(after) > ns(until.flatten())) {
        let text =
            |text: &Option<String>, default: &str| text.clone().unwrap_or(default.to_owned());
        let (from, to) = (text(&args.from, "start"), text(&args.to, "end"));
        return Err(CommandError::PointOrder { from, to });
    }
    Ok(PointSpan { after_ns: after.map(ns), until_ns: until.flatten() })
}

/// Returns the time of a snapshot, or a time in a trace; `None` for the end.
fn point(file: &LoadedTrace, text: &str) -> Result<Option<i64>, CommandError> {
    if let Some(snapshot) = file.snapshot(text) {
        return Ok(snapshot.ns);
    }
    let info = file.trace.info()?;
    let time = recorded_ns(text, &info).ok().flatten().filter(|_| info.has_clock());
    let error = || CommandError::NoPoint { point: text.to_owned(), path: file.path.clone() };
    time.map(Some).ok_or_else(error)
}
