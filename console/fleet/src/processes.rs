//! Programs of a fleet: where they ran, how long, and in which builds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::choice::{FleetCriteria, RowTest};
use super::traces::Fleet;
use crate::FleetError;
use handlescope_session::cancel::Cancel;

/// A build of a program.
#[derive(Debug, Clone, Default)]
pub struct ProgramBuild {
    pub name: String,
    /// Traces in which it ran, by their numbers.
    pub traces: BTreeSet<usize>,
}

/// A program on the machines of a fleet.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub machines: HashSet<usize>,
    pub traces: HashSet<usize>,
    /// Its builds, by the text that orders them.
    pub builds: BTreeMap<String, ProgramBuild>,
}

/// Programs by the names of their executables.
pub type Programs = HashMap<String, Program>;

/// Lists the programs of a fleet.
pub fn programs(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    cancel: &Cancel,
) -> Result<Programs, FleetError> {
    let mut programs = Programs::new();
    let mut test = RowTest::new(criteria);
    let columns = ["process", "pid", "build", "build_order"];
    fleet.each("processes", &columns, cancel, |trace, number, row| {
        let (Some(name), build) = (row.text("process"), row.text("build")) else { return };
        if !test.passes_process(name, row.whole("pid")) || !test.passes_build(build) {
            return;
        }
        let program = match programs.get_mut(name) {
            Some(program) => program,
            None => programs.entry(name.to_owned()).or_default(),
        };
        program.machines.insert(trace.machine);
        program.traces.insert(number);
        if let Some((build, order)) = build.zip(row.text("build_order")) {
            let known = program.builds.entry(order.to_owned()).or_default();
            build.clone_into(&mut known.name);
            known.traces.insert(number);
        }
    })?;
    Ok(programs)
}
