//! `.dump Stack` as text.

use std::io::{self, Write};

use indicatif::HumanCount;
use nu_ansi_term::Color;

use super::process::ProcessStyle;
use super::stack::StackStyle;
use super::tables::write_header;
use crate::query::StackCriteria;
use crate::query::{StackRow, StacksAnswer};
use crate::settings::Display;
use crate::terminal::Clean;
use crate::terminal::table;

pub(in crate::render) fn call_stacks(
    answers: &[StacksAnswer<'_>],
    args: &StackCriteria,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    for answer in answers {
        write_header(answer.path, display.screen, out)?;
        let processes = ProcessStyle::new(&answer.info, display);
        let stacks = StackStyle {
            frames: Some(answer.frames.named()),
            bases: args.stacks.address.then_some(&answer.bases),
            has_lines: args.stacks.line,
        };
        if args.stacks.show {
            for &row in &answer.rows {
                write_whole(answer, row, &processes, &stacks, display, out)?;
            }
        } else {
            write_table(answer, &processes, &stacks, display, out)?;
        }
        write_sums(answer, out)?;
    }
    Ok(())
}

/// A line about the stack, then a line for each frame.
fn write_whole(
    answer: &StacksAnswer<'_>,
    row: StackRow,
    processes: &ProcessStyle,
    stacks: &StackStyle<'_>,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let process = display.screen.paint(Color::Magenta, processes.marked(&answer.process(row)));
    let (count, number) = (HumanCount(row.count), row.stack);
    writeln!(out, "Count: {count} Process: {process} Stack: {number}")?;
    for line in stacks.lines(row.stack).into_iter().flatten() {
        writeln!(out, "\t{}", Clean(&line))?;
    }
    writeln!(out)
}

/// A row for each stack, with its innermost frame.
fn write_table(
    answer: &StacksAnswer<'_>,
    processes: &ProcessStyle,
    stacks: &StackStyle<'_>,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let header = ["Count", "Process", "Stack", "Frames", "Innermost frame"];
    let mut table = table::table(display.screen, &header);
    table::align_right(&mut table, &[0, 2, 3]);
    for &row in &answer.rows {
        let mut lines = stacks.lines(row.stack).into_iter().flatten();
        let innermost = lines.next().unwrap_or_default();
        table.add_row([
            HumanCount(row.count).to_string(),
            processes.marked(&answer.process(row)),
            row.stack.to_string(),
            answer.frames.stacks.get(row.stack.row()).len().to_string(),
            Clean(&innermost).to_string(),
        ]);
    }
    write!(out, "{}", table::text(&table))
}

fn write_sums(answer: &StacksAnswer<'_>, out: &mut impl Write) -> io::Result<()> {
    let figures = answer.figures;
    let (shown, passed) = (answer.rows.len() as u64, HumanCount(answer.passed));
    let (shown, recorded) = (HumanCount(shown), HumanCount(answer.recorded));
    writeln!(out, "{shown} of {passed} stacks, recorded {recorded} times")?;
    let [total, modules, managed, unknown] =
        [figures.total, figures.in_modules, figures.managed, figures.unknown].map(HumanCount);
    writeln!(
        out,
        "{total} frames: {modules} in modules, {managed} in managed methods outside of modules, \
         {unknown} unknown"
    )?;
    if !answer.has_every_stack {
        writeln!(
            out,
            "These are stacks of handle events; for those of every event extract with -stacks all"
        )?;
    }
    Ok(())
}
