//! Arguments and options of a command: option names, their documentation, what their values set, and their headings in
//! the help.

use super::token::Token;
use super::value::{ValueKind, WordMeanings};
use crate::values::ValueError;

/// Arguments that may follow the name of a command.
#[derive(Debug, Clone, Copy)]
pub enum Arguments {
    None,
    /// The options of the command.
    Options,
    /// At most this many points in time, with options around them.
    Points(usize),
    /// Files on disk.
    Files,
    /// A folder on disk.
    Folder,
    /// One of these words, then anything.
    Word(fn() -> WordMeanings),
    /// Tables and views of SQL.
    Relations,
    /// A query, with options around it.
    Sql,
    LoadedFiles,
    SymbolPath,
    /// A kind of question, then its options.
    Kind,
    /// A command, or a kind of question.
    Topic,
    /// A setting, then its value.
    Setting,
    /// A name, then `=` and a command line.
    Alias,
}

/// A command line that is worth knowing.
#[derive(Clone, Copy)]
pub struct Example {
    /// What it is for, if the line does not say so.
    pub goal: &'static str,
    pub line: &'static str,
}

impl Example {
    /// Creates examples without goals.
    pub const fn lines<const N: usize>(lines: [&'static str; N]) -> [Example; N] {
        let mut examples = [Example { goal: "", line: "" }; N];
        let mut index = 0;
        while index < N {
            examples[index].line = lines[index];
            index += 1;
        }
        examples
    }
}

/// Documentation of an option.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    /// Names with their `-`; the first one is shown.
    pub names: &'static [&'static str],
    /// One-line summary.
    pub help: &'static str,
    /// Full explanation.
    pub details: &'static str,
    /// The option with a value, as typed.
    pub example: &'static str,
}

/// An option that fills fields of `A`, the arguments of its command.
pub struct Opt<A: 'static> {
    /// Names with their `-`; the first one is shown.
    pub names: &'static [&'static str],
    /// One-line summary.
    pub help: &'static str,
    /// Full explanation.
    pub details: &'static str,
    /// The option with a value, as typed.
    pub example: &'static str,
    /// The value, and the field it sets.
    pub take: &'static dyn Take<A>,
}

// A derived implementation would require `A: Clone`.
impl<A> Clone for Opt<A> {
    fn clone(&self) -> Opt<A> {
        *self
    }
}

impl<A> Copy for Opt<A> {}

/// A value and the setter of its field. They share a type, so they cannot disagree.
pub type To<A, T> = (ValueKind<T>, fn(&mut A, T));

/// [`To`] for values of any type.
pub trait Take<A>: Sync {
    fn value(&self) -> ValueKind<()>;

    /// Reads the value and sets the field. If an option is given twice, the last one counts.
    fn apply(&self, args: &mut A, words: &[&str]) -> Result<(), ValueError>;
}

impl<A, T: Sync> Take<A> for To<A, T> {
    fn value(&self) -> ValueKind<()> {
        self.0.any()
    }

    fn apply(&self, args: &mut A, words: &[&str]) -> Result<(), ValueError> {
        let (value, set) = self;
        set(args, (value.read)(value, words)?);
        Ok(())
    }
}

/// Where an option's value goes. Tells the compiler the type of the arguments.
pub const fn to<A, T: Sync>(to: &'static To<A, T>) -> &'static dyn Take<A> {
    to
}

/// Words, their meanings, and the value of each.
pub type WordChoices<T> = [(&'static str, &'static str, T)];

/// Returns the words with their meanings.
pub fn words<T>(choices: &WordChoices<T>) -> WordMeanings {
    choices.iter().map(|(word, meaning, _)| (*word, *meaning)).collect()
}

/// Returns the value of the word at an index.
pub fn choice<T: Copy>(choices: &WordChoices<T>, index: usize) -> Option<T> {
    choices.get(index).map(|(.., choice)| *choice)
}

/// An option for arguments of any type, as help, completion and highlighting see it.
pub trait OptionSpec: Sync {
    /// Documentation of the option.
    fn doc(&self) -> Doc;
    fn value(&self) -> ValueKind<()>;
    /// Whether it would accept these values.
    fn check(&self, values: &[Token]) -> Result<(), ValueError>;

    /// The name shown to users.
    fn name(&self) -> &'static str {
        self.doc().names.first().copied().unwrap_or_default()
    }

    /// Whether this is one of its names, ignoring case.
    fn is_named(&self, name: &str) -> bool {
        self.doc().names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Whether it does anything, rather than just being accepted.
    fn has_effect(&self) -> bool {
        self.value().has_effect
    }

    /// Names and placeholder: `-pn, -ProcessName PROCESSES`.
    fn usage(&self) -> String {
        let names = self.doc().names.join(", ");
        let placeholder = self.value().placeholder();
        if placeholder.is_empty() { names } else { format!("{names} {placeholder}") }
    }

    /// Its line in the help.
    fn help_line(&self) -> String {
        format!("{}  {}", self.usage(), self.doc().help)
    }
}

impl<A: Default> OptionSpec for Opt<A> {
    fn doc(&self) -> Doc {
        let Opt { names, help, details, example, .. } = *self;
        Doc { names, help, details, example }
    }

    fn value(&self) -> ValueKind<()> {
        self.take.value()
    }

    fn check(&self, values: &[Token]) -> Result<(), ValueError> {
        self.apply(&mut A::default(), values)
    }
}

impl<A> Opt<A> {
    /// Reads the values and sets the field.
    pub fn apply(&self, args: &mut A, values: &[Token]) -> Result<(), ValueError> {
        let words: Vec<&str> = values.iter().map(|token| token.text.as_str()).collect();
        self.take.apply(args, &words)
    }
}

/// Options that serve one purpose.
pub struct OptionGroup<A: 'static> {
    /// The purpose, which is the heading in the help.
    pub title: &'static str,
    pub options: &'static [Opt<A>],
}

/// An [`OptionGroup`] for arguments of any type.
pub struct GroupView {
    /// The purpose, which is the heading in the help.
    pub title: &'static str,
    pub options: Vec<&'static dyn OptionSpec>,
}

impl GroupView {
    /// Creates views of groups, without the type of their arguments.
    pub fn all<A: Default>(groups: &'static [OptionGroup<A>]) -> Vec<GroupView> {
        groups
            .iter()
            .map(|group| GroupView {
                title: group.title,
                options: group.options.iter().map(|option| option as _).collect(),
            })
            .collect()
    }

    /// Adds the shared groups, without shared options that have the name of another option.
    pub fn with_shared(mut groups: Vec<GroupView>, shared: Vec<GroupView>) -> Vec<GroupView> {
        for GroupView { title, mut options } in shared {
            options.retain(|option| {
                let mut known = groups.iter().flat_map(|group| &group.options);
                !known.any(|known| option.doc().names.iter().any(|name| known.is_named(name)))
            });
            match groups.iter_mut().find(|group| group.title == title) {
                Some(group) => group.options.splice(0..0, options).for_each(drop),
                None => groups.push(GroupView { title, options }),
            }
        }
        groups.retain(|group| !group.options.is_empty());
        groups
    }
}
