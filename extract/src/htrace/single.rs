//! Listings of a handle value: all its events that tracing remembers, up to now.
//!
//! So the events of the handle that are known are among those that are listed, or the last of them are, when tracing
//! has forgotten the first. What else is listed stands between them, in front of them or behind them.

use std::collections::BTreeMap;

use super::output::Entry;
use super::timeline::{Place, START, Span, Timeline};

/// Adds what a listing has and the timeline lacks. It was printed at a time within `span`.
pub(super) fn place(step: usize, entries: &[Entry], span: Span, timeline: &mut Timeline) {
    let mut of_handles: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        of_handles.entry(entry.handle).or_default().push(*entry);
    }
    let first = timeline.known.first_key_value().map_or(0, |(place, _)| place.0);
    for (handle, printed) in of_handles {
        let places: Vec<Place> =
            timeline.places_of(handle).filter(|place| *place < (span.last, 0)).collect();
        let known: Vec<Entry> =
            places.iter().filter_map(|place| Some(timeline.known.get(place)?.1)).collect();
        let earliest = places.partition_point(|place| *place < (span.first, 0));
        if (earliest.max(1)..=known.len()).any(|until| ends_with(known.get(..until), &printed)) {
            continue;
        }
        let (before, later) = known.split_at(earliest);
        let mut common = common(before, &printed);
        // What is known from later listings may have happened before this one.
        let tail = common.iter().rposition(Option::is_some).map_or(0, |row| row + 1);
        let mut later = (earliest..).zip(later).peekable();
        for (place, entry) in common.iter_mut().zip(&printed).skip(tail) {
            *place = later.next_if(|(_, known)| known.is_same(entry)).map(|(at, _)| at);
        }
        let common = common.into_iter().map(|known| places.get(known?).copied());
        let common: Vec<Option<Place>> = common.collect();
        // The next place that is known, from each row on.
        let mut next = None;
        let mut nexts: Vec<Option<Place>> = Vec::with_capacity(common.len());
        for place in common.iter().rev() {
            next = place.or(next);
            nexts.push(next);
        }
        let mut before: Option<Place> = None;
        for ((entry, place), next) in printed.iter().zip(common).zip(nexts.into_iter().rev()) {
            if place.is_some() {
                before = place;
                continue;
            }
            let after = before.map_or(START, |place| place.0);
            // A gap in front of the next event of the handle, or behind the earliest time of the listing.
            let room = match (before, next) {
                (_, None) => Span { first: span.first.max(first).max(after), ..span },
                (None, Some(next)) => Span::at(next.0),
                (Some(_), Some(next)) => Span { first: after, last: next.0 },
            };
            // Where all is known, nothing can be new.
            let Some(number) = timeline.unknown(room).filter(|number| *number >= after) else {
                continue;
            };
            let last = next.map_or(span.last, |next| timeline.span_of(next).last) - 1;
            let first = before.map_or(START, |place| timeline.span_of(place).first);
            before = Some(timeline.add((number, 0), Span { first, last }, step, *entry));
        }
    }
}

/// Whether a sequence ends with what was printed.
fn ends_with(known: Option<&[Entry]>, printed: &[Entry]) -> bool {
    let last = known.and_then(|known| known.get(known.len().checked_sub(printed.len())?..));
    last.is_some_and(|last| last.iter().zip(printed).all(|(known, entry)| known.is_same(entry)))
}

/// The place in `known` of each printed event: of all that is known, or else of the last of it, in front of which
/// tracing has forgotten.
fn common(known: &[Entry], printed: &[Entry]) -> Vec<Option<usize>> {
    let mut rest = known.iter().enumerate().peekable();
    let next = |entry: &Entry| Some(rest.next_if(|(_, known)| known.is_same(entry))?.0);
    let common: Vec<Option<usize>> = printed.iter().map(next).collect();
    if rest.next().is_none() {
        return common;
    }
    let mut rest = known.iter().enumerate().rev().peekable();
    let last = |entry: &Entry| Some(rest.next_if(|(_, known)| known.is_same(entry))?.0);
    let mut common: Vec<Option<usize>> = printed.iter().rev().map(last).collect();
    common.reverse();
    common
}
