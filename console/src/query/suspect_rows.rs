//! What of a trace a suspect acquired, where one is asked for by its id.

use std::collections::BTreeSet;

use super::error::QueryError;
use crate::values::SuspectId;

/// The rows of what suspects acquired whose ids begin as the one that is asked for.
#[derive(Debug)]
pub(crate) struct SuspectRows {
    /// By row of the events that open and close handles, or of the allocations.
    has: Vec<bool>,
    /// The ids of these suspects, each once.
    ids: BTreeSet<SuspectId>,
    /// Whether the trace has any groups that lose something.
    has_others: bool,
}

impl SuspectRows {
    /// None, of a table with so many rows.
    pub(super) fn new(height: usize) -> Self {
        Self { has: vec![false; height], ids: BTreeSet::new(), has_others: false }
    }

    /// Says that there are groups to choose from.
    pub(super) fn note_others(&mut self, are_there: bool) {
        self.has_others |= are_there;
    }

    /// Adds what a suspect acquired.
    pub(super) fn add(&mut self, id: SuspectId, rows: impl IntoIterator<Item = usize>) {
        self.ids.insert(id);
        for row in rows {
            if let Some(has) = self.has.get_mut(row) {
                *has = true;
            }
        }
    }

    pub(super) fn has(&self, row: usize) -> bool {
        self.has.get(row).copied().unwrap_or_default()
    }
}

/// Refuses an id that several suspects of some traces have, or none, where there are any; `what` these lost.
pub(super) fn check<'a>(
    id: &SuspectId,
    what: &'static str,
    found: impl Iterator<Item = &'a SuspectRows>,
) -> Result<(), QueryError> {
    let (mut ids, mut has_others) = (BTreeSet::new(), false);
    for rows in found {
        ids.extend(&rows.ids);
        has_others |= rows.has_others;
    }
    match ids.len() {
        0 if has_others => Err(QueryError::NoSuspect { id: id.clone(), what }),
        0 | 1 => Ok(()),
        _ => Err(QueryError::SeveralSuspects {
            id: id.clone(),
            ids: ids.into_iter().map(SuspectId::text).collect::<Vec<_>>().join(", "),
        }),
    }
}
