//! Why a list has no rows: the filter that lets none pass, and the nearest names that are there.

use std::collections::BTreeSet;

use super::criterion::Criterion;
use super::error::QueryError;
use super::no_match::{NoMatch, Subject};

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

/// What a list is asked.
pub(super) struct List<A, N, S, F> {
    pub(super) subject: Subject,
    /// The answer for criteria.
    pub(super) answer: A,
    /// The number of its rows.
    pub(super) count: N,
    /// The names that its rows have where a criterion looks.
    pub(super) names: S,
    /// Criteria of which nothing is asked.
    pub(super) start: F,
}

/// The criterion that lets none of the rows pass that those in front of it do, with what could be meant; `None` when
/// there are no rows at all, or some pass.
pub(super) fn find<C, T, A, N, S>(
    criteria: &C,
    steps: Vec<RowStep<'_, C>>,
    List { subject, answer, count, names, start }: List<A, N, S, C>,
) -> Result<Option<NoMatch>, QueryError>
where
    C: Clone + PartialEq,
    A: Fn(&C) -> Result<T, QueryError>,
    N: Fn(&T) -> usize,
    S: Fn(&T, Criterion) -> BTreeSet<String>,
{
    let mut partial = start;
    let mut before = answer(&partial)?;
    if count(&before) == 0 {
        return Ok(None);
    }
    for step in steps {
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
        let names = names(&before, step.criterion);
        let criterion = (step.criterion, step.value);
        return NoMatch::of_rows(subject, criterion, count(&before), names, helps).map(Some);
    }
    Ok(None)
}
