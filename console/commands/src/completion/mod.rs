//! Completion of command lines, from the registry.

mod completer;
mod filter_values;
mod paths;
mod sql_completer;

pub use completer::{CommandCompleter, complete};
pub use filter_values::{Known, KnownViews, SharedKnown};
pub use paths::starts_with;
pub use sql_completer::{is_keyword, is_word, keywords};
