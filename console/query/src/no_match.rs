//! Reason for an empty answer: the criterion that left no row, and the nearest names that exist.

use std::collections::BTreeSet;

use handlescope_model::tables::{Acquisitions, Names, ObjectTypes, ResourceKind};
use handlescope_model::{Trace, TypeId};

use super::context::FileContext;
use super::context::Source;
use super::criteria::{Effect, ObjectCriteria};
use super::criterion::{Criteria, Criterion, Given, Survivors, Syntax};
use super::error::QueryError;
use super::filters;
use super::info::seconds;
use handlescope_model::{ArchiveError, TableRows};
use handlescope_session::filter::{Filter, Wildcard};
use handlescope_session::suggest;

/// Nearest names that are shown at most.
const MAX_SUGGESTIONS: usize = 3;

/// Names that are there, but not near, that are shown at most.
const MAX_EXISTING: usize = 8;

/// Subject that filters choose.
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
    /// Text of its filter as typed; empty where the criterion is not a text filter.
    pub value: String,
    /// Number of rows of the subject that passed the filters in front of it.
    pub before: usize,
    /// Subject that is counted.
    pub subject: Subject,
    /// Names that could have been meant instead of the value.
    pub nearest: Vec<String>,
    /// Some of the names that exist, when none is near.
    pub existing: Vec<String>,
}

