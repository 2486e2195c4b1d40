//! Why nothing matches: the filter that removed everything, and the nearest names that are there.

use std::collections::BTreeSet;

use handlescope_model::tables::{Events, ExistingHandles, Names, ObjectTypes, ResourceKind};
use handlescope_model::{Trace, TypeId};

use super::context::FileContext;
use super::criteria::ObjectCriteria;
use super::criterion::Criterion;
use super::error::QueryError;
use super::filters;
use super::info::{seconds, trace_info};
use super::steps::{Step, set_value, steps};
use crate::filter::{Filter, ProcessFilter, Wildcard};
use crate::suggest;
use handlescope_model::{ArchiveError, TableRows};

/// Nearest names that are shown at most.
const MOST: usize = 3;

/// Names that are there, but not near, that are shown at most.
const MOST_EXISTING: usize = 8;

/// What filters choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Object,
    Allocation,
    Process,
    Module,
    /// Stacks of a process that differ.
    Stack,
    /// Kinds of events, with their counts.
    EventKind,
    /// Single events.
    Event,
}

/// The filter that removed the last objects of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoMatch {
    pub criterion: Criterion,
    /// Its filter as it was typed; empty where the criterion is not a filter on text.
    pub value: String,
    /// How many of the subject passed the filters in front of it.
    pub before: usize,
    /// What is counted.
    pub subject: Subject,
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
            let passed = partial.clone();
            take(args, &mut partial);
            let left = filters::select(file, &partial)?.objects().len();
            if left == 0 {
                let mut nearest = nearest(file, args, criterion, &value)?;
                helpful(&mut nearest, file, &passed, criterion)?;
                let existing = match nearest.is_empty() {
                    true => existing(file, &passed, criterion, &value)?,
                    false => Vec::new(),
                };
                let subject = Subject::Object;
                let found = Self { criterion, value, before, subject, nearest, existing };
                return found.with_recorded_time(file.trace).map(Some);
            }
            before = left;
        }
        Ok(None)
    }

    /// Whether it is a filter on kinds of allocations that passes some: that none is there may be because they
    /// were not recorded.
    pub fn names_kinds(&self) -> bool {
        let is_kind = matches!(self.criterion, Criterion::Kind | Criterion::Type);
        is_kind
            && Filter::new(&self.value).is_ok_and(|filter| {
                ResourceKind::ALL.iter().any(|kind| filter.accepts(filter.line(kind.name())))
            })
    }

    /// Adds the time of which the trace has the events, where the one that was asked for has none.
    pub(super) fn with_recorded_time(mut self, trace: &Trace) -> Result<Self, QueryError> {
        if self.criterion == Criterion::Time
            && let Some(recorded) = trace_info(trace)?.recorded_ns()
        {
            let (from, to) = (seconds(*recorded.start()), seconds(*recorded.end()));
            self.existing = vec![format!("events from {from} to {to} s")];
        }
        Ok(self)
    }

    /// Why a filter on the owners of so many objects lets nothing pass; `owners` are the names of all. `None` when
    /// there are no objects.
    pub(super) fn of_owners(
        filter: &ProcessFilter,
        before: usize,
        owners: BTreeSet<String>,
    ) -> Option<Self> {
        let value = filter.text();
        let nearest = if is_one_name(value) { like(value, owners.clone()) } else { Vec::new() };
        let existing = if nearest.is_empty() { some(owners) } else { Vec::new() };
        let (criterion, value) = (Criterion::Process, value.to_owned());
        let subject = Subject::Object;
        let found = Self { criterion, value, before, subject, nearest, existing };
        (before > 0).then_some(found)
    }

    /// That a criterion, with its value, lets none of so many allocations pass; `names` are those that are there,
    /// and `helps` says whether something passes with another value.
    pub(super) fn of_allocations(
        criterion: (Criterion, &str),
        before: usize,
        names: BTreeSet<String>,
        helps: impl Fn(&str) -> Result<bool, QueryError>,
    ) -> Result<Self, QueryError> {
        Self::of_rows(Subject::Allocation, criterion, before, names, helps)
    }

    /// The same of any subject.
    pub(super) fn of_rows(
        subject: Subject,
        (criterion, value): (Criterion, &str),
        before: usize,
        names: BTreeSet<String>,
        helps: impl Fn(&str) -> Result<bool, QueryError>,
    ) -> Result<Self, QueryError> {
        let is_of_lines = matches!(
            criterion,
            Criterion::CreateStack
                | Criterion::DestroyStack
                | Criterion::FreeStack
                | Criterion::StackFilter
                | Criterion::CommandLine
                | Criterion::Version
        );
        let similar = match (value.is_empty() || !is_one_name(value), is_of_lines) {
            (true, _) => Vec::new(),
            (false, true) => anywhere(value),
            (false, false) => like(value, names.clone()),
        };
        let mut nearest = Vec::new();
        for value in similar {
            if helps(&value)? {
                nearest.push(value);
            }
        }
        let existing = if nearest.is_empty() { others(names, value) } else { Vec::new() };
        let value = value.to_owned();
        Ok(Self { criterion, value, before, subject, nearest, existing })
    }
}

