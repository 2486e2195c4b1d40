//! Names in one line.

use std::fmt::Display;

/// The first `max` of some names, and how many more there are: `a, b and 3 more`.
pub fn listed(names: &[impl Display], max: usize) -> String {
    let (shown, rest) = names.split_at(names.len().min(max));
    let shown = shown.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if rest.is_empty() { shown } else { format!("{shown} and {} more", rest.len()) }
}

/// All of some names: `a, b and c`.
pub fn joined(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}
