//! Pictures of a page, as its script reads them.

use std::cmp::Reverse;

use serde::Serialize;

use crate::render::pictures::{Folded, Place, PlaceTable, Timeline};

/// Stacks of a flame graph; the others are one.
const STACKS: usize = 5_000;

/// Frames of a stack that are shown. Windows records 192 at most, a hostile file may claim any number.
const FRAMES: usize = 200;

/// Parts of the time, and processes that are shown by themselves.
pub(crate) const PARTS: usize = 300;
pub(super) const PROCESSES: usize = 8;

#[derive(Serialize)]
pub(super) struct TimelineData {
    start: f64,
    end: f64,
    series: Vec<SeriesData>,
}

#[derive(Serialize)]
pub(super) struct SeriesData {
    name: String,
    most: u64,
    open: Vec<u64>,
}

/// A stack with its lost handles, the outermost frame first.
#[derive(Serialize)]
pub(super) struct FlameData {
    frames: Vec<usize>,
    count: u64,
}

impl TimelineData {
    pub(super) fn of(timeline: Timeline) -> Self {
        let series = timeline.series.into_iter();
        let series =
            series.map(|own| SeriesData { name: own.name, most: own.most, open: own.open });
        Self {
            start: timeline.window.start_ns as f64 / 1e9,
            end: timeline.window.end_ns as f64 / 1e9,
            series: series.collect(),
        }
    }
}

impl FlameData {
    /// The stacks that lost most, and all others as one.
    pub(super) fn all(mut stacks: Vec<Folded>, places: &mut PlaceTable) -> Vec<Self> {
        stacks.sort_by_key(|stack| Reverse(stack.count));
        let others = stacks.split_off(stacks.len().min(STACKS));
        if !others.is_empty() {
            let name = Place::named(&format!("… {} more stacks", others.len()));
            let count = others.iter().fold(0, |sum: u64, own| sum.saturating_add(own.count));
            stacks.push(Folded { frames: vec![name], count, before: None });
        }
        let flame = |stack: Folded| Self {
            frames: numbers(stack.frames.into_iter(), places),
            count: stack.count,
        };
        stacks.into_iter().map(flame).collect()
    }
}

/// The numbers of the first frames, and how many there are more.
pub(super) fn numbers(
    mut frames: impl Iterator<Item = Place>,
    places: &mut PlaceTable,
) -> Vec<usize> {
    let shown = frames.by_ref().take(FRAMES).map(|place| places.number(&place));
    let mut numbers: Vec<usize> = shown.collect();
    let more = frames.count();
    if more > 0 {
        numbers.push(places.number(&Place::named(&format!("… {more} more frames"))));
    }
    numbers
}
