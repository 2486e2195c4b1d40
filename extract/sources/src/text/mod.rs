//! Texts of other programs as UTF-8, and the progress of reading them.

mod encoding;
mod lines;

pub use encoding::{may_be_text, utf8};
pub use lines::{Line, Lines, Progress};
