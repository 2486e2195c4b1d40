//! Messages about an extraction.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use handlescope_extract::{ExtractSummary, is_loss};
use handlescope_model::Untrusted;
use handlescope_model::tables::Warning;
use indicatif::{HumanBytes, HumanCount};

use crate::terminal::Messages;
use crate::values::{CountedNoun, finding};

/// Warns of problems counted while a trace was read, except losses: a caveat says what those put in doubt.
pub fn warn(
    input: &Path,
    warnings: impl IntoIterator<Item = Warning>,
    messages: &mut Messages<'_>,
) {
    for warning in warnings.into_iter().filter(|warning| !is_loss(&warning.kind)) {
        let (input, finding) = (Untrusted(input), Untrusted(finding(&warning)));
        messages.warning(format_args!("{input}: {finding}"));
    }
}

/// Returns the line that ends the extraction of a file.
pub fn line(output: &Path, summary: &ExtractSummary) -> String {
    let ExtractSummary { leaked_views, closed_at_exit, closed_unseen, .. } = *summary;
    let views =
        if_any(leaked_views, format_args!(", {}", CountedNoun(leaked_views, "leaked view")));
    // Handles that look closed but are leaks of programs that ended.
    let closed = HumanCount(closed_at_exit);
    let at_exit = format_args!(" (and {closed} closed only by process exit)");
    let at_exit = if_any(closed_at_exit, at_exit);
    let unseen = format_args!(", {} closed unseen", HumanCount(closed_unseen));
    let unseen = if_any(closed_unseen, unseen);
    format!(
        "{}: {}, {}, {}{}{}{}{}, {}, {}, {} in {}{}",
        Untrusted(output),
        CountedNoun(summary.objects, "object"),
        CountedNoun(summary.handle_events, "handle event"),
        CountedNoun(summary.leaked_handles, "leaked handle"),
        views,
        at_exit,
        unseen,
        allocations(summary),
        CountedNoun(summary.stacks_distinct, "stack"),
        CountedNoun(summary.events_lost, "lost event"),
        HumanBytes(summary.output_bytes),
        seconds(summary.elapsed),
        rate(summary.bytes_read, summary.elapsed),
    )
}

/// Returns the text, or nothing if the count is 0.
fn if_any(count: u64, text: impl fmt::Display) -> String {
    if count == 0 { String::new() } else { text.to_string() }
}

/// Describes the allocations, if such events were recorded.
fn allocations(summary: &ExtractSummary) -> String {
    let allocations = CountedNoun(summary.allocations, "allocation");
    let [never_freed, at_exit] = [summary.never_freed, summary.freed_at_exit].map(HumanCount);
    match (summary.allocations, summary.freed_at_exit) {
        (0, _) => String::new(),
        (_, 0) => format!(", {allocations}, {never_freed} leaked"),
        _ => format!(
            ", {allocations}, {never_freed} leaked (and {at_exit} freed only by process exit)"
        ),
    }
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.2} s", elapsed.as_secs_f64())
}

/// Returns bytes per second: `, 28.61 MiB/s`; empty for no bytes or a time too short to measure.
fn rate(bytes: u64, elapsed: Duration) -> String {
    let rate = (bytes as f64 / elapsed.as_secs_f64()) as u64;
    if rate == 0 || elapsed.is_zero() {
        return String::new();
    }
    format!(", {}/s", HumanBytes(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_what_came_out() {
        let summary = ExtractSummary {
            objects: 2672,
            handle_events: 6367,
            leaked_handles: 5,
            leaked_views: 0,
            closed_at_exit: 0,
            closed_unseen: 0,
            allocations: 0,
            never_freed: 0,
            freed_at_exit: 0,
            stacks_distinct: 40,
            events_lost: 0,
            buffers_lost: 0,
            bytes_read: 30_000_000,
            output_bytes: 2048,
            elapsed: Duration::from_millis(100),
            warnings: Vec::new(),
        };
        assert_eq!(
            line(Path::new("Extract/a.json7z"), &summary),
            "Extract/a.json7z: 2,672 objects, 6,367 handle events, 5 leaked handles, 40 stacks, \
             0 lost events, 2.00 KiB in 0.10 s, 286.10 MiB/s"
        );
        let views = ExtractSummary { leaked_handles: 0, leaked_views: 3, ..summary.clone() };
        let views = line(Path::new("a"), &views);
        assert!(views.contains(" 0 leaked handles, 3 leaked views, 40 stacks"), "{views}");
        let summary = ExtractSummary {
            closed_at_exit: 8,
            closed_unseen: 0,
            allocations: 2000,
            never_freed: 7,
            bytes_read: 0,
            ..summary
        };
        let line = line(Path::new("a"), &summary);
        assert!(line.ends_with(" in 0.10 s"), "{line}");
        assert!(
            line.contains(
                "5 leaked handles (and 8 closed only by process exit), 2,000 \
                 allocations, 7 leaked, 40"
            ),
            "{line}"
        );
        let summary = ExtractSummary { freed_at_exit: 1_021, ..summary };
        let line = super::line(Path::new("a"), &summary);
        assert!(line.contains(" 7 leaked (and 1,021 freed only by process exit), 40"), "{line}");
    }
}
