//! Text in ETWAnalyzer's style, so that its users can read it at once and their scripts keep working.

mod block;
mod event;
pub mod fleet;
mod groups;
mod headline;
mod not_counted;
mod object_ref;
mod overview;
mod process;
mod stack;
mod suspect;
mod target;
mod totals;
mod zombies;

use std::fmt;
use std::path::Path;

use handlescope_model::Untrusted;
use indicatif::HumanCount;

pub use self::block::{BlockWriter, INDENT};
pub use self::groups::{TreeColumns, tree_columns};
pub use self::headline::{headline, more};
pub use self::not_counted::{
    ignored_because, line_of_ignored, line_of_others_ignored, lines_of_not_counted,
    lines_without_suspects,
};
pub use self::object_ref::{ObjectRefStyle, object_ref};
pub use self::overview::{TITLES, cells, overview, used_columns};
pub use self::process::ProcessStyle;
pub use self::stack::{StackStyle, call_name};
pub use self::suspect::{
    amounts, callers, capitalized, cause, growth, handle_values, in_processes, kind_name,
    leaked_amount, named_objects, over_time, title, with_telling,
};
pub use self::target::TargetStyle;
pub use self::zombies::{hint_at_zombies, line_of_zombies, lines_of_zombies};
use handlescope_session::paths::{shown, stem};
use handlescope_session::values::CountedNoun;

/// Returns the name of a trace, for people.
pub fn trace_name(path: &Path) -> String {
    Untrusted(&stem(path)).to_string()
}

/// Returns the path of a trace as answers show it.
pub fn shown_path(path: &Path) -> String {
    shown(path).to_string_lossy().into_owned()
}

/// Returns a source file with the line, if it is known.
pub fn source_place(file: &str, line: Option<u32>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

/// Formats a number; `separate` adds separators between thousands.
pub fn grouped(number: u64, separate: bool) -> String {
    if separate { HumanCount(number).to_string() } else { number.to_string() }
}

/// Displays a value, or `unknown`.
pub struct OrUnknown<T>(pub Option<T>);

impl<T: fmt::Display> fmt::Display for OrUnknown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => f.pad("unknown"),
        }
    }
}

impl<T: fmt::UpperHex> fmt::UpperHex for OrUnknown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => f.pad("unknown"),
        }
    }
}

/// Formats a count and its noun, in the plural if needed. It has no separators, like ETWAnalyzer's lines.
pub fn counted(count: u64, noun: &'static str) -> String {
    format!("{count} {noun}{}", CountedNoun(count, noun).plural())
}

/// Formats a number of handles, or of handles and views if there are any views.
pub fn handles_and_views(count: u64, has_views: bool, separate: bool) -> String {
    let number = grouped(count, separate);
    match (count, has_views) {
        (_, false) => format!("{number} handle{}", CountedNoun(count, "handle").plural()),
        (1, true) => "1 handle or view".to_owned(),
        (_, true) => format!("{number} handles and views"),
    }
}
