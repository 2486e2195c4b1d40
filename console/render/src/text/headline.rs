//! What all suspects leak together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use handlescope_model::{FILE_MAPPING_NAME, Untrusted};
use indicatif::HumanCount;

use super::handles_and_views;
use super::suspect::{leaked_amount, things, words};
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
    // Events may have negative sizes, or none.
    let (with_bytes, without): (Vec<&Suspect>, Vec<&Suspect>) =
        of_allocations.iter().partition(|suspect| leaked_amount(suspect) > 0);
    let has_views = has_views(&of_handles);
    let handles = of_handles.iter().map(|suspect| suspect.counts.unreleased());
    let handles = range(handles, HumanCount, |count| handles_and_views(count, has_views, true));
    let bytes = with_bytes.iter().map(|suspect| leaked_amount(suspect));
    let bytes = range(bytes, Size, |bytes| Size(bytes).to_string());
    let counts = without.iter().map(|suspect| suspect.counts.unreleased());
    let counts = range(counts, HumanCount, |count| CountedNoun(count, "allocation").to_string());
    let texts = [(of_handles.len(), handles), (with_bytes.len(), bytes), (without.len(), counts)];
    let texts = texts.into_iter().filter_map(|(count, range)| Some((count as u64, range?)));
    let texts = texts.enumerate().map(|(index, (count, range))| {
        let suspects = match index {
            0 => CountedNoun(count, "more suspect").to_string(),
            _ => HumanCount(count).to_string(),
        };
        let each = if count == 1 { "" } else { " each" };
        format!("{suspects} with {range}{each}")
    });
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
