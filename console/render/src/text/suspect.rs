//! What is said of one suspect, sentence by sentence, without full stops.

use handlescope_model::tables::ResourceKind;
use handlescope_model::{FILE_MAPPING_NAME, UNKNOWN_TYPE_NAME};
use indicatif::HumanCount;

use super::overview::{bars, is_narrow};
use super::stack::StackStyle;
use handlescope_query::{
    ByteAmounts, CallerLeaks, Counts, Diagnosis, ObjectNames, PRIVATE_HEAP, SharedFunction, Suspect,
};
use handlescope_session::settings::Display;
use handlescope_session::values::{CountedNoun, Size};

/// How many callers, object names, processes and handle values are listed, unless all are.
const CALLERS: usize = 3;
const NAMES: usize = 2;
const PROCESSES: usize = 5;
const HANDLES: usize = 5;

/// Returns the noun for what a suspect leaks, and the verb for its end. The type of private heaps is their noun.
pub fn words(suspect: &Suspect) -> (&'static str, &'static str) {
    match (suspect.bytes, suspect.type_name.as_str()) {
        (None, FILE_MAPPING_NAME) => ("view", "unmapped"),
        (None, _) => ("handle", "closed"),
        (Some(_), PRIVATE_HEAP) => ("", "freed"),
        (Some(_), _) => ("allocation", "freed"),
    }
}

/// Formats a number of handles or allocations with the name of their kind, as in "56 Event handles".
pub fn things(count: u64, name: &str, noun: &'static str) -> String {
    let things: Vec<&str> = [name, noun].into_iter().filter(|word| !word.is_empty()).collect();
    let plural = CountedNoun(count, noun).plural();
    format!("{} {}{plural}", HumanCount(count), things.join(" "))
}

