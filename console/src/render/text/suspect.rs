//! How much suspects lost, each and together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use handlescope_model::{FILE_MAPPING_NAME, Untrusted};
use indicatif::{HumanBytes, HumanCount};

use super::numbers::handles_and_views;
use crate::query::{Bytes, Counts, PRIVATE_HEAP, Suspect};
use crate::values::Counted;

/// The words for handles, or for allocations.
#[derive(Clone, Copy)]
struct Words {
    opened: &'static str,
    leaked: &'static str,
    closed: &'static str,
}

impl Words {
    fn of(suspect: &Suspect) -> Self {
        match suspect.bytes {
            Some(_) => Self { opened: "allocated", leaked: "never freed", closed: "freed" },
            None => Self { opened: "opened", leaked: "leaked", closed: "closed" },
        }
    }
}

/// The amount that a suspect lost, of all that was opened or allocated.
pub(in crate::render) fn amounts(suspect: &Suspect) -> String {
    let Words { opened, leaked, closed } = Words::of(suspect);
    let counts = &suspect.counts;
    let leaks = format!("{} {leaked}", HumanCount(counts.leaked));
    let exits = format!("{} {closed} only at process exit", HumanCount(counts.closed_at_exit));
    let kept = match (counts.leaked, counts.closed_at_exit) {
        (_, 0) => leaks,
        (0, _) => exits,
        _ => format!("{leaks} and {exits}"),
    };
    let text = format!("{kept} of {} {opened}", HumanCount(counts.opened));
    let Some(Bytes { lost, allocated, per_minute }) = suspect.bytes else { return text };
    let rate = per_minute.map(|rate| format!(", {} per minute", size(rate as i64)));
    format!("{text}, {} of {}{}", size(lost), size(allocated), rate.unwrap_or_default())
}

/// The verdict on the growth of a suspect, with its meaning.
pub(in crate::render) fn verdict(suspect: &Suspect) -> String {
    let verdict = suspect.growth.verdict;
    format!("{}, {}", verdict.word(), verdict.meaning(Words::of(suspect).closed))
}

/// Sentences about all that was lost: one about handles, and one about each kind of allocations. Their bytes are not
/// added up, because blocks of a heap lie in pages that are allocations, too.
pub(in crate::render) fn headline(suspects: &[Suspect]) -> Vec<String> {
    let mut kinds: BTreeMap<Option<&str>, Vec<&Suspect>> = BTreeMap::new();
    for suspect in suspects {
        let kind = suspect.bytes.map(|_| suspect.type_name.as_str());
        kinds.entry(kind).or_default().push(suspect);
    }
    kinds.values().map(|suspects| sentence(suspects)).collect()
}

/// A sentence about suspects of handles, or of one kind of allocations, together.
fn sentence(suspects: &[&Suspect]) -> String {
    let Some(first) = suspects.first() else { return String::new() };
    let Words { opened, leaked, closed } = Words::of(first);
    let with = |count: fn(&Counts) -> u64| -> (Vec<&Suspect>, u64) {
        let suspects = suspects.iter().copied().filter(|suspect| count(&suspect.counts) > 0);
        let suspects: Vec<&Suspect> = suspects.collect();
        let sum = suspects.iter().map(|suspect| count(&suspect.counts)).sum();
        (suspects, sum)
    };
    let (of_leaks, leaks) = with(|counts| counts.leaked);
    let (of_exits, exits) = with(|counts| counts.closed_at_exit);
    let bytes = suspects.iter().filter_map(|suspect| suspect.bytes);
    let bytes = bytes.fold(0_i64, |sum, bytes| sum.saturating_add(bytes.lost));
    let bytes = if bytes > 0 { format!("{} in ", size(bytes)) } else { String::new() };
    // Bytes are known only of what leaked and what an exit freed together.
    let (shown, count, more) = match first.bytes {
        None if leaks > 0 => (of_leaks, leaks, "more"),
        _ => (suspects.to_vec(), leaks + exits, "of them"),
    };
    let what = counted(first, count, has_views(&shown));
    let (programs, of_exits) = (programs(&shown), programs(&of_exits));
    let exit = match of_exits.len() {
        1 if of_exits == programs => "its exit".to_owned(),
        _ if of_exits == programs => "their exit".to_owned(),
        _ => format!("the exit of {}", named(&of_exits)),
    };
    let (verb, rest) = match (leaks, exits) {
        (_, 0) => (leaked, String::new()),
        (0, _) => (opened, format!(" and {closed} only at {exit}")),
        _ => (leaked, format!("; {} {more} {closed} only at {exit}", HumanCount(exits))),
    };
    format!("{bytes}{what} {verb} by {}{}{rest}.", call_sites(&shown), named(&programs))
}

