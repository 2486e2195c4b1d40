//! Completion inside of filters: the part behind the last `;` and `!`, from values of the loaded
//! traces.

use std::collections::BTreeSet;

use super::{known::Known, paths::starts_with};
use crate::{
    filter::literal,
    grammar::Texts,
    trace::{TraceValues, programs},
};

/// Values that are offered at most: a longer menu does not help, and a trace may have hundred
/// thousands of names.
const MOST: usize = 200;

/// So many names are offered whole, also those that lie deeper.
const FEW: usize = 20;

/// What the name of an object is described as.
const NAME: &str = "object name";

/// A value of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilterValue {
    /// The whole filter with the value in it.
    pub(super) filter: String,
    /// The value alone.
    pub(super) value: String,
    /// What it is.
    pub(super) description: String,
    /// Whether more of the same value is to come, as behind a folder.
    pub(super) is_open: bool,
}

/// A filter while it is typed: what stays as it is, and the part that is completed.
struct Typed<'a> {
    fixed: &'a str,
    part: &'a str,
}

impl<'a> Typed<'a> {
    fn new(filter: &'a str) -> Typed<'a> {
        let start = filter.rfind(';').map_or(0, |at| at + 1);
        let part = filter.get(start..).unwrap_or_default();
        let start = start + usize::from(part.starts_with('!'));
        Typed {
            fixed: filter.get(..start).unwrap_or_default(),
            part: filter.get(start..).unwrap_or_default(),
        }
    }

    fn value(&self, value: impl AsRef<str>, description: impl Into<String>) -> FilterValue {
        let value = literal(value.as_ref());
        let filter = format!("{}{value}", self.fixed);
        FilterValue { filter, value, description: description.into(), is_open: false }
    }
}

/// No more values than a menu can show; the last one says so.
fn capped(mut values: Vec<FilterValue>) -> Vec<FilterValue> {
    if values.len() > MOST {
        values.truncate(MOST);
        if let Some(last) = values.last_mut() {
            last.description = "and there are more; type on to find them".to_owned();
        }
    }
    values
}

/// Processes by name, or by pid once a digit was typed.
pub(super) fn processes(filter: &str, known: &Known) -> Vec<FilterValue> {
    let typed = Typed::new(filter);
    let programs = programs(&known.values);
    let is_pid = typed.part.starts_with(|c: char| c.is_ascii_digit());
    let mut values = Vec::new();
    for (name, pids) in &programs {
        if is_pid {
            let fits = |pid: &&u32| pid.to_string().starts_with(typed.part);
            values.extend(pids.iter().filter(fits).map(|pid| typed.value(pid.to_string(), *name)));
            continue;
        }
        let description = match pids.iter().collect::<Vec<_>>()[..] {
            [pid] => format!("pid {pid}"),
            ref pids => format!("{} processes", pids.len()),
        };
        if starts_with(name, typed.part) {
            values.push(typed.value(name, description));
        }
        // One of several is chosen once the name is there.
        if pids.len() > 1 && starts_with(typed.part, name) || typed.part.contains('(') {
            let labels = pids.iter().map(|pid| format!("{name}({pid})"));
            let fitting = labels.filter(|label| starts_with(label, typed.part));
            values.extend(fitting.map(|label| typed.value(label, "one process")));
        }
    }
    capped(values)
}

/// Values for a filter on text.
pub(super) fn texts(filter: &str, texts: Texts, known: &Known) -> Vec<FilterValue> {
    let typed = Typed::new(filter);
    let values = match texts {
        Texts::ObjectTypes => {
            let types: BTreeSet<&str> = all(known, |values| values.types());
            let fitting = types.into_iter().filter(|name| starts_with(name, typed.part));
            fitting.map(|name| typed.value(name, "object type")).collect()
        }
        Texts::ObjectNames => object_names(&typed, known),
        Texts::Frames => modules(&typed, known),
        Texts::LoadedFiles => {
            let names = known.loaded.iter().filter_map(|path| path.rsplit(['/', '\\']).next());
            let fitting = names.filter(|name| starts_with(name, typed.part));
            fitting.map(|name| typed.value(name, "loaded")).collect()
        }
        Texts::Other => Vec::new(),
    };
    capped(values)
}

fn all<'a>(known: &'a Known, of: impl Fn(&'a TraceValues) -> &'a [String]) -> BTreeSet<&'a str> {
    known.values.iter().flat_map(|values| of(values)).map(String::as_str).collect()
}

