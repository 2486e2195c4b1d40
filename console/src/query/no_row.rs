//! Why a list has no rows: the filter that lets none pass, and the nearest names that are there.

use std::collections::BTreeSet;

use super::criterion::Criterion;
use super::error::QueryError;
use super::no_match::{NoMatch, Subject};
use super::source::Source;

/// A criterion that was given, and how to take it over alone.
pub(super) struct RowStep<'c, C> {
    pub(super) criterion: Criterion,
    /// Its filter as it was typed; empty where it is no filter on text.
    pub(super) value: &'c str,
    pub(super) take: fn(&C, &mut C),
    /// Takes another value in its place.
    pub(super) set: fn(&mut C, &str),
}

/// Adds the step of a filter on text, if it was given.
macro_rules! filter_step {
    ($steps:ident, $criteria:ident, $criterion:ident, $type:ty, $($field:ident).+) => {
        if let Some(filter) = &$criteria.$($field).+ {
            $steps.push(RowStep {
                criterion: Criterion::$criterion,
                value: filter.text(),
                take: |from, to| to.$($field).+.clone_from(&from.$($field).+),
                set: |to, value| to.$($field).+ = <$type>::new(value).ok(),
            });
        }
    };
}

/// Adds the step of another criterion, if it was given.
macro_rules! other_step {
    ($steps:ident, $criteria:ident, $criterion:ident, $($field:ident).+) => {
        if $criteria.$($field).+.is_some() {
            $steps.push(RowStep {
                criterion: Criterion::$criterion,
                value: "",
                take: |from, to| to.$($field).+.clone_from(&from.$($field).+),
                set: |_, _| (),
            });
        }
    };
}

pub(super) use {filter_step, other_step};

/// How a list is asked why it has no rows.
pub(super) struct List<C, T> {
    pub(super) subject: Subject,
    /// Criteria of which nothing is asked.
    pub(super) start: C,
    /// The criteria that were given, in the order in which they are named where nothing passes.
    pub(super) steps: fn(&C) -> Vec<RowStep<'_, C>>,
    /// The number of rows of an answer.
    pub(super) count: fn(&T) -> usize,
    /// The names that its rows have where a criterion looks.
    pub(super) names: fn(&T, Criterion) -> BTreeSet<String>,
}

impl<C: Clone + PartialEq, T> List<C, T> {
    /// One answer for each trace; where none has rows, each has the reason in its `place`.
    pub(super) fn answers<'a>(
        &self,
        sources: &[Source<'a>],
        criteria: &C,
        place: fn(&mut T) -> &mut Option<NoMatch>,
        answer: impl Fn(&Source<'a>, &C) -> Result<T, QueryError>,
    ) -> Result<Vec<T>, QueryError> {
        let answers = sources.iter().map(|source| answer(source, criteria));
        let answers = answers.collect::<Result<Vec<_>, QueryError>>()?;
        explained(sources, answers, self.count, place, |source| {
            self.no_match(criteria, |criteria| answer(source, criteria))
        })
    }

    /// The criterion that lets none of the rows pass that those in front of it do, with what could be meant; `None`
    /// when there are no rows at all, or some pass.
    pub(super) fn no_match(
        &self,
        criteria: &C,
        answer: impl Fn(&C) -> Result<T, QueryError>,
    ) -> Result<Option<NoMatch>, QueryError> {
        let count = self.count;
        let mut partial = self.start.clone();
        let mut before = answer(&partial)?;
        if count(&before) == 0 {
            return Ok(None);
        }
        for step in (self.steps)(criteria) {
            let passed = partial.clone();
            (step.take)(criteria, &mut partial);
            let left = answer(&partial)?;
            if count(&left) > 0 {
                before = left;
                continue;
            }
            let helps = |value: &str| {
                let mut other = passed.clone();
                (step.set)(&mut other, value);
                Ok(other != passed && count(&answer(&other)?) > 0)
            };
            let names = (self.names)(&before, step.criterion);
            let criterion = (step.criterion, step.value);
            return NoMatch::of_rows(self.subject, criterion, count(&before), names, helps)
                .map(Some);
        }
        Ok(None)
    }
}

/// The answers, one for each trace; where none has rows, each has what `find` says of its trace in its `place`.
pub(super) fn explained<'a, T>(
    sources: &[Source<'a>],
    mut answers: Vec<T>,
    count: fn(&T) -> usize,
    place: fn(&mut T) -> &mut Option<NoMatch>,
    find: impl Fn(&Source<'a>) -> Result<Option<NoMatch>, QueryError>,
) -> Result<Vec<T>, QueryError> {
    if answers.iter().all(|own| count(own) == 0) {
        for (own, source) in answers.iter_mut().zip(sources) {
            let no_match = find(source)?;
            *place(own) =
                no_match.map(|found| found.with_recorded_time(source.trace)).transpose()?;
        }
    }
    Ok(answers)
}
