//! Values of the session for completion, and completion inside filters. It completes the part after the last `;` and
//! `!`, from values in the loaded traces.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use handlescope_model::{rules::about, tables::ResourceKind};

use super::paths::starts_with;
use handlescope_session::filter::literal;
use handlescope_session::grammar::value::FilterTextKind;
use handlescope_session::settings::Aliases;
use handlescope_session::trace::{NamedSuspect, TraceValues, programs};
use handlescope_sql::Views;

/// Values of the session for completion, updated between commands.
#[derive(Debug, Default)]
pub struct CompletionValues {
    /// Paths of the loaded traces.
    pub loaded: Vec<String>,
    /// Whether a dataset is loaded instead of traces.
    pub over_dataset: bool,
    /// Names of their snapshots, without duplicates.
    pub snapshots: Vec<String>,
    /// The aliases of the session.
    pub aliases: Aliases,
    /// Values in the loaded traces.
    pub values: Vec<Arc<TraceValues>>,
    /// The views of `.sql`.
    pub views: KnownViews,
}

/// The views, including those in the user's folder. They are planned on first use.
#[derive(Debug, Default)]
pub struct KnownViews {
    folder: Option<PathBuf>,
    planned: OnceLock<Arc<Views>>,
}

impl KnownViews {
    pub fn new(folder: Option<&Path>) -> KnownViews {
        KnownViews { folder: folder.map(Path::to_path_buf), planned: OnceLock::new() }
    }

    /// Returns the views. If those of the user cannot be planned, returns the built-in ones; the next query will report
    /// what is wrong.
    pub fn get(&self) -> &Views {
        self.planned.get_or_init(|| {
            let cancel = &handlescope_model::Cancel::default();
            let views = Views::with(self.folder.as_deref(), cancel);
            let views = views.or_else(|_| Views::with(None, cancel));
            views.unwrap_or_default()
        })
    }
}

/// [`CompletionValues`], shared with the line editor.
pub type SharedCompletionValues = Arc<Mutex<CompletionValues>>;

/// Maximum number of offered values: a longer menu does not help, and a trace may have a hundred thousand names.
const MAX_VALUES: usize = 200;

/// Up to this many names, all are offered whole, including those in deeper levels.
const MAX_DEEP: usize = 20;

/// Description of the name of an object.
const NAME: &str = "object name";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterValue {
    /// The whole filter with the value in it.
    pub filter: String,
    /// The value alone.
    pub value: String,
    pub description: String,
    /// Whether the value continues, as after a folder.
    pub is_open: bool,
}

/// A filter during typing: the fixed part, and the part to complete.
struct PartialFilter<'a> {
    fixed: &'a str,
    pattern: &'a str,
}

