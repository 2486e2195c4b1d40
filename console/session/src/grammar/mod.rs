//! The language of the prompt: tokens, options with their values, and what can be wrong with a line.
//! Knows no command.

mod comments;
mod option;
pub mod parse;
mod redirect;
mod token;

pub use comments::{starts_comment, without_comments};
pub use option::{
    Arguments, Doc, Example, GroupView, Opt, OptionGroup, OptionSpec, Take, Texts, ValueKind,
};
pub use option::{Choices, choice, words};
pub use parse::ParseError;
pub use redirect::{Redirect, Target, definition, definition_start};
pub use token::{Quotes, Token, join, split, with_plain_dashes};
