//! The amounts that suspects leak, one by one and together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use handlescope_model::tables::ResourceKind;
use handlescope_model::{FILE_MAPPING_NAME, UNKNOWN_TYPE_NAME, Untrusted};
use indicatif::HumanCount;

use super::handles_and_views;
use handlescope_query::{ByteAmounts, CallerLeaks, Counts, PRIVATE_HEAP, SharedFunction, Suspect};
use handlescope_session::values::{CountedNoun, Size};

/// Returns the verb for the end of a handle, view or allocation.
fn close_verb(suspect: &Suspect) -> &'static str {
    match (suspect.bytes, suspect.type_name.as_str()) {
        (Some(_), _) => "freed",
        (None, FILE_MAPPING_NAME) => "unmapped",
        (None, _) => "closed",
    }
}

/// Formats a number of handles or allocations of a suspect's kind, with their type name, as in "56 Event handles".
fn acquired(suspect: &Suspect, name: &str, count: u64) -> String {
    let noun = match (suspect.bytes, suspect.type_name.as_str()) {
        (None, FILE_MAPPING_NAME) => " view",
        (None, _) => " handle",
        (_, PRIVATE_HEAP) => "",
        _ => " allocation",
    };
    // An unknown type needs no name.
    let name = if name == UNKNOWN_TYPE_NAME { "" } else { name };
    let things = format!("{name}{noun}");
    format!("{} {}{}", HumanCount(count), things.trim_start(), CountedNoun(count, noun).plural())
}

/// Returns how many leaked, or only process exit `closed`, and the words that say so.
pub fn unreleased(leaked: u64, at_exit: u64, closed: &str) -> (u64, String) {
    let exits = format!("{closed} only by process exit");
    match (leaked, at_exit) {
        (leaked, 0) => (leaked, "leaked".to_owned()),
        (0, at_exit) => (at_exit, exits),
        (leaked, at_exit) => (leaked, format!("leaked, {} {exits}", HumanCount(at_exit))),
    }
}

/// Formats the amount that a suspect leaks out of all that was opened or allocated, as in "8 of 56 Event handles
/// leaked".
pub fn amounts(suspect: &Suspect) -> String {
    let Counts { leaked, closed_at_exit, opened, .. } = suspect.counts;
    let (count, rest) = unreleased(leaked, closed_at_exit, close_verb(suspect));
    let name = match &suspect.allocator {
        // The name of the function says enough.
        Some(allocator) if suspect.type_name == ResourceKind::Resource.name() => allocator.clone(),
        Some(allocator) => format!("{} {allocator}", suspect.type_name),
        None => suspect.type_name.clone(),
    };
    let opened = acquired(suspect, &name, opened);
    let text = format!("{} of {opened} {rest}", HumanCount(count));
    let Some(ByteAmounts { unreleased, allocated, per_minute }) = suspect.bytes else {
        return text;
    };
    // Events may have negative sizes, or none.
    if unreleased <= 0 {
        return text;
    }
    let rate = per_minute.map(|rate| format!(", {} per minute", Size(rate as i64)));
    format!("{text}, {} of {}{}", Size(unreleased), Size(allocated), rate.unwrap_or_default())
}

/// Returns a function without its module if the module is the program itself, because that says nothing new.
pub fn own_name<'a>(function: &'a str, program: &str) -> &'a str {
    let own = function.split_once('!').filter(|(module, _)| module.eq_ignore_ascii_case(program));
    own.map_or(function, |(_, function)| function)
}

/// Describes the callers of a suspect's function, at most `shown`, and how much other callers of it leak. Returns
/// sentences without a full stop.
pub fn callers(suspect: &Suspect, shown: usize) -> Vec<String> {
    let Some(SharedFunction { path, callers, others, .. }) = &suspect.function_of_stacks else {
        return Vec::new();
    };
    let leaked = |leaked: &CallerLeaks| {
        format!("{} of {}", HumanCount(leaked.leaked), HumanCount(leaked.acquired))
    };
    let mut lines = Vec::new();
    if !callers.is_empty() {
        let (listed, more) = callers.split_at(callers.len().min(shown));
        let texts = listed.iter().map(|caller| {
            let name = caller.function.as_deref().map(|it| own_name(it, suspect.program()));
            format!("{} {}", name.unwrap_or("no function of the program"), leaked(&caller.leaked))
        });
        let texts: Vec<String> = texts.collect();
        let more = match more.len() {
            0 => String::new(),
            more => format!(" and {} more", HumanCount(more as u64)),
        };
        let count = CountedNoun(callers.len() as u64, "caller");
        lines.push(format!("{count}: {}{more}", texts.join(", ")));
    }
    if let (1.., Some(function)) = (others.stacks, path.first()) {
        let function = own_name(function, suspect.program());
        lines.push(format!(
            "Other callers of {function} do not leak alike: {} {}",
            leaked(&others.leaked),
            suspect.unreleased()
        ));
    }
    lines
}

/// Capitalizes the first letter of a sentence.
pub fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

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
    let closed = close_verb(first);
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
    } else {
        count_of_kind(first, count, has_views(&shown))
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

/// Formats a number of handles, or of allocations of a suspect's kind.
fn count_of_kind(suspect: &Suspect, count: u64, has_views: bool) -> String {
    match suspect.bytes {
        None => handles_and_views(count, has_views, true),
        Some(_) => acquired(suspect, &suspect.type_name, count),
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
