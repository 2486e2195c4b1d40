//! Why an answer is empty: the criterion that left no row, and the most similar names that exist.

use std::collections::BTreeSet;

use handlescope_model::tables::{Acquisitions, Names, ObjectTypes, ResourceKind};
use handlescope_model::{Trace, TypeId};

use super::context::FileContext;
use super::criteria::{AcquisitionCriteria, ProcessCriteria};
use super::criterion::{Criteria, Criterion, GivenCriterion, Survivors, ValueSyntax};
use super::error::QueryError;
use super::filters;
use super::info::seconds;
use handlescope_model::{ArchiveError, TableRows};
use handlescope_session::filter::{Filter, Wildcard};
use handlescope_session::suggest;

/// Maximum number of similar names shown.
const MAX_SUGGESTIONS: usize = 3;

/// Maximum number of existing but dissimilar names shown.
const MAX_EXISTING: usize = 8;

/// What filters select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListSubject {
    Object,
    Allocation,
    Process,
    Module,
    /// Distinct stacks of a process.
    Stack,
    /// Kinds of events with their counts.
    EventKind,
    /// Single events.
    Event,
}

/// The filter that removed the last rows of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoMatch {
    pub criterion: Criterion,
    /// Text of its filter as typed; empty if it is not a text filter.
    pub value: String,
    /// Number of rows that passed the filters before it.
    pub before: usize,
    /// What is counted.
    pub subject: ListSubject,
    /// Similar names that could have been meant.
    pub nearest: Vec<String>,
    /// Some existing names, if none is similar.
    pub existing: Vec<String>,
}

impl NoMatch {
    /// Finds the first criterion that removes every remaining row, with suggestions; `None` if there are no rows at all
    /// or some pass.
    ///
    /// `names` returns the names of the rows that pass the earlier criteria. `passes` tells whether any row passes
    /// other criteria.
    pub fn new<C: Criteria>(
        subject: ListSubject,
        criteria: &C,
        survivors: &Survivors,
        names: impl FnOnce(&C, Criterion, &str) -> Result<Candidates, QueryError>,
        passes: impl Fn(&C) -> Result<bool, QueryError>,
    ) -> Result<Option<Self>, QueryError> {
        let Some((mut applied, before)) = survivors.exhausted() else { return Ok(None) };
        let failed = applied.pop();
        let mut given = criteria.given().into_iter();
        let Some(GivenCriterion { criterion, value, syntax, set }) =
            given.find(|given| Some(given.criterion) == failed)
        else {
            return Ok(None);
        };
        let passed = criteria.only(&applied).bare();
        let names = names(&passed, criterion, value)?;
        let similar = match value {
            _ if value.is_empty() || !is_one_name(value) => Vec::new(),
            _ => match syntax {
                ValueSyntax::Name => names.similar,
                ValueSyntax::Line => anywhere(value),
                ValueSyntax::Number => hexadecimal(value),
            },
        };
        let mut nearest = Vec::new();
        for text in similar {
            // A name does not help if the earlier criteria exclude its rows.
            let mut alternative = passed.clone();
            set(&mut alternative, Some(&text));
            if alternative != passed && passes(&alternative)? {
                nearest.push(text);
            }
        }
        let existing = if nearest.is_empty() { others(names.existing, value) } else { Vec::new() };
        let value = value.to_owned();
        Ok(Some(Self { criterion, value, before, subject, nearest, existing }))
    }

    /// Explains why no object of a trace passes, given how many each filter left.
    pub fn for_objects(
        file: &FileContext<'_>,
        args: &AcquisitionCriteria,
        survivors: &Survivors,
    ) -> Result<Option<Self>, QueryError> {
        let survivors = as_named(file, args, survivors.clone())?;
        let names = |passed: &_, criterion, value: &_| names(file, passed, criterion, value);
        let no_match = Self::new(ListSubject::Object, args, &survivors, names, |criteria| {
            Ok(!filters::select(file, criteria)?.selection.objects().is_empty())
        })?;
        no_match.map(|no_match| no_match.with_recorded_time(file.trace)).transpose()
    }

    /// Whether it is a filter on kinds of allocations that matches existing kinds: these may be missing only because
    /// they were not recorded.
    pub fn names_kinds(&self) -> bool {
        let is_kind = matches!(self.criterion, Criterion::Kind | Criterion::Type);
        is_kind
            && Filter::new(&self.value).is_ok_and(|filter| {
                ResourceKind::ALL.iter().any(|kind| filter.accepts(filter.line(kind.name())))
            })
    }

