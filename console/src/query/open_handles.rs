//! Handles that were open at the end, counted.

use handlescope_model::tables::{ExistingHandles, Objects};
use handlescope_model::{Cell, ProcessIdx, TypeId};
use polars::prelude::{DataFrame, IntoLazy, PolarsResult};

use super::context::FileContext;
use super::counts::{NameCounts, row_counts};
use super::error::QueryError;
use super::selection::Selection;
use crate::cancel::Poll;
use crate::values::TopN;

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
        let (mut types, mut owners) = (Vec::new(), Vec::new());
        let mut poll = Poll::new(file.cancel);
        for selected in selection.objects() {
            poll.round()?;
            let handles = owner.range(file.objects.existing(selected.object()));
            types.resize(types.len() + handles.len(), file.objects.type_id(selected.object()));
            owners.extend(handles);
        }
        let path = file.path.display().to_string();
        let by_file = NameCounts::new(vec![path], vec![owners.len() as u64])?;
        let name_of_type = |id| file.types.get(id).to_owned();
        let name_of_process = |row| file.processes.get(row).shown_label(plain);
        Ok(Self {
            by_file,
            by_type: named::<TypeId>(Objects::type_id.name(), types, name_of_type)?,
            by_process: named::<ProcessIdx>(
                ExistingHandles::process.name(),
                owners,
                name_of_process,
            )?,
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

/// How often each value occurs, by name; several values may have one name.
fn named<T: Cell>(
    key: &str,
    values: Vec<T>,
    name: impl Fn(T) -> String,
) -> PolarsResult<NameCounts> {
    let rows = DataFrame::new_infer_height(vec![T::column(key, values)])?;
    let (keys, counts) = row_counts(rows.lazy(), &[key])?;
    let keys: Vec<T> = T::read(keys.column(key)?)?;
    NameCounts::new(keys.into_iter().map(name).collect(), u64::read(&counts)?)
}