/// Frames are `module!function`, so a module is completed to all of its functions. Stars in front
/// stay.
fn modules(typed: &Typed<'_>, known: &Known) -> Vec<FilterValue> {
    let bare = typed.part.trim_start_matches('*');
    let stars = typed.part.strip_suffix(bare).unwrap_or_default();
    let modules = all(known, |values| values.modules());
    let fitting = modules.into_iter().filter(|name| starts_with(name, bare));
    fitting
        .map(|name| typed.value(format!("{stars}{name}!*"), "all functions of this module"))
        .collect()
}

/// Names that begin with a backslash are completed one level at a time, as paths are. Anything else
/// is looked for in the last part of the names, with a star in front of it.
fn object_names(typed: &Typed<'_>, known: &Known) -> Vec<FilterValue> {
    if typed.part.is_empty() || typed.part.starts_with('\\') {
        return names_below(typed, known);
    }
    let wanted = typed.part.trim_start_matches('*').to_lowercase();
    let mut last_parts: BTreeSet<&str> = BTreeSet::new();
    for name in known.values.iter().flat_map(|values| values.names()) {
        let last = name.rsplit('\\').next().unwrap_or_default();
        if last.to_lowercase().contains(&wanted) {
            last_parts.insert(last);
        }
        if last_parts.len() > MOST {
            break;
        }
    }
    last_parts.into_iter().map(|last| typed.value(format!("*{last}"), NAME)).collect()
}

/// The next level of the names that start with what was typed, and all of these names as long as
/// they are few. Behind a backslash, also everything below it.
fn names_below(typed: &Typed<'_>, known: &Known) -> Vec<FilterValue> {
    let mut levels: BTreeSet<(&str, bool)> = BTreeSet::new();
    let mut whole: BTreeSet<&str> = BTreeSet::new();
    let names = known.values.iter().flat_map(|values| values.names());
    for name in names.filter(|name| starts_with(name, typed.part)) {
        if whole.len() <= FEW {
            whole.insert(name);
        }
        levels.extend(level(name, typed.part));
        if levels.len() > MOST {
            break;
        }
    }
    let is_few = whole.len() <= FEW;
    let is_deeper = |name: &&str| is_few && !levels.contains(&(*name, false));
    let deeper = whole.iter().copied().filter(is_deeper).map(|name| typed.value(name, NAME));
    let below = Some(typed.part).filter(|part| part.ends_with('\\') && whole.len() > 1);
    let below = below.map(|part| typed.value(format!("{part}*"), "everything below"));
    let open = |&(level, is_open): &(&str, bool)| FilterValue {
        is_open,
        ..typed.value(level, if is_open { "names below" } else { NAME })
    };
    levels.iter().map(open).chain(deeper).chain(below).collect()
}

