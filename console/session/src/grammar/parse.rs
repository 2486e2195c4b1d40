//! Parses tokens into options and words by the table of options, and the errors in a command line.

use std::error::Error;
use std::ffi::OsString;

use handlescope_model::Untrusted;
use thiserror::Error;

use super::option::{OptionGroup, OptionSpec};
use super::token::{Quotes, Token};
use crate::suggest;
use crate::values::ValueError;

/// An error in a command line. Every message names what was typed and what to type instead.
#[derive(Debug, Error)]
pub enum ParseError {
    /// The first word is not a command.
    #[error("unknown command {}{hint}", Untrusted(.name))]
    UnknownCommand {
        name: String,
        /// The nearest command, or how to list them.
        hint: String,
    },
    /// A word that is not UTF-8, which only file names can be.
    #[error(
        "'{}' is not UTF-8; rename the file, or name it with * or ? in place of the other bytes",
        Untrusted(.word)
    )]
    NotText { word: OsString },
    /// An option that the command does not have.
    #[error("unknown option {}{hint}{help}", Untrusted(.name))]
    UnknownOption {
        name: String,
        /// The nearest option, or how to list them.
        hint: String,
        /// Help line of the nearest option, on a line of its own; may be empty.
        help: String,
    },
    /// An option of other commands.
    #[error("{} is an option of {places}, not of {command}", Untrusted(.name))]
    OptionElsewhere {
        name: String,
        command: String,
        /// The commands and kinds of `.dump` that have it.
        places: String,
    },
    /// A word where only options are expected.
    #[error("unexpected '{}'{hint}{help}", Untrusted(.word))]
    UnexpectedWord {
        word: String,
        /// The nearest option, or how to list them.
        hint: String,
        /// Help line of the nearest option, on a line of its own; may be empty.
        help: String,
    },
    /// An option without its value.
    #[error("{option} needs a value\n  {help}")]
    MissingValue { option: String, help: String },
    /// An option with a value it cannot take.
    #[error("{option}: {source}\n  {help}")]
    BadValue { option: String, help: String, source: ValueError },
    /// An option with a value, given twice.
    #[error("{option} is given twice; separate several values of a filter with ;\n  {help}")]
    Repeated { option: String, help: String },
    /// A quote that is never closed.
    #[error("the quote in front of '{}' is never closed", Untrusted(.text))]
    OpenQuote { text: String },
    /// Two options that cannot be combined.
    #[error("{option} and {other} cannot be combined: {reason}")]
    Conflict { option: &'static str, other: &'static str, reason: &'static str },
    /// A command without its argument.
    #[error("{command} needs {argument}")]
    MissingArgument { command: String, argument: &'static str },
    /// More arguments than the command takes.
    #[error("{command} takes {takes}; unexpected '{}'", Untrusted(.word))]
    TooManyArguments {
        command: String,
        takes: &'static str,
        /// The first one too many.
        word: String,
    },
    /// An error specific to one command.
    #[error(transparent)]
    Refused(Box<dyn Error + Send + Sync>),
}

impl ParseError {
    pub fn refused(error: impl Error + Send + Sync + 'static) -> ParseError {
        ParseError::Refused(Box::new(error))
    }

    /// Reports a word where its kind is not allowed.
    pub fn unexpected(word: &Token, hint: impl Into<String>) -> ParseError {
        let (word, hint) = (word.text.clone(), hint.into());
        ParseError::UnexpectedWord { word, hint, help: String::new() }
    }
}

/// A piece of a command line after the command.
pub enum Item<'t> {
    /// A known option with the values after it: as many as it takes, or fewer if there are no more.
    Option {
        spec: &'static dyn OptionSpec,
        /// The name as typed.
        name: &'t Token,
        values: &'t [Token],
    },
    /// Something that looks like an option.
    Unknown(&'t Token),
    /// Anything else.
    Word(&'t Token),
}

/// Groups tokens into words and options with their values.
pub fn known_items<'t>(
    options: &[&'static dyn OptionSpec],
    mut tokens: &'t [Token],
) -> Vec<Item<'t>> {
    let mut items = Vec::new();
    while let Some((token, rest)) = tokens.split_first() {
        tokens = rest;
        if !token.is_switch() {
            // An option in a pasted line must not become a word.
            let is_option = token.has_typographic_dash();
            items.push(if is_option { Item::Unknown(token) } else { Item::Word(token) });
            continue;
        }
        let Some(spec) = options.iter().find(|option| option.is_named(&token.text)) else {
            items.push(Item::Unknown(token));
            continue;
        };
        let value = spec.value();
        let (_, most) = value.arity;
        let taken = rest
            .iter()
            .take(most)
            .enumerate()
            .position(|(index, word)| word.is_switch() || !value.takes(index, &word.text))
            .unwrap_or(most.min(rest.len()));
        let (values, behind) = rest.split_at(taken);
        items.push(Item::Option { spec: *spec, name: token, values });
        tokens = behind;
    }
    items
}

/// Returns the words between options.
pub fn words<'t>(options: &[&'static dyn OptionSpec], tokens: &'t [Token]) -> Vec<&'t Token> {
    known_items(options, tokens)
        .into_iter()
        .filter_map(|item| match item {
            Item::Word(token) => Some(token),
            _ => None,
        })
        .collect()
}

