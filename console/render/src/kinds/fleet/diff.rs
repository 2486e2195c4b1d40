//! `.diff -build` over a dataset.

use std::io::{self, Write};

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::stack::{calls, lines};
use super::{AS_IN_WHY, add_caveats};
use crate::kinds::diff::{rate, states_line};
use crate::table::{Columns, FileRows, Table};
use handlescope_fleet::{BuildSide, BuildsDiff, ComparedStack};
use handlescope_query::State;
use handlescope_session::filter::SystemModules;
use handlescope_session::settings::Display;
use handlescope_session::terminal::Role;
use handlescope_session::values::Counted;

/// A group and its presentation.
pub struct StackRow<'a> {
    group: &'a ComparedStack,
    system: &'a SystemModules,
}

/// Declares the columns of a group.
pub fn fleet_diff_columns<'a>() -> Columns<'a, StackRow<'a>> {
    let mut columns = Columns::<StackRow<'a>>::default();
    columns.add("process", AS_IN_WHY, |row| row.group.process.as_str()).title("Process");
    columns.add("kind", AS_IN_WHY, |row| row.group.kind.as_str());
    columns.add("type", AS_IN_WHY, |row| row.group.type_name.as_str()).title("Type");
    columns.add("allocator", AS_IN_WHY, |row| row.group.allocator.as_deref());
    columns.add("stack_id", AS_IN_WHY, |row| row.group.stack.as_deref());
    columns
        .add("function", AS_IN_WHY, |row| row.group.function.as_deref())
        .title("Function")
        .rank(1);
    columns
        .add(
            "before",
            "handles, views or allocations that nothing, or only the end of their process, \
             released, in all traces of the build",
            |row| row.before().unreleased,
        )
        .title("Before");
    columns
        .add(
            "after",
            "handles, views or allocations that nothing, or only the end of their process, \
             released, in all traces of the build",
            |row| row.after().unreleased,
        )
        .title("After");
    columns.add("before_bytes", "bytes of the allocations among them", |row| row.before().bytes);
    columns.add("after_bytes", "bytes of the allocations among them", |row| row.after().bytes);
    columns.add(
        "before_per_minute",
        "the same divided by the minutes in which the program ran; null: it did not, or \
         no trace has a clock",
        |row| row.before().per_minute,
    );
    columns.add(
        "after_per_minute",
        "the same divided by the minutes in which the program ran; null: it did not, or \
         no trace has a clock",
        |row| row.after().per_minute,
    );
    columns.add("before_machines", "number of machines where it leaks", |row| {
        row.before().machines as u64
    });
    columns.add("after_machines", "number of machines where it leaks", |row| {
        row.after().machines as u64
    });
    columns.add(
        "before_growth",
        "the growth verdict of [growth.md](growth.md), the worst of all traces; null: \
         no suspect",
        |row| Some(row.before().verdict?.word()),
    );
    columns.add(
        "after_growth",
        "the growth verdict of [growth.md](growth.md), the worst of all traces; null: \
         no suspect",
        |row| Some(row.after().verdict?.word()),
    );
    columns
        .add("state", "as in `.dump Diff` of two traces", |row| row.group.state.word())
        .title("State");
    columns.add(
        "got_worse",
        "whether the build after leaks more than chance, the differences between its \
         traces, and a factor of 1.5 explain; of memory at least 64 KiB more",
        |row| row.group.got_worse,
    );
    columns.add(
        "uncertain",
        "whether the traces without lost events alone say something else",
        |row| row.group.is_uncertain,
    );
    columns.add(
        "p_value",
        "the probability that the build after leaks this many or more if nothing \
         changed",
        |row| row.group.p_value,
    );
    columns.add("stack", "frames of the stack, a line each", |row| row.group.stack_text.as_deref());
    columns
}

