//! What follows the name of a command: how many words, and what they stand for.

use super::{AnyCommand, Entered, help_on};
use crate::{
    grammar::{ParseError, Token, parse},
    values::ValueError,
};

impl<'a> Entered<'a> {
    /// The line that lists its options.
    pub(in crate::commands) fn help(&self) -> String {
        help_on(self.name)
    }

    pub(in crate::commands) fn texts(&self) -> Vec<String> {
        self.tokens.iter().map(|token| token.text.clone()).collect()
    }

    /// # Errors
    /// When there is any argument.
    pub(in crate::commands) fn takes_nothing(&self) -> Result<(), ParseError> {
        self.at_most("no argument").map(|[]| ())
    }

    /// The arguments, of which there are `N` at most.
    pub(in crate::commands) fn at_most<const N: usize>(
        &self,
        takes: &'static str,
    ) -> Result<[Option<&'a Token>; N], ParseError> {
        parse::check_quotes(self.tokens)?;
        match self.tokens.get(N) {
            Some(word) => Err(self.too_many(takes, word)),
            None => Ok(std::array::from_fn(|index| self.tokens.get(index))),
        }
    }

    /// The one word between the options, if there is any.
    pub(in crate::commands) fn at_most_one(
        &self,
        words: &[&Token],
        takes: &'static str,
    ) -> Result<Option<String>, ParseError> {
        match words {
            [] => Ok(None),
            [word] => Ok(Some(word.text.clone())),
            [_, second, ..] => Err(self.too_many(takes, second)),
        }
    }

    pub(in crate::commands) fn missing(&self, what: &'static str) -> ParseError {
        ParseError::MissingArgument { command: self.name.to_owned(), what }
    }

    pub(in crate::commands) fn too_many(&self, takes: &'static str, word: &Token) -> ParseError {
        let (command, word) = (self.name.to_owned(), word.text.clone());
        ParseError::TooManyArguments { command, takes, word }
    }

    /// What an argument stands for.
    pub(in crate::commands) fn value<T>(
        &self,
        argument: &Token,
        parse: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Result<T, ParseError> {
        let help = |command: &dyn AnyCommand| {
            format!("{}  {}", command.usage(), command.signature().summary)
        };
        parse(&argument.text).map_err(|source| ParseError::BadValue {
            option: self.name.to_owned(),
            help: self.registry.command(self.name).map_or_else(String::new, help),
            source,
        })
    }
}
