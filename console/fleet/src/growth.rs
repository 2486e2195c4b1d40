//! Open handles and bytes of a fleet, over days or over the duration of the traces.

use std::collections::HashMap;

use polars::prelude::{LazyFrame, col, lit};

use super::caveats::FleetCaveat;
use super::choice::FleetCriteria;
use super::groups::is_allocation;
use super::no_match::caveats;
use super::scan::records;
use super::traces::{Fleet, sums};
use crate::FleetError;
use crate::dataset::STEPS;
use handlescope_query::GroupColumn;
use handlescope_session::cancel::Cancel;

/// The time axis of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowthAxis {
    /// Days: what is open at the end of the traces.
    Days,
    /// Steps of the traces, overlaid.
    Steps,
}

/// A number of open handles or bytes, averaged per trace.
#[derive(Debug, Clone, PartialEq)]
pub struct GrowthLine {
    pub name: String,
    /// The number at each day or step.
    pub open: Vec<f64>,
}

/// Lines over time, largest first.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetGrowth {
    pub axis: GrowthAxis,
    /// Days with traces, or percentages of a trace's duration.
    pub labels: Vec<String>,
    pub lines: Vec<GrowthLine>,
    pub has_bytes: bool,
    pub caveats: Vec<FleetCaveat>,
}

/// Follows handles, or with `of_bytes` the bytes of allocations. Draws one line for each process, type, machine or
/// build, as `by` says.
///
/// # Errors
/// If a table cannot be read, or `cancel` asks to stop.
pub fn fleet_growth(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    by: GroupColumn,
    axis: GrowthAxis,
    of_bytes: bool,
    cancel: &Cancel,
) -> Result<FleetGrowth, FleetError> {
    let days = fleet.days();
    let traces_of = |day: &&str| fleet.traces.iter().filter(|trace| trace.day == *day).count();
    let (place, labels, traces): (_, Vec<String>, Vec<usize>) = match axis {
        GrowthAxis::Days => (
            "day",
            days.iter().map(|day| (*day).to_owned()).collect(),
            days.iter().map(traces_of).collect(),
        ),
        GrowthAxis::Steps => (
            "step",
            (1..=STEPS).map(|step| format!("{} %", step * 100 / STEPS)).collect(),
            vec![fleet.traces.len(); STEPS],
        ),
    };
    let amount = if of_bytes { "open_bytes" } else { "open" };
    let unnamed = if by == GroupColumn::Build { "unknown" } else { "" };
    let rows = |frame: LazyFrame| {
        let of_axis = match axis {
            // The last step is the end of a trace.
            GrowthAxis::Days => col("step").eq(lit(STEPS as i32)),
            GrowthAxis::Steps => lit(true),
        };
        let passes = criteria.passes().and(of_axis).and(is_allocation().eq(lit(of_bytes)));
        frame.filter(passes).with_column(col(by.name()).fill_null(lit(unnamed)))
    };
    let sum = |frame: LazyFrame| frame.group_by([by.name(), place]).agg(sums(&[amount]));
    let columns = ["build", "process", "pid", "kind", "type", "step", amount, place, by.name()];
    let [rows] = fleet.summed("growth", &columns, rows, [&sum], cancel)?;
    let mut lines: HashMap<String, Vec<f64>> = HashMap::new();
    for row in records(&rows) {
        let place = match axis {
            GrowthAxis::Days => days.iter().position(|day| row.text("day").as_deref() == Some(day)),
            GrowthAxis::Steps => usize::try_from(row.count("step").saturating_sub(1)).ok(),
        };
        let Some((place, traces)) = place.and_then(|place| Some((place, traces.get(place)?)))
        else {
            continue;
        };
        let line = lines.entry(row.text(by.name()).unwrap_or_default());
        let line = line.or_insert_with(|| vec![0.0; labels.len()]);
        line[place] = row.number(amount).unwrap_or_default() / (*traces).max(1) as f64;
    }
    let mut lines: Vec<GrowthLine> =
        lines.into_iter().map(|(name, open)| GrowthLine { name, open }).collect();
    let peak = |line: &GrowthLine| line.open.iter().copied().fold(0.0, f64::max);
    lines.retain(|line| peak(line) > 0.0);
    lines.sort_by(|a, b| peak(b).total_cmp(&peak(a)).then_with(|| a.name.cmp(&b.name)));
    let caveats = caveats(fleet, criteria, rows.height() == 0, cancel)?;
    Ok(FleetGrowth { axis, labels, lines, has_bytes: of_bytes, caveats })
}
