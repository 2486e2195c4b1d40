//! `.dump Stack -json`.

use std::io::{self, Write};

use serde::Serialize;

use super::stack::StackJson;
use super::sums::FrameFiguresJson;
use super::{Array, NoMatchJson, first_no_match};
use crate::query::{FrameFigures, StackRow, StacksAnswer};
use crate::render::table::Part;
use crate::values::JsonMode;

#[derive(Serialize)]
struct Document<'a, T> {
    #[serde(flatten, with = "FrameFiguresJson")]
    figures: FrameFigures,
    has_every_stack: bool,
    stacks: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_match: Option<NoMatchJson<'a>>,
}

#[derive(Serialize)]
struct RowJson<'a> {
    file: usize,
    count: u64,
    pid: u32,
    process: String,
    frames: StackJson<'a>,
}

impl<'a> RowJson<'a> {
    fn new(answer: &'a StacksAnswer<'_>, row: StackRow) -> Self {
        Self {
            file: answer.index,
            count: row.count,
            pid: row.pid,
            process: answer.process(row).name,
            frames: StackJson {
                frames: Some(&answer.frames),
                bases: &answer.bases,
                stack: row.stack,
                trims: None,
            },
        }
    }
}

pub(in crate::render) fn call_stacks(
    answers: &[StacksAnswer<'_>],
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut figures = FrameFigures::default();
    for answer in answers {
        figures += answer.figures;
    }
    let rows = || {
        super::rows(answers, parts)
            .filter_map(|(answer, row)| Some(RowJson::new(answer, *answer.rows.get(row)?)))
    };
    let no_match = answers.iter().map(|answer| (answer.index, answer.no_match.as_ref()));
    let document = Document {
        figures,
        has_every_stack: answers.iter().all(|answer| answer.has_every_stack),
        stacks: Array(rows),
        no_match: first_no_match(no_match),
    };
    super::write(&document, mode, out)
}