    /// Adds the time range that has events, if the requested one has none.
    pub fn with_recorded_time(mut self, trace: &Trace) -> Result<Self, QueryError> {
        if self.criterion == Criterion::MinMaxTime
            && let Some(recorded) = trace.info()?.recorded_ns()
        {
            let (from, to) = (seconds(*recorded.start()), seconds(*recorded.end()));
            self.existing = vec![format!("events from {from} to {to} s")];
        }
        Ok(self)
    }

    /// Explains why no object passes a criterion on owners, given the number of objects and the names of all owners.
    /// `None` if there are no objects.
    pub fn for_owners(
        failed: &GivenCriterion<'_, ProcessCriteria>,
        before: usize,
        owners: BTreeSet<String>,
    ) -> Option<Self> {
        let (criterion, value) = (failed.criterion, failed.value);
        let owners = if criterion == Criterion::Process { owners } else { BTreeSet::new() };
        let nearest = if is_one_name(value) { like(value, owners.clone()) } else { Vec::new() };
        let existing = if nearest.is_empty() { some(owners) } else { Vec::new() };
        let value = value.to_owned();
        let subject = ListSubject::Object;
        let no_match = Self { criterion, value, before, subject, nearest, existing };
        (before > 0).then_some(no_match)
    }
}

/// Candidate names for the value of a criterion.
#[derive(Default)]
pub struct Candidates {
    /// Names most similar to its value.
    similar: Vec<String>,
    /// Names of the rows that the earlier criteria let pass.
    existing: BTreeSet<String>,
}

impl Candidates {
    pub fn new(value: &str, existing: BTreeSet<String>) -> Self {
        Self { similar: like(value, existing.clone()), existing }
    }
}

/// Counts the objects left by each criterion out of those left by the criteria named before it. Some criteria take
/// effect earlier: a filter on event stacks removes events, and others leave only mappings, or none.
fn as_named(
    file: &FileContext<'_>,
    args: &AcquisitionCriteria,
    survivors: Survivors,
) -> Result<Survivors, QueryError> {
    let given: Vec<Criterion> = args.given().iter().map(|given| given.criterion).collect();
    let is_early = |criterion: &Criterion| {
        matches!(
            criterion,
            Criterion::Map
                | Criterion::ObjectName
                | Criterion::Handle
                | Criterion::PtrInMap
                | Criterion::ViewBase
                | Criterion::MinMaxMapSize
                | Criterion::StackFilter
        )
    };
    let last_early = given.iter().rposition(is_early).filter(|index| *index > 0);
    let Some(last_early) = last_early else {
        return Ok(survivors);
    };
    let (earlier, later) = given.split_at(last_early + 1);
    let remaining = earlier.iter().filter_map(|it| survivors.after(*it)).min().unwrap_or(0);
    // If objects remain although fewer were tested, no earlier criterion is the reason and counts are not needed.
    let mode = args.map_mode();
    let is_known = remaining > 0
        && (0..earlier.len())
            .all(|count| [None, mode].contains(&args.only(&earlier[..count]).map_mode()))
        && !earlier.contains(&Criterion::StackFilter);
    let mut counted = Survivors::new(survivors.total);
    if is_known {
        earlier.iter().for_each(|criterion| counted.note(*criterion, remaining));
    } else {
        let args = args.only(&earlier[..last_early]);
        counted = as_named(file, &args, filters::select(file, &args)?.survivors)?;
        counted.note(earlier[last_early], remaining);
    }
    for criterion in later {
        counted.note(*criterion, survivors.after(*criterion).unwrap_or_default());
    }
    Ok(counted)
}

/// Returns the names of objects that a criterion looks at. Names similar to its value may come from any object of the
/// trace.
fn names(
    file: &FileContext<'_>,
    passed: &AcquisitionCriteria,
    criterion: Criterion,
    value: &str,
) -> Result<Candidates, QueryError> {
    let (candidates, existing) = match criterion {
        Criterion::Process => (process_names(file, passed), creators(file, passed)?),
        Criterion::RelatedProcess => (process_names(file, passed), process_names(file, passed)),
        Criterion::Type => {
            let selection = filters::select(file, passed)?.selection;
            let types: BTreeSet<TypeId> = selection
                .objects()
                .iter()
                .map(|selected| file.objects.type_id(selected.object()))
                .collect();
            let existing = types.into_iter().map(|id| file.types.get(id).to_owned()).collect();
            (type_names(file.trace)?, existing)
        }
        Criterion::ObjectName => {
            return Ok(Candidates { similar: object_names(file, value)?, ..Candidates::default() });
        }
        _ => return Ok(Candidates::default()),
    };
    Ok(Candidates { similar: like(value, candidates), existing })
}

