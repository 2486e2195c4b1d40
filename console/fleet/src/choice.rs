//! Filters for questions to a dataset.

use std::collections::HashMap;

use handlescope_session::filter::{Days, Filter, ProcessFilter};
use polars::prelude::{BooleanChunked, DataType, Expr, Field, IntoColumn, col, lit};

/// The traces and builds that a question is about. Only datasets have several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetChoice {
    /// Machines that recorded the traces.
    pub machine: Option<Filter>,
    /// Days on which the recordings started, UTC.
    pub days: Option<Days>,
    /// Builds of the processes.
    pub build: Option<Filter>,
}

impl FleetChoice {
    /// Returns the filters as typed.
    pub fn text(&self) -> String {
        let days = self.days.as_ref().map(|days| format!("-day {}", days.text()));
        let filters = [("-machine", &self.machine), ("-build", &self.build)];
        let filters = filters
            .into_iter()
            .filter_map(|(option, filter)| Some(format!("{option} {}", filter.as_ref()?.text())));
        filters.chain(days).collect::<Vec<_>>().join(" ")
    }
}

/// The criteria of a question that a dataset can test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FleetCriteria<'a> {
    pub choice: &'a FleetChoice,
    /// Processes that acquired something.
    pub process: Option<&'a ProcessFilter>,
    /// Types of the objects, or kinds of the allocations.
    pub object_type: Option<&'a Filter>,
}

impl FleetCriteria<'_> {
    /// Whether every trace, process and type is chosen.
    pub fn is_empty(&self) -> bool {
        let Self { choice, process, object_type } = self;
        **choice == FleetChoice::default() && process.is_none() && object_type.is_none()
    }

    /// Whether a row with `build`, `process`, `pid` and `type` passes.
    pub fn passes(&self) -> Expr {
        self.passes_process()
            .and(tested("type", self.object_type, |filter, name, _| filter.matches(name)))
            .and(self.passes_build())
    }

    pub fn passes_build(&self) -> Expr {
        tested("build", self.choice.build.as_ref(), |filter, name, _| filter.matches(name))
    }

    pub fn passes_process(&self) -> Expr {
        tested("process", self.process, ProcessFilter::matches)
    }
}

/// Whether the text in a column passes a filter, together with the row's `pid`, or 0 for several. Tests each pair only
/// once.
fn tested<F: Clone + Send + Sync + 'static>(
    column: &str,
    filter: Option<&F>,
    test: fn(&F, &str, u32) -> bool,
) -> Expr {
    let Some(filter) = filter.cloned() else { return lit(true) };
    let passes = move |columns: &mut [polars::prelude::Column]| {
        let (texts, pids) = (columns[0].str()?, columns[1].u32()?);
        let mut known = HashMap::new();
        let rows = texts.iter().zip(pids.iter()).map(|(text, pid)| {
            let key = (text.unwrap_or_default(), pid.unwrap_or_default());
            *known.entry(key).or_insert_with(|| test(&filter, key.0, key.1))
        });
        Ok(rows.collect::<BooleanChunked>().into_column())
    };
    col(column).map_many(passes, &[col("pid").cast(DataType::UInt32)], |_, _| {
        Ok(Field::new("passes".into(), DataType::Boolean))
    })
}
