//! Known leaks that answers leave out: the `[[ignore]]` tables of the configuration file and of the files given by
//! `-Ignore`. Whether an entry matches is decided only here.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use handlescope_model::Untrusted;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use thiserror::Error;
use toml_edit::{Item, Table, Value};

use super::file::line_of;
use crate::filter::{Filter, FilterError, ProcessFilter};
use crate::values::{ValueError, no_choice};

/// The name of the tables.
pub const IGNORE: &str = "ignore";

/// Keys allowed in such a table.
const KEYS: [&str; 6] = ["program", "type", "function", "stack", "reason", "until"];

/// Known leaks, in the order of their files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IgnoreList(Vec<Arc<IgnoreEntry>>);

/// A known leak: the filters that describe it, and why it is ignored.
#[derive(Debug, Clone, PartialEq)]
pub struct IgnoreEntry {
    program: Option<ProcessFilter>,
    object_type: Option<Filter>,
    function: Option<Filter>,
    stack: Option<Filter>,
    reason: String,
    /// The last day on which the entry applies, UTC.
    until: Option<Date>,
    path: PathBuf,
    line: usize,
}

/// Known leaks that an answer leaves out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ignoring {
    pub list: IgnoreList,
    /// Whether the answer shows only what it would leave out.
    pub shows_ignored: bool,
}

/// A table that does not describe a known leak.
#[derive(Debug, Error)]
pub enum IgnoreProblem {
    #[error("{IGNORE}: is not a list of tables; write [[{IGNORE}]], and below it KEY = \"VALUE\"")]
    Tables,
    #[error("{IGNORE}: {0}")]
    Key(ValueError),
    #[error("{}: is not text; write it in quotes", Untrusted(.0))]
    Type(String),
    #[error("{key}: {source}")]
    Filter { key: &'static str, source: FilterError },
    #[error("until: '{}' is not a day like 2026-12-31", Untrusted(.0))]
    Day(String),
    #[error("gives no reason; add reason = \"…\"")]
    NoReason,
    #[error("would ignore everything; add program, type, function or stack")]
    Everything,
}

impl IgnoreEntry {
    /// Reads a table that starts in this line of a file.
    ///
    /// # Errors
    /// If it does not describe a known leak; with the key at fault, if there is one.
    fn new(
        table: &Table,
        path: &Path,
        line: usize,
    ) -> Result<Self, (Option<String>, IgnoreProblem)> {
        if let Some((key, _)) = table.iter().find(|(key, _)| !KEYS.contains(key)) {
            return Err((
                Some(key.to_owned()),
                IgnoreProblem::Key(no_choice(key, || KEYS.into_iter())),
            ));
        }
        let text = |key: &'static str| match table.get(key).map(text_of) {
            None => Ok(None),
            Some(Some(text)) => Ok(Some(text)),
            Some(None) => Err((Some(key.to_owned()), IgnoreProblem::Type(key.to_owned()))),
        };
        let refused = |key: &'static str, source| {
            (Some(key.to_owned()), IgnoreProblem::Filter { key, source })
        };
        let filter = |key: &'static str| {
            let filter = text(key)?.map(|text| Filter::new(&text)).transpose();
            filter.map_err(|source| refused(key, source))
        };
        let program = text("program")?.map(|text| ProcessFilter::new(&text)).transpose();
        let day = |text: String| {
            text.parse().map_err(|_| (Some("until".to_owned()), IgnoreProblem::Day(text)))
        };
        let entry = Self {
            program: program.map_err(|source| refused("program", source))?,
            object_type: filter("type")?,
            function: filter("function")?,
            stack: filter("stack")?,
            reason: text("reason")?.unwrap_or_default().trim().to_owned(),
            until: text("until")?.map(day).transpose()?,
            path: path.to_path_buf(),
            line,
        };
        let Self { program, object_type, function, stack, .. } = &entry;
        let is_all =
            |filter: &Option<Filter>| filter.as_ref().is_none_or(Filter::passes_everything);
        let is_any_program = program.as_ref().is_none_or(ProcessFilter::passes_everything);
        if is_any_program && [object_type, function, stack].into_iter().all(is_all) {
            return Err((None, IgnoreProblem::Everything));
        }
        if entry.reason.is_empty() {
            return Err((None, IgnoreProblem::NoReason));
        }
        Ok(entry)
    }

    /// Whether a leak is ignored by its program, type and function. Its create stacks must pass [`stack`](Self::stack),
    /// too.
    pub fn matches(&self, program: &str, type_name: &str, function: Option<&str>) -> bool {
        let passes = |filter: &Option<Filter>, text: &str| {
            filter.as_ref().is_none_or(|filter| filter.matches(text))
        };
        self.program.as_ref().is_none_or(|programs| programs.matches(program, 0))
            && passes(&self.object_type, type_name)
            && passes(&self.function, function.unwrap_or_default())
    }

    /// The filter that all create stacks must pass.
    pub fn stack(&self) -> Option<&Filter> {
        self.stack.as_ref()
    }

    /// Why the leak is ignored.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The last day on which the entry applied, if that day is over.
    pub fn expired(&self) -> Option<Date> {
        self.until.filter(|until| *until < TimeZone::UTC.to_datetime(Timestamp::now()).date())
    }
}

