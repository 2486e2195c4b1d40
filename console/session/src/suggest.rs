//! The nearest known name to an unknown one.

use std::fmt::Display;

/// Below this similarity a suggestion would puzzle more than it helps.
const LIKE_ENOUGH: f64 = 0.75;

/// The similarity of a name that contains the other: better than a typo somewhere else.
const CONTAINED: f64 = 0.9;

/// The similarity of a name with one letter more, less or other, or two in the wrong order, however
/// short it is.
const TYPO: f64 = 0.8;

/// The name that is most like `unknown`, if any is like it at all. Dashes, dots and case in front
/// do not count.
pub fn nearest<'a>(unknown: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = bare(unknown);
    names
        .into_iter()
        .map(|name| (similarity(&unknown, &bare(name)), name))
        .filter(|(similarity, _)| *similarity >= LIKE_ENOUGH)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, name)| name)
}

/// The end of a message that names the nearest; nothing if there is none.
pub fn hint<'a>(unknown: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(unknown, names).map_or_else(String::new, did_you_mean)
}

/// The end of a message that names the nearest.
pub fn did_you_mean(name: &str) -> String {
    format!(", did you mean {name}?")
}

/// A message with a further clause: a sentence of its own behind a question.
pub fn followed_by(message: impl Display, clause: &str) -> String {
    let message = message.to_string();
    let mut letters = clause.chars();
    match letters.next().filter(|_| message.ends_with('?')) {
        Some(first) => format!("{message} {}{}", first.to_uppercase(), letters.as_str()),
        None => format!("{message}; {clause}"),
    }
}

fn bare(name: &str) -> String {
    name.trim_start_matches(['-', '.']).to_lowercase()
}

fn similarity(unknown: &str, name: &str) -> f64 {
    let contained = unknown.len() > 2 && name.contains(unknown);
    let is_typo = unknown.len() > 1 && strsim::osa_distance(unknown, name) == 1;
    let min = match (contained, is_typo) {
        (true, _) => CONTAINED,
        (false, true) => TYPO,
        (false, false) => 0.0,
    };
    strsim::jaro_winkler(unknown, name).max(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_a_part_and_a_missing_dash_find_their_name() {
        let names = ["-pn", "-ProcessName", "-Leak", "-ShowStack", "-ShowTotal", "-Map"];
        for (unknown, expected) in [
            ("-Laek", Some("-Leak")),
            ("--leak", Some("-Leak")),
            ("-leaks", Some("-Leak")),
            ("-Process", Some("-ProcessName")),
            ("-shwostack", Some("-ShowStack")),
            ("-Totals", None),
            ("-Total", Some("-ShowTotal")),
            ("-xyz", None),
            ("-Mpa", Some("-Map")),
            ("-", None),
        ] {
            assert_eq!(nearest(unknown, names), expected, "{unknown}");
        }
    }
}
