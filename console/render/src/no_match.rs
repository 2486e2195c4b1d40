//! Reasons for an empty answer, in terms of the options that a user types.

use std::fmt::{self, Display, Formatter};

use crate::table::Columns;
use handlescope_query::{Criterion, ListAnswer, ListSubject, NoMatch};
use handlescope_session::values::CountedNoun;

/// Returns the option of a criterion, by its displayed name.
pub fn option(criterion: Criterion) -> &'static str {
    match criterion {
        Criterion::Process => "-pn",
        Criterion::LeakOrAtExit => "-Leak -LeakAtExit",
        criterion => criterion.name(),
    }
}

/// Returns the noun, and what follows it.
fn words(subject: ListSubject) -> (&'static str, &'static str) {
    match subject {
        ListSubject::Object => ("object", ""),
        ListSubject::Allocation => ("allocation", ""),
        ListSubject::Process => ("process", ""),
        ListSubject::Module => ("module", ""),
        ListSubject::Stack => ("stack", ""),
        ListSubject::EventKind => ("kind", " of events"),
        ListSubject::Event => ("event", ""),
    }
}

/// Formats a criterion with its value as an option, as in `-Type Evnt`.
fn option_with(criterion: Criterion, value: &str) -> String {
    let option = option(criterion);
    if value.is_empty() { option.to_owned() } else { format!("{option} {value}") }
}

/// A reason for an empty answer, in terms of the options that a user types.
#[derive(Clone, Copy)]
pub struct InOptions<'a>(pub &'a NoMatch);

impl InOptions<'_> {
    /// Returns the option that removed everything, as it was typed.
    pub fn option(&self) -> String {
        option_with(self.0.criterion, &self.0.value)
    }

    /// Returns the values that were likely meant, as options.
    pub fn nearest_options(&self) -> Vec<String> {
        self.0.nearest.iter().map(|value| option_with(self.0.criterion, value)).collect()
    }
}

impl Display for InOptions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (noun, of) = words(self.0.subject);
        let (before, option) = (CountedNoun(self.0.before as u64, noun), self.option());
        write!(f, "nothing matches: none of {before}{of} passes {option}")?;
        match (self.nearest_options().as_slice(), self.0.existing.as_slice()) {
            ([], []) => Ok(()),
            ([], existing) => write!(f, "; there are {}", existing.join(", ")),
            (nearest, _) => write!(f, ", did you mean {}?", nearest.join(" or ")),
        }
    }
}

/// A reason for an empty answer, and the number of its file.
pub type NoMatchRow<'a> = (usize, &'a NoMatch);

/// Declares the columns of a reason for an empty answer.
pub fn no_match_columns<'a>() -> Columns<'a, NoMatchRow<'a>> {
    let mut columns = Columns::<NoMatchRow<'a>>::default();
    columns.member("file", "the first file for which this is known", |(file, _)| *file);
    columns.member(
        "option",
        "the option with its filter as given, as in `\"-Type Evnt\"`; options that are not text \
         filters without their value, as in `\"-MinMaxTime\"`. No object or allocation passes \
         this filter and those before it, in filter order",
        |(_, no_match)| InOptions(no_match).option(),
    );
    columns.member(
        "before",
        "number of objects or allocations that pass the filters before it; for other lists, \
         number of rows",
        |(_, no_match)| no_match.before,
    );
    columns.member("nearest", "what may have been meant, as options", |(_, no_match)| {
        InOptions(no_match).nearest_options()
    });
    columns.member(
        "existing",
        "if no name is close: some of the existing names of processes and types, for allocations \
         also of kinds and allocators",
        |(_, no_match)| &no_match.existing,
    );
    columns
}

/// Declares a document with rows, and with the reason if there are none.
pub fn list_document<'a>(
    name: &'static str,
    rows: &'static str,
    no_match: &'static str,
) -> Columns<'a, Option<NoMatchRow<'a>>> {
    let mut columns = Columns::<Option<NoMatchRow<'a>>>::with_rows(name, rows);
    columns.no_match(no_match, |first| *first);
    columns
}

/// Returns the first file's reason why nothing matches.
pub fn first_no_match<'a, T>(answers: &'a [ListAnswer<'_, T>]) -> Option<NoMatchRow<'a>> {
    answers.iter().find_map(|answer| Some((answer.index, answer.no_match.as_ref()?)))
}

impl<'a, H> Columns<'a, H> {
    /// Adds the reason why nothing matches.
    pub fn no_match(
        &mut self,
        meaning: &'static str,
        first: impl Fn(&H) -> Option<NoMatchRow<'a>> + 'a,
    ) {
        self.member_if("no_match", meaning, move |about| {
            Some(no_match_columns().part(first(about)?))
        });
    }
}