/// A name up to the next backslash behind what was typed, and whether it goes on there; none for a
/// name that has no levels.
fn level<'a>(name: &'a str, typed: &str) -> Option<(&'a str, bool)> {
    if !name.starts_with('\\') {
        return None;
    }
    let behind = name.char_indices().nth(typed.chars().count().max(1));
    let start = behind.map_or(name.len(), |(at, _)| at);
    let end = name.get(start..).and_then(|rest| rest.find('\\')).map(|at| start + at + 1);
    Some((name.get(..end.unwrap_or(name.len()))?, end.is_some()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use handlescope_model::tables::Process;

    use super::*;
    use crate::{
        query::fixture::{Fixture, NewObject},
        trace::TraceValues,
    };

    fn known() -> Known {
        let mut fixture = Fixture::new();
        for name in [r"\Sessions\1\Leaky_A", r"\Sessions\1\Leaky_B", r"\Sessions\2\X", "plain"] {
            fixture.object(NewObject { name, ..NewObject::default() });
        }
        fixture.stack(&["ntdll.dll!NtClose", "app.exe!main"]);
        let (again, pid) = ("app.exe".to_owned(), 101);
        fixture.processes.push(Process { name: again, pid, ..Process::default() });
        let saved = fixture.save();
        let values = TraceValues::new(Arc::new(saved.trace));
        let loaded = vec!["/t/demo.etl".to_owned()];
        Known { loaded, values: vec![Arc::new(values)], ..Known::default() }
    }

    fn filters(values: Vec<FilterValue>) -> Vec<String> {
        values.into_iter().map(|value| value.filter).collect()
    }

    #[test]
    fn names_are_completed_level_by_level_and_their_last_parts_anywhere() {
        let known = known();
        let of = |filter| filters(texts(filter, Texts::ObjectNames, &known));
        let whole = [r"\Sessions\1\Leaky_A", r"\Sessions\1\Leaky_B", r"\Sessions\2\X"];
        assert_eq!(of(""), [&[r"\Sessions\"][..], &whole, &["plain"]].concat());
        assert_eq!(of(r"\sess"), [&[r"\Sessions\"][..], &whole].concat());
        let (one, two) = (r"\Sessions\1\", r"\Sessions\2\");
        assert_eq!(of(r"\Sessions\"), [&[one, two], &whole[..], &[r"\Sessions\*"]].concat());
        assert_eq!(of(r"\Sessions\2\"), [r"\Sessions\2\X"]);
        assert_eq!(of(r"\Sessions\1\l"), [r"\Sessions\1\Leaky_A", r"\Sessions\1\Leaky_B"]);
        assert_eq!(of("*leaky"), ["*Leaky_A", "*Leaky_B"]);
        assert_eq!(of("x;!leaky_b"), ["x;!*Leaky_B"]);
    }

    #[test]
    fn processes_are_completed_by_program_then_one_by_one_or_by_pid() {
        let known = known();
        let of = |filter| filters(processes(filter, &known));
        assert_eq!(of("ap"), ["app.exe"]);
        assert_eq!(of("app.exe"), ["app.exe", "app.exe(100)", "app.exe(101)"]);
        assert_eq!(of("app.exe(1"), ["app.exe(100)", "app.exe(101)"]);
        assert_eq!(of("10"), ["100", "101"]);
        assert_eq!(of("app;!Sy"), ["app;!System"]);
    }

    #[test]
    fn types_and_loaded_files_are_completed() {
        let known = known();
        assert_eq!(filters(texts("ev", Texts::ObjectTypes, &known)), ["Event"]);
        assert_eq!(filters(texts("de", Texts::LoadedFiles, &known)), ["demo.etl"]);
        assert_eq!(filters(texts("", Texts::Other, &known)), Vec::<String>::new());
    }

    #[test]
    fn modules_stand_for_all_of_their_functions() {
        let known = known();
        let of = |filter| filters(texts(filter, Texts::Frames, &known));
        assert_eq!(of("nt"), ["ntdll.dll!*"]);
        assert_eq!(of("*ap"), ["*app.exe!*"]);
    }

    #[test]
    fn only_the_part_behind_the_last_semicolon_and_exclamation_mark_is_completed() {
        let typed = Typed::new("a;!b");
        assert_eq!((typed.fixed, typed.part), ("a;!", "b"));
        let typed = Typed::new("!b;c");
        assert_eq!((typed.fixed, typed.part), ("!b;", "c"));
        let typed = Typed::new("");
        assert_eq!((typed.fixed, typed.part), ("", ""));
    }

    #[test]
    fn many_names_make_a_short_menu_that_says_so() {
        let mut fixture = Fixture::new();
        let names: Vec<String> = (0..300).map(|n| format!(r"\Many\Name {n:03}")).collect();
        for name in &names {
            fixture.object(NewObject { name, ..NewObject::default() });
        }
        let values = TraceValues::new(Arc::new(fixture.save().trace));
        let known = Known { values: vec![Arc::new(values)], ..Known::default() };
        for typed in [r"\Many\", "name"] {
            let offered = texts(typed, Texts::ObjectNames, &known);
            assert_eq!(offered.len(), MOST, "{typed}");
            assert!(
                offered.last().is_some_and(|last| last.description.contains("more")),
                "{typed}"
            );
        }
        assert_eq!(filters(texts("", Texts::ObjectNames, &known)), [r"\Many\"], "no whole names");
    }
}
