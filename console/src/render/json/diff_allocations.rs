//! `.diff -Kind -json`.

use std::io::{self, Write};

use handlescope_model::StackIdx;
use serde::Serialize;

use super::diff::{Document, SpanJson};
use super::file::AllocationsFile;
use crate::query::{
    AllocatedPoints, Amount, Between, ComparedGroup, ResourceGroup, ResourcesAnswer, TracesDiff,
};
use crate::render::table::Part;
use crate::values::JsonMode;

/// Between points of traces.
pub(in crate::render) fn diff_allocated(
    answers: &[AllocatedPoints<'_>],
    [a, b]: [&str; 2],
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let files = AllocationsFile::of(answers.iter().map(|answer| &answer.answer));
    let spans = || {
        let files = files.iter().zip(answers);
        files.map(|(file, answer)| SpanJson::new(file.answer.index, answer.window))
    };
    let groups = || {
        let files = answers.iter().zip(&files).zip(parts);
        files.flat_map(|((answer, file), part)| {
            let groups = part.own_rows().filter_map(|row| answer.groups().get(row));
            groups.map(|group| AllocatedJson::new(*file, answer, group))
        })
    };
    super::write(&Document { a, b, files: &files, spans, groups }, mode, out)
}

/// Of two traces.
pub(in crate::render) fn diff_allocations(
    answer: &TracesDiff<ResourcesAnswer<'_>>,
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let files = AllocationsFile::of(answer.files.iter());
    let index = |at: usize| files.get(at).map(|file| file.answer.index);
    let spans = || files.iter().map(|file| SpanJson::new(file.answer.index, file.answer.window));
    let groups = || {
        let rows = parts.iter().flat_map(Part::own_rows);
        let groups = rows.filter_map(|row| answer.groups.get(row));
        groups.filter_map(|group| ComparedJson::new(&files, group))
    };
    super::write(&Document { a: index(0), b: index(1), files: &files, spans, groups }, mode, out)
}

#[derive(Serialize)]
struct AllocatedJson<'a> {
    file: usize,
    process: Option<String>,
    pid: Option<u32>,
    kind: Option<&'static str>,
    allocator: Option<&'a str>,
    create_stack: Option<u64>,
    function: Option<String>,
    allocated: u64,
    allocated_bytes: i64,
    outstanding: u64,
    outstanding_bytes: i64,
    bytes_per_minute: Option<f64>,
    at_a: u64,
    at_a_bytes: i64,
    at_b: u64,
    at_b_bytes: i64,
}

impl<'a> AllocatedJson<'a> {
    fn new(
        file: AllocationsFile<'a>,
        answer: &AllocatedPoints<'_>,
        group: &'a ResourceGroup,
    ) -> Self {
        let process = file.answer.process(group);
        let Between { allocated, kept, at_first, at_second } = group.figures.between;
        let [allocated, kept, at_first, at_second] =
            [allocated, kept, at_first, at_second].map(|Amount { count, bytes }| (count, bytes));
        Self {
            file: file.answer.index,
            process: process.as_ref().map(|own| own.shown_label(true)),
            pid: process.map(|own| own.pid),
            kind: file.answer.kind(group),
            allocator: file.answer.allocator(group),
            create_stack: group.create_stack().map(|stack| file.stack(stack)),
            function: answer.function(group),
            allocated: allocated.0,
            allocated_bytes: allocated.1,
            outstanding: kept.0,
            outstanding_bytes: kept.1,
            bytes_per_minute: answer.bytes_per_minute(group),
            at_a: at_first.0,
            at_a_bytes: at_first.1,
            at_b: at_second.0,
            at_b_bytes: at_second.1,
        }
    }
}

#[derive(Serialize)]
struct ComparedJson<'a> {
    process: Option<&'a str>,
    kind: &'a str,
    allocator: Option<&'a str>,
    /// Of the trace after, or else of the trace before.
    create_stack: Option<u64>,
    function: Option<&'a str>,
    before: u64,
    before_bytes: i64,
    after: u64,
    after_bytes: i64,
    before_growth: Option<&'static str>,
    after_growth: Option<&'static str>,
    expected_bytes: f64,
    state: &'static str,
    got_worse: bool,
    uncertain: bool,
    p_value: f64,
}

impl<'a> ComparedJson<'a> {
    fn new(files: &[AllocationsFile<'_>], group: &'a ComparedGroup) -> Option<Self> {
        let [first, second] = files else { return None };
        let ComparedGroup { before, after, .. } = group;
        let number = |file: &AllocationsFile<'_>, stack: Option<StackIdx>| {
            stack.map(|stack| file.stack(stack))
        };
        Some(Self {
            process: group.process.as_deref(),
            kind: &group.type_name,
            allocator: group.allocator.as_deref(),
            create_stack: number(second, after.create_stack).or(number(first, before.create_stack)),
            function: group.function.as_deref(),
            before: before.leaked.count,
            before_bytes: before.leaked.bytes,
            after: after.leaked.count,
            after_bytes: after.leaked.bytes,
            before_growth: before.verdict.map(|verdict| verdict.word()),
            after_growth: after.verdict.map(|verdict| verdict.word()),
            expected_bytes: group.expected_bytes,
            state: group.state.word(),
            got_worse: group.got_worse,
            uncertain: group.is_uncertain,
            p_value: group.p_value,
        })
    }
}
