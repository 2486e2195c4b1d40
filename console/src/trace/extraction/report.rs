//! What is said about an extraction.

use std::{fmt::Write, path::Path, time::Duration};

use handlescope_extract::ExtractSummary;
use indicatif::{DecimalBytes, HumanCount};

use crate::terminal::Messages;

/// Warns of everything that was counted while a trace was read.
pub(super) fn warn(input: &Path, summary: &ExtractSummary, messages: &mut Messages<'_>) {
    for warning in &summary.warnings {
        let times = if warning.count == 1 { "" } else { " x" };
        let (input, count) = (input.display(), HumanCount(warning.count));
        let mut text = format!("{input}: {count}{times} {}", warning.kind);
        if let Some(offset) = warning.first_offset {
            let _ = write!(text, ", first at offset 0x{offset:X}");
        }
        messages.warning(text);
    }
}

/// What to say about losses, if there are any.
pub(crate) fn lost(events: u64, buffers: u64) -> Option<String> {
    (events + buffers > 0).then(|| {
        format!(
            "{} events and {} buffers were lost while recording; objects, closes and leaks may be \
             wrong",
            HumanCount(events),
            HumanCount(buffers)
        )
    })
}

/// The line that ends the extraction of a file.
pub(crate) fn line(output: &Path, summary: &ExtractSummary) -> String {
    format!(
        "{}: {} objects, {} handle events, {} leaked handles, {} stacks, {} lost events, {} in {}, {}",
        output.display(),
        HumanCount(summary.objects),
        HumanCount(summary.handle_events),
        HumanCount(summary.leaked_handles),
        HumanCount(summary.stacks_distinct),
        HumanCount(summary.events_lost),
        DecimalBytes(summary.output_bytes),
        seconds(summary.elapsed),
        rate(summary.bytes_read, summary.elapsed),
    )
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.2} s", elapsed.as_secs_f64())
}

/// Megabytes (10^6 bytes) per second.
fn rate(bytes: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let rate = if seconds > 0.0 { bytes as f64 / 1e6 / seconds } else { 0.0 };
    format!("{rate:.0} MB/s")
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
             0 lost events, 2.05 kB in 0.10 s, 300 MB/s"
        );
    }

    #[test]
    fn losses_are_told_and_their_absence_is_not() {
        assert_eq!(lost(0, 0), None);
        assert!(lost(12, 1).is_some_and(|text| text.starts_with("12 events and 1 buffers")));
    }
}