/// Returns the last option if it still needs values.
pub fn incomplete_option(
    options: &[&'static dyn OptionSpec],
    tokens: &[Token],
) -> Option<&'static dyn OptionSpec> {
    match known_items(options, tokens).pop()? {
        Item::Option { spec, values, .. } => (values.len() < spec.value().arity.0).then_some(spec),
        _ => None,
    }
}

/// Parses a command that takes only options: its own and `shared` ones. Its own option wins over a shared one of the
/// same name. `page` is the command line that lists them.
pub fn options<A: Default + 'static, S: Default + 'static>(
    page: &str,
    tokens: &[Token],
    options: &'static [OptionGroup<A>],
    shared: &'static [OptionGroup<S>],
) -> Result<(A, S), ParseError> {
    let (args, common, words) = options_and_words(page, tokens, options, shared)?;
    match words.first() {
        None => Ok((args, common)),
        Some(word) => Err(unknown(page, word, &all_specs(options, shared))),
    }
}

/// Like [`options`], but also returns the words between the options.
pub fn options_and_words<'t, A: Default + 'static, S: Default + 'static>(
    page: &str,
    tokens: &'t [Token],
    options: &'static [OptionGroup<A>],
    shared: &'static [OptionGroup<S>],
) -> Result<(A, S, Vec<&'t Token>), ParseError> {
    let (mut args, mut common) = (A::default(), S::default());
    let known = all_specs(options, shared);
    let words = read(page, tokens, &known, |name, values| {
        set(options, name, values, &mut args)
            .or_else(|| set(shared, name, values, &mut common))
            .unwrap_or(Ok(()))
    })?;
    Ok((args, common, words))
}

fn all_specs<A: Default, S: Default>(
    options: &'static [OptionGroup<A>],
    shared: &'static [OptionGroup<S>],
) -> Vec<&'static dyn OptionSpec> {
    specs(options).into_iter().chain(specs(shared)).collect()
}

/// Passes each option its values, and returns the words between options.
fn read<'t>(
    page: &str,
    tokens: &'t [Token],
    known: &[&'static dyn OptionSpec],
    mut set: impl FnMut(&str, &[Token]) -> Result<(), ValueError>,
) -> Result<Vec<&'t Token>, ParseError> {
    check_quotes(tokens)?;
    let mut words = Vec::new();
    let mut given: Vec<&'static str> = Vec::new();
    for item in known_items(known, tokens) {
        match item {
            Item::Word(token) => words.push(token),
            Item::Unknown(token) => return Err(unknown(page, token, known)),
            Item::Option { spec, name, values } => {
                let (option, help) = (name.text.clone(), spec.help_line());
                let value = spec.value();
                if values.len() < value.arity.0 {
                    return Err(ParseError::MissingValue { option, help });
                }
                // The first value would be silently ignored.
                if let Some(&first) = spec.doc().names.first().filter(|_| !value.is_repeatable) {
                    if given.contains(&first) {
                        return Err(ParseError::Repeated { option, help });
                    }
                    given.push(first);
                }
                set(&name.text, values).map_err(|source| ParseError::BadValue {
                    option,
                    help,
                    source,
                })?;
            }
        }
    }
    Ok(words)
}

/// Rejects a quote that is never closed, because it would swallow the rest of the line.
///
/// # Errors
/// Quotes the text after the quote.
pub fn check_quotes(tokens: &[Token]) -> Result<(), ParseError> {
    match tokens.iter().find(|token| token.quotes == Quotes::Open) {
        None => Ok(()),
        Some(open) => Err(ParseError::OpenQuote { text: open.text.clone() }),
    }
}

/// Applies the option of this name, if there is one.
fn set<A: Default>(
    groups: &'static [OptionGroup<A>],
    name: &str,
    values: &[Token],
    args: &mut A,
) -> Option<Result<(), ValueError>> {
    let option =
        groups.iter().flat_map(|group| group.options).find(|option| option.is_named(name))?;
    Some(option.apply(args, values))
}

fn specs<A: Default>(groups: &'static [OptionGroup<A>]) -> Vec<&'static dyn OptionSpec> {
    groups.iter().flat_map(|group| group.options).map(|option| option as _).collect()
}

/// Returns the error for a token that belongs to no option.
fn unknown(page: &str, token: &Token, known: &[&'static dyn OptionSpec]) -> ParseError {
    let names = known
        .iter()
        .filter(|option| option.has_effect())
        .flat_map(|option| option.doc().names)
        .copied();
    let nearest = suggest::nearest(&token.text, names)
        .and_then(|name| Some((name, known.iter().find(|option| option.is_named(name))?)));
    let (hint, help) = match nearest {
        Some((name, option)) => {
            (suggest::did_you_mean(name), format!("\n  {}", option.help_line()))
        }
        None => (format!("; {page} lists the options"), String::new()),
    };
    let name = token.text.clone();
    if token.is_switch() {
        ParseError::UnknownOption { name, hint, help }
    } else {
        ParseError::UnexpectedWord { word: name, hint, help }
    }
}
