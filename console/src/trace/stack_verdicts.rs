//! Verdicts of filters on the stacks of a trace, kept for the next query.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use handlescope_model::StackIdx;
use handlescope_model::guard::lock;
use rayon::prelude::*;

use crate::filter::Filter;

/// A set of rows of the stacks table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StackSet(Vec<bool>);

impl StackSet {
    /// The empty set over a table of `height` stacks.
    pub(crate) fn new(height: usize) -> Self {
        Self(vec![false; height])
    }

    /// Adds the stack of an event, if it has one.
    pub(crate) fn add(&mut self, stack: Option<StackIdx>) {
        if let Some(slot) = stack.and_then(|stack| self.0.get_mut(stack.row())) {
            *slot = true;
        }
    }

    /// Adds the members of a further set over the same table.
    pub(crate) fn add_all(&mut self, further: &Self) {
        self.0.iter_mut().zip(&further.0).for_each(|(member, further)| *member |= further);
    }

    /// The members, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = StackIdx> + '_ {
        (0..).map(StackIdx).zip(&self.0).filter(|&(_, &member)| member).map(|(stack, _)| stack)
    }

    /// The members that pass; tested by all threads.
    pub(crate) fn par_filter(&self, passes: impl Fn(StackIdx) -> bool + Sync) -> Self {
        let members = self.0.par_iter().enumerate();
        Self(members.map(|(row, &member)| member && passes(StackIdx::of(row))).collect())
    }

    fn has(&self, stack: StackIdx) -> bool {
        self.0.get(stack.row()).copied().unwrap_or_default()
    }

    /// Whether all members are those of a set over the same table.
    fn is_subset(&self, superset: &Self) -> bool {
        let mut members = self.0.iter().zip(&superset.0);
        self.0.len() == superset.0.len() && members.all(|(member, superset)| member <= superset)
    }
}

/// Verdicts of a filter on some stacks.
#[derive(Debug)]
pub(crate) struct StackVerdicts {
    pub(crate) filter: Filter,
    /// The stacks that were judged.
    pub(crate) judged: StackSet,
    /// The judged stacks that pass.
    pub(crate) passed: StackSet,
    /// Whether events without stack pass.
    pub(crate) without_stack: bool,
    /// Modules of judged stacks whose functions have no names, so that no filter can match them.
    pub(crate) needs_symbols: Vec<String>,
}

impl StackVerdicts {
    /// The verdicts of a filter that every text passes.
    pub(crate) fn everything(filter: &Filter, stacks: &StackSet) -> Self {
        Self {
            filter: filter.clone(),
            judged: stacks.clone(),
            passed: stacks.clone(),
            without_stack: true,
            needs_symbols: Vec::new(),
        }
    }

    /// Whether an event with this stack passes.
    pub(crate) fn passes(&self, stack: Option<StackIdx>) -> bool {
        stack.map_or(self.without_stack, |stack| self.passed.has(stack))
    }

    /// Whether a query gets the same of these verdicts as of its own ones.
    fn serves(&self, filter: &Filter, stacks: &StackSet) -> bool {
        // Modules without names are only those of the stacks that were asked for.
        let is_judged = match self.needs_symbols.is_empty() {
            true => stacks.is_subset(&self.judged),
            false => *stacks == self.judged,
        };
        is_judged && self.filter == *filter
    }
}

/// Filters whose verdicts are kept: two bytes each for millions of stacks.
const KEPT_FILTERS: usize = 4;

/// The verdicts of the latest filters, the latest last.
#[derive(Debug, Default)]
pub(crate) struct VerdictCache(Mutex<VecDeque<Arc<StackVerdicts>>>);

impl VerdictCache {
    /// Verdicts of a filter on these stacks.
    pub(crate) fn find(&self, filter: &Filter, stacks: &StackSet) -> Option<Arc<StackVerdicts>> {
        let mut kept = lock(&self.0);
        let at = kept.iter().position(|verdicts| verdicts.serves(filter, stacks))?;
        let verdicts = kept.remove(at)?;
        kept.push_back(Arc::clone(&verdicts));
        Some(verdicts)
    }

    /// Keeps verdicts, instead of those that have not been used for the longest time.
    pub(crate) fn keep(&self, verdicts: StackVerdicts) -> Arc<StackVerdicts> {
        let verdicts = Arc::new(verdicts);
        let mut kept = lock(&self.0);
        kept.push_back(Arc::clone(&verdicts));
        if kept.len() > KEPT_FILTERS {
            kept.pop_front();
        }
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rows: &[u32]) -> StackSet {
        let mut stacks = StackSet::new(9);
        rows.iter().for_each(|row| stacks.add(Some(StackIdx(*row))));
        stacks
    }

    fn verdicts(filter: &str, judged: &[u32], needs_symbols: &[&str]) -> StackVerdicts {
        StackVerdicts {
            filter: Filter::new(filter).unwrap(),
            judged: set(judged),
            passed: set(&judged[1..]),
            without_stack: false,
            needs_symbols: needs_symbols.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn verdicts_serve_the_same_filter_on_no_further_stacks() {
        let cache = VerdictCache::default();
        cache.keep(verdicts("*a*", &[1, 2, 3], &[]));
        let find = |filter, stacks: &[u32]| {
            cache.find(&Filter::new(filter).unwrap(), &set(stacks)).is_some()
        };
        assert!(find("*a*", &[1, 2, 3]) && find("*a*", &[3]) && find("*a*", &[]));
        assert!(!find("*a*", &[3, 4]), "stack 4 was not judged");
        assert!(!find("*b*", &[3]), "another filter");
        let known = cache.find(&Filter::new("*a*").unwrap(), &set(&[1, 3])).unwrap();
        let passes = [None, Some(1), Some(3), Some(8), Some(99)];
        assert_eq!(
            passes.map(|row| known.passes(row.map(StackIdx))),
            [false, false, true, false, false]
        );
    }

    #[test]
    fn where_symbols_are_missing_the_stacks_must_be_the_same() {
        let cache = VerdictCache::default();
        cache.keep(verdicts("*a*", &[1, 2, 3], &["app.exe"]));
        let find =
            |stacks: &[u32]| cache.find(&Filter::new("*a*").unwrap(), &set(stacks)).is_some();
        assert!(find(&[1, 2, 3]));
        assert!(!find(&[3]), "app.exe may have no frame there");
    }

    #[test]
    fn the_latest_filters_are_kept() {
        let cache = VerdictCache::default();
        let find = |filter| cache.find(&Filter::new(filter).unwrap(), &set(&[1])).is_some();
        for filter in ["*a*", "*b*", "*c*", "*d*"] {
            cache.keep(verdicts(filter, &[1], &[]));
        }
        assert!(find("*a*"));
        cache.keep(verdicts("*e*", &[1], &[]));
        assert_eq!(["*a*", "*b*", "*c*", "*d*", "*e*"].map(find), [true, false, true, true, true]);
    }
}
