//! From tokens to options and words, by the table of options.

use super::{error::ParseError, line::Token};
use crate::registry::{Opt, OptionGroup, OptionSpec, suggest};

/// A piece of a command line behind the command.
#[derive(Debug)]
pub(crate) enum Item<'t, T> {
    /// A known option with the values that follow it, as many as it takes and there are.
    Option {
        /// What the option was found as.
        spec: T,
        /// Its name as typed.
        name: &'t Token,
        /// Its values.
        values: &'t [Token],
    },
    /// Something that looks like an option.
    Unknown(&'t Token),
    /// Anything else.
    Word(&'t Token),
}

/// Groups tokens into options with their values, and words. `find` knows the options and how many
/// values each takes at most.
pub(crate) fn items<'t, T>(
    mut tokens: &'t [Token],
    find: impl Fn(&str) -> Option<(T, usize)>,
) -> Vec<Item<'t, T>> {
    let mut items = Vec::new();
    while let Some((token, rest)) = tokens.split_first() {
        tokens = rest;
        if !token.is_switch() {
            items.push(Item::Word(token));
            continue;
        }
        let Some((spec, most)) = find(&token.text) else {
            items.push(Item::Unknown(token));
            continue;
        };
        let taken = rest.iter().take(most).take_while(|value| !value.is_switch()).count();
        let (values, behind) = rest.split_at(taken);
        items.push(Item::Option { spec, name: token, values });
        tokens = behind;
    }
    items
}

/// Groups tokens by options whose arguments are of no interest.
pub(crate) fn known_items<'t>(
    options: &[&'static dyn OptionSpec],
    tokens: &'t [Token],
) -> Vec<Item<'t, &'static dyn OptionSpec>> {
    items(tokens, |name| {
        let option = *options.iter().find(|option| option.is_named(name))?;
        Some((option, option.value().arity().1))
    })
}

/// The option at the end that has fewer values than it needs.
pub(crate) fn waiting(
    options: &[&'static dyn OptionSpec],
    tokens: &[Token],
) -> Option<&'static dyn OptionSpec> {
    match known_items(options, tokens).pop()? {
        Item::Option { spec, values, .. } => {
            (values.len() < spec.value().arity().0).then_some(spec)
        }
        _ => None,
    }
}

/// Fills the arguments of a command that has options only. `topic` is what to ask `.help` for.
pub(crate) fn options<A: Default + 'static>(
    topic: &str,
    tokens: &[Token],
    groups: &'static [OptionGroup<A>],
) -> Result<A, ParseError> {
    let (args, words) = options_and_words(topic, tokens, groups)?;
    match words.first() {
        None => Ok(args),
        Some(word) => Err(unknown(topic, word, groups)),
    }
}

/// Fills the arguments of a command from its options, and returns the words between them.
pub(crate) fn options_and_words<'t, A: Default + 'static>(
    topic: &str,
    tokens: &'t [Token],
    groups: &'static [OptionGroup<A>],
) -> Result<(A, Vec<&'t Token>), ParseError> {
    let find = |name: &str| {
        let option = all(groups).find(|option| option.is_named(name))?;
        Some((option, option.value().arity().1))
    };
    let (mut args, mut words) = (A::default(), Vec::new());
    for item in items(tokens, find) {
        match item {
            Item::Option { spec, name, values } => take(spec, name, values, &mut args)?,
            Item::Unknown(token) => return Err(unknown(topic, token, groups)),
            Item::Word(token) => words.push(token),
        }
    }
    Ok((args, words))
}

fn all<A>(groups: &'static [OptionGroup<A>]) -> impl Iterator<Item = &'static Opt<A>> {
    groups.iter().flat_map(|group| group.options)
}

/// Hands an option its values.
fn take<A: Default + 'static>(
    option: &Opt<A>,
    name: &Token,
    values: &[Token],
    args: &mut A,
) -> Result<(), ParseError> {
    if values.len() < option.value().arity().0 {
        return Err(ParseError::MissingValue {
            option: name.text.clone(),
            help: option.help_line(),
        });
    }
    option.apply(args, values).map_err(|source| ParseError::BadValue {
        option: name.text.clone(),
        help: option.help_line(),
        source,
    })
}

/// The error about a token that belongs to no option.
fn unknown<A: Default + 'static>(
    topic: &str,
    token: &Token,
    groups: &'static [OptionGroup<A>],
) -> ParseError {
    let names = all(groups).flat_map(|option| option.doc.names).copied();
    let nearest = suggest::nearest(&token.text, names)
        .and_then(|name| Some((name, all(groups).find(|option| option.is_named(name))?)));
    let (hint, help) = match nearest {
        Some((name, option)) => {
            (suggest::did_you_mean(name), format!("\n  {}", option.help_line()))
        }
        None => (format!("; .help {topic} lists the options"), String::new()),
    };
    let name = token.text.clone();
    if token.is_switch() {
        ParseError::UnknownOption { name, hint, help }
    } else {
        ParseError::UnexpectedWord { word: name, hint, help }
    }
}
