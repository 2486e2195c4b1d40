//! The language of the prompt: tokens, options with their values, and what can be wrong with a line.
//! Knows no command.

mod comments;
mod option;
pub(crate) mod parse;
mod redirect;
mod token;

pub(crate) use comments::{starts_comment, without_comments};
pub use option::{
    Arguments, Doc, Example, GroupView, Opt, OptionGroup, OptionSpec, Take, Texts, ValueKind,
};
pub(crate) use option::{Choices, choice, words};
pub use parse::ParseError;
pub(crate) use redirect::{Redirect, Target, definition, definition_start};
pub use token::{Quotes, Token, join, split, with_plain_dashes};
