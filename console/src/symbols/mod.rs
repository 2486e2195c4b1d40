//! Symbols in a session: asking for names while somebody watches, and telling what is missing.

mod notes;
mod watched;

pub(crate) use notes::SymbolNotes;
pub(crate) use watched::WatchedSymbols;
