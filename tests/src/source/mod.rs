//! The source of a crate as data: its modules, what they import, and how many lines of code it has.
//!
//! Everything is about code that ships: items under `#[cfg(test)]`, and files that only such items
//! declare, are left out.

mod check;
mod circles;
mod items;
mod layers;
mod lines;
mod names;
mod references;
mod strings;
#[cfg(test)]
mod tests;
mod tree;
mod words;

pub use check::check;
pub use layers::Layers;
pub use lines::{Lines, count_lines};
pub use strings::strings;
pub use tree::Crate;
pub use words::{Words, count_words_in};

/// Crates of the workspace.
pub const CRATES: [&str; 5] = ["model", "extract", "record", "console", "tests"];
