//! Filters that nothing in the traces passes: without a leak it would seem that nothing leaks.

use std::collections::BTreeSet;

use super::caveats::FleetCaveat;
use super::choice::{FleetCriteria, RowTest};
use super::traces::Fleet;
use crate::FleetError;
use handlescope_session::cancel::Cancel;
use handlescope_session::suggest;
use handlescope_session::values::{Counted, listed};

/// Word for it in documents.
const NO_MATCH: &str = "no_match";

/// Names that are there that are shown at most.
const MAX_NAMES: usize = 8;

/// Names of rows, and whether a row passes.
#[derive(Default)]
struct Tried {
    rows: u64,
    names: BTreeSet<String>,
    passes: bool,
}

impl Tried {
    fn add(&mut self, name: &str, passes: bool) {
        self.rows += 1;
        self.passes |= passes;
        if !self.names.contains(name) {
            self.names.insert(name.to_owned());
        }
    }

    /// Says that none of the rows passes a filter; `None` if one does.
    fn caveat(self, noun: &'static str, option: &str, value: &str) -> Option<FleetCaveat> {
        if self.passes {
            return None;
        }
        let names = self.names.iter().map(String::as_str).filter(|name| !name.is_empty());
        let nearest = suggest::nearest(value, names.clone());
        let names: Vec<&str> = names.collect();
        let hint = match nearest {
            Some(name) => suggest::did_you_mean(&format!("{option} {name}")),
            None if names.is_empty() => String::new(),
            None => format!("; there are {}", listed(&names, MAX_NAMES)),
        };
        let rows = Counted(self.rows, noun);
        let text = format!("nothing matches: none of {rows} passes {option} {value}{hint}");
        Some(FleetCaveat { kind: NO_MATCH, text, traces: 0 })
    }
}

/// The filter that no process, or nothing that the processes acquired, passes; `None` if something does.
///
/// # Errors
/// When a table cannot be read, or `cancel` asks to stop.
pub fn no_match(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    cancel: &Cancel,
) -> Result<Option<FleetCaveat>, FleetError> {
    let FleetCriteria { build, process, object_type, .. } = criteria;
    let (mut of_build, mut of_process) = (Tried::default(), Tried::default());
    let mut test = RowTest::new(criteria);
    if build.is_some() || process.is_some() {
        fleet.each("processes", &["build", "process", "pid"], cancel, |_, _, row| {
            let passes_build = test.passes_build(row.text("build"));
            of_build.add(row.text("build").unwrap_or_default(), passes_build);
            if let Some(name) = row.text("process").filter(|_| passes_build) {
                of_process.add(name, test.passes_process(name, row.whole("pid")));
            }
        })?;
    }
    let option =
        build.as_ref().and_then(|filter| of_build.caveat("process", "-build", filter.text()));
    let of_process =
        || process.as_ref().and_then(|filter| of_process.caveat("process", "-pn", filter.text()));
    if let Some(caveat) = option.or_else(of_process) {
        return Ok(Some(caveat));
    }
    let Some(filter) = object_type else { return Ok(None) };
    let mut of_type = Tried::default();
    fleet.each("groups", &["build", "process", "pid", "type"], cancel, |_, _, row| {
        let (process, name) = (row.text("process"), row.text("type").unwrap_or_default());
        if test.passes_build(row.text("build"))
            && test.passes_process(process.unwrap_or_default(), row.whole("pid"))
        {
            of_type.add(name, test.passes_type(name));
        }
    })?;
    Ok(of_type.caveat("group", "-Type", filter.text()))
}
