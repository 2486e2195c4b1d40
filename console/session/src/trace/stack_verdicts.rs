//! Caches verdicts of filters on a trace's stacks for the next query.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use handlescope_model::StackIdx;
use handlescope_model::guard::lock;
use rayon::prelude::*;

use crate::filter::Filter;

/// A set of rows of the stacks table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackSet(Vec<bool>);

impl StackSet {
    /// Creates the empty set over a table of `height` stacks.
    pub fn new(height: usize) -> Self {
        Self(vec![false; height])
    }

    /// Adds the stack of an event, if it has one.
    pub fn add(&mut self, stack: Option<StackIdx>) {
        if let Some(slot) = stack.and_then(|stack| self.0.get_mut(stack.row())) {
            *slot = true;
        }
    }

    /// Adds the members of another set over the same table.
    pub fn add_all(&mut self, further: &Self) {
        self.0.iter_mut().zip(&further.0).for_each(|(member, further)| *member |= further);
    }

    /// Returns the members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = StackIdx> + '_ {
        (0..).map(StackIdx).zip(&self.0).filter(|&(_, &member)| member).map(|(stack, _)| stack)
    }

    /// Returns the members that pass; all threads take part in the test.
    pub fn par_filter(&self, passes: impl Fn(StackIdx) -> bool + Sync) -> Self {
        let members = self.0.par_iter().enumerate();
        Self(members.map(|(row, &member)| member && passes(StackIdx::from_row(row))).collect())
    }

    pub fn has(&self, stack: StackIdx) -> bool {
        self.0.get(stack.row()).copied().unwrap_or_default()
    }
}

/// Verdicts of a filter on some stacks.
#[derive(Debug)]
pub struct StackVerdicts {
    /// The stacks that pass.
    pub passed: StackSet,
    /// Whether events without stack pass.
    pub without_stack: bool,
    /// Modules without function names, so that no filter can match there.
    pub needs_symbols: Vec<String>,
}

impl StackVerdicts {
    /// Whether an event with this stack passes.
    pub fn passes(&self, stack: Option<StackIdx>) -> bool {
        stack.map_or(self.without_stack, |stack| self.passed.has(stack))
    }
}

/// Number of filters with kept verdicts; each takes two bytes per stack, and there are millions of stacks.
const KEPT: usize = 4;

/// Verdicts of the latest filters and the stacks they were asked for, the latest last. Verdicts on a larger set would
/// do for a smaller one, but would not name the right modules that need symbols.
#[derive(Debug, Default)]
pub struct VerdictCache(Mutex<VecDeque<KeptVerdicts>>);

#[derive(Debug)]
struct KeptVerdicts {
    filter: Filter,
    stacks: StackSet,
    verdicts: Arc<StackVerdicts>,
}

impl VerdictCache {
    /// Finds the verdicts of a filter on exactly these stacks.
    pub fn find(&self, filter: &Filter, stacks: &StackSet) -> Option<Arc<StackVerdicts>> {
        let mut kept = lock(&self.0);
        let at = kept.iter().position(|kept| kept.filter == *filter && kept.stacks == *stacks)?;
        let latest = kept.remove(at)?;
        let verdicts = Arc::clone(&latest.verdicts);
        kept.push_back(latest);
        Some(verdicts)
    }

    /// Stores verdicts; the least recently used ones are dropped.
    pub fn keep(
        &self,
        filter: &Filter,
        stacks: &StackSet,
        verdicts: StackVerdicts,
    ) -> Arc<StackVerdicts> {
        let verdicts = Arc::new(verdicts);
        let (filter, stacks) = (filter.clone(), stacks.clone());
        let mut kept = lock(&self.0);
        kept.push_back(KeptVerdicts { filter, stacks, verdicts: Arc::clone(&verdicts) });
        if kept.len() > KEPT {
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

    fn keep(cache: &VerdictCache, filter: &str, stacks: &[u32], passed: &[u32]) {
        let (passed, needs_symbols) = (set(passed), Vec::new());
        let verdicts = StackVerdicts { passed, without_stack: false, needs_symbols };
        cache.keep(&Filter::new(filter).unwrap(), &set(stacks), verdicts);
    }

    fn find(cache: &VerdictCache, filter: &str, stacks: &[u32]) -> Option<Arc<StackVerdicts>> {
        cache.find(&Filter::new(filter).unwrap(), &set(stacks))
    }

    #[test]
    fn verdicts_are_found_by_their_filter_and_stacks() {
        let cache = VerdictCache::default();
        keep(&cache, "*a*", &[1, 2, 3], &[2, 3]);
        let known = find(&cache, "*a*", &[1, 2, 3]).unwrap();
        let passes = [None, Some(1), Some(3), Some(8), Some(99)];
        let passes = passes.map(|row| known.passes(row.map(StackIdx)));
        assert_eq!(passes, [false, false, true, false, false]);
        assert!(find(&cache, "*b*", &[1, 2, 3]).is_none(), "another filter");
        for stacks in [&[1, 2][..], &[1, 2, 3, 4]] {
            assert!(find(&cache, "*a*", stacks).is_none(), "{stacks:?}");
        }
    }

    #[test]
    fn the_latest_verdicts_are_kept() {
        let cache = VerdictCache::default();
        for filter in ["*a*", "*b*", "*c*", "*d*"] {
            keep(&cache, filter, &[1], &[]);
        }
        assert!(find(&cache, "*a*", &[1]).is_some());
        keep(&cache, "*e*", &[1], &[]);
        let kept = ["*a*", "*b*", "*c*", "*d*", "*e*"].map(|filter| find(&cache, filter, &[1]));
        assert_eq!(kept.map(|kept| kept.is_some()), [true, false, true, true, true]);
    }
}
