//! Lists: one answer for each trace, with the reason if no trace has any rows.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use handlescope_model::tables::TraceInfo;

use super::context::Source;
use super::criterion::{Criteria, Criterion, Survivors};
use super::error::QueryError;
use super::no_match::{Candidates, ListSubject, NoMatch};

/// What a list says about one trace.
pub struct ListAnswer<'a, T> {
    /// The file as the user named it.
    pub path: &'a Path,
    /// Number of the trace in the session.
    pub index: usize,
    /// What the trace says about itself.
    pub info: Arc<TraceInfo>,
    /// Reason for an empty list; `None` if something passed in this trace or another.
    pub no_match: Option<NoMatch>,
    pub list: T,
}

impl<'a, T> ListAnswer<'a, T> {
    pub fn new(source: &Source<'a>, list: T) -> Result<Self, QueryError> {
        let (path, index, info) = (source.path, source.index, source.trace.info()?);
        Ok(Self { path, index, info, no_match: None, list })
    }
}

/// Rows of a trace that pass criteria.
pub trait FilteredList {
    const SUBJECT: ListSubject;

    /// Returns the names of its rows that a criterion looks at.
    fn names(&self, criterion: Criterion) -> BTreeSet<String>;
}

/// Returns one answer for each trace; if no list has rows, each answer gets the reason.
pub fn list_answers<'a, T: FilteredList, C: Criteria>(
    sources: &[Source<'a>],
    criteria: &C,
    list: impl Fn(&Source<'a>, &C) -> Result<(T, Survivors), QueryError>,
) -> Result<Vec<ListAnswer<'a, T>>, QueryError> {
    explained(
        sources,
        |source| list(source, criteria),
        |source, survivors| {
            let names = |passed: &C, criterion, value: &_| {
                Ok(Candidates::new(value, list(source, passed)?.0.names(criterion)))
            };
            NoMatch::new(T::SUBJECT, criteria, survivors, names, |criteria| {
                Ok(!list(source, criteria)?.1.are_none())
            })
        },
    )
}

/// Returns one answer for each trace; if no list has rows, each answer gets the reason that `find` returns.
pub fn explained<'a, T>(
    sources: &[Source<'a>],
    list: impl Fn(&Source<'a>) -> Result<(T, Survivors), QueryError>,
    find: impl Fn(&Source<'a>, &Survivors) -> Result<Option<NoMatch>, QueryError>,
) -> Result<Vec<ListAnswer<'a, T>>, QueryError> {
    let mut answers = Vec::new();
    for source in sources {
        let (list, survivors) = list(source)?;
        answers.push((ListAnswer::new(source, list)?, survivors));
    }
    if answers.iter().all(|(_, survivors)| survivors.are_none()) {
        for ((answer, survivors), source) in answers.iter_mut().zip(sources) {
            let no_match = find(source, survivors)?;
            answer.no_match =
                no_match.map(|found| found.with_recorded_time(source.trace)).transpose()?;
        }
    }
    Ok(answers.into_iter().map(|(answer, _)| answer).collect())
}
