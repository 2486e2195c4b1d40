//! Handles that were open at the end, counted.

use handlescope_model::{Cell, tables::ExistingHandles};
use polars::prelude::{DataFrame, IntoLazy, PolarsResult, col};

use super::context::FileContext;
use super::counts::NameCounts;
use super::error::QueryError;
use super::selection::Selection;
use crate::cancel::Poll;
use crate::values::TopN;

const VALUE: &str = "value";
const COUNT: &str = "count";

/// The handles that were still open at the end (rundown) of the objects that passed, whatever the
/// filters removed of their events.
#[derive(Debug, Clone)]
pub struct OpenHandles {
    by_type: NameCounts,
    by_process: NameCounts,
    by_file: NameCounts,
}

/// What the handles are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountBy {
    /// Name of the object type.
    Type,
    /// `name.exe(pid)`.
    Process,
    /// Path of the trace, also of one without such handles.
    File,
}

impl OpenHandles {
    /// Counts the open handles of some objects; `plain` names are those of executables.
    pub(crate) fn of(
        file: &FileContext<'_>,
        selection: &Selection,
        plain: bool,
    ) -> Result<Self, QueryError> {
        let owner = file.trace.values(ExistingHandles::process)?;
        let (mut types, mut owners) = (Runs::default(), Runs::default());
        let mut poll = Poll::new(file.cancel);
        for selected in selection.objects() {
            poll.round()?;
            let handles = owner.range(file.objects.existing(selected.object()));
            // Most objects have none.
            if handles.len() > 0 {
                types.add(file.objects.type_id(selected.object()), handles.len() as u64);
                handles.for_each(|owner| owners.add(owner, 1));
            }
        }
        let path = file.path.display().to_string();
        Ok(Self {
            by_file: NameCounts::new(vec![path], vec![types.counts.iter().sum()])?,
            by_type: types.named(|id| file.types.get(id).to_owned())?,
            by_process: owners.named(|row| file.processes.get(row).shown_label(plain))?,
        })
    }

    /// The handles of several traces; equal names count together.
    pub(crate) fn of_all<'a>(parts: impl Iterator<Item = &'a Self> + Clone) -> PolarsResult<Self> {
        Ok(Self {
            by_type: NameCounts::of_all(parts.clone().map(|part| &part.by_type))?,
            by_process: NameCounts::of_all(parts.clone().map(|part| &part.by_process))?,
            by_file: NameCounts::of_all(parts.map(|part| &part.by_file))?,
        })
    }

    /// Number of processes that own at least one of the handles.
    pub fn process_count(&self) -> usize {
        self.by_process.len()
    }

    /// Names with their counts, the largest last: the `take` largest after the `skip` largest.
    pub fn rows(&self, by: CountBy, top: Option<TopN>) -> Vec<(&str, u64)> {
        let counts = match by {
            CountBy::Type => &self.by_type,
            CountBy::Process => &self.by_process,
            CountBy::File => &self.by_file,
        };
        counts.rows(top)
    }
}

/// Values with their counts; neighbours of one value count together, as most handles of an object do.
struct Runs<T> {
    values: Vec<T>,
    counts: Vec<u64>,
}

impl<T> Default for Runs<T> {
    fn default() -> Self {
        Runs { values: Vec::new(), counts: Vec::new() }
    }
}

impl<T: Cell + Copy + PartialEq> Runs<T> {
    fn add(&mut self, value: T, count: u64) {
        match self.counts.last_mut() {
            Some(last) if self.values.last() == Some(&value) => *last += count,
            _ => {
                self.values.push(value);
                self.counts.push(count);
            }
        }
    }

    /// The counts by name; several values may have one name.
    fn named(self, name: impl Fn(T) -> String) -> PolarsResult<NameCounts> {
        let columns = vec![T::column(VALUE, self.values), u64::column(COUNT, self.counts)];
        let rows = DataFrame::new_infer_height(columns)?.lazy();
        let sums = rows.group_by([col(VALUE)]).agg([col(COUNT).sum()]).collect()?;
        let names = T::read(sums.column(VALUE)?)?.into_iter().map(name).collect();
        NameCounts::new(names, u64::read(sums.column(COUNT)?)?)
    }
}
