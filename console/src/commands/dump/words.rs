//! The words after `.dump`.

use crate::{
    commands::{AnyKind, Registry},
    grammar::{
        OptionSpec, Token,
        parse::{Item, known_items},
    },
};

/// The words after `.dump`. The kind may stand anywhere between the options.
pub(crate) struct DumpWords<'t> {
    /// The word for the kind: the kind among the words that are neither options nor their values,
    /// or else the first of them.
    pub(crate) word: Option<&'t Token>,
    /// The kind, if the word is one.
    pub(crate) kind: Option<&'static dyn AnyKind>,
    /// The other words: options and their values.
    pub(crate) others: Vec<Token>,
}

impl<'t> DumpWords<'t> {
    /// Looks for the kind.
    pub(crate) fn of(tokens: &'t [Token], registry: &Registry) -> DumpWords<'t> {
        let items = known_items(&options_of_any_kind(registry), tokens);
        let words = items.into_iter().filter_map(|item| match item {
            Item::Word(token) => Some(token),
            _ => None,
        });
        let words: Vec<&Token> = words.collect();
        let named = words.iter().find(|word| registry.kind(&word.text).is_some());
        let word = named.or(words.first()).copied();
        let is_other = |token: &&Token| word.is_none_or(|word| word.span != token.span);
        DumpWords {
            word,
            kind: word.and_then(|word| registry.kind(&word.text)),
            others: tokens.iter().filter(is_other).cloned().collect(),
        }
    }

    /// The options that may be meant: those of the kind, or before it is known, those of any.
    pub(crate) fn options(&self, registry: &Registry) -> Vec<&'static dyn OptionSpec> {
        self.kind.map_or_else(|| options_of_any_kind(registry), AnyKind::options)
    }
}

/// The options of all kinds; several may have one name.
fn options_of_any_kind(registry: &Registry) -> Vec<&'static dyn OptionSpec> {
    registry.kinds.iter().flat_map(|kind| kind.options()).collect()
}
