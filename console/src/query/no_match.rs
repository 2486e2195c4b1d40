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
            take(args, &mut partial);
            let left = filters::select(file, &partial)?.objects().len();
            if left == 0 {
                let nearest = nearest(file, args, &option)?;
                let existing =
                    if nearest.is_empty() { existing(file, args, &option)? } else { Vec::new() };
                let is_of_allocations = false;
                return Ok(Some(Self { option, before, is_of_allocations, nearest, existing }));
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
        let similar = if is_one_name(value) { like(value, owners.clone()) } else { Vec::new() };
        let nearest: Vec<String> = similar.iter().map(|name| format!("-pn {name}")).collect();
        let existing = if nearest.is_empty() { some(owners) } else { Vec::new() };
        let option = format!("-pn {value}");
        (before > 0).then_some(Self { option, before, is_of_allocations, nearest, existing })
    }

    /// That a filter on kinds lets none of so many allocations pass.
    pub(super) fn of_kinds(filter: &Filter, before: usize, kinds: BTreeSet<String>) -> Self {
        let (option, existing) = (format!("-Type {}", filter.text()), some(kinds));
        Self { option, before, is_of_allocations: true, nearest: Vec::new(), existing }
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
    step!(leak, args.leak, "-Leak".to_owned());
    step!(leak_at_exit, args.leak_at_exit, "-LeakAtExit".to_owned());
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
        "-CreateStack" | "-DestroyStack" | "-StackFilter" | "-CmdLine"
            if !(value.starts_with('*') && value.ends_with('*')) =>
        {
            vec![format!("*{}*", value.trim_matches('*'))]
        }
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
    Ok(some(names))
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
