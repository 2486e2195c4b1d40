//! `.dump Stack -json`.

use std::io::{self, Write};

use serde::Serialize;

use super::Array;
use super::stack::StackJson;
use super::sums::FrameFiguresJson;
use crate::query::{FrameFigures, StackRow, StacksAnswer};
use crate::render::table::Part;
use crate::values::JsonMode;

#[derive(Serialize)]
struct Document<T> {
    #[serde(flatten, with = "FrameFiguresJson")]
    figures: FrameFigures,
    has_every_stack: bool,
    stacks: T,
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
    let document = Document {
        figures,
        has_every_stack: answers.iter().all(|answer| answer.has_every_stack),
        stacks: Array(rows),
    };
    super::write(&document, mode, out)
}