/// Leaves the values with which something passes: the filters in front leave out what others name.
fn helpful(
    values: &mut Vec<String>,
    file: &FileContext<'_>,
    passed: &ObjectCriteria,
    criterion: Criterion,
) -> Result<(), QueryError> {
    let mut helpful = Vec::with_capacity(values.len());
    for value in values.drain(..) {
        let mut criteria = passed.clone();
        if set_value(criterion, &value, &mut criteria)
            && !filters::select(file, &criteria)?.objects().is_empty()
        {
            helpful.push(value);
        }
    }
    *values = helpful;
    Ok(())
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
        | Criterion::CommandLine => anywhere(value),
        _ => Vec::new(),
    })
}

/// Some names that a criterion knows, of objects that pass those in front of it.
fn existing(
    file: &FileContext<'_>,
    passed: &ObjectCriteria,
    criterion: Criterion,
    value: &str,
) -> Result<Vec<String>, QueryError> {
    let names = match criterion {
        Criterion::Process => creators(file, passed)?,
        Criterion::RelatedProcess => process_names(file, passed.plain_process_names),
        Criterion::Type => {
            let selection = filters::select(file, passed)?;
            let types = selection.objects().iter().map(|own| file.objects.type_id(own.object()));
            let types: BTreeSet<TypeId> = types.collect();
            types.into_iter().map(|own| file.types.get(own).to_owned()).collect()
        }
        _ => BTreeSet::new(),
    };
    Ok(others(names, value))
}

/// The names of the processes that created objects, or else own handles of the rundown.
fn creators(
    file: &FileContext<'_>,
    passed: &ObjectCriteria,
) -> Result<BTreeSet<String>, QueryError> {
    let process = file.trace.values(Events::process)?;
    let owner = file.trace.values(ExistingHandles::process)?;
    let mut processes = BTreeSet::new();
    for object in filters::select(file, passed)?.objects() {
        match object.create() {
            Some(event) => processes.extend(process.get(event.row())),
            None => processes.extend(owner.range(file.objects.existing(object.object()))),
        }
    }
    let known = processes.into_iter().map(|own| file.processes.get(own));
    Ok(known.map(|own| own.shown_name(passed.plain_process_names).to_owned()).collect())
}

/// Some names but the one that failed: other filters may be what leaves it out, so that it does not help.
fn others(mut names: BTreeSet<String>, failed: &str) -> Vec<String> {
    let bare = |name: &str| name.to_lowercase().trim_end_matches(".exe").to_owned();
    let failed = bare(failed);
    names.retain(|name| bare(name) != failed);
    some(names)
}

/// The value with wildcards around, unless it has them.
fn anywhere(value: &str) -> Vec<String> {
    match value.starts_with('*') && value.ends_with('*') {
        true => Vec::new(),
        false => vec![format!("*{}*", value.trim_matches('*'))],
    }
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

/// The value as hexadecimal numbers are compared: its digits may be hexadecimal, or decimal.
fn hexadecimal(value: &str) -> Vec<String> {
    let is_hexadecimal = value.chars().all(|char| char.is_ascii_hexdigit() || char == '*');
    let hexadecimal = (is_hexadecimal && !value.is_empty()).then(|| format!("0x{value}"));
    let decimal = value.parse::<u64>().ok().map(|number| format!("0x{number:X}"));
    hexadecimal.into_iter().chain(decimal).collect()
}