impl<'a> PartialFilter<'a> {
    fn new(filter: &'a str) -> PartialFilter<'a> {
        let start = filter.rfind(';').map_or(0, |index| index + 1);
        let last = filter.get(start..).unwrap_or_default();
        let start = start + usize::from(last.starts_with('!'));
        PartialFilter {
            fixed: filter.get(..start).unwrap_or_default(),
            pattern: filter.get(start..).unwrap_or_default(),
        }
    }

    fn value(&self, value: impl AsRef<str>, description: impl Into<String>) -> FilterValue {
        let value = literal(value.as_ref());
        let filter = format!("{}{value}", self.fixed);
        FilterValue { filter, value, description: description.into(), is_open: false }
    }
}

/// Limits values to those that fit into a menu; the last one says that there are more.
fn capped(mut values: Vec<FilterValue>) -> Vec<FilterValue> {
    if values.len() > MAX_VALUES {
        values.truncate(MAX_VALUES);
        if let Some(last) = values.last_mut() {
            last.description = "more; keep typing to find them".to_owned();
        }
    }
    values
}

/// Returns processes by name, or by pid once a digit was typed.
pub fn processes(filter: &str, known: &CompletionValues) -> Vec<FilterValue> {
    let typed = PartialFilter::new(filter);
    let programs = programs(&known.values);
    let is_pid = typed.pattern.starts_with(|c: char| c.is_ascii_digit());
    let mut values = Vec::new();
    for (name, pids) in &programs {
        if is_pid {
            let pids = pids.iter().map(u32::to_string).filter(|pid| pid.starts_with(typed.pattern));
            values.extend(pids.map(|pid| typed.value(pid, *name)));
            continue;
        }
        let description = match pids.iter().collect::<Vec<_>>()[..] {
            [pid] => format!("pid {pid}"),
            ref pids => format!("{} processes", pids.len()),
        };
        if starts_with(name, typed.pattern) {
            values.push(typed.value(name, description));
        }
        // Single processes are offered once the name is typed.
        if pids.len() > 1 && starts_with(typed.pattern, name) || typed.pattern.contains('(') {
            let fitting = pids
                .iter()
                .map(|pid| format!("{name}({pid})"))
                .filter(|label| starts_with(label, typed.pattern));
            values.extend(fitting.map(|label| typed.value(label, "one process")));
        }
    }
    capped(values)
}

/// Returns suspects by id, as named by earlier answers.
pub fn suspects(id: &str, known: &CompletionValues) -> Vec<FilterValue> {
    let mut values: Vec<FilterValue> = Vec::new();
    for NamedSuspect { id: whole, description } in known.values.iter().flat_map(|v| v.suspects()) {
        let value = whole.text().to_owned();
        // Several traces may have the same suspect.
        if starts_with(&value, id) && values.iter().all(|listed| listed.value != value) {
            values.push(FilterValue { filter: value.clone(), value, description, is_open: false });
        }
        if values.len() > MAX_VALUES {
            break;
        }
    }
    capped(values)
}

pub fn texts(filter: &str, texts: FilterTextKind, known: &CompletionValues) -> Vec<FilterValue> {
    let typed = PartialFilter::new(filter);
    let values = match texts {
        FilterTextKind::ObjectTypes => {
            let types: BTreeSet<&str> = distinct(known, |values| values.types());
            let fitting = types.into_iter().filter(|name| starts_with(name, typed.pattern));
            fitting.map(|name| typed.value(name, "object type")).collect()
        }
        FilterTextKind::ObjectNames => object_names(&typed, known),
        FilterTextKind::Frames => modules(&typed, known),
        FilterTextKind::AllocationKinds => allocation_kinds(&typed, known),
        FilterTextKind::Allocators => allocators(&typed, known),
        FilterTextKind::LoadedFiles => known
            .loaded
            .iter()
            .filter_map(|path| path.rsplit(['/', '\\']).next())
            .filter(|name| starts_with(name, typed.pattern))
            .map(|name| typed.value(name, "loaded"))
            .collect(),
        FilterTextKind::Other => Vec::new(),
    };
    capped(values)
}

fn distinct<'a>(
    known: &'a CompletionValues,
    of: impl Fn(&'a TraceValues) -> &'a [String],
) -> BTreeSet<&'a str> {
    known.values.iter().flat_map(|values| of(values)).map(String::as_str).collect()
}

/// Returns kinds of allocations; those in the loaded traces come first.
fn allocation_kinds(typed: &PartialFilter<'_>, known: &CompletionValues) -> Vec<FilterValue> {
    let loaded: BTreeSet<ResourceKind> =
        known.values.iter().flat_map(|values| values.allocators()).map(|(_, kind)| *kind).collect();
    let mut kinds = ResourceKind::ALL;
    kinds.sort_by_key(|kind| !loaded.contains(kind));
    let missing = if known.values.is_empty() { "" } else { "; none is loaded" };
    kinds
        .into_iter()
        .filter(|kind| starts_with(kind.name(), typed.pattern))
        .map(|kind| {
            let missing = if loaded.contains(&kind) { "" } else { missing };
            typed.value(kind.name(), format!("{}{missing}", about(kind)))
        })
        .collect()
}

