//! The pictures on a page, as data for its script.

use std::cmp::Reverse;

use crate::json::Document;
use crate::pictures::{FoldedStack, FrameTable, OpenTimeline, PictureFrame, line};

/// Maximum number of stacks in a flame graph; all others become one.
const STACKS: usize = 5_000;

/// Maximum number of displayed frames of a stack. Windows records at most 192, but a hostile file may claim any number.
const FRAMES: usize = 200;

/// Number of time buckets, and of processes that are shown separately.
pub const BUCKETS: usize = 300;
pub const PROCESSES: usize = 8;

/// Adds handles or allocations over time if there were any, and the stacks of leaks.
pub fn with_pictures<'a>(
    document: Document<'a>,
    over_time: Option<OpenTimeline>,
    stacks: Vec<FoldedStack>,
    table: &mut FrameTable,
) -> Document<'a> {
    let over_time = over_time.filter(|timeline| !timeline.is_empty());
    document.with("timeline", over_time.map(timeline)).with("flame", flame(stacks, table))
}

fn timeline(timeline: OpenTimeline) -> Document<'static> {
    let (amounts, times) = (timeline.amount_ticks(), timeline.time_ticks());
    let series = timeline.series.into_iter().map(|line| {
        Document::default().with("name", line.name).with("most", line.peak).with("open", line.open)
    });
    Document::default()
        .with("start", timeline.window.start_ns as f64 / 1e9)
        .with("end", timeline.window.end_ns as f64 / 1e9)
        .with("amounts", amounts)
        .with("times", times)
        .with("series", series.collect::<Vec<_>>())
}

/// Returns the stacks that leaked most, outermost frame first, and all others as one, in the order of `.flame`.
fn flame<'a>(mut stacks: Vec<FoldedStack>, table: &mut FrameTable) -> Vec<Document<'a>> {
    stacks.sort_by_key(|stack| Reverse(stack.count));
    let rest = stacks.split_off(stacks.len().min(STACKS));
    if !rest.is_empty() {
        let name = PictureFrame::named(&format!("… {} more stacks", rest.len()));
        let count = rest.iter().fold(0, |sum: u64, stack| sum.saturating_add(stack.count));
        stacks.push(FoldedStack { frames: vec![name], count, before: 0 });
    }
    stacks.sort_by_cached_key(|stack| line(&stack.frames));
    let stacks = stacks.into_iter().map(|stack| {
        let frames = numbers(stack.frames.into_iter(), table);
        Document::default().with("frames", frames).with("count", stack.count)
    });
    stacks.collect()
}

/// Returns the numbers of the first frames, and of a frame that says how many more there are.
pub fn numbers(
    mut frames: impl Iterator<Item = PictureFrame>,
    table: &mut FrameTable,
) -> Vec<usize> {
    let mut numbers: Vec<usize> =
        frames.by_ref().take(FRAMES).map(|frame| table.number(&frame)).collect();
    let more = frames.count();
    if more > 0 {
        numbers.push(table.number(&PictureFrame::named(&format!("… {more} more frames"))));
    }
    numbers
}
