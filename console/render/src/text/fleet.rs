//! What is said of the suspects of a dataset, in sentences without full stops.

use indicatif::HumanCount;

use super::headline::named;
use super::not_counted::line_of_others_ignored;
use super::suspect::{amount, kind_name};
use handlescope_fleet::dataset::short;
use handlescope_fleet::{CallSite, FleetSuspect, FleetWhy, WorstTrace};
use handlescope_query::{causes_of_allocations, causes_of_handles};
use handlescope_session::values::{CountedNoun, Size};

/// Returns the line about suspects that are left out.
pub fn line_of_ignored_suspects(answer: &FleetWhy) -> Option<String> {
    let reasons = answer.suspects.iter().map(|suspect| suspect.ignored.as_ref());
    line_of_others_ignored(answer.ignored.len(), "suspect", reasons)
}

/// Sums up everything that leaks in one sentence. Handles that only process exit closed do not count as *leaked*.
pub fn headline(answer: &FleetWhy) -> String {
    let (machines, traces) = (answer.machines as u64, answer.traces as u64);
    let of = format!("{} of {}", CountedNoun(traces, "trace"), CountedNoun(machines, "machine"));
    if answer.suspects.is_empty() {
        let verdict = match (answer.matches, answer.ignored.is_empty()) {
            (false, _) => "matches",
            (true, true) => "leaks",
            (true, false) => "else leaks",
        };
        return format!("Nothing {verdict} in {of}");
    }
    let (handles, allocations): (Vec<&FleetSuspect>, Vec<&FleetSuspect>) =
        answer.suspects.iter().partition(|suspect| !suspect.site.is_of_allocations());
    let leaked = count(handles.iter().map(|suspect| suspect.leaked).sum());
    let at_exit = count(handles.iter().map(|suspect| suspect.closed_at_exit).sum());
    let programs = answer.suspects.iter().map(|suspect| suspect.site.process.as_str());
    let programs = named(&programs.collect());
    let (suspects, rest) = match (handles.len() as u64, allocations.len() as u64) {
        (0, suspects) | (suspects, 0) => (suspects, String::new()),
        (suspects, rest) => {
            (suspects, format!("; {} of allocations", CountedNoun(rest, "more suspect")))
        }
    };
    let by = format!("{} of {programs}", CountedNoun(suspects, "suspect"));
    let handles = |number| CountedNoun(number, "handle");
    match (leaked, at_exit) {
        (0, 0) => format!("{by} leak in {of}{rest}"),
        (0, _) => {
            let handles = handles(at_exit);
            format!("{handles} opened by {by}, closed only by process exit, in {of}{rest}")
        }
        (_, 0) => format!("{} leaked by {by} in {of}{rest}", handles(leaked)),
        (_, _) => {
            let (handles, more) = (handles(leaked), HumanCount(at_exit));
            format!(
                "{handles} leaked by {by} in {of}; {more} more closed only by process exit{rest}"
            )
        }
    }
}

/// Formats the amount that a suspect leaks in all traces, as in "1,234 of 5,678 Event handles leaked".
pub fn amounts(suspect: &FleetSuspect) -> String {
    let CallSite { kind, type_name, allocator, .. } = &suspect.site;
    let words = match kind.as_str() {
        "handle" => ("handle", "closed"),
        "view" => ("view", "unmapped"),
        _ => ("allocation", "freed"),
    };
    let counts = [suspect.leaked, suspect.closed_at_exit, suspect.acquired].map(count);
    let text = amount(counts, &kind_name(type_name, allocator.as_deref()), words);
    match suspect.bytes_unreleased {
        bytes @ 1.. if suspect.site.is_of_allocations() => format!("{text}, {}", Size(bytes)),
        _ => text,
    }
}

/// Returns the commands that show a suspect in the trace where it is worst.
pub fn commands(suspect: &FleetSuspect) -> [String; 2] {
    let WorstTrace { trace, suspect: id, .. } = &suspect.worst;
    let kind = if suspect.site.is_of_allocations() { "Resource" } else { "ObjectRef" };
    [format!(".load {}", short(trace)), format!(".dump {kind} -Suspect {id} -ShowStack")]
}

/// Describes the builds and days of a suspect in a sentence.
pub fn builds(suspect: &FleetSuspect) -> String {
    let [first_day, last_day] = suspect.days();
    let days = if first_day == last_day {
        format!("on {first_day}")
    } else {
        format!("from {first_day} to {last_day}")
    };
    let seen = match (&suspect.first_build, &suspect.last_build) {
        (Some(first), Some(last)) if first == last => format!("in build {first}, {days}"),
        (Some(first), Some(last)) => format!("since build {first}, last in {last}, {days}"),
        _ => format!("in unknown builds, {days}"),
    };
    match suspect.builds_without.as_slice() {
        [] => seen,
        [first, ..] => {
            let traces = CountedNoun(suspect.traces_without as u64, "trace");
            format!("{seen}; not since build {first} ({traces})")
        }
    }
}

/// Joins words and their numbers, as in `steady 12, burst 1`.
pub fn joined(words: &[(String, usize)]) -> String {
    words.iter().map(|(word, traces)| format!("{word} {traces}")).collect::<Vec<_>>().join(", ")
}

/// Describes the causes of a suspect, each with its number of traces.
pub fn causes(suspect: &FleetSuspect) -> String {
    let known = [causes_of_handles(), causes_of_allocations()].concat();
    let causes = suspect.causes.iter().map(|(word, traces)| {
        // A newer version may have written causes that this one does not know.
        let meaning = known.iter().find(|(cause, _)| cause == word).map(|(_, meaning)| *meaning);
        let traces = CountedNoun(*traces as u64, "trace");
        format!("{} ({traces})", meaning.unwrap_or(word))
    });
    causes.collect::<Vec<_>>().join("; ")
}

/// Describes the growth on the machines in a sentence.
pub fn growth(suspect: &FleetSuspect) -> String {
    let verdicts = joined(&suspect.verdicts);
    let Some((median, most)) = suspect.rate_per_minute else {
        return format!("Growth by traces: {verdicts}");
    };
    let (median, most) = (shown_rate(median), shown_rate(most));
    if median == most {
        format!("{median} per minute; growth by traces: {verdicts}")
    } else {
        format!(
            "{median} per minute on the median machine, at most {most}; growth by traces: \
             {verdicts}"
        )
    }
}

/// Formats a rate with its significant digits.
fn shown_rate(rate: f64) -> String {
    match rate {
        rate if rate >= 100.0 => format!("{rate:.0}"),
        rate if rate >= 1.0 => format!("{rate:.1}"),
        rate => format!("{rate:.2}"),
    }
}

/// Converts a number of a dataset table; none of them is negative.
pub fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
