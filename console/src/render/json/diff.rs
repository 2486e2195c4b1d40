//! `.diff -json`.

use std::io::{self, Write};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::file::{FileJson, InDocument};
use super::{Array, Members};
use crate::query::{ComparedGroup, FileAnswer, OpenedGroup, PointsDiff, TracesDiff, Window};
use crate::render::table::Part;
use crate::values::JsonMode;

/// Between points of traces.
pub(in crate::render) fn diff_points(
    answers: &[PointsDiff<'_>],
    [a, b]: [&str; 2],
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let files = FileJson::of_files(answers.iter().map(|answer| &answer.file));
    let spans = || {
        let files = files.iter().zip(answers);
        files.map(|(file, answer)| SpanJson::of(file, answer.window))
    };
    let groups = || {
        let files = answers.iter().zip(&files).zip(parts);
        files.flat_map(|((answer, file), part)| {
            let groups = part.own_rows().filter_map(|row| answer.groups.get(row));
            groups.map(|group| OpenedJson::new(file, group))
        })
    };
    super::write(&Document { a, b, files: &files, spans, groups }, mode, out)
}

/// Of two traces.
pub(in crate::render) fn diff_traces(
    answer: &TracesDiff<FileAnswer<'_>>,
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let files = FileJson::of_files(answer.files.iter());
    let index = |at: usize| files.get(at).map(|file| file.index);
    let spans = || {
        files.iter().filter_map(|file| {
            let window = file.answer.groups.as_ref()?.extent;
            Some(SpanJson::of(file, window))
        })
    };
    let groups = || {
        let rows = parts.iter().flat_map(Part::own_rows);
        let groups = rows.filter_map(|row| answer.groups.get(row));
        groups.filter_map(|group| ComparedJson::new(&files, group))
    };
    super::write(&Document { a: index(0), b: index(1), files: &files, spans, groups }, mode, out)
}

/// Two points or traces, and groups of handles or allocations.
pub(super) struct Document<'a, P, F, S, G> {
    pub(super) a: P,
    pub(super) b: P,
    pub(super) files: &'a [F],
    pub(super) spans: S,
    pub(super) groups: G,
}

impl<P, F, S, G, SI, GI> Serialize for Document<'_, P, F, S, G>
where
    P: Serialize,
    F: InDocument,
    S: Fn() -> SI,
    SI: IntoIterator<Item: Serialize>,
    G: Fn() -> GI,
    GI: IntoIterator<Item: Serialize>,
{
    fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Diff")?;
        map.serialize_entry("a", &self.a)?;
        map.serialize_entry("b", &self.b)?;
        map.serialize_entry("files", &Array(|| self.files.iter().map(F::header)))?;
        map.serialize_entry("spans", &Array(&self.spans))?;
        map.serialize_entry("groups", &Array(&self.groups))?;
        map.serialize_entry("stacks", &Members(|| self.files.iter().flat_map(F::stacks)))?;
        map.serialize_entry("caveats", &Array(|| self.files.iter().flat_map(F::caveats)))?;
        if let Some(no_match) = self.files.iter().find_map(F::no_match) {
            map.serialize_entry("no_match", &no_match)?;
        }
        map.end()
    }
}

/// The time of a trace that is looked at; null where the trace has no clock.
#[derive(Serialize)]
pub(super) struct SpanJson {
    file: usize,
    from_ns: Option<i64>,
    to_ns: Option<i64>,
}

impl SpanJson {
    pub(super) fn new(file: usize, window: Option<Window>) -> Self {
        let (from_ns, to_ns) = window.map(|own| (own.start_ns, own.end_ns)).unzip();
        Self { file, from_ns, to_ns }
    }

    /// Of a trace that may have no clock.
    fn of(file: &FileJson<'_>, window: Window) -> Self {
        Self::new(file.index, file.answer.info.has_clock().then_some(window))
    }
}

#[derive(Serialize)]
struct OpenedJson<'a> {
    file: usize,
    process: &'a str,
    pid: Option<u32>,
    r#type: &'a str,
    create_stack: Option<u64>,
    function: Option<&'a str>,
    opened: u64,
    still_open: u64,
    per_minute: Option<f64>,
    sample_ids: &'a [u64],
}

impl<'a> OpenedJson<'a> {
    fn new(file: &FileJson<'_>, group: &'a OpenedGroup) -> Self {
        Self {
            file: file.index,
            process: &group.process,
            pid: group.pid,
            r#type: &group.type_name,
            create_stack: group.create_stack.map(|stack| file.stack(stack)),
            function: group.function.as_deref(),
            opened: group.opened,
            still_open: group.still_open,
            per_minute: group.per_minute,
            sample_ids: &group.sample_ids,
        }
    }
}

#[derive(Serialize)]
struct ComparedJson<'a> {
    process: Option<&'a str>,
    r#type: &'a str,
    /// Of the trace after, or else of the trace before.
    create_stack: Option<u64>,
    function: Option<&'a str>,
    before: u64,
    after: u64,
    before_per_minute: Option<f64>,
    after_per_minute: Option<f64>,
    before_growth: Option<&'static str>,
    after_growth: Option<&'static str>,
    state: &'static str,
    got_worse: bool,
    uncertain: bool,
    p_value: f64,
}

impl<'a> ComparedJson<'a> {
    fn new(files: &[FileJson<'_>], group: &'a ComparedGroup) -> Option<Self> {
        let [first, second] = files else { return None };
        let ComparedGroup { before, after, .. } = group;
        let stack_after = after.create_stack.map(|stack| second.stack(stack));
        Some(Self {
            process: group.process.as_deref(),
            r#type: &group.type_name,
            create_stack: stack_after.or(before.create_stack.map(|stack| first.stack(stack))),
            function: group.function.as_deref(),
            before: before.leaked.count,
            after: after.leaked.count,
            before_per_minute: before.per_minute,
            after_per_minute: after.per_minute,
            before_growth: before.verdict.map(|verdict| verdict.word()),
            after_growth: after.verdict.map(|verdict| verdict.word()),
            state: group.state.word(),
            got_worse: group.got_worse,
            uncertain: group.is_uncertain,
            p_value: group.p_value,
        })
    }
}