/// Returns the type of objects, or the kind of allocations with their allocator.
pub fn kind_name(type_name: &str, allocator: Option<&str>) -> String {
    [Some(type_name), allocator].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Formats how many of all are `leaked`, or are `closed` only by process exit, as in "8 of 56 Event handles leaked".
pub fn amount(
    [leaked, at_exit, acquired]: [u64; 3],
    name: &str,
    (noun, closed): (&'static str, &str),
) -> String {
    let exits = format!("{closed} only by process exit");
    let (count, rest) = match (leaked, at_exit) {
        (leaked, 0) => (leaked, "leaked".to_owned()),
        (0, at_exit) => (at_exit, exits),
        (leaked, at_exit) => (leaked, format!("leaked, {} {exits}", HumanCount(at_exit))),
    };
    format!("{} of {} {rest}", HumanCount(count), things(acquired, name, noun))
}

/// Formats the amount that a suspect leaks out of all that was opened or allocated, with its bytes.
pub fn amounts(suspect: &Suspect) -> String {
    let Counts { leaked, closed_at_exit, opened, .. } = suspect.counts;
    let name = match &suspect.allocator {
        // The name of the function says enough.
        Some(allocator) if suspect.type_name == ResourceKind::Resource.name() => allocator.clone(),
        None if suspect.type_name == UNKNOWN_TYPE_NAME => String::new(),
        allocator => kind_name(&suspect.type_name, allocator.as_deref()),
    };
    let text = amount([leaked, closed_at_exit, opened], &name, words(suspect));
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

/// Describes a suspect in one line: `8 of 56 Event handles leaked by leaky.exe(7316)`.
pub fn title(suspect: &Suspect) -> String {
    format!("{} by {}", amounts(suspect), suspect.process)
}

/// Returns the bytes that a suspect leaks, or the number of handles.
pub fn leaked_amount(suspect: &Suspect) -> i64 {
    let count = || i64::try_from(suspect.counts.unreleased()).unwrap_or(i64::MAX);
    suspect.bytes.map_or_else(count, |bytes| bytes.unreleased)
}

/// Describes the verdict on a suspect's growth and its evidence.
pub fn growth(suspect: &Suspect) -> String {
    format!("{}: {}", suspect.growth.verdict.title(), suspect.evidence())
}

/// Returns a function without its module if the module is the program itself, because that says nothing new.
pub fn own_name<'a>(function: &'a str, program: &str) -> &'a str {
    let own = function.split_once('!').filter(|(module, _)| module.eq_ignore_ascii_case(program));
    own.map_or(function, |(_, function)| function)
}

/// Splits a list into the first items, or all of it, and the others.
fn listed<T>(items: &[T], first: usize, lists_all: bool) -> (&[T], &[T]) {
    items.split_at(if lists_all { items.len() } else { items.len().min(first) })
}

/// Counts what a list leaves out, as in " and 3 more".
fn and_more(more: u64) -> String {
    if more > 0 { format!(" and {} more", HumanCount(more)) } else { String::new() }
}

/// Describes the callers of a suspect's function, and how much other callers of it leak.
pub fn callers(suspect: &Suspect, lists_all: bool) -> Vec<String> {
    let Some(SharedFunction { path, callers, others, .. }) = &suspect.function_of_stacks else {
        return Vec::new();
    };
    let leaked = |leaked: &CallerLeaks| {
        format!("{} of {}", HumanCount(leaked.leaked), HumanCount(leaked.acquired))
    };
    let mut lines = Vec::new();
    if !callers.is_empty() {
        let (listed, more) = listed(callers, CALLERS, lists_all);
        let texts = listed.iter().map(|caller| {
            let name = caller.function.as_deref().map(|it| own_name(it, suspect.program()));
            format!("{} {}", name.unwrap_or("no function of the program"), leaked(&caller.leaked))
        });
        let texts = texts.collect::<Vec<String>>().join(", ");
        let count = CountedNoun(callers.len() as u64, "caller");
        lines.push(format!("{count}: {texts}{}", and_more(more.len() as u64)));
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

/// Describes the leaks of each process if there are several, the most first.
pub fn in_processes(suspect: &Suspect, lists_all: bool) -> Option<String> {
    let processes = &suspect.processes;
    let (named, more) = listed(processes, PROCESSES, lists_all);
    let texts = named
        .iter()
        .map(|process| format!("{} {}", process.process, HumanCount(process.counts.unreleased())));
    let texts = texts.collect::<Vec<_>>().join(", ");
    let more = match more.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let count = CountedNoun(processes.len() as u64, "process");
    (processes.len() > 1).then(|| format!("in {count}: {texts}{more}"))
}

/// Lists the most frequent names of leaked objects, and counts the others.
pub fn named_objects(suspect: &Suspect, lists_all: bool) -> Option<String> {
    let names = &suspect.names;
    let is_file = suspect.type_name == FILE_MAPPING_NAME;
    let handles = suspect.counts.unreleased();
    if let ([ObjectNames { name, count: 1 }], 0, 0, 2.., false) =
        (names.frequent.as_slice(), names.others, names.unnamed, handles, is_file)
    {
        return Some(format!("Object: {name} (all {} handles)", HumanCount(handles)));
    }
    let (shown, more) = listed(&names.frequent, NAMES, lists_all);
    let others = names.others + more.iter().map(|names| names.count).sum::<u64>();
    let mut parts: Vec<String> = shown
        .iter()
        .map(|ObjectNames { name, count }| format!("{name} ({})", HumanCount(*count)))
        .collect();
    if parts.is_empty() {
        return None;
    }
    let rest = [(others, "with other names"), (names.unnamed, "without a name")]
        .into_iter()
        .filter(|(count, _)| *count > 0);
    parts.extend(rest.map(|(count, text)| format!("{} {text}", HumanCount(count))));
    let title = if is_file { "Files" } else { "Objects" };
    Some(format!("{title}: {}", parts.join(", ")))
}

/// Lists the values of leaked handles, if there are any, as in "Handles: 0xAC, 0xB0 and 3 more".
pub fn handle_values(suspect: &Suspect, lists_all: bool) -> Option<String> {
    let (shown, _) = listed(&suspect.names.handles, HANDLES, lists_all);
    let more = suspect.counts.unreleased().saturating_sub(shown.len() as u64);
    let texts = shown.iter().map(|value| format!("0x{value:X}")).collect::<Vec<_>>().join(", ");
    let title = if shown.len() == 1 && more == 0 { "Handle" } else { "Handles" };
    (!shown.is_empty()).then(|| format!("{title}: {texts}{}", and_more(more)))
}

/// Returns lines about the open handles over time, and about the time where the verdict starts, if that is not the
/// start of the trace.
pub fn over_time(suspect: &Suspect, display: &Display) -> Vec<String> {
    const TITLE: &str = "Open over time  ";
    let open = &suspect.open_over_time;
    let Some(last) = open.last() else { return Vec::new() };
    let most = open.iter().max().unwrap_or(last);
    let step = if is_narrow(display) { 2 } else { 1 };
    let (last, most) = (HumanCount((*last).into()), HumanCount((*most).into()));
    let bars = bars(suspect, Suspect::PARTS / step);
    let mut lines = vec![format!("{TITLE}{bars}  {most} at most, {last} at the end")];
    if let Some((part, text)) = suspect.change_point() {
        let space = " ".repeat(TITLE.len() + part / step);
        lines.push(format!("{space}^ {text}"));
    }
    lines
}

/// Describes a cause in a sentence, with the functions that close or free others of the group.
pub fn cause(stacks: &StackStyle<'_>, diagnosis: &Diagnosis, program: &str) -> String {
    let mut closers: Vec<String> = diagnosis
        .stacks
        .iter()
        .filter_map(|stack| stacks.representative(*stack, program))
        .collect();
    closers.dedup();
    capitalized(&diagnosis.sentence(&closers))
}

/// Returns each cause with whether the text shows it: the first one, and later ones that explain more than all earlier
/// ones or add to them.
pub fn with_telling(diagnoses: &[Diagnosis]) -> impl Iterator<Item = (&Diagnosis, bool)> {
    let mut explained = 0;
    diagnoses.iter().map(move |diagnosis| {
        let before = explained;
        explained = diagnosis.count.max(before);
        (diagnosis, diagnosis.count > before || diagnosis.is_beside())
    })
}

/// Capitalizes the first letter of a sentence.
pub fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
