//! Open handles and allocations over time as a picture.

use std::error::Error;
use std::io::{self, Write};

use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;

use super::timeline::OpenTimeline;

/// Size of a trace's picture in pixels.
const SIZE: (u32, u32) = (1200, 480);

/// Margin around a picture in pixels.
const MARGIN: u32 = 12;

/// Height of labels in pixels.
const LABEL: u32 = 14;

/// Colours that colour-blind people can also distinguish (Okabe and Ito); the last is for the other groups.
const COLORS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(240, 228, 66),
    RGBColor(120, 94, 240),
    RGBColor(153, 153, 153),
];

/// Writes the pictures of traces, one below another.
pub fn write_svg(timelines: &[OpenTimeline], out: &mut dyn Write) -> io::Result<()> {
    let mut svg = String::new();
    let height = SIZE.1.saturating_mul(u32::try_from(timelines.len()).unwrap_or(u32::MAX));
    let root = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
    root.fill(&WHITE).map_err(failed)?;
    for (area, timeline) in root.split_evenly((timelines.len(), 1)).iter().zip(timelines) {
        draw(area, timeline).map_err(failed)?;
    }
    root.present().map_err(failed)?;
    drop(root);
    out.write_all(svg.as_bytes())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(area: &Area<'_>, timeline: &OpenTimeline) -> Result<(), DrawingAreaErrorKind<io::Error>> {
    let (measure, stacked) = (timeline.measure, timeline.stacked());
    let highest = timeline.highest();
    let buckets = stacked.first().map_or(1, Vec::len);
    let nanoseconds = |seconds: f64| (seconds * 1e9).round() as i64;
    // A hostile trace may begin at the last nanosecond, but an axis needs a length.
    let start = timeline.window.start_ns.min(i64::MAX - 1);
    let end = timeline.ends(buckets).last().map_or(start, nanoseconds).max(start + 1);
    let amounts = timeline.amount_ticks();
    let times = timeline.time_ticks().into_iter();
    let times: Vec<(i64, String)> =
        times.map(|(seconds, label)| (nanoseconds(seconds), label)).collect();
    let last_time = times.last().map(|(_, label)| label.as_str()).unwrap_or_default();
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}: {}", timeline.file, measure.caption()), ("sans-serif", 20))
        .margin(MARGIN)
        // The last label is centred on the end of the axis.
        .margin_right(MARGIN + width(last_time) / 2)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(
            (start..end).with_key_points(points(&times)),
            (0..highest.max(1)).with_key_points(points(&amounts)),
        )?;
    let time = |time: &i64| text(&times, time);
    let amount = |amount: &u64| text(&amounts, amount);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_label_formatter(&time)
        .y_label_formatter(&amount)
        .light_line_style(TRANSPARENT)
        .x_desc(timeline.axis.title())
        .y_desc(measure.meaning())
        .label_style(("sans-serif", LABEL))
        .draw()?;
    // Draws the highest first, because the areas below are drawn over it.
    for (index, (series, sums)) in timeline.series.iter().zip(&stacked).enumerate().rev() {
        let color = COLORS[index % COLORS.len()];
        let points = timeline.ends(sums.len()).map(nanoseconds).zip(sums.iter().copied());
        let points = std::iter::once((start, 0)).chain(points);
        chart
            .draw_series(AreaSeries::new(points, 0, color))?
            .label(format!("{}, peak {}", series.name, measure.shown(series.peak)))
            .legend(move |(x, y)| Rectangle::new([(x, y - 6), (x + 12, y + 6)], color.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(TRANSPARENT)
        .label_font(("sans-serif", LABEL))
        .draw()
}

/// Returns the positions of ticks.
fn points<T: Copy>(ticks: &[(T, String)]) -> Vec<T> {
    ticks.iter().map(|(value, _)| *value).collect()
}

/// Returns the text of a tick.
fn text<T: PartialEq>(ticks: &[(T, String)], at: &T) -> String {
    let tick = ticks.iter().find(|(value, _)| value == at);
    tick.map(|(_, text)| text.clone()).unwrap_or_default()
}

/// Returns the width of a label in pixels; characters are two thirds as wide as they are high.
fn width(label: &str) -> u32 {
    u32::try_from(label.chars().count()).unwrap_or(u32::MAX).saturating_mul(LABEL * 2) / 3
}

fn failed(error: impl Error) -> io::Error {
    io::Error::other(error.to_string())
}
