//! Lines about leaks that `.why` does not list, and about traces without suspects.

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::handles_and_views;
use super::suspect::things;
use handlescope_query::{CountBy, CountOrder, NoSuspectReason, NotCounted, Totals, WhyAnswer};
use handlescope_session::settings::IgnoreEntry;
use handlescope_session::values::{CountedNoun, TopN};

/// Maximum number of types of open handles in the text.
const OPEN_TYPES: usize = 6;

/// What is said of handles; allocations that only process exit freed are among those that leaked.
const EXITS: &str = "closed only by process exit";

/// Returns lines about leaks that belong to no suspect.
pub fn lines_of_not_counted<'a>(answer: &'a WhyAnswer<'_>) -> impl Iterator<Item = String> + 'a {
    let has_views = answer.file.totals.map_count > 0;
    let lines = answer
        .not_counted
        .iter()
        .map(move |not_counted| line_of_not_counted(not_counted, has_views));
    let reasons = answer.suspects.iter().map(|suspect| suspect.ignored.as_ref());
    lines.chain(line_of_others_ignored(answer.ignored.len(), "suspect", reasons))
}

/// Returns the line about known leaks that are left out.
pub fn line_of_ignored(number: usize, noun: &'static str) -> Option<String> {
    let ignored = CountedNoun(number as u64, noun);
    (number > 0).then(|| format!("ignored: {ignored}; -Ignored shows them with their reasons"))
}

/// Like [`line_of_ignored`], unless leaks are shown because they are ignored: `reasons` has why each shown one is.
pub fn line_of_others_ignored<E>(
    number: usize,
    noun: &'static str,
    reasons: impl Iterator<Item = Option<E>>,
) -> Option<String> {
    line_of_ignored(number, noun).filter(|_| reasons.flatten().next().is_none())
}

/// Returns the line that says why a leak is ignored, and where this is written.
pub fn ignored_because(entry: &IgnoreEntry) -> String {
    format!("Ignored: {} ({entry})", Untrusted(entry.reason()))
}

fn line_of_not_counted(not_counted: &NotCounted, has_views: bool) -> String {
    let NotCounted { kind, reason, groups, count, at_exit, older } = not_counted;
    let (noun, closed, list) = match kind {
        None => ("handles", "closed", ".dump ObjectRef"),
        Some(_) => ("allocations", "freed", ".dump Resource"),
    };
    let leaked = match kind {
        None => handles_and_views(*count, has_views, true),
        Some(kind) => things(*count, kind, "allocation"),
    };
    let (counted, option) = match (count, at_exit) {
        (_, 0) => (leaked, "-Leak"),
        (0, _) => (format!("{} {EXITS}", CountedNoun(*at_exit, "handle")), "-LeakAtExit"),
        _ => (format!("{leaked}, and {} {EXITS},", HumanCount(*at_exit)), "-Leak -LeakAtExit"),
    };
    let groups = CountedNoun(*groups, "group");
    let reason = match reason {
        NoSuspectReason::Young => {
            format!(
                "where {noun} are usually {closed}; none is older than the oldest {closed} one was"
            )
        }
        NoSuspectReason::Chance => format!(
            "where {noun} are usually {closed}; {} older than any {closed} one was, but that may be chance",
            match older {
                1 => "1 is".to_owned(),
                older => format!("{} are", HumanCount(*older)),
            }
        ),
        NoSuspectReason::LongLived => {
            format!("where {noun} live too long for this trace to tell whether any leaks")
        }
        NoSuspectReason::Committed => "with commit allocations that are counted".to_owned(),
    };
    format!("not counted: {counted} of {groups} {reason}; also in {list} {option}")
}

/// Returns lines about a trace without suspects: whether anything leaks, and what is not counted.
pub fn lines_without_suspects(answer: &WhyAnswer<'_>) -> Vec<String> {
    let Totals { handles_created, handles_duplicated, map_count, .. } = answer.file.totals;
    let verdict = nothing_leaks(answer);
    let dropped = answer.file.about.info.attributed_dropped;
    let mut lines = vec![match (answer.has_events, answer.allocations) {
        (false, 0) => return lines_of_unknown(answer),
        (false, allocations) => {
            format!("{verdict}: {}", CountedNoun(allocations as u64, "allocation"))
        }
        (true, _) if dropped > 0 => format!(
            "Unknown whether anything leaks: {} of unknown processes, which are not counted",
            CountedNoun(dropped, "event")
        ),
        (true, _) => {
            let handles = handles_created.saturating_add(handles_duplicated);
            let opened = match handles {
                0 if map_count > 0 => CountedNoun(map_count, "view").to_string(),
                _ => handles_and_views(handles.saturating_add(map_count), map_count > 0, true),
            };
            let left = HumanCount(answer.file.totals.unreleased());
            format!("{verdict}: {opened} opened, {left} not closed by their programs")
        }
    }];
    lines.extend(lines_of_not_counted(answer));
    lines
}

/// Returns the verdict on a trace without suspects.
fn nothing_leaks(answer: &WhyAnswer<'_>) -> &'static str {
    let is_unclear = |not_counted: &NotCounted| not_counted.reason == NoSuspectReason::LongLived;
    match (answer.not_counted.iter().any(is_unclear), answer.ignored.is_empty()) {
        (true, true) => "Nothing is known to leak",
        (true, false) => "Nothing else is known to leak",
        (false, true) => "Nothing leaks",
        (false, false) => "Nothing else leaks",
    }
}

/// Describes what is open in a trace that cannot show what leaks.
fn lines_of_unknown(answer: &WhyAnswer<'_>) -> Vec<String> {
    let mut lines = vec!["Unknown whether anything leaks".to_owned()];
    let Some(open) = &answer.open else { return lines };
    let top = TopN { take: OPEN_TYPES, skip: 0 };
    let rows = open.rows(CountBy::Type, Some(top), CountOrder::LargestFirst);
    let sum = rows.sum() + rows.left_out_sum;
    let types = rows.rows.iter();
    let mut types: Vec<String> =
        types.map(|row| format!("{} {}", HumanCount(row.count), row.name)).collect();
    if rows.left_out > 0 {
        let others = CountedNoun(rows.left_out as u64, "other type");
        types.push(format!("{} of {others}", HumanCount(rows.left_out_sum)));
    }
    let (is, them) = if sum == 1 { ("is", "it") } else { ("are", "them") };
    let handles = CountedNoun(sum, "handle");
    lines.extend((sum > 0).then(|| {
        format!(
            "{handles} {is} open, and no event says what opened {them}: {}; also in .dump ObjectRef \
             -ShowTotal Total",
            Untrusted(&types.join(", "))
        )
    }));
    lines
}
