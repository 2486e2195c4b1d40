//! Flame graphs of allocations: the stacks that allocated, as wide as their bytes.

use handlescope_model::Untrusted;

use super::flame::{self, COLOURS, FlameGraph, names};
use super::folded::{Folded, FoldedFile, Place};
use super::measure::Measure;
use crate::query::{AllocatedPoints, Amount, Between, ResourceGroup, ResourcesAnswer};

impl FlameGraph {
    /// Weighs the stacks of allocations that were asked for groups by process, create stack, kind and allocator: by
    /// their bytes, or by their number if that is asked for or nothing has bytes.
    pub(crate) fn of_allocations(answers: &[ResourcesAnswer<'_>], by_count: bool) -> Self {
        let groups = answers.iter().filter_map(|answer| answer.groups.as_ref());
        let amounts = groups.flat_map(|groups| groups.rows.iter().map(lost));
        let measure = if by_count { Measure::Allocations } else { Measure::of(amounts) };
        let file = |answer: &ResourcesAnswer<'_>| {
            let groups = answer.groups.iter().flat_map(|groups| &groups.rows);
            FoldedFile::new(answer.path, folded_lost(answer, groups, measure))
        };
        let files: Vec<FoldedFile> = answers.iter().map(file).collect();
        let unit = measure.unit();
        let title = format!("What was allocated and not freed ({unit})");
        Self { title, subtitle: names(&files), unit, files }
    }

    /// What is allocated at the second of two points, against what was allocated at the first: bytes, or numbers where
    /// nothing has bytes.
    pub(crate) fn of_allocated(answers: &[AllocatedPoints<'_>], [from, to]: [&str; 2]) -> Self {
        let amounts = |group: &ResourceGroup| {
            let Between { at_first, at_second, .. } = group.figures.between;
            [at_first, at_second]
        };
        let all = answers.iter().flat_map(AllocatedPoints::groups).flat_map(amounts);
        let measure = Measure::of(all);
        let file = |answer: &AllocatedPoints<'_>| {
            let folded = |group: &ResourceGroup| {
                let [before, after] = amounts(group).map(|own| measure.width(own));
                let frames = frames(&answer.answer, group);
                Folded { frames, count: after, before: Some(before) }
            };
            let stacks = answer.groups().iter().map(folded).filter(|own| own.count > 0);
            FoldedFile::new(answer.answer.path, stacks.collect())
        };
        let files: Vec<FoldedFile> = answers.iter().map(file).collect();
        let (from, to, unit) = (Untrusted(from), Untrusted(to), measure.unit());
        Self {
            title: format!("What is allocated at {to}, against {from} ({unit})"),
            subtitle: format!("{}; {COLOURS} than at {from}", names(&files)),
            unit,
            files,
        }
    }
}

/// What was never freed of a group.
fn lost(group: &ResourceGroup) -> Amount {
    Amount { count: group.figures.lost(), bytes: group.figures.lost_bytes() }
}

/// The stacks of allocations that were not freed, of some groups of an answer.
pub(in crate::render) fn folded_lost<'g>(
    answer: &ResourcesAnswer<'_>,
    groups: impl Iterator<Item = &'g ResourceGroup>,
    measure: Measure,
) -> Vec<Folded> {
    let folded = |group: &ResourceGroup| {
        let count = measure.width(lost(group));
        (count > 0).then(|| Folded { frames: frames(answer, group), count, before: None })
    };
    groups.filter_map(folded).collect()
}

/// Process, frames and kind of a group.
fn frames(answer: &ResourcesAnswer<'_>, group: &ResourceGroup) -> Vec<Place> {
    let process = answer.process(group).map(|process| process.shown_label(false));
    let kind = [answer.kind(group), answer.allocator(group)];
    flame::frames(answer, process.as_deref(), group.create_stack(), kind)
}