/// Returns the names of the processes that created objects, or else own their rundown handles.
fn creators(
    file: &FileContext<'_>,
    passed: &AcquisitionCriteria,
) -> Result<BTreeSet<String>, QueryError> {
    let selection = filters::select(file, passed)?.selection;
    let process = selection.columns(file.trace, &file.objects)?.processes()?;
    let owner = file.trace.values(Acquisitions::process)?;
    let mut processes = BTreeSet::new();
    for object in selection.objects() {
        match object.create(&file.objects.table) {
            Some(event) => processes.extend(process.get(event.row())),
            None => {
                let listed = file.objects.table.listed(object.object());
                processes.extend(listed.filter_map(|row| owner.get(row)));
            }
        }
    }
    Ok(processes
        .into_iter()
        .map(|row| file.processes.get(row))
        .map(|process| process.shown_name(passed.plain_process_names).to_owned())
        .collect())
}

/// Returns some names except the failed one: that one may exist but be excluded by other filters, so it does not help.
fn others(mut names: BTreeSet<String>, failed: &str) -> Vec<String> {
    let normalized = |name: &str| name.to_lowercase().trim_end_matches(".exe").to_owned();
    let failed = normalized(failed);
    names.retain(|name| normalized(name) != failed);
    some(names)
}

/// Returns the value with wildcards at both ends, unless it has them.
fn anywhere(value: &str) -> Vec<String> {
    if value.starts_with('*') && value.ends_with('*') {
        Vec::new()
    } else {
        vec![format!("*{}*", value.trim_matches('*'))]
    }
}

/// Whether a value can be a mistyped name: lists of alternatives and exclusions cannot.
fn is_one_name(value: &str) -> bool {
    !value.contains([';', '!'])
}

fn some(names: BTreeSet<String>) -> Vec<String> {
    names.into_iter().filter(|name| !name.is_empty()).take(MAX_EXISTING).collect()
}

fn process_names(file: &FileContext<'_>, args: &AcquisitionCriteria) -> BTreeSet<String> {
    file.processes
        .rows()
        .iter()
        .map(|process| process.shown_name(args.plain_process_names).to_owned())
        .collect()
}

fn type_names(trace: &Trace) -> Result<BTreeSet<String>, ArchiveError> {
    Ok(ObjectTypes::read(trace)?.rows().map(|row| row.name).collect())
}

/// Returns the value with wildcards if some names contain it, or else the most similar whole names.
fn object_names(file: &FileContext<'_>, value: &str) -> Result<Vec<String>, QueryError> {
    let names = file.trace.values(Names::name)?;
    let text = value.trim_matches('*');
    for pattern in [format!("*{text}"), format!("*{text}*")] {
        let Ok(wildcard) = Wildcard::new(&pattern) else { continue };
        if (0..names.len()).any(|row| wildcard.matches(names.text(row))) {
            return Ok(vec![pattern]);
        }
    }
    // Users type the last component of a path.
    let components = (0..names.len())
        .map(|row| names.text(row))
        .map(|name| name.rsplit(['\\', '/']).next().unwrap_or(name).to_owned());
    Ok(like(value, components.collect()).into_iter().map(|name| format!("*{name}")).collect())
}

/// Returns the names most similar to a value.
fn like(value: &str, mut names: BTreeSet<String>) -> Vec<String> {
    let mut nearest = Vec::new();
    while let Some(name) = suggest::nearest(value, names.iter().map(String::as_str)) {
        let name = name.to_owned();
        names.remove(&name);
        nearest.push(name);
        if nearest.len() == MAX_SUGGESTIONS {
            break;
        }
    }
    nearest
}

/// Returns the value as hexadecimal numbers are written; its digits may be hexadecimal or decimal.
fn hexadecimal(value: &str) -> Vec<String> {
    let is_hexadecimal = value.chars().all(|char| char.is_ascii_hexdigit() || char == '*');
    let hexadecimal = (is_hexadecimal && !value.is_empty()).then(|| format!("0x{value}"));
    let decimal = value.parse::<u64>().ok().map(|number| format!("0x{number:X}"));
    hexadecimal.into_iter().chain(decimal).collect()
}
