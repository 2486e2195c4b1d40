//! Flame graphs of allocations: the stacks that allocated, as wide as their bytes.

use handlescope_model::{StackIdx, Untrusted};

use super::flame::{COLOURS, FlameGraph, names};
use super::folded::{Folded, FoldedFile, NO_STACK, Place, UNKNOWN, frame_places};
use super::measure::Measure;
use crate::paths::stem;
use crate::query::{
    AllocatedPoints, Amount, Between, ComparedGroup, ResourceGroup, ResourcesAnswer, TracesDiff,
};

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

    /// What the second of two traces leaves allocated, against what it would leave if nothing had changed.
    pub(crate) fn of_compared(answer: &TracesDiff<ResourcesAnswer<'_>>) -> Self {
        let [before, after] = answer.files.as_slice() else {
            return Self::default();
        };
        let sides = |group: &ComparedGroup| [group.before.leaked, group.after.leaked];
        let measure = Measure::of(answer.groups.iter().flat_map(sides));
        let folded = |group: &ComparedGroup| {
            let count = measure.width(group.after.leaked);
            let (expected, bytes) = (group.expected.round(), group.expected_bytes.round());
            let expected = Amount { count: expected as u64, bytes: bytes as i64 };
            let before = measure.width(expected);
            Folded { frames: compared_frames(after, group), count, before: Some(before) }
        };
        let stacks: Vec<Folded> =
            answer.groups.iter().map(folded).filter(|own| own.count > 0).collect();
        let gone = answer.groups.iter().filter(|group| group.after.leaked.count == 0).count();
        let gone = if gone > 0 { format!("; {gone} gone") } else { String::new() };
        let [before, after] = [before, after].map(|file| stem(file.path));
        let [before, after] = [&before, &after].map(|name| Untrusted(name).to_string());
        let unit = measure.unit();
        Self {
            title: format!("What is left allocated in {after}, against {before} ({unit})"),
            subtitle: format!("{COLOURS} than expected from {before}{gone}"),
            unit,
            files: vec![FoldedFile { name: after, stacks }],
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
    let kind = [answer.kind(group), answer.allocator(group)].map(Option::unwrap_or_default);
    all_frames(answer, process.as_deref(), group.create_stack(), kind)
}

/// The same of a group of two traces, which is in the one after.
fn compared_frames(after: &ResourcesAnswer<'_>, group: &ComparedGroup) -> Vec<Place> {
    let kind = [group.type_name.as_str(), group.allocator.as_deref().unwrap_or_default()];
    all_frames(after, group.process.as_deref(), group.after.create_stack, kind)
}

fn all_frames(
    answer: &ResourcesAnswer<'_>,
    process: Option<&str>,
    stack: Option<StackIdx>,
    kind: [&str; 2],
) -> Vec<Place> {
    let trims = answer.groups.as_ref().and_then(|groups| groups.stacks.as_ref());
    let named = answer.frames.named();
    let stack = stack
        .map_or_else(|| vec![Place::named(NO_STACK)], |stack| frame_places(&named, stack, trims));
    let (process, kind) = (Place::named(process.unwrap_or(UNKNOWN)), kind.join(" "));
    [process].into_iter().chain(stack).chain([Place::of_type(kind.trim_end())]).collect()
}
