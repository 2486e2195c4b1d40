//! Reasons for an empty answer, in the options that a user types.

use std::fmt::{self, Display, Formatter};

use indicatif::HumanCount;

use handlescope_query::{Criterion, NoMatch, Subject};

/// The option of a criterion, by the name that is shown.
pub fn option(criterion: Criterion) -> &'static str {
    match criterion {
        Criterion::Process => "-pn",
        Criterion::LeakOrAtExit => "-Leak -LeakAtExit",
        criterion => criterion.name(),
    }
}

/// The words for one and for several.
fn words(subject: Subject) -> (&'static str, &'static str) {
    match subject {
        Subject::Object => ("object", "objects"),
        Subject::Allocation => ("allocation", "allocations"),
        Subject::Process => ("process", "processes"),
        Subject::Module => ("module", "modules"),
        Subject::Stack => ("stack", "stacks"),
        Subject::EventKind => ("kind of events", "kinds of events"),
        Subject::Event => ("event", "events"),
    }
}

/// A criterion with its value as an option, as in `-Type Evnt`.
fn option_with(criterion: Criterion, value: &str) -> String {
    let option = option(criterion);
    if value.is_empty() { option.to_owned() } else { format!("{option} {value}") }
}

/// A reason for an empty answer, in the options that a user types.
#[derive(Clone, Copy)]
pub struct InOptions<'a>(pub &'a NoMatch);

impl InOptions<'_> {
    /// The option that removed everything, as it was typed.
    pub fn option(&self) -> String {
        option_with(self.0.criterion, &self.0.value)
    }

    /// Returns the likely intended values, as options.
    pub fn nearest_options(&self) -> Vec<String> {
        self.0.nearest.iter().map(|value| option_with(self.0.criterion, value)).collect()
    }
}

impl Display for InOptions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (singular, plural) = words(self.0.subject);
        let noun = if self.0.before == 1 { singular } else { plural };
        let (before, option) = (HumanCount(self.0.before as u64), self.option());
        write!(f, "nothing matches: none of {before} {noun} passes {option}")?;
        match (self.nearest_options().as_slice(), self.0.existing.as_slice()) {
            ([], []) => Ok(()),
            ([], existing) => write!(f, "; there are {}", existing.join(", ")),
            (nearest, _) => write!(f, ", did you mean {}?", nearest.join(" or ")),
        }
    }
}
