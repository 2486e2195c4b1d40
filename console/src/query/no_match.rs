//! Why nothing matches: the filter that removed everything, and the nearest names that are there.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use handlescope_model::Trace;
use handlescope_model::tables::{Names, ObjectTypes};

use super::context::FileContext;
use super::criteria::ObjectCriteria;
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
    /// The option as it is written, as in `-Type Evnt`.
    pub option: String,
    /// How many objects, or allocations, passed the filters in front of it.
    pub before: usize,
    /// Whether they are allocations.
    pub is_of_allocations: bool,
    /// What could have been meant, as options.
    pub nearest: Vec<String>,
    /// When nothing is near, some of the names that are there.
    pub existing: Vec<String>,
}

impl Display for NoMatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { option, before, is_of_allocations, nearest, existing } = self;
        let what = if *is_of_allocations { "allocation" } else { "object" };
        let plural = if *before == 1 { "" } else { "s" };
        write!(f, "nothing matches: none of {before} {what}{plural} passes {option}")?;
        match (nearest.as_slice(), existing.as_slice()) {
            ([], []) => Ok(()),
            ([], existing) => write!(f, "; the trace has {}", existing.join(", ")),
            (nearest, _) => write!(f, ", did you mean {}?", nearest.join(" or ")),
        }
    }
}

/// A criterion, taken over alone.
struct Step {
    option: String,
    take: fn(&ObjectCriteria, &mut ObjectCriteria),
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
        for Step { option, take } in steps(args) {
            let passed = partial.clone();
            take(args, &mut partial);
            let left = filters::select(file, &partial)?.objects().len();
            if left == 0 {
                let nearest = helpful(nearest(file, args, &option)?, file, &passed, take)?;
                let existing =
                    if nearest.is_empty() { existing(file, args, &option)? } else { Vec::new() };
                let is_of_allocations = false;
                return Ok(Some(Self { option, before, is_of_allocations, nearest, existing }));
            }
            before = left;
        }
        Ok(None)
    }

    /// Why a filter on the owners of handles lets nothing pass; `owners` are the names of all, of so many objects.
    /// `None` when there are none.
    pub(super) fn of_owners(
        filter: &ProcessFilter,
        before: usize,
        owners: BTreeSet<String>,
    ) -> Option<Self> {
        let value = filter.text();
        let similar = if is_one_name(value) { like(value, owners.clone()) } else { Vec::new() };
        let nearest: Vec<String> = similar.iter().map(|name| format!("-pn {name}")).collect();
        let existing = if nearest.is_empty() { some(owners) } else { Vec::new() };
        let option = format!("-pn {value}");
        (before > 0).then_some(Self { option, before, is_of_allocations: false, nearest, existing })
    }

    /// That an option, with its value, lets none of so many allocations pass; `names` are those that are there,
    /// and `helps` says whether something passes with another value.
    pub(super) fn of_allocations(
        (name, value): (&str, Option<&str>),
        before: usize,
        names: BTreeSet<String>,
        is_of_frames: bool,
        helps: impl Fn(&str) -> Result<bool, QueryError>,
    ) -> Result<Self, QueryError> {
        let option = value.map_or_else(|| name.to_owned(), |value| format!("{name} {value}"));
        let mut similar = Vec::new();
        if let Some(value) = value.filter(|value| is_one_name(value)) {
            similar = if is_of_frames { anywhere(value) } else { like(value, names.clone()) };
        }
        let mut nearest = Vec::new();
        for value in similar {
            if helps(&value)? {
                nearest.push(format!("{name} {value}"));
            }
        }
        let existing =
            if nearest.is_empty() { others(names, value.unwrap_or_default()) } else { Vec::new() };
        Ok(Self { option, before, is_of_allocations: true, nearest, existing })
    }
}

