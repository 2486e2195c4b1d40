//! One option of a command: its names, its documentation, and what its value sets.

use crate::{
    command::{CountRange, CountUnit, SecondsRange, Token, TopN, ValueError, address},
    filter::{Filter, FilterError, ProcessFilter},
    registry::suggest,
};

/// What is written about an option.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    /// Its names with their `-`; the first is the one that is shown.
    pub names: &'static [&'static str],
    /// One line.
    pub help: &'static str,
    /// What it means exactly.
    pub details: &'static str,
    /// The option with a value, as one would type it.
    pub example: &'static str,
}

/// An option that fills a field of `A`, the arguments of its command.
pub struct Opt<A: 'static> {
    /// What is written about it.
    pub doc: Doc,
    /// Its value, and the field it goes to.
    pub take: Take<A>,
}

/// A value and where it goes. Kind and field are one thing, so that they cannot disagree.
pub enum Take<A: 'static> {
    /// No value: switches the field on.
    Switch(fn(&mut A) -> &mut bool),
    /// No value: does something to the arguments.
    Set(fn(&mut A)),
    /// A filter on text.
    Filter(fn(&mut A) -> &mut Option<Filter>),
    /// A filter on processes.
    Processes(fn(&mut A) -> &mut Option<ProcessFilter>),
    /// `min [max]` in seconds.
    Seconds(fn(&mut A) -> &mut Option<SecondsRange>),
    /// `min [max]` of a count.
    Count(CountUnit, fn(&mut A) -> &mut Option<CountRange>),
    /// `n [skip]`.
    Top(fn(&mut A) -> &mut Option<TopN>),
    /// An address.
    Address(fn(&mut A) -> &mut Option<u64>),
    /// One of a few words.
    Choice(&'static [Choice<A>]),
}

/// One of the words an option knows.
pub struct Choice<A: 'static> {
    /// The word.
    pub word: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What it does to the arguments.
    pub set: fn(&mut A),
}

/// What kind of value an option takes, for help, completion and highlighting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueKind {
    /// None.
    None,
    /// A filter on text.
    Filter,
    /// A filter on processes.
    Processes,
    /// `min [max]` in seconds.
    Seconds,
    /// `min [max]` of a count.
    Count(CountUnit),
    /// `n [skip]`.
    Top,
    /// An address.
    Address,
    /// One of these words, each with its meaning.
    Choice(Vec<(&'static str, &'static str)>),
}

impl ValueKind {
    /// What stands for the value in the help; empty when there is none.
    pub fn placeholder(&self) -> String {
        match self {
            ValueKind::None => String::new(),
            ValueKind::Filter => "FILTER".into(),
            ValueKind::Processes => "PROCESSES".into(),
            ValueKind::Seconds => "SECONDS [MAX]".into(),
            ValueKind::Count(CountUnit::None) => "MIN [MAX]".into(),
            ValueKind::Count(CountUnit::Bytes) => "BYTES [MAX]".into(),
            ValueKind::Top => "N [SKIP]".into(),
            ValueKind::Address => "ADDRESS".into(),
            ValueKind::Choice(words) => {
                words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join("|")
            }
        }
    }

    /// How many values it takes at least and at most. A value that may be missing takes the next
    /// token whenever that does not look like an option.
    pub fn arity(&self) -> (usize, usize) {
        match self {
            ValueKind::None => (0, 0),
            ValueKind::Filter
            | ValueKind::Processes
            | ValueKind::Address
            | ValueKind::Choice(_) => (1, 1),
            ValueKind::Seconds | ValueKind::Count(_) | ValueKind::Top => (1, 2),
        }
    }
}

/// An option whose arguments are of no interest: what help, completion and highlighting see.
pub trait OptionSpec: Sync {
    /// What is written about it.
    fn doc(&self) -> &Doc;
    /// Its kind of value.
    fn value(&self) -> ValueKind;
    /// Whether it would take these values.
    fn check(&self, values: &[Token]) -> Result<(), ValueError>;

    /// The name that is shown.
    fn name(&self) -> &'static str {
        self.doc().names.first().copied().unwrap_or_default()
    }

    /// Whether it goes by this name, in any case.
    fn is_named(&self, name: &str) -> bool {
        self.doc().names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Names and value: `-pn, -ProcessName PROCESSES`.
    fn usage(&self) -> String {
        let names = self.doc().names.join(", ");
        let placeholder = self.value().placeholder();
        if placeholder.is_empty() { names } else { format!("{names} {placeholder}") }
    }

    /// The line of the help about this option.
    fn help_line(&self) -> String {
        format!("{}  {}", self.usage(), self.doc().help)
    }
}

impl<A: Default> OptionSpec for Opt<A> {
    fn doc(&self) -> &Doc {
        &self.doc
    }

    fn value(&self) -> ValueKind {
        match &self.take {
            Take::Switch(_) | Take::Set(_) => ValueKind::None,
            Take::Filter(_) => ValueKind::Filter,
            Take::Processes(_) => ValueKind::Processes,
            Take::Seconds(_) => ValueKind::Seconds,
            Take::Count(unit, _) => ValueKind::Count(*unit),
            Take::Top(_) => ValueKind::Top,
            Take::Address(_) => ValueKind::Address,
            Take::Choice(words) => {
                ValueKind::Choice(words.iter().map(|choice| (choice.word, choice.help)).collect())
            }
        }
    }

    fn check(&self, values: &[Token]) -> Result<(), ValueError> {
        self.apply(&mut A::default(), values)
    }
}

impl<A> Opt<A> {
    /// Reads the values and sets the field. An option given twice counts as last given.
    pub(crate) fn apply(&self, args: &mut A, values: &[Token]) -> Result<(), ValueError> {
        let value = |index: usize| values.get(index).map(|token| token.text.as_str());
        let (first, second) = (value(0).unwrap_or_default(), value(1));
        match &self.take {
            Take::Switch(field) => *field(args) = true,
            Take::Set(set) => set(args),
            Take::Filter(field) => *field(args) = Some(Filter::new(first).map_err(refused)?),
            Take::Processes(field) => {
                *field(args) = Some(ProcessFilter::new(first).map_err(refused)?);
            }
            Take::Seconds(field) => *field(args) = Some(SecondsRange::parse(first, second)?),
            Take::Count(unit, field) => {
                *field(args) = Some(CountRange::parse(*unit, first, second)?);
            }
            Take::Top(field) => *field(args) = Some(TopN::parse(first, second)?),
            Take::Address(field) => *field(args) = Some(address(first)?),
            Take::Choice(words) => choose(words, first)?(args),
        }
        Ok(())
    }
}

/// A filter's error as a reason to refuse a value.
#[allow(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn refused(error: FilterError) -> ValueError {
    ValueError::Filter { reason: error.to_string() }
}

/// What the word does.
fn choose<A>(words: &[Choice<A>], word: &str) -> Result<fn(&mut A), ValueError> {
    if let Some(choice) = words.iter().find(|choice| choice.word.eq_ignore_ascii_case(word)) {
        return Ok(choice.set);
    }
    let names: Vec<&str> = words.iter().map(|choice| choice.word).collect();
    Err(ValueError::NoChoice {
        value: word.to_owned(),
        choices: names.join(", "),
        hint: suggest::nearest(word, names).map_or_else(String::new, suggest::did_you_mean),
    })
}