/// Prints where an entry is: `handlescope.toml: line 7`.
impl Display for IgnoreEntry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: line {}", Untrusted(&self.path), self.line)
    }
}

impl IgnoreList {
    /// Reads the `[[ignore]]` tables of a file; `line` is that of the first one.
    ///
    /// # Errors
    /// If a table does not describe a known leak; with its line.
    pub(super) fn read(
        item: &Item,
        line: usize,
        text: &str,
        path: &Path,
    ) -> Result<Self, (usize, IgnoreProblem)> {
        let tables = item.as_array_of_tables().ok_or((line, IgnoreProblem::Tables))?;
        tables
            .iter()
            .map(|table| {
                let line = table.span().map_or(line, |span| line_of(text, span.start));
                let entry = IgnoreEntry::new(table, path, line).map(Arc::new);
                entry.map_err(|(key, problem)| {
                    let key = key.and_then(|key| table.key(&key)?.span());
                    (key.map_or(line, |span| line_of(text, span.start)), problem)
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Adds the entries of another list.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// All entries.
    pub fn entries(&self) -> &[Arc<IgnoreEntry>] {
        &self.0
    }

    /// The entries that apply today.
    pub fn active(&self) -> impl Iterator<Item = &Arc<IgnoreEntry>> {
        self.0.iter().filter(|entry| entry.expired().is_none())
    }

    /// Finds the entry that ignores a leak. `stack` has one line per frame.
    pub fn find(
        &self,
        program: &str,
        type_name: &str,
        function: Option<&str>,
        stack: Option<&str>,
    ) -> Option<&Arc<IgnoreEntry>> {
        self.active().find(|entry| {
            let passes = |filter: &Filter| filter.matches(stack.unwrap_or_default());
            entry.matches(program, type_name, function) && entry.stack().is_none_or(passes)
        })
    }
}

impl Ignoring {
    /// Whether the answer shows a leak, given the entry that ignores it, if any.
    pub fn shows(&self, ignored: Option<&Arc<IgnoreEntry>>) -> bool {
        ignored.is_some() == self.shows_ignored
    }
}

/// Returns the text of an item; a day may be written without quotes.
fn text_of(item: &Item) -> Option<String> {
    match item.as_value()? {
        Value::String(text) => Some(text.value().clone()),
        Value::Datetime(day) => Some(day.value().to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use toml_edit::Document;

    use super::*;

    fn list(text: &str) -> IgnoreList {
        let document = Document::parse(text).expect("TOML");
        let item = document.get(IGNORE).expect("tables");
        IgnoreList::read(item, 1, text, Path::new("known.toml")).expect("known leaks")
    }

    #[test]
    fn an_entry_matches_what_all_of_its_filters_pass() {
        let text = "[[ignore]]\nprogram = 'app;tool'\ntype = 'Event;Key'\nfunction = '*Cache::*'\n\
                    stack = '*!Main'\nreason = 'x'\n";
        let list = list(text);
        let find = |program, type_name, function, stack| {
            list.find(program, type_name, Some(function), Some(stack)).is_some()
        };
        let stack = "app.exe!Cache::Add\napp.exe!Main";
        assert!(find("APP.exe", "Key", "app.exe!Cache::Add", stack));
        assert!(!find("app2.exe", "Key", "app.exe!Cache::Add", stack), "another program");
        assert!(!find("app.exe", "Keys", "app.exe!Cache::Add", stack), "another type");
        assert!(!find("app.exe", "Key", "app.exe!Main", stack), "another function");
        assert!(
            !find("app.exe", "Key", "app.exe!Cache::Add", "app.exe!Cache::Add"),
            "no such frame"
        );
        assert!(list.find("app.exe", "Key", None, None).is_none(), "no stack");
    }

    #[test]
    fn an_entry_counts_until_its_day() {
        for (until, counts) in [("2000-01-01", false), ("9999-01-01", true)] {
            let text = format!("[[ignore]]\ntype = 'Event'\nreason = 'x'\nuntil = '{until}'\n");
            assert_eq!(list(&text).find("a", "Event", None, None).is_some(), counts, "{until}");
        }
    }
}