impl NoMatch {
    /// The first criterion that lets none of the rows pass that those in front of it do, with what could be meant;
    /// `None` when there are no rows at all, or some pass.
    ///
    /// `names` returns the names of the rows that pass the previous criteria, and `passes` whether any row passes other
    /// criteria.
    pub fn of<C: Criteria>(
        subject: Subject,
        criteria: &C,
        survivors: &Survivors,
        names: impl FnOnce(&C, Criterion, &str) -> Result<Candidates, QueryError>,
        passes: impl Fn(&C) -> Result<bool, QueryError>,
    ) -> Result<Option<Self>, QueryError> {
        let mut before = survivors.total;
        let mut given = criteria.given().into_iter().skip_while(|given| {
            let after = survivors.after(given.criterion).unwrap_or(before);
            let passed = before == 0 || after > 0;
            before = if passed { after } else { before };
            passed
        });
        let Some(Given { criterion, value, syntax, set, .. }) = given.next() else {
            return Ok(None);
        };
        let passed = criteria.before(criterion).bare();
        let names = names(&passed, criterion, value)?;
        let similar = match value {
            _ if value.is_empty() || !is_one_name(value) => Vec::new(),
            _ => match syntax {
                Syntax::Name => names.similar,
                Syntax::Line => anywhere(value),
                Syntax::Number => hexadecimal(value),
            },
        };
        let mut nearest = Vec::new();
        for text in similar {
            // A name whose rows the previous criteria exclude does not help.
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

    /// Reason why no object of a trace passes, given how many its filters left.
    pub fn of_objects(
        file: &FileContext<'_>,
        args: &ObjectCriteria,
        survivors: &Survivors,
    ) -> Result<Option<Self>, QueryError> {
        let survivors = as_named(file, args, survivors.clone())?;
        let names = |passed: &_, criterion, value: &_| names(file, passed, criterion, value);
        let no_match = Self::of(Subject::Object, args, &survivors, names, |criteria| {
            Ok(!filters::select(file, criteria)?.selection.objects().is_empty())
        })?;
        no_match.map(|no_match| no_match.with_recorded_time(file.trace)).transpose()
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
    pub fn with_recorded_time(mut self, trace: &Trace) -> Result<Self, QueryError> {
        if self.criterion == Criterion::MinMaxTime
            && let Some(recorded) = trace.info()?.recorded_ns()
        {
            let (from, to) = (seconds(*recorded.start()), seconds(*recorded.end()));
            self.existing = vec![format!("events from {from} to {to} s")];
        }
        Ok(self)
    }

    /// Reason why a criterion on the owners of that many objects lets nothing pass; `owners` are the names of all.
    /// `None` when there are no objects.
    pub fn of_owners(
        (criterion, value): (Criterion, &str),
        before: usize,
        owners: BTreeSet<String>,
    ) -> Option<Self> {
        let owners = if criterion == Criterion::Process { owners } else { BTreeSet::new() };
        let nearest = if is_one_name(value) { like(value, owners.clone()) } else { Vec::new() };
        let existing = if nearest.is_empty() { some(owners) } else { Vec::new() };
        let value = value.to_owned();
        let subject = Subject::Object;
        let no_match = Self { criterion, value, before, subject, nearest, existing };
        (before > 0).then_some(no_match)
    }
}

/// Names that rows have where a criterion looks.
#[derive(Default)]
pub struct Candidates {
    /// Names most like its value.
    similar: Vec<String>,
    /// Names of the rows that the criteria in front let pass.
    existing: BTreeSet<String>,
}

impl Candidates {
    pub fn of(value: &str, existing: BTreeSet<String>) -> Self {
        Self { similar: like(value, existing.clone()), existing }
    }
}

/// Functions by which a list explains why it has no rows.
pub struct List<T> {
    pub subject: Subject,
    /// The names that its rows have where a criterion looks.
    pub names: fn(&T, Criterion) -> BTreeSet<String>,
    /// The field of an answer for the reason.
    pub no_match: fn(&mut T) -> &mut Option<NoMatch>,
}

impl<T> List<T> {
    /// One answer for each trace; where none has rows, each has the reason.
    pub fn answers<'a, C: Criteria>(
        &self,
        sources: &[Source<'a>],
        criteria: &C,
        answer: impl Fn(&Source<'a>, &C) -> Result<(T, Survivors), QueryError>,
    ) -> Result<Vec<T>, QueryError> {
        let answers = sources.iter().map(|source| answer(source, criteria));
        let answers = answers.collect::<Result<Vec<_>, QueryError>>()?;
        explained(sources, answers, self.no_match, |source, survivors| {
            let names = |passed: &C, criterion, value: &_| {
                Ok(Candidates::of(value, (self.names)(&answer(source, passed)?.0, criterion)))
            };
            NoMatch::of(self.subject, criteria, survivors, names, |criteria| {
                Ok(!answer(source, criteria)?.1.are_none())
            })
        })
    }
}

/// The answers, one for each trace; where none has rows, each has the reason that `find` returns for its trace.
pub fn explained<'a, T>(
    sources: &[Source<'a>],
    mut answers: Vec<(T, Survivors)>,
    no_match_of: fn(&mut T) -> &mut Option<NoMatch>,
    find: impl Fn(&Source<'a>, &Survivors) -> Result<Option<NoMatch>, QueryError>,
) -> Result<Vec<T>, QueryError> {
    if answers.iter().all(|(_, survivors)| survivors.are_none()) {
        for ((answer, survivors), source) in answers.iter_mut().zip(sources) {
            let no_match = find(source, survivors)?;
            *no_match_of(answer) =
                no_match.map(|found| found.with_recorded_time(source.trace)).transpose()?;
        }
    }
    Ok(answers.into_iter().map(|(answer, _)| answer).collect())
}

/// Counts the objects that each criterion leaves of those left by the criteria named before it. Some criteria take
/// effect earlier: a filter on the stacks of events removes events, and others leave only mappings, or none.
fn as_named(
    file: &FileContext<'_>,
    args: &ObjectCriteria,
    survivors: Survivors,
) -> Result<Survivors, QueryError> {
    let given = args.given();
    let is_early = |given: &Given<'_, _>| {
        matches!(given.effect, Effect::Views(_) | Effect::Stacks)
            || matches!(given.criterion, Criterion::Map | Criterion::ObjectName | Criterion::Handle)
    };
    let last_early = given.iter().rposition(is_early).filter(|index| *index > 0);
    let Some(last_early) = last_early else {
        return Ok(survivors);
    };
    let mut earlier: Vec<_> = given.iter().map(|given| given.criterion).collect();
    let later = earlier.split_off(last_early + 1);
    let remaining = earlier.iter().filter_map(|it| survivors.after(*it)).min().unwrap_or(0);
    // If objects remain although fewer were tested, no earlier criterion is the reason, and counts are not needed.
    let mode = args.map_mode();
    let is_known = remaining > 0
        && earlier
            .iter()
            .all(|criterion| [None, mode].contains(&args.before(*criterion).map_mode()))
        && !earlier.contains(&Criterion::StackFilter);
    let mut counted = Survivors::of(survivors.total);
    if !is_known {
        let args = args.before(earlier[last_early]);
        counted = as_named(file, &args, filters::select(file, &args)?.survivors)?;
    }
    counted.note(earlier[last_early], remaining);
    for criterion in later {
        counted.note(criterion, survivors.after(criterion).unwrap_or_default());
    }
    Ok(counted)
}

/// The names of objects where a criterion looks. What is most like its value may be of any object of the trace.
fn names(
    file: &FileContext<'_>,
    passed: &ObjectCriteria,
    criterion: Criterion,
    value: &str,
) -> Result<Candidates, QueryError> {
    let (candidates, existing) = match criterion {
        Criterion::Process => (process_names(file, passed), creators(file, passed)?),
        Criterion::RelatedProcess => (process_names(file, passed), process_names(file, passed)),
        Criterion::Type => {
            let selection = filters::select(file, passed)?.selection;
            let types =
                selection.objects().iter().map(|selected| file.objects.type_id(selected.object()));
            let types: BTreeSet<TypeId> = types.collect();
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

/// The names of the processes that created objects, or else own handles of the rundown.
fn creators(
    file: &FileContext<'_>,
    passed: &ObjectCriteria,
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
    let processes = processes.into_iter().map(|row| file.processes.get(row));
    Ok(processes.map(|process| process.shown_name(passed.plain_process_names).to_owned()).collect())
}

/// Some names but the one that failed: other filters may be what leaves it out, so that it does not help.
fn others(mut names: BTreeSet<String>, failed: &str) -> Vec<String> {
    let normalized = |name: &str| name.to_lowercase().trim_end_matches(".exe").to_owned();
    let failed = normalized(failed);
    names.retain(|name| normalized(name) != failed);
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
    names.into_iter().filter(|name| !name.is_empty()).take(MAX_EXISTING).collect()
}

fn process_names(file: &FileContext<'_>, args: &ObjectCriteria) -> BTreeSet<String> {
    let names = file.processes.rows().iter();
    names.map(|process| process.shown_name(args.plain_process_names).to_owned()).collect()
}

fn type_names(trace: &Trace) -> Result<BTreeSet<String>, ArchiveError> {
    Ok(ObjectTypes::read(trace)?.rows().map(|row| row.name).collect())
}

/// Names with wildcards around, if some contain the value; else the nearest whole name.
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
    let names = (0..names.len()).map(|row| names.text(row));
    let components = names.map(|name| name.rsplit(['\\', '/']).next().unwrap_or(name).to_owned());
    Ok(like(value, components.collect()).into_iter().map(|name| format!("*{name}")).collect())
}

/// The names most like a value.
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

/// The value as hexadecimal numbers are compared: its digits may be hexadecimal, or decimal.
fn hexadecimal(value: &str) -> Vec<String> {
    let is_hexadecimal = value.chars().all(|char| char.is_ascii_hexdigit() || char == '*');
    let hexadecimal = (is_hexadecimal && !value.is_empty()).then(|| format!("0x{value}"));
    let decimal = value.parse::<u64>().ok().map(|number| format!("0x{number:X}"));
    hexadecimal.into_iter().chain(decimal).collect()
}
