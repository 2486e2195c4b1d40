//! Why nothing matches: the filter that removed everything, and the nearest names that are there.

use std::collections::BTreeSet;

use handlescope_model::Trace;
use handlescope_model::tables::{Names, ObjectTypes};

use super::context::FileContext;
use super::criteria::ObjectCriteria;
use super::criterion::{Criterion, Step, steps};
use super::error::QueryError;
use super::filters;
use crate::filter::{Filter, ProcessFilter, Wildcard};
use crate::suggest;
use handlescope_model::{ArchiveError, TableRows};

/// Nearest names that are shown at most.
const MOST: usize = 3;

/// Names that are there, but not near, that are shown at most.
const MOST_EXISTING: usize = 8;

/// The filter that removed the last objects of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoMatch {
    pub criterion: Criterion,
    /// Its filter as it was typed; empty where the criterion is no filter on text.
    pub value: String,
    /// How many objects, or allocations, passed the filters in front of it.
    pub before: usize,
    /// Whether they are allocations.
    pub is_of_allocations: bool,
    /// What could have been meant instead of the value.
    pub nearest: Vec<String>,
    /// When nothing is near, some of the names that are there.
    pub existing: Vec<String>,
}

impl NoMatch {
    /// Finds out why criteria let nothing pass: they are applied one after the other until nothing
    /// is left. `None` when the trace has no objects, or some object passes.
    pub(crate) fn find(
        file: &FileContext<'_>,
        args: &ObjectCriteria,
    ) -> Result<Option<Self>, QueryError> {
        let mut partial = ObjectCriteria {
            plain_process_names: args.plain_process_names,
            ..ObjectCriteria::default()
        };
        let mut before = file.objects.len();
        if before == 0 {
            return Ok(None);
        }
        for Step { criterion, value, take } in steps(args) {
            take(args, &mut partial);
            let left = filters::select(file, &partial)?.objects().len();
            if left == 0 {
                let nearest = nearest(file, args, criterion, &value)?;
                let existing =
                    if nearest.is_empty() { existing(file, args, criterion)? } else { Vec::new() };
                let is_of_allocations = false;
                let found = Self { criterion, value, before, is_of_allocations, nearest, existing };
                return Ok(Some(found));
            }
            before = left;
        }
        Ok(None)
    }

    /// Why a filter on the owners of handles, or allocations, lets nothing pass; `owners` are the names of all, of so
    /// many. `None` when there are none.
    pub(super) fn of_owners(
        filter: &ProcessFilter,
        (before, is_of_allocations): (usize, bool),
        owners: BTreeSet<String>,
    ) -> Option<Self> {
        let value = filter.text();
        let nearest = if is_one_name(value) { like(value, owners.clone()) } else { Vec::new() };
        let existing = if nearest.is_empty() { some(owners) } else { Vec::new() };
        let (criterion, value) = (Criterion::Process, value.to_owned());
        let found = Self { criterion, value, before, is_of_allocations, nearest, existing };
        (before > 0).then_some(found)
    }

    /// That a filter on kinds lets none of so many allocations pass.
    pub(super) fn of_kinds(filter: &Filter, before: usize, kinds: BTreeSet<String>) -> Self {
        let (value, existing) = (filter.text().to_owned(), some(kinds));
        let (criterion, nearest) = (Criterion::Type, Vec::new());
        Self { criterion, value, before, is_of_allocations: true, nearest, existing }
    }
}

/// What a value could have meant, going by the names that are in the trace.
fn nearest(
    file: &FileContext<'_>,
    args: &ObjectCriteria,
    criterion: Criterion,
    value: &str,
) -> Result<Vec<String>, QueryError> {
    if value.is_empty() || !is_one_name(value) {
        return Ok(Vec::new());
    }
    Ok(match criterion {
        Criterion::Process | Criterion::RelatedProcess => {
            processes(file, value, args.plain_process_names)
        }
        Criterion::Type => like(value, type_names(file.trace)?),
        Criterion::ObjectName => object_names(file, value)?,
        Criterion::Handle | Criterion::Object | Criterion::ViewBase => hexadecimal(value),
        Criterion::CreateStack
        | Criterion::DestroyStack
        | Criterion::StackFilter
        | Criterion::CommandLine
            if !(value.starts_with('*') && value.ends_with('*')) =>
        {
            vec![format!("*{}*", value.trim_matches('*'))]
        }
        _ => Vec::new(),
    })
}

/// Some names that a criterion knows.
fn existing(
    file: &FileContext<'_>,
    args: &ObjectCriteria,
    criterion: Criterion,
) -> Result<Vec<String>, QueryError> {
    Ok(some(match criterion {
        Criterion::Process | Criterion::RelatedProcess => {
            process_names(file, args.plain_process_names)
        }
        Criterion::Type => type_names(file.trace)?,
        _ => BTreeSet::new(),
    }))
}

/// A list of alternatives, or an exclusion, is not a mistyped name.
fn is_one_name(value: &str) -> bool {
    !value.contains([';', '!'])
}

fn some(names: BTreeSet<String>) -> Vec<String> {
    names.into_iter().filter(|name| !name.is_empty()).take(MOST_EXISTING).collect()
}

fn processes(file: &FileContext<'_>, value: &str, plain: bool) -> Vec<String> {
    like(value, process_names(file, plain))
}

fn process_names(file: &FileContext<'_>, plain: bool) -> BTreeSet<String> {
    file.processes.rows().iter().map(|process| process.shown_name(plain).to_owned()).collect()
}

fn type_names(trace: &Trace) -> Result<BTreeSet<String>, ArchiveError> {
    Ok(ObjectTypes::read(trace)?.rows().map(|row| row.name).collect())
}

/// Names with wildcards around, if some contain the value; else the nearest whole name.
fn object_names(file: &FileContext<'_>, value: &str) -> Result<Vec<String>, QueryError> {
    let names = file.trace.values(Names::name)?;
    let bare = value.trim_matches('*');
    for pattern in [format!("*{bare}"), format!("*{bare}*")] {
        let Ok(wildcard) = Wildcard::new(&pattern) else { continue };
        if (0..names.len()).any(|row| wildcard.matches(names.text(row))) {
            return Ok(vec![pattern]);
        }
    }
    // The last part of a path is what people type.
    let last = |name: &str| name.rsplit(['\\', '/']).next().unwrap_or(name).to_owned();
    let parts: BTreeSet<String> = (0..names.len()).map(|row| last(names.text(row))).collect();
    Ok(like(value, parts).into_iter().map(|name| format!("*{name}")).collect())
}

/// The names most like a value.
fn like(value: &str, mut names: BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(name) = suggest::nearest(value, names.iter().map(String::as_str)) {
        let name = name.to_owned();
        names.remove(&name);
        found.push(name);
        if found.len() == MOST {
            break;
        }
    }
    found
}

/// The value as hexadecimal numbers are compared.
fn hexadecimal(value: &str) -> Vec<String> {
    let is_hexadecimal = value.chars().all(|char| char.is_ascii_hexdigit() || char == '*');
    if is_hexadecimal && !value.is_empty() { vec![format!("0x{value}")] } else { Vec::new() }
}
