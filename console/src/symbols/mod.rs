//! Symbols in a session: asking for names while somebody watches, and telling what is missing.

mod notes;
mod store;
mod watched;

pub(crate) use notes::SymbolNotes;
pub(crate) use store::{NameSearch, found_names, store_names};
pub(crate) use watched::WatchedSymbols;
