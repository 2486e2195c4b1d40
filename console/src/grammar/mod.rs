//! The language of the prompt: tokens, options with their values, and what can be wrong with a line.
//! Knows no command.

mod arguments;
mod error;
mod group;
mod option;
pub(crate) mod parse;
mod redirect;
mod token;

pub use arguments::{Arguments, Example};
pub use error::ParseError;
pub use group::{GroupView, OptionGroup};
pub use option::{Choice, Doc, Opt, OptionSpec, Take, Texts, ValueKind};
pub(crate) use redirect::{Redirect, Target, definition, definition_start};
pub use token::{Quotes, Token, join, split};
