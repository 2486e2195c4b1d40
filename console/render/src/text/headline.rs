//! What all suspects leak together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use handlescope_model::{FILE_MAPPING_NAME, Untrusted};
use indicatif::HumanCount;

use super::handles_and_views;
use super::suspect::{things, words};
use handlescope_query::{Counts, Suspect};
use handlescope_session::values::{CountedNoun, Size};

/// Returns sentences about everything that leaks: one about handles, and one about each kind of allocations. Their
/// bytes are not added up, because heap blocks are in pages that are allocations, too.
pub fn headline(suspects: &[Suspect]) -> Vec<String> {
    let mut kinds: BTreeMap<Option<&str>, Vec<&Suspect>> = BTreeMap::new();
    for suspect in suspects {
        let kind = suspect.bytes.map(|_| suspect.type_name.as_str());
        kinds.entry(kind).or_default().push(suspect);
    }
    kinds.values().map(|suspects| sentence(suspects)).collect()
}

/// Returns a sentence about all suspects of handles, or of one kind of allocations.
fn sentence(suspects: &[&Suspect]) -> String {
    let Some(first) = suspects.first() else { return String::new() };
    let (noun, closed) = words(first);
    let with = |count: fn(&Counts) -> u64| -> (Vec<&Suspect>, u64) {
        let suspects: Vec<&Suspect> =
            suspects.iter().copied().filter(|suspect| count(&suspect.counts) > 0).collect();
        let sum = suspects.iter().map(|suspect| count(&suspect.counts)).sum();
        (suspects, sum)
    };
    let (of_leaks, leaks) = with(|counts| counts.leaked);
    let (of_exits, exits) = with(|counts| counts.closed_at_exit);
    let bytes = suspects
        .iter()
        .filter_map(|suspect| suspect.bytes)
        .fold(0_i64, |sum, bytes| sum.saturating_add(bytes.unreleased.max(0)));
    let bytes = if bytes > 0 { format!("{} in ", Size(bytes)) } else { String::new() };
    // Bytes are only known for leaks and exit frees together.
    let (shown, count) = match first.bytes {
        None if leaks > 0 => (of_leaks, leaks),
        _ => (suspects.to_vec(), leaks + exits),
    };
    let acquired = if shown.iter().all(|suspect| suspect.type_name == FILE_MAPPING_NAME) {
        CountedNoun(count, "view").to_string()
    } else if first.bytes.is_none() {
        handles_and_views(count, has_views(&shown), true)
    } else {
        things(count, &first.type_name, noun)
    };
    let (programs, of_exits) = (programs(&shown), programs(&of_exits));
    let exit = if of_exits == programs || of_exits.len() > 1 {
        "process exit".to_owned()
    } else {
        format!("the exit of {}", named(&of_exits))
    };
    let exits_shown = HumanCount(exits);
    // Suspects that do not count as leaking.
    let more = match suspects.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" ({})", CountedNoun(more as u64, "more suspect")),
    };
    let (verb, rest) = match (leaks, exits, first.bytes) {
        (_, 0, _) => ("leaked", String::new()),
        (0, _, None) => ("opened", format!(", {closed} only by {exit}")),
        (0, _, Some(_)) => ("allocated", format!(", {closed} only by {exit}")),
        (_, _, None) => ("leaked", format!("; {exits_shown} more {closed} only by {exit}{more}")),
        (..) => ("leaked", format!(", including {exits_shown} {closed} only by {exit}")),
    };
    let suspects = CountedNoun(shown.len() as u64, "suspect");
    format!("{bytes}{acquired} {verb} by {suspects} of {}{rest}", named(&programs))
}

fn programs<'a>(suspects: &[&'a Suspect]) -> BTreeSet<&'a str> {
    suspects.iter().map(|suspect| suspect.program()).collect()
}

/// Returns the name of the only program, or the number of programs.
pub fn named(programs: &BTreeSet<&str>) -> String {
    match programs.first() {
        Some(program) if programs.len() == 1 => Untrusted(program).to_string(),
        _ => CountedNoun(programs.len() as u64, "program").to_string(),
    }
}

fn has_views(suspects: &[&Suspect]) -> bool {
    suspects.iter().any(|suspect| suspect.type_name == FILE_MAPPING_NAME)
}

/// Formats how many suspects are left out and the range of their leaks, as in "11 more suspects with 1 to 3 handles
/// each".
pub fn more(left_out: &[&Suspect]) -> String {
    let (of_handles, of_allocations): (Vec<&Suspect>, Vec<&Suspect>) =
        left_out.iter().partition(|suspect| suspect.bytes.is_none());
    let has_views = has_views(&of_handles);
    let unreleased = of_handles.iter().map(|suspect| suspect.counts.unreleased());
    let unreleased =
        range(unreleased, HumanCount, |unreleased| handles_and_views(unreleased, has_views, true));
    let bytes = of_allocations
        .iter()
        .filter_map(|suspect| Some(suspect.bytes?.unreleased))
        .filter(|bytes| *bytes > 0);
    let sized = bytes.clone().count();
    let bytes = range(bytes, Size, |bytes| Size(bytes).to_string());
    // Events may have negative sizes, or none.
    let unsized_counts = of_allocations
        .iter()
        .filter(|suspect| suspect.bytes.is_some_and(|bytes| bytes.unreleased <= 0))
        .map(|suspect| suspect.counts.unreleased());
    let without_size = of_allocations.len() - sized;
    let counts =
        range(unsized_counts, HumanCount, |count| CountedNoun(count, "allocation").to_string());
    let texts =
        [(of_handles.len(), unreleased), (sized, bytes), (without_size, counts)].into_iter();
    let texts = texts.filter_map(|(count, range)| Some((count, range?))).enumerate().map(
        |(index, (count, range))| {
            let (more, suspects) = if index == 0 { (" more", " suspect") } else { ("", "") };
            let plural = if index == 0 { CountedNoun(count as u64, suspects).plural() } else { "" };
            let each = if count == 1 { "" } else { " each" };
            format!("{}{more}{suspects}{plural} with {range}{each}", HumanCount(count as u64))
        },
    );
    texts.collect::<Vec<_>>().join(" and ")
}

/// Formats the smallest and the largest of some amounts; `None` if there are none.
fn range<T: Copy + Ord, L: fmt::Display>(
    amounts: impl Iterator<Item = T> + Clone,
    min_text: impl Fn(T) -> L,
    max_text: impl Fn(T) -> String,
) -> Option<String> {
    let (min, max) = (amounts.clone().min()?, amounts.max()?);
    let max_shown = max_text(max);
    Some(if min == max { max_shown } else { format!("{} to {max_shown}", min_text(min)) })
}
