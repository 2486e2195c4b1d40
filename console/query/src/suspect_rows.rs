//! The acquisitions of a suspect requested by id, as rows of a table.

use std::collections::BTreeSet;

use super::error::QueryError;
use handlescope_session::values::SuspectId;

/// The rows acquired by suspects whose ids begin with the requested one.
#[derive(Debug, Default)]
pub struct SuspectRows {
    /// Whether a suspect has each acquisition, by row; those after the last one are of none.
    has: Vec<bool>,
    /// Ids of these suspects, each once.
    ids: BTreeSet<String>,
    /// Whether the trace has any leaking groups.
    has_groups: bool,
}

impl SuspectRows {
    /// Notes whether there are groups to choose from.
    pub fn note_groups(&mut self, are_there: bool) {
        self.has_groups |= are_there;
    }

    /// Adds what a suspect acquired.
    pub fn add(&mut self, id: &SuspectId, rows: impl IntoIterator<Item = usize>) {
        self.ids.insert(id.text().to_owned());
        for row in rows {
            if self.has.len() <= row {
                self.has.resize(row + 1, false);
            }
            if let Some(has) = self.has.get_mut(row) {
                *has = true;
            }
        }
    }

    pub fn has(&self, row: usize) -> bool {
        self.has.get(row).copied().unwrap_or_default()
    }
}

/// Rejects an id that matches several suspects, or none although there are some; `what` is what they leaked.
pub fn check<'a>(
    id: &SuspectId,
    what: &'static str,
    files: impl Iterator<Item = &'a SuspectRows>,
) -> Result<(), QueryError> {
    let (mut ids, mut has_groups) = (BTreeSet::new(), false);
    for rows in files {
        ids.extend(rows.ids.iter().map(String::as_str));
        has_groups |= rows.has_groups;
    }
    check_ids(id, what, &ids, has_groups)
}

/// Checks that exactly one suspect has the requested id, if there are groups that could have it.
///
/// # Errors
/// If none has it or several ids begin with it.
pub fn check_ids(
    id: &SuspectId,
    what: &'static str,
    ids: &BTreeSet<&str>,
    has_groups: bool,
) -> Result<(), QueryError> {
    match ids.len() {
        0 if has_groups => Err(QueryError::NoSuspect { id: id.clone(), what }),
        0 | 1 => Ok(()),
        _ => Err(QueryError::SeveralSuspects {
            id: id.clone(),
            ids: ids.iter().copied().collect::<Vec<_>>().join(", "),
        }),
    }
}