/// The criteria that were given, in the order of the filters, but those that may load symbols last.
fn steps(args: &ObjectCriteria) -> Vec<Step> {
    let mut steps = Vec::new();
    macro_rules! step {
        ($($field:ident).+, $text:expr) => {
            step!($($field).+, args.$($field).+.is_some(), $text)
        };
        ($($field:ident).+, $is_given:expr, $text:expr) => {
            if $is_given {
                let take: fn(&ObjectCriteria, &mut ObjectCriteria) =
                    |from, to| to.$($field).+.clone_from(&from.$($field).+);
                steps.push(Step { option: $text, take });
            }
        };
    }
    let text = |name: &str, filter: &Option<Filter>| {
        format!("{name} {}", filter.as_ref().map_or("", Filter::text))
    };
    let process = |name: &str, filter: &Option<ProcessFilter>| {
        format!("{name} {}", filter.as_ref().map_or("", ProcessFilter::text))
    };
    step!(ids, "-MinMaxId".to_owned());
    step!(map, "-Map".to_owned());
    step!(multi_process, args.multi_process, "-MultiProcess".to_owned());
    step!(object_name, text("-ObjectName", &args.object_name));
    step!(object_type, text("-Type", &args.object_type));
    step!(object, text("-Object", &args.object));
    if args.leak || args.leak_at_exit {
        // Both choose more than each.
        let words = [(args.leak, "-Leak"), (args.leak_at_exit, "-LeakAtExit")];
        let words = words.into_iter().filter(|(is_given, _)| *is_given).map(|(_, word)| word);
        steps.push(Step {
            option: words.collect::<Vec<_>>().join(" "),
            take: |from, to| (to.leak, to.leak_at_exit) = (from.leak, from.leak_at_exit),
        });
    }
    step!(time, "-MinMaxTime".to_owned());
    step!(creator.name, process("-pn", &args.creator.name));
    step!(creator.command_line, text("-CmdLine", &args.creator.command_line));
    step!(creator.new_process, "-NewProcess".to_owned());
    step!(ptr_in_map, "-PtrInMap".to_owned());
    step!(view_base, text("-ViewBase", &args.view_base));
    step!(map_size, "-MinMaxMapSize".to_owned());
    step!(inherit, args.inherit, "-Inherit".to_owned());
    step!(related_process, process("-RelatedProcess", &args.related_process));
    step!(handle, text("-Handle", &args.handle));
    step!(duration, "-MinMaxDuration".to_owned());
    step!(overlapped, args.overlapped, "-Overlapped".to_owned());
    step!(stack_filter, text("-StackFilter", &args.stack_filter));
    step!(create_stack, text("-CreateStack", &args.create_stack));
    step!(destroy_stack, text("-DestroyStack", &args.destroy_stack));
    steps
}

/// Those of some options with which something passes: the filters in front leave out what others name.
fn helpful(
    mut options: Vec<String>,
    file: &FileContext<'_>,
    passed: &ObjectCriteria,
    take: fn(&ObjectCriteria, &mut ObjectCriteria),
) -> Result<Vec<String>, QueryError> {
    let mut error = None;
    options.retain(|option| {
        let Some(other) = with(option) else { return false };
        let mut criteria = passed.clone();
        take(&other, &mut criteria);
        match filters::select(file, &criteria) {
            Ok(selection) => !selection.objects().is_empty(),
            Err(failed) => {
                error = Some(failed);
                false
            }
        }
    });
    error.map_or(Ok(options), Err)
}

/// The criteria that an option gives.
fn with(option: &str) -> Option<ObjectCriteria> {
    let (name, value) = option.split_once(' ')?;
    let mut criteria = ObjectCriteria::default();
    let process = || ProcessFilter::new(value).ok();
    let filter = || Filter::new(value).ok();
    match name {
        "-pn" => criteria.creator.name = process(),
        "-RelatedProcess" => criteria.related_process = process(),
        "-Type" => criteria.object_type = filter(),
        "-ObjectName" => criteria.object_name = filter(),
        "-CmdLine" => criteria.creator.command_line = filter(),
        "-Handle" => criteria.handle = filter(),
        "-Object" => criteria.object = filter(),
        "-ViewBase" => criteria.view_base = filter(),
        "-StackFilter" => criteria.stack_filter = filter(),
        "-CreateStack" => criteria.create_stack = filter(),
        "-DestroyStack" => criteria.destroy_stack = filter(),
        _ => return None,
    }
    Some(criteria)
}

/// What an option could have meant, going by the names that are in the trace.
fn nearest(
    file: &FileContext<'_>,
    args: &ObjectCriteria,
    option: &str,
) -> Result<Vec<String>, QueryError> {
    let Some((name, value)) = option.split_once(' ') else { return Ok(Vec::new()) };
    if !is_one_name(value) {
        return Ok(Vec::new());
    }
    let values = match name {
        "-pn" | "-RelatedProcess" => processes(file, value, args.plain_process_names),
        "-Type" => like(value, type_names(file.trace)?),
        "-ObjectName" => object_names(file, value)?,
        "-Handle" | "-Object" | "-ViewBase" => hexadecimal(value),
        "-CreateStack" | "-DestroyStack" | "-StackFilter" | "-CmdLine" => anywhere(value),
        _ => Vec::new(),
    };
    Ok(values.into_iter().map(|value| format!("{name} {value}")).collect())
}

/// Some names that an option knows.
fn existing(
    file: &FileContext<'_>,
    args: &ObjectCriteria,
    option: &str,
) -> Result<Vec<String>, QueryError> {
    let names = match option.split_once(' ') {
        Some(("-pn" | "-RelatedProcess", _)) => process_names(file, args.plain_process_names),
        Some(("-Type", _)) => type_names(file.trace)?,
        _ => BTreeSet::new(),
    };
    Ok(others(names, option.split_once(' ').map_or("", |(_, value)| value)))
}

/// Some names but the one that failed: other filters may be what leaves it out, so that it is no help.
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