/// The number of stacks, of those that are known, as in "3 call sites of ".
fn call_sites(suspects: &[&Suspect]) -> String {
    let known = suspects.iter().filter(|suspect| suspect.create_stack.is_some()).count();
    let least = if known < suspects.len() { "at least " } else { "" };
    match known {
        0 => String::new(),
        _ => format!("{least}{} of ", Counted(known as u64, "call site")),
    }
}

fn programs<'a>(suspects: &[&'a Suspect]) -> BTreeSet<&'a str> {
    suspects.iter().map(|suspect| suspect.program()).collect()
}

/// The only program, or how many there are.
fn named(programs: &BTreeSet<&str>) -> String {
    match programs.first() {
        Some(program) if programs.len() == 1 => Untrusted(program).to_string(),
        _ => Counted(programs.len() as u64, "program").to_string(),
    }
}

/// A number of handles or allocations, as a suspect lost them.
fn counted(suspect: &Suspect, count: u64, has_views: bool) -> String {
    match (suspect.bytes, suspect.type_name.as_str()) {
        (None, _) => handles_and_views(count, has_views, true),
        (_, PRIVATE_HEAP) => Counted(count, PRIVATE_HEAP).to_string(),
        (_, kind) => {
            let allocations = Counted(count, "allocation");
            format!("{} {kind} allocation{}", HumanCount(count), allocations.plural())
        }
    }
}

fn has_views(suspects: &[&Suspect]) -> bool {
    suspects.iter().any(|suspect| suspect.type_name == FILE_MAPPING_NAME)
}

/// The number of suspects that are left out, and what each lost, as in "11 more with 1 to 3 handles each".
pub(in crate::render) fn more(left_out: &[&Suspect]) -> String {
    let (of_handles, of_allocations): (Vec<&Suspect>, Vec<&Suspect>) =
        left_out.iter().partition(|suspect| suspect.bytes.is_none());
    let has_views = has_views(&of_handles);
    let lost = of_handles.iter().map(|suspect| suspect.counts.lost());
    let lost = range(lost, HumanCount, |lost| handles_and_views(lost, has_views, true));
    let bytes = of_allocations.iter().filter_map(|suspect| Some(suspect.bytes?.lost));
    let bytes = range(bytes, size, |bytes| size(bytes).to_string());
    let parts = [(of_handles.len(), lost), (of_allocations.len(), bytes)].into_iter();
    let parts = parts.filter_map(|(count, range)| Some((count, range?))).enumerate();
    let parts = parts.map(|(at, (count, range))| {
        let more = if at == 0 { " more" } else { "" };
        let each = if count == 1 { "" } else { " each" };
        format!("{}{more} with {range}{each}", HumanCount(count as u64))
    });
    parts.collect::<Vec<_>>().join(" and ")
}

/// The least and the most of some amounts; `None` where there are none.
fn range<T: Copy + Ord, L: fmt::Display>(
    amounts: impl Iterator<Item = T> + Clone,
    least: impl Fn(T) -> L,
    most: impl Fn(T) -> String,
) -> Option<String> {
    let (min, max) = (amounts.clone().min()?, amounts.max()?);
    let most = most(max);
    Some(if min == max { most } else { format!("{} to {most}", least(min)) })
}

/// Bytes in a unit that fits.
fn size(bytes: i64) -> HumanBytes {
    HumanBytes(u64::try_from(bytes).unwrap_or_default())
}