/// Returns allocator names, each with what it allocates.
fn allocators(typed: &PartialFilter<'_>, known: &CompletionValues) -> Vec<FilterValue> {
    let mut kinds_by_name: BTreeMap<&str, BTreeSet<ResourceKind>> = BTreeMap::new();
    for (name, kind) in known.values.iter().flat_map(|values| values.allocators()) {
        if !name.is_empty() && starts_with(name, typed.pattern) {
            kinds_by_name.entry(name).or_default().insert(*kind);
        }
        if kinds_by_name.len() > MAX_VALUES {
            break;
        }
    }
    kinds_by_name
        .into_iter()
        .map(|(name, kinds)| {
            typed.value(name, kinds.into_iter().map(about).collect::<Vec<_>>().join(", "))
        })
        .collect()
}

/// Completes a module to all of its functions, because frames are `module!function`. Keeps stars at the start.
fn modules(typed: &PartialFilter<'_>, known: &CompletionValues) -> Vec<FilterValue> {
    let bare = typed.pattern.trim_start_matches('*');
    let stars = typed.pattern.strip_suffix(bare).unwrap_or_default();
    let modules = distinct(known, |values| values.modules());
    let fitting = modules.into_iter().filter(|name| starts_with(name, bare));
    fitting
        .map(|name| typed.value(format!("{stars}{name}!*"), "all functions of this module"))
        .collect()
}

/// Completes names that begin with a backslash one level at a time, like paths. Anything else is searched for in the
/// last part of names, with a star before it.
fn object_names(typed: &PartialFilter<'_>, known: &CompletionValues) -> Vec<FilterValue> {
    if typed.pattern.is_empty() || typed.pattern.starts_with('\\') {
        return names_below(typed, known);
    }
    let lowercase = typed.pattern.trim_start_matches('*').to_lowercase();
    let mut last_parts: BTreeSet<&str> = BTreeSet::new();
    for name in known.values.iter().flat_map(|values| values.names()) {
        let last = name.rsplit('\\').next().unwrap_or_default();
        if last.to_lowercase().contains(&lowercase) {
            last_parts.insert(last);
        }
        if last_parts.len() > MAX_VALUES {
            break;
        }
    }
    last_parts.into_iter().map(|last| typed.value(format!("*{last}"), NAME)).collect()
}

/// Returns the next level of the names that start with the typed text. Also returns all these names if they are few,
/// and after a backslash a pattern for everything below it.
fn names_below(typed: &PartialFilter<'_>, known: &CompletionValues) -> Vec<FilterValue> {
    let mut levels: BTreeSet<(&str, bool)> = BTreeSet::new();
    let mut whole: BTreeSet<&str> = BTreeSet::new();
    let names = known.values.iter().flat_map(|values| values.names());
    for name in names.filter(|name| starts_with(name, typed.pattern)) {
        if whole.len() <= MAX_DEEP {
            whole.insert(name);
        }
        levels.extend(level(name, typed.pattern));
        if levels.len() > MAX_VALUES {
            break;
        }
    }
    let is_few = whole.len() <= MAX_DEEP;
    let deeper = whole
        .iter()
        .filter(|name| is_few && !levels.contains(&(**name, false)))
        .map(|name| typed.value(name, NAME));
    let below = Some(typed.pattern)
        .filter(|prefix| prefix.ends_with('\\') && whole.len() > 1)
        .map(|prefix| typed.value(format!("{prefix}*"), "everything below"));
    levels
        .iter()
        .map(|&(level, is_open)| FilterValue {
            is_open,
            ..typed.value(level, if is_open { "names below" } else { NAME })
        })
        .chain(deeper)
        .chain(below)
        .collect()
}

/// Returns a name up to the next backslash after the typed text, and whether it continues; `None` if the name has no
/// levels.
fn level<'a>(name: &'a str, typed: &str) -> Option<(&'a str, bool)> {
    if !name.starts_with('\\') {
        return None;
    }
    let behind = name.char_indices().nth(typed.chars().count().max(1));
    let start = behind.map_or(name.len(), |(index, _)| index);
    let end = name.get(start..).and_then(|rest| rest.find('\\')).map(|index| start + index + 1);
    Some((name.get(..end.unwrap_or(name.len()))?, end.is_some()))
}

#[cfg(test)]
mod tests;
