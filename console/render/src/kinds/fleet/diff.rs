//! `.diff -build` over a dataset.

use std::io;

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::stack::frames;
use super::{AS_IN_WHY, add_caveats, add_site};
use crate::kinds::diff::{
    add_side, add_state, compared_rows, compared_title, growth, rates, write_group,
};
use crate::table::{AnswerTable, Columns};
use crate::text::line_of_others_ignored;
use handlescope_fleet::{BuildsDiff, ComparedStack};
use handlescope_query::ComparedLeaks;
use handlescope_session::filter::SystemModules;
use handlescope_session::settings::Display;
use handlescope_session::values::CountedNoun;

/// Declares the columns of a group.
pub fn fleet_diff_columns<'a>() -> Columns<'a, &'a ComparedStack> {
    let mut columns = Columns::<&'a ComparedStack>::default();
    add_site(&mut columns, [AS_IN_WHY; 5], |row| &row.site);
    columns
        .add("function", AS_IN_WHY, |row| row.site.function.as_deref())
        .title("Function")
        .rank(1);
    let unreleased = "handles, views or allocations never released, or released only by the end of \
                      their process, in all traces of the build";
    for (side, title) in [((0, "before"), "Before"), ((1, "after"), "After")] {
        add_side(&mut columns, side, unreleased, leaks, |side| side.leaked.count).title(title);
    }
    for side in [(0, "before_bytes"), (1, "after_bytes")] {
        let bytes = "bytes of the allocations among them";
        add_side(&mut columns, side, bytes, leaks, |side| side.leaked.bytes);
    }
    for side in [(0, "before_per_minute"), (1, "after_per_minute")] {
        let rate = "the same per minute that the program ran; null: it did not run, or no trace \
                    has a clock";
        add_side(&mut columns, side, rate, leaks, |side| side.per_minute);
    }
    for (side, name) in [(0, "before_machines"), (1, "after_machines")] {
        let machines = "number of machines where it leaks";
        columns.add(name, machines, move |row| row.machines[side] as u64);
    }
    for side in [(0, "before_growth"), (1, "after_growth")] {
        let meaning = "the growth verdict of [growth.md](growth.md), the worst of all traces; null: \
                      no suspect";
        add_side(&mut columns, side, meaning, leaks, growth);
    }
    let meanings = [
        "as in `.dump Diff` of two traces",
        "whether the build after leaks more than chance, the differences between its \
         traces, and a factor of 1.5 explain; of memory at least 64 KiB more",
        "whether the result differs if only traces without lost events count",
        "the probability that the build after leaks this many or more if nothing \
         changed",
    ];
    add_state(&mut columns, meanings, leaks, false);
    columns
        .add("stack", "frames of the stack, one per line", |row| row.site.stack_text.as_deref())
        .detail();
    columns
}

fn leaks<'r>(row: &'r &ComparedStack) -> &'r ComparedLeaks {
    &row.leaks
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
    columns.row_text(move |row, out| {
        let ComparedStack { site, ignored, .. } = row;
        let frames = frames(site, all_frames, system);
        write_group(&title(row, &display), &frames, ignored.as_deref(), &display, out)
    });
    let build = |side: usize| {
        let traces = CountedNoun(answer.traces[side] as u64, "trace");
        let machines = CountedNoun(answer.machines[side] as u64, "machine");
        format!("build {} ({traces} of {machines})", Untrusted(&answer.builds[side]))
    };
    let reasons = answer.groups.iter().map(|group| group.ignored.as_ref());
    let ignored = line_of_others_ignored(answer.ignored, "group", reasons);
    let part = compared_rows(&[build(0), build(1)], "", &answer.totals(), ignored);
    let table = AnswerTable::new(columns, answer.groups.iter().collect(), [part])?;
    Ok(table.within(fleet_diff_document(), answer))
}

/// Returns the line about a group.
fn title(ComparedStack { site, leaks, machines, .. }: &ComparedStack, display: &Display) -> String {
    let heading = format!("{} {}", Untrusted(&site.process), Untrusted(&site.type_name));
    let counts = |side: usize, word| {
        let machines = CountedNoun(machines[side] as u64, "machine");
        format!("{} leaked {word} on {machines}", HumanCount(leaks.sides[side].leaked.count))
    };
    let counts = format!("{}, {}", counts(0, "before"), counts(1, "after"));
    let after = leaks.sides[1];
    let growth = after.verdict.filter(|_| after.leaked.count > 0);
    compared_title(leaks, heading, counts, rates(leaks), growth, display)
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
