//! Listings of a handle value: all its events that tracing remembers, up to now.
//!
//! So the events that a listing and the history have in common are the longest end of the history, at the time of
//! the listing, that the listing starts with; or all of the history, when the listing goes further back.

use std::collections::BTreeMap;

use super::output::Entry;
use super::timeline::{Place, Span, Timeline};

/// Adds what a listing has and the timeline lacks. It was printed at a time within `span`.
pub(super) fn place(step: usize, entries: &[Entry], span: Span, timeline: &mut Timeline) {
    let mut of_handles: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        of_handles.entry(entry.handle).or_default().push(*entry);
    }
    let first = timeline.known.first_key_value().map_or(0, |(place, _)| place.0);
    // A gap behind the earliest time it may have been printed at.
    let mut behind = span.first.max(first);
    while behind < span.last && timeline.known.contains_key(&(behind, 0)) {
        behind += 1;
    }
    for (handle, printed) in of_handles {
        let places: Vec<Place> =
            timeline.places_of(handle).filter(|place| *place < (span.last, 0)).collect();
        let known: Vec<Entry> =
            places.iter().filter_map(|place| Some(timeline.known.get(place)?.1)).collect();
        let earliest = places.partition_point(|place| *place < (span.first, 0));
        if (earliest.max(1)..=known.len()).any(|until| ends_with(known.get(..until), &printed)) {
            continue;
        }
        let before = known.get(..earliest).unwrap_or_default();
        // More than the listing prints cannot be common.
        let last = before.get(before.len().saturating_sub(printed.len() + 1)..).unwrap_or_default();
        let Overlap { start, count } = overlap(last, &printed);
        let (older, rest) = printed.split_at(start.min(printed.len()));
        for entry in older {
            timeline.add((first - 1, 0), step, *entry);
        }
        for entry in rest.iter().skip(count) {
            timeline.add((behind, 0), step, *entry);
        }
    }
}

/// Whether a sequence ends with what was printed.
fn ends_with(known: Option<&[Entry]>, printed: &[Entry]) -> bool {
    let last = known.and_then(|known| known.get(known.len().checked_sub(printed.len())?..));
    last.is_some_and(|last| last.iter().zip(printed).all(|(known, entry)| known.is_same(entry)))
}

/// What two sequences have in common.
#[derive(Debug, PartialEq, Eq)]
struct Overlap {
    /// Where it starts in what was printed.
    start: usize,
    /// How many events it has, which are the last of what is known.
    count: usize,
}

/// The events that `known` and `printed` have in common. `known` may be cut to one more than `printed` has.
fn overlap(known: &[Entry], printed: &[Entry]) -> Overlap {
    let (_, ends_with) = find(printed, known);
    if !known.is_empty() && known.len() <= printed.len() {
        let (found, _) = find(known, printed);
        if let Some(start) = found.filter(|_| known.len() > ends_with) {
            return Overlap { start, count: known.len() };
        }
    }
    Overlap { start: 0, count: ends_with }
}

/// Where a pattern is first found in a text, and the length of the longest end of the text that the pattern
/// starts with (Knuth, Morris and Pratt).
fn find(pattern: &[Entry], text: &[Entry]) -> (Option<usize>, usize) {
    let is_at = |at: usize, entry: &Entry| pattern.get(at).is_some_and(|own| own.is_same(entry));
    // For each start of the pattern, the length of its longest own end that the pattern starts with.
    let mut shorter = vec![0; pattern.len() + 1];
    let advance = |mut length: usize, entry: &Entry, shorter: &[usize]| {
        while length > 0 && !is_at(length, entry) {
            length = shorter.get(length).copied().unwrap_or_default();
        }
        length + usize::from(is_at(length, entry))
    };
    let mut length = 0;
    for (at, entry) in pattern.iter().enumerate().skip(1) {
        length = advance(length, entry, &shorter);
        if let Some(shorter) = shorter.get_mut(at + 1) {
            *shorter = length;
        }
    }
    let (mut found, mut length) = (None, 0);
    for (at, entry) in text.iter().enumerate() {
        length = advance(length, entry, &shorter);
        if length == pattern.len() && length > 0 && found.is_none() {
            found = Some(at + 1 - length);
        }
    }
    (found, length)
}