/// A row for each group that leaks in either build.
///
/// # Errors
/// None that a caller could do anything about.
pub fn fleet_diff<'a>(
    answer: &'a BuildsDiff,
    all_frames: bool,
    system: &'a SystemModules,
    display: &Display,
) -> io::Result<Table<'a>> {
    let (mut columns, display) = (fleet_diff_columns(), *display);
    columns.row_text(move |row, out| row.write(all_frames, &display, out));
    let rows = answer.groups.iter().map(|group| StackRow { group, system });
    let sides = ["before:", "after: "].into_iter().zip(&answer.builds).enumerate();
    let above = sides.map(|(side, (word, build))| {
        let traces = Counted(answer.traces[side] as u64, "trace");
        let machines = Counted(answer.machines[side] as u64, "machine");
        format!("{word} build {} ({traces} of {machines})\n", Untrusted(build))
    });
    let groups = answer.groups.len();
    let below = states_line("", groups, answer.worse(), |state| answer.count(state));
    let part = FileRows::rows_of(groups).above(above.collect()).below(below);
    let table = Table::new(columns, rows.collect(), [part])?;
    Ok(table.within(fleet_diff_document(), answer))
}

impl StackRow<'_> {
    fn before(&self) -> BuildSide {
        self.group.sides[0]
    }

    fn after(&self) -> BuildSide {
        self.group.sides[1]
    }

    fn write(&self, all_frames: bool, display: &Display, out: &mut dyn Write) -> io::Result<()> {
        let group = self.group;
        let role = match group.state {
            _ if group.got_worse => Role::Error,
            State::Gone | State::Better => Role::Opened,
            _ => Role::Plain,
        };
        let also = match (group.got_worse, group.is_uncertain) {
            (true, _) if group.state != State::Worse => ", worse",
            (false, true) if group.state != State::Uncertain => ", uncertain",
            _ => "",
        };
        let state = display.screen.paint(role, format!("{}{also}", group.state.word()));
        let heading = format!("{} {}", Untrusted(&group.process), Untrusted(&group.type_name));
        let heading = display.screen.paint(Role::Heading, heading);
        let side = |side: BuildSide, word| {
            let machines = Counted(side.machines as u64, "machine");
            format!("{} leaked {word} on {machines}", HumanCount(side.unreleased))
        };
        let (before, after) = (self.before(), self.after());
        let mut text = format!("{}, {}", side(before, "before"), side(after, "after"));
        if let Some((before, after)) = rate(before.per_minute).zip(rate(after.per_minute)) {
            text += &format!(" ({before} and {after} per minute)");
        }
        if let Some(verdict) = after.verdict.filter(|_| after.unreleased > 0) {
            text += &format!(", growth {}", verdict.word());
        }
        writeln!(out, "{state}: {heading}: {}", display.whole(&text))?;
        let (function, stack) = (group.function.as_deref(), group.stack_text.as_deref());
        let shown = match all_frames {
            true => lines(stack),
            false => vec![calls(function, stack, &group.process, self.system)],
        };
        for line in shown {
            writeln!(out, "{}{}", display.indent(1), Untrusted(&line))?;
        }
        writeln!(out)
    }
}

/// Declares the document of `.diff -build` over a dataset.
pub fn fleet_diff_document<'a>() -> Columns<'a, &'a BuildsDiff> {
    const NUMBERS: &str = "for each of them, number of traces and machines that ran it";
    let mut document = Columns::<&BuildsDiff>::default();
    document.kind("`\"FleetDiff\"`", "FleetDiff");
    document.member("before", "the builds", |answer| &answer.builds[0]);
    document.member("after", "the builds", |answer| &answer.builds[1]);
    document.member("traces", NUMBERS, |answer| answer.traces);
    document.member("machines", NUMBERS, |answer| answer.machines);
    document.left_out("groups", "number of omitted groups");
    document
        .rows("groups", "groups that leak in either build, those that got worse first, see below");
    add_caveats(&mut document, [AS_IN_WHY; 4], |answer| &answer.caveats);
    document
}
