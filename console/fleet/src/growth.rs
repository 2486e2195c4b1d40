//! Open handles and bytes of a fleet: over the days, or over the time of the traces.

use std::collections::{BTreeMap, HashMap};

use super::caveats::FleetCaveat;
use super::choice::{FleetCriteria, RowTest};
use super::no_match::no_match;
use super::traces::Fleet;
use super::why::is_of_allocations;
use crate::FleetError;
use handlescope_session::cancel::Cancel;

/// Column that divides a picture into lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GrowthColumn {
    #[default]
    Process,
    Type,
    Machine,
    Build,
}

/// Time that a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowthAxis {
    /// Day by day: what is open at the end of the traces.
    Days,
    /// The steps of the traces, laid on each other.
    Steps,
}

/// Number of open handles or bytes, on average per trace.
#[derive(Debug, Clone, PartialEq)]
pub struct GrowthLine {
    pub name: String,
    /// A number for each day or step.
    pub open: Vec<f64>,
}

/// Lines over time, the largest first.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetGrowth {
    pub axis: GrowthAxis,
    /// Days with traces, or parts of the time of a trace.
    pub labels: Vec<String>,
    pub lines: Vec<GrowthLine>,
    pub has_bytes: bool,
    pub caveats: Vec<FleetCaveat>,
}

/// Steps of a trace in `growth`.
const STEPS: usize = 60;

/// Follows handles, or with `of_bytes` the bytes of allocations.
///
/// # Errors
/// When a table cannot be read, or `cancel` asks to stop.
pub fn fleet_growth(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    by: GrowthColumn,
    axis: GrowthAxis,
    of_bytes: bool,
    cancel: &Cancel,
) -> Result<FleetGrowth, FleetError> {
    let days: BTreeMap<&str, usize> = fleet.days().into_iter().zip(0..).collect();
    let labels: Vec<String> = match axis {
        GrowthAxis::Days => days.keys().map(|day| (*day).to_owned()).collect(),
        GrowthAxis::Steps => (1..=STEPS).map(|step| format!("{} %", step * 100 / STEPS)).collect(),
    };
    let mut traces = vec![0_usize; labels.len()];
    for trace in &fleet.traces {
        match (axis, days.get(trace.day.as_str())) {
            (GrowthAxis::Days, Some(day)) => {
                if let Some(count) = traces.get_mut(*day) {
                    *count += 1;
                }
            }
            _ => traces.iter_mut().for_each(|count| *count += 1),
        }
    }
    let mut test = RowTest::new(criteria);
    let mut matches = false;
    let mut lines: HashMap<String, Vec<f64>> = HashMap::new();
    let columns = ["build", "process", "pid", "kind", "type", "step", "open", "open_bytes"];
    fleet.each("growth", &columns, cancel, |trace, _, row| {
        let text = |name| row.text(name).unwrap_or_default();
        let is_of_handles = !is_of_allocations(text("kind"));
        let place = row.whole("step").and_then(|step| {
            place(axis, usize::try_from(step).ok()?, days.get(trace.day.as_str()).copied())
        });
        let passes = test.passes_process(text("process"), row.whole("pid"))
            && test.passes_type(text("type"))
            && test.passes_build(row.text("build"));
        matches |= passes;
        let passes = passes && is_of_handles != of_bytes;
        let Some(place) = place.filter(|_| passes) else { return };
        let name = match by {
            GrowthColumn::Process => text("process"),
            GrowthColumn::Type => text("type"),
            GrowthColumn::Machine => fleet.machine(trace),
            GrowthColumn::Build => row.text("build").unwrap_or("unknown"),
        };
        let amount = row.whole(if of_bytes { "open_bytes" } else { "open" }).unwrap_or_default();
        let line = match lines.get_mut(name) {
            Some(line) => line,
            None => lines.entry(name.to_owned()).or_insert_with(|| vec![0.0; labels.len()]),
        };
        if let Some(sum) = line.get_mut(place) {
            *sum += amount as f64;
        }
    })?;
    let lines = lines.into_iter().map(|(name, sums)| {
        let open = sums.iter().zip(&traces).map(|(sum, traces)| sum / (*traces).max(1) as f64);
        GrowthLine { name, open: open.collect() }
    });
    let mut lines: Vec<GrowthLine> = lines.collect();
    let peak = |line: &GrowthLine| line.open.iter().copied().fold(0.0, f64::max);
    lines.retain(|line| peak(line) > 0.0);
    lines.sort_by(|a, b| peak(b).total_cmp(&peak(a)).then_with(|| a.name.cmp(&b.name)));
    let no_match = if matches { None } else { no_match(fleet, criteria, cancel)? };
    let caveats = no_match.into_iter().chain(fleet.caveats()).collect();
    Ok(FleetGrowth { axis, labels, lines, has_bytes: of_bytes, caveats })
}

/// Index of the label that a row belongs to: that of its step, which counts from 1, or that of its day, if it says what is
/// open at the end of its trace.
fn place(axis: GrowthAxis, step: usize, day: Option<usize>) -> Option<usize> {
    match axis {
        GrowthAxis::Steps => step.checked_sub(1),
        GrowthAxis::Days => day.filter(|_| step == STEPS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_is_the_end_of_a_trace() {
        let of_step = |step| place(GrowthAxis::Steps, step, None);
        assert_eq!([of_step(0), of_step(1), of_step(STEPS)], [None, Some(0), Some(STEPS - 1)]);
        let of_day = |step| place(GrowthAxis::Days, step, Some(3));
        assert_eq!([of_day(1), of_day(STEPS - 1), of_day(STEPS)], [None, None, Some(3)]);
    }
}
