//! Finds the known name nearest to an unknown one.

use std::fmt::Display;

/// Below this similarity, a suggestion would puzzle more than it helps.
const LIKE_ENOUGH: f64 = 0.75;

/// Similarity if one name contains the other: more than a typo elsewhere.
const CONTAINED: f64 = 0.9;

/// Similarity of a name with one letter added, missing or wrong, or two swapped, however short it is.
const TYPO: f64 = 0.8;

/// Returns the name most like `unknown`, if any is similar enough. Leading dashes and dots and case do not count.
pub fn nearest<'a>(unknown: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = bare(unknown);
    names
        .into_iter()
        .map(|name| (similarity(&unknown, &bare(name)), name))
        .filter(|(similarity, _)| *similarity >= LIKE_ENOUGH)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, name)| name)
}

/// Returns the end of a message that names the nearest; empty if there is none.
pub fn hint<'a>(unknown: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(unknown, names).map_or_else(String::new, did_you_mean)
}

/// Returns the end of a message that suggests `name`.
pub fn did_you_mean(name: &str) -> String {
    format!(", did you mean {name}?")
}

/// Appends a clause to a message; after a question mark, it becomes a sentence of its own.
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
