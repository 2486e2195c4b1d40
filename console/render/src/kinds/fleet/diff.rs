//! `.diff -build` over a dataset.

use std::io::{self, Write};

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::stack::{calls, lines};
use super::{AS_IN_WHY, add_caveats, add_site};
use crate::kinds::diff::{rate, states_line};
use crate::table::{AnswerTable, CellType, Columns, FileRows};
use crate::text::{ignored_because, line_of_ignored};
use handlescope_fleet::{BuildSide, BuildsDiff, ComparedStack};
use handlescope_query::GroupState;
use handlescope_session::filter::SystemModules;
use handlescope_session::settings::Display;
use handlescope_session::terminal::Role;
use handlescope_session::values::CountedNoun;

/// A group and its presentation.
pub struct FleetStackRow<'a> {
    group: &'a ComparedStack,
    system: &'a SystemModules,
}

/// Declares the columns of a group.
pub fn fleet_diff_columns<'a>() -> Columns<'a, FleetStackRow<'a>> {
    let mut columns = Columns::<FleetStackRow<'a>>::default();
    add_site(&mut columns, [AS_IN_WHY; 5], |row| &row.group.site);
    columns
        .add("function", AS_IN_WHY, |row| row.group.site.function.as_deref())
        .title("Function")
        .rank(1);
    let unreleased = "handles, views or allocations never released, or released only by the end of \
                      their process, in all traces of the build";
    add_sides(&mut columns, ["before", "after"], unreleased, |side| side.unreleased);
    let bytes = "bytes of the allocations among them";
    add_sides(&mut columns, ["before_bytes", "after_bytes"], bytes, |side| side.bytes);
    let rate =
        "the same per minute that the program ran; null: it did not run, or no trace has a clock";
    let names = ["before_per_minute", "after_per_minute"];
    add_sides(&mut columns, names, rate, |side| side.per_minute);
    let machines = "number of machines where it leaks";
    let names = ["before_machines", "after_machines"];
    add_sides(&mut columns, names, machines, |side| side.machines as u64);
    let growth =
        "the growth verdict of [growth.md](growth.md), the worst of all traces; null: no suspect";
    let names = ["before_growth", "after_growth"];
    add_sides(&mut columns, names, growth, |side| Some(side.verdict?.word()));
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
        "whether the result differs if only traces without lost events count",
        |row| row.group.is_uncertain,
    );
    columns.add(
        "p_value",
        "the probability that the build after leaks this many or more if nothing \
         changed",
        |row| row.group.p_value,
    );
    columns
        .add("stack", "frames of the stack, one per line", |row| {
            row.group.site.stack_text.as_deref()
        })
        .detail();
    columns
}

/// Declares a column for each build.
fn add_sides<T: CellType + 'static>(
    columns: &mut Columns<'_, FleetStackRow<'_>>,
    names: [&'static str; 2],
    meaning: &'static str,
    value: fn(BuildSide) -> T,
) {
    for (side, name) in names.into_iter().enumerate() {
        let column = columns.add(name, meaning, move |row| value(row.group.sides[side]));
        match name {
            "before" => column.title("Before"),
            "after" => column.title("After"),
            _ => column,
        };
    }
}

/// Returns a row for each group that leaks in either build.
///
/// # Errors
/// None that a caller could do anything about.
pub fn fleet_diff<'a>(
    answer: &'a BuildsDiff,
    all_frames: bool,
    system: &'a SystemModules,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let (mut columns, display) = (fleet_diff_columns(), *display);
    columns.row_text(move |row, out| row.write(all_frames, &display, out));
    let rows = answer.groups.iter().map(|group| FleetStackRow { group, system });
    let above = ["before:", "after: "].into_iter().zip(&answer.builds).enumerate().map(
        |(side, (word, build))| {
            let traces = CountedNoun(answer.traces[side] as u64, "trace");
            let machines = CountedNoun(answer.machines[side] as u64, "machine");
            format!("{word} build {} ({traces} of {machines})\n", Untrusted(build))
        },
    );
    let groups = answer.groups.len();
    let below = states_line("", groups, answer.worse(), |state| answer.count(state));
    let part = FileRows::rows_of(groups).above(above.collect()).below(below);
    let are_shown = answer.groups.iter().any(|group| group.ignored.is_some());
    let ignored = line_of_ignored(answer.ignored, "group").filter(|_| !are_shown);
    let part = ignored.into_iter().fold(part, FileRows::below);
    let table = AnswerTable::new(columns, rows.collect(), [part])?;
    Ok(table.within(fleet_diff_document(), answer))
}

impl FleetStackRow<'_> {
    fn write(&self, all_frames: bool, display: &Display, out: &mut dyn Write) -> io::Result<()> {
        let group = self.group;
        let role = match group.state {
            _ if group.got_worse => Role::Error,
            GroupState::Gone | GroupState::Better => Role::Opened,
            _ => Role::Plain,
        };
        let also = match (group.got_worse, group.is_uncertain) {
            (true, _) if group.state != GroupState::Worse => ", worse",
            (false, true) if group.state != GroupState::Uncertain => ", uncertain",
            _ => "",
        };
        let state = display.screen.paint(role, format!("{}{also}", group.state.word()));
        let site = &group.site;
        let heading = format!("{} {}", Untrusted(&site.process), Untrusted(&site.type_name));
        let heading = display.screen.paint(Role::Heading, heading);
        let side = |side: BuildSide, word| {
            let machines = CountedNoun(side.machines as u64, "machine");
            format!("{} leaked {word} on {machines}", HumanCount(side.unreleased))
        };
        let [before, after] = group.sides;
        let mut text = format!("{}, {}", side(before, "before"), side(after, "after"));
        if let Some((before, after)) = rate(before.per_minute).zip(rate(after.per_minute)) {
            text += &format!(" ({before} and {after} per minute)");
        }
        if let Some(verdict) = after.verdict.filter(|_| after.unreleased > 0) {
            text += &format!(", growth {}", verdict.word());
        }
        writeln!(out, "{state}: {heading}: {}", display.whole(&text))?;
        let shown = if all_frames {
            lines(site.stack_text.as_deref())
        } else {
            vec![calls(site, self.system)]
        };
        for line in shown {
            writeln!(out, "{}{}", display.indent(1), Untrusted(&line))?;
        }
        if let Some(entry) = &group.ignored {
            writeln!(out, "{}{}", display.indent(1), display.whole(&ignored_because(entry)))?;
        }
        writeln!(out)
    }
}

/// Declares the document of `.diff -build` over a dataset.
pub fn fleet_diff_document<'a>() -> Columns<'a, &'a BuildsDiff> {
    const NUMBERS: &str = "number of traces and machines that ran each build";
    let mut document = Columns::<&BuildsDiff>::default();
    document.kind("`\"FleetDiff\"`", "FleetDiff");
    document.member("before", "the builds", |answer| &answer.builds[0]);
    document.member("after", "the builds", |answer| &answer.builds[1]);
    document.member("traces", NUMBERS, |answer| answer.traces);
    document.member("machines", NUMBERS, |answer| answer.machines);
    document.member("ignored", "number of groups ignored by a list of known leaks", |answer| {
        answer.ignored
    });
    document.left_out("groups", "number of omitted groups");
    document.rows("groups", "groups that leak in either build, worse ones first, see below");
    add_caveats(&mut document, [AS_IN_WHY; 4], |answer| &answer.caveats);
    document
}
