//! How much of a suspect is lost.

use std::fmt::Write as _;

use indicatif::{HumanBytes, HumanCount};

use crate::query::{Counts, Suspect};

/// What was opened or allocated of a suspect, and lost.
pub(in crate::render) fn amounts(suspect: &Suspect) -> String {
    let Counts { leaked, closed_at_exit, opened } = suspect.counts;
    let (lost, closed, made) = match suspect.bytes {
        Some(_) => ("never freed", "freed", "allocated"),
        None => ("leaked", "closed", "opened"),
    };
    let mut text = format!("{} {lost}", HumanCount(leaked));
    if closed_at_exit > 0 {
        // Writing to a string does not fail.
        let _ = write!(text, " and {} {closed} only at process exit", HumanCount(closed_at_exit));
    }
    let _ = write!(text, " of {} {made}", HumanCount(opened));
    let Some(bytes) = suspect.bytes else { return text };
    let _ = write!(text, ", {} of {}", size(bytes.lost), size(bytes.allocated));
    if let Some(per_minute) = bytes.per_minute {
        let _ = write!(text, ", {} per minute", size(per_minute as i64));
    }
    text
}

/// Bytes in a unit that fits.
fn size(bytes: i64) -> HumanBytes {
    HumanBytes(u64::try_from(bytes).unwrap_or_default())
}
