//! Reports filters that match nothing in the traces. Without this, it would look as if nothing leaks.

use polars::prelude::{LazyFrame, col, lit};

use super::caveats::FleetCaveat;
use super::choice::FleetCriteria;
use super::scan::records;
use super::traces::{Fleet, sums};
use crate::FleetError;
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::suggest;
use handlescope_session::values::{CountedNoun, listed};

/// Word for this caveat in documents.
pub const NO_MATCH: &str = "no_match";

/// Maximum number of existing names to show.
const MAX_NAMES: usize = 8;

/// Returns the caveats of an answer: why it is empty, as far as a filter matches nothing, and those about the traces.
///
/// # Errors
/// If a table cannot be read, or `cancel` asks to stop.
pub fn caveats(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    is_empty: bool,
    cancel: &Cancel,
) -> Result<Vec<FleetCaveat>, FleetError> {
    let no_match = if is_empty { no_match(fleet, criteria, cancel)? } else { None };
    Ok(no_match.into_iter().chain(fleet.caveats()).collect())
}

/// Returns the filter that matches no process, or nothing that the processes acquired; `None` if something passes.
///
/// # Errors
/// If a table cannot be read, or `cancel` asks to stop.
pub fn no_match(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    cancel: &Cancel,
) -> Result<Option<FleetCaveat>, FleetError> {
    let build = criteria.choice.build.as_ref().map(Filter::text);
    let process = criteria.process.map(ProcessFilter::text);
    let object_type = criteria.object_type.map(Filter::text);
    let named = col("process").is_not_null().and(criteria.passes_build());
    let of_processes = criteria.passes_build().and(criteria.passes_process());
    // Each filter only sees the rows that passed the filters before it.
    let filters = [
        ("processes", "process", "-build", build, "build", lit(true), criteria.passes_build()),
        ("processes", "process", "-pn", process, "process", named, criteria.passes_process()),
        ("groups", "group", "-Type", object_type, "type", of_processes, criteria.passes()),
    ];
    for (table, noun, option, value, column, before, passes) in filters {
        let Some(value) = value else { continue };
        let columns: &[&str] = match table {
            "groups" => &["build", "process", "pid", "type"],
            _ => &["build", "process", "pid"],
        };
        let rows = |frame: LazyFrame| {
            let counted = [passes.clone().alias("passes"), lit(1).alias("rows")];
            frame.filter(before.clone()).with_columns(counted)
        };
        let sum = |frame: LazyFrame| {
            frame
                .group_by([col(column)])
                .agg(sums(&["passes", "rows"]))
                .sort([column], Default::default())
        };
        let [rows] = fleet.summed(table, columns, rows, [&sum], cancel)?;
        if records(&rows).any(|row| row.count("passes") > 0) {
            continue;
        }
        let names: Vec<String> = records(&rows).filter_map(|row| row.text(column)).collect();
        let names: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let hint = match suggest::nearest(value, names.iter().copied()) {
            Some(name) => suggest::did_you_mean(&format!("{option} {name}")),
            None if names.is_empty() => String::new(),
            None => format!("; there are {}", listed(&names, MAX_NAMES)),
        };
        let rows = records(&rows).map(|row| row.count("rows").unsigned_abs()).sum();
        let rows = CountedNoun(rows, noun);
        let text = format!("nothing matches: none of {rows} passes {option} {value}{hint}");
        return Ok(Some(FleetCaveat { kind: NO_MATCH, text, traces: 0 }));
    }
    Ok(None)
}
