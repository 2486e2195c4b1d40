//! Criteria of questions to a dataset.

use std::collections::HashMap;

use handlescope_session::filter::{Days, Filter, ProcessFilter};

/// Traces, processes and types that a question is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetCriteria {
    /// Machines that recorded the traces.
    pub machine: Option<Filter>,
    /// Days on which the recordings started, UTC.
    pub days: Option<Days>,
    /// Builds of the processes.
    pub build: Option<Filter>,
    /// Processes that acquired something.
    pub process: Option<ProcessFilter>,
    /// Types of the objects, or kinds of the allocations.
    pub object_type: Option<Filter>,
}

impl FleetCriteria {
    /// The filters as typed.
    pub fn text(&self) -> String {
        let days = self.days.as_ref().map(|days| format!("-day {}", days.text()));
        let filters = [("-machine", &self.machine), ("-build", &self.build)];
        let filters = filters
            .into_iter()
            .filter_map(|(option, filter)| Some(format!("{option} {}", filter.as_ref()?.text())));
        filters.chain(days).collect::<Vec<_>>().join(" ")
    }
}

/// Tests rows, each distinct text once.
pub struct RowTest<'c> {
    criteria: &'c FleetCriteria,
    builds: HashMap<String, bool>,
    types: HashMap<String, bool>,
    processes: HashMap<(String, i64), bool>,
}

impl<'c> RowTest<'c> {
    pub fn new(criteria: &'c FleetCriteria) -> Self {
        Self { criteria, builds: HashMap::new(), types: HashMap::new(), processes: HashMap::new() }
    }

    pub fn passes_build(&mut self, build: Option<&str>) -> bool {
        let Some(filter) = &self.criteria.build else { return true };
        known(&mut self.builds, build.unwrap_or_default(), |build| filter.matches(build))
    }

    /// Several processes of a program have no pid.
    pub fn passes_process(&mut self, process: &str, pid: Option<i64>) -> bool {
        let Some(filter) = &self.criteria.process else { return true };
        let key = (process.to_owned(), pid.unwrap_or_default());
        *self.processes.entry(key).or_insert_with_key(|(process, pid)| {
            filter.matches(process, u32::try_from(*pid).unwrap_or_default())
        })
    }

    pub fn passes_type(&mut self, type_name: &str) -> bool {
        let Some(filter) = &self.criteria.object_type else { return true };
        known(&mut self.types, type_name, |type_name| filter.matches(type_name))
    }
}

fn known(
    verdicts: &mut HashMap<String, bool>,
    text: &str,
    test: impl FnOnce(&str) -> bool,
) -> bool {
    if let Some(verdict) = verdicts.get(text) {
        return *verdict;
    }
    let verdict = test(text);
    verdicts.insert(text.to_owned(), verdict);
    verdict
}
