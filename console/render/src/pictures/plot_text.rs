//! Open handles and allocations over time as text: braille lines, and a row for each group.

use std::io::{self, Write};

use textplots::{Chart, LabelBuilder, LabelFormat, Plot, Shape};

use super::Measure;
use super::timeline::{Axis, OpenTimeline};
use handlescope_query::sparkline;
use handlescope_session::settings::Display;
use handlescope_session::terminal::table;

/// Number of columns without a terminal.
const COLUMNS: usize = 80;

/// Columns next to the lines for the numbers of the axis.
const AXIS: usize = 12;

/// Minimum and maximum number of columns for the lines: textplots draws no fewer, and wide windows need no more.
const LINES: (usize, usize) = (16, 160);

/// Dots per column, and dots of height: 15 lines.
const DOTS: (u32, u32) = (2, 60);

/// Number of time buckets in the row of a group.
const BUCKETS: usize = 24;

/// Returns the number of columns for lines on a screen; each shows two time buckets.
pub fn columns(display: &Display) -> usize {
    let width = display.screen.width.unwrap_or(COLUMNS);
    width.saturating_sub(AXIS).clamp(LINES.0, LINES.1)
}

/// Writes a stacked plot, and below it the groups in the order of the lines. Each line adds the open handles of its
/// group to the line below.
pub fn write_text(
    timeline: &OpenTimeline,
    by: &str,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (measure, stacked) = (timeline.measure, timeline.stacked());
    let start = timeline.window.start_ns as f64 / 1e9;
    let lines: Vec<Vec<(f32, f32)>> = stacked
        .iter()
        .map(|sums| {
            timeline
                .ends(sums.len())
                .zip(sums)
                .map(|(end, open)| (end as f32, *open as f32))
                .collect()
        })
        .collect();
    let shapes: Vec<Shape<'_>> = lines.iter().map(|points| Shape::Lines(points)).collect();
    let end = timeline.ends(1).last().unwrap_or_default().max(start + 1e-6);
    let highest = timeline.highest();
    let width = u32::try_from(columns(display)).unwrap_or(u32::MAX).saturating_mul(DOTS.0);
    let mut chart = Chart::new_with_y_range(
        width,
        DOTS.1,
        start as f32,
        end as f32,
        0.0,
        highest.max(1) as f32,
    );
    let axis = timeline.axis.clone();
    let mut drawn = chart
        .x_label_format(LabelFormat::Custom(Box::new(move |seconds| {
            axis.label(f64::from(seconds), 1)
        })))
        .y_label_format(LabelFormat::Custom(Box::new(move |open| match measure {
            Measure::Handles | Measure::Allocations => format!("{open:.0}"),
            Measure::Bytes => measure.shown(open.max(0.0) as u64),
        })));
    for shape in &shapes {
        drawn = drawn.lineplot(shape);
    }
    drawn.axis();
    drawn.figures();
    let mean = if matches!(timeline.axis, Axis::Seconds) { "" } else { ", mean per trace" };
    writeln!(out, "{}: {}{mean}", timeline.file, measure.sentence())?;
    writeln!(out, "{drawn}")?;
    let mut rows = table::table(display.screen, &["Peak", "At end", "Over time", by]);
    table::align_right(&mut rows, &[0, 1]);
    for series in timeline.series.iter().rev() {
        let last = series.open.last().copied().unwrap_or_default();
        let step = series.open.len().div_ceil(BUCKETS).max(1);
        let chunks = series.open.chunks(step);
        let ends: Vec<u64> =
            chunks.map(|chunk| chunk.last().copied().unwrap_or_default()).collect();
        let (peak, last) = (measure.shown(series.peak), measure.shown(last));
        rows.add_row([peak, last, sparkline(&ends), series.name.clone()]);
    }
    write!(out, "{}", table::text(rows))
}
