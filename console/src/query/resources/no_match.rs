//! Why no allocation passes: the filter that lets none pass, and the nearest names that are there.

use std::collections::BTreeSet;

use handlescope_model::AllocatorIdx;
use handlescope_model::tables::Allocator;

use super::chosen::{Chosen, Tables, lost};
use super::tables::{AllocatorList, MissTable, ResourceTable, kind_name};
use crate::filter::{Filter, ProcessFilter};
use crate::query::context::FileContext;
use crate::query::criteria::{ResourceCriteria, ResourceOptions};
use crate::query::criterion::Criterion;
use crate::query::error::QueryError;
use crate::query::frame_names::Frames;
use crate::query::no_match::NoMatch;
use crate::values::SuspectId;

/// A criterion, which can be taken over alone.
struct Step<'a> {
    criterion: Criterion,
    /// Its filter as it was typed; empty where it is not a filter on text.
    value: &'a str,
    take: fn(&ResourceCriteria, &mut ResourceCriteria),
    /// Takes another value in its place.
    set: fn(&mut ResourceCriteria, &str),
    /// What it is compared with, of an allocator.
    name: fn(&Tables<'_>, &Allocator) -> Option<String>,
}

/// The criterion that lets none of the allocations pass that those in front of it do, with what could be meant;
/// `None` when the trace has no allocations, or some pass.
pub(super) fn find(
    tables: &Tables<'_>,
    criteria: &ResourceCriteria,
) -> Result<Option<NoMatch>, QueryError> {
    let mut partial = ResourceCriteria { options: criteria.options, ..Default::default() };
    let mut before = count(tables, &partial)?;
    if before == 0 {
        return Ok(None);
    }
    for step in steps(criteria) {
        let passed = partial.clone();
        (step.take)(criteria, &mut partial);
        let left = count(tables, &partial)?;
        if left > 0 {
            before = left;
            continue;
        }
        let rows = Chosen::new(tables, &passed)?.resources()?;
        let allocators = rows.iter().filter_map(|row| tables.resources.allocator.get(row.row()));
        let allocators: BTreeSet<AllocatorIdx> = allocators.collect();
        let allocators = allocators.iter().filter_map(|row| tables.allocators.get(*row));
        let names = allocators.filter_map(|own| (step.name)(tables, own)).collect();
        // What others of the filters leave out does not help.
        let helps = |value: &str| {
            let mut other = passed.clone();
            (step.set)(&mut other, value);
            Ok(other != passed && count(tables, &other)? > 0)
        };
        let criterion = (step.criterion, step.value);
        return NoMatch::of_allocations(criterion, before, names, helps).map(Some);
    }
    Ok(None)
}

/// The same of a trace whose tables were loaded already.
///
/// # Errors
/// When the archive is damaged, or the query is cancelled.
pub(in crate::query) fn no_allocation(
    file: &FileContext<'_>,
    frames: &Frames<'_>,
    (allocators, resources): (&AllocatorList, &ResourceTable),
    criteria: &ResourceCriteria,
) -> Result<Option<NoMatch>, QueryError> {
    let misses = MissTable::load(file.trace)?;
    let (processes, cancel) = (&file.processes, file.cancel);
    let suspect = file.suspect_allocations.as_ref();
    let tables =
        Tables { allocators, resources, misses: &misses, processes, frames, suspect, cancel };
    find(&tables, criteria)
}

/// How many allocations pass.
fn count(tables: &Tables<'_>, criteria: &ResourceCriteria) -> Result<usize, QueryError> {
    let mut rows = Chosen::new(tables, criteria)?.resources()?;
    if criteria.is_of_leaks() {
        rows = lost(tables.resources, &rows, criteria);
    }
    // Parts are not allocations, but it may be that only these pass.
    let whole = rows.iter().filter(|row| !tables.resources.is_further_part(**row)).count();
    Ok(whole.max(usize::from(!rows.is_empty())))
}

/// The criteria that were given, in the order of the filters, but those that may load symbols last.
fn steps(criteria: &ResourceCriteria) -> Vec<Step<'_>> {
    let ResourceOptions { kind, free_stack } = criteria.options;
    let no_name = |_: &Tables<'_>, _: &Allocator| None;
    let mut steps = Vec::new();
    macro_rules! filter {
        ($field:ident, $type:ty, $criterion:expr, $name:expr) => {
            if let Some(filter) = &criteria.$field {
                steps.push(Step {
                    criterion: $criterion,
                    value: filter.text(),
                    take: |from, to| to.$field.clone_from(&from.$field),
                    set: |to, value| to.$field = <$type>::new(value).ok(),
                    name: $name,
                });
            }
        };
    }
    macro_rules! other {
        ($criterion:expr, $take:expr) => {
            if let Some(criterion) = $criterion {
                let take: fn(&ResourceCriteria, &mut ResourceCriteria) = $take;
                steps.push(Step { criterion, value: "", take, set: |_, _| (), name: no_name });
            }
        };
    }
    let kind_of = |_: &Tables<'_>, own: &Allocator| Some(kind_name(own.kind).to_owned());
    let process_of = |tables: &Tables<'_>, own: &Allocator| {
        let process = tables.processes.known_or_pid(own.process, own.pid.unwrap_or_default());
        Some(process.shown_name(false).to_owned())
    };
    filter!(kind, Filter, kind, kind_of);
    filter!(allocator, Filter, Criterion::Allocator, |_, own| Some(own.name.clone()));
    filter!(process, ProcessFilter, Criterion::Process, process_of);
    filter!(suspect, SuspectId, Criterion::Suspect, no_name);
    other!(Criterion::of_leaks(criteria.leak, criteria.leak_at_exit), |from, to| {
        (to.leak, to.leak_at_exit) = (from.leak, from.leak_at_exit);
    });
    other!(criteria.time.as_ref().map(|_| Criterion::Time), |from, to| to.time = from.time);
    other!(criteria.size.as_ref().map(|_| Criterion::Size), |from, to| to.size = from.size);
    filter!(create_stack, Filter, Criterion::CreateStack, no_name);
    filter!(free_stack, Filter, free_stack, no_name);
    steps
}
