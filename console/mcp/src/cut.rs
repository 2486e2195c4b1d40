//! Values that are cut until they fit on a page.

use std::collections::HashSet;

use serde_json::Value;

/// Lengths that lists are cut to, in turn.
const LIST_LENGTHS: [usize; 4] = [1000, 100, 10, 1];

/// Lengths that texts are cut to after that, in turn, characters.
const TEXT_LENGTHS: [usize; 4] = [4000, 400, 80, 20];

/// Warnings of one answer, and characters of each.
const MAX_WARNINGS: usize = 20;
const MAX_WARNING_LENGTH: usize = 400;

/// Cuts lists, then texts, and then leaves out the largest members, until a value fits, and returns whether it had to.
pub fn cut_value(value: &mut Value, fits: impl Fn(&Value) -> bool) -> bool {
    if fits(value) {
        return false;
    }
    for length in LIST_LENGTHS {
        cut_lists(value, length);
        if fits(value) {
            return true;
        }
    }
    for length in TEXT_LENGTHS {
        cut_texts(value, length);
        if fits(value) {
            return true;
        }
    }
    remove_largest(value, fits);
    true
}

/// Whether a value is the call of a tool, which cannot be sent without a part.
fn is_call(value: &Value) -> bool {
    value.get("tool").is_some() && value.get("arguments").is_some()
}

fn cut_lists(value: &mut Value, length: usize) {
    match value {
        Value::Array(items) => {
            items.truncate(length);
            items.iter_mut().for_each(|item| cut_lists(item, length));
        }
        value if is_call(value) => {}
        Value::Object(members) => members.values_mut().for_each(|value| cut_lists(value, length)),
        _ => {}
    }
}

fn cut_texts(value: &mut Value, length: usize) {
    match value {
        Value::String(text) => cut_text(text, length),
        value if is_call(value) => {}
        Value::Array(items) => items.iter_mut().for_each(|item| cut_texts(item, length)),
        Value::Object(members) => members.values_mut().for_each(|value| cut_texts(value, length)),
        _ => {}
    }
}

/// Cuts a text to so many characters, with a mark.
fn cut_text(text: &mut String, length: usize) {
    if let Some((at, _)) = text.char_indices().nth(length) {
        text.truncate(at);
        text.push('…');
    }
}

/// Removes the largest members, or all elements, until the rest fits, or nothing is left.
fn remove_largest(value: &mut Value, fits: impl Fn(&Value) -> bool) {
    let Value::Object(members) = value else {
        value.as_array_mut().into_iter().for_each(Vec::clear);
        return;
    };
    let mut names: Vec<(usize, &String)> =
        members.iter().map(|(name, value)| (name.len() + value.to_string().len(), name)).collect();
    names.sort_unstable();
    let without = |number: usize| {
        let kept: HashSet<&String> =
            names.iter().take(names.len() - number).map(|(_, name)| *name).collect();
        members
            .iter()
            .filter(|(name, _)| kept.contains(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Value>()
    };
    let (mut too_few, mut enough) = (0, names.len());
    while too_few + 1 < enough {
        let middle = too_few.midpoint(enough);
        if fits(&without(middle)) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    *value = without(enough);
}

/// Warnings that fit into so many bytes of an answer, shortened, and the number of the others.
pub fn shorten_warnings(warnings: &[String], bytes: usize) -> Vec<String> {
    let mut shown = Vec::new();
    let mut left = bytes;
    for warning in warnings.iter().take(MAX_WARNINGS) {
        let mut warning = warning.clone();
        cut_text(&mut warning, MAX_WARNING_LENGTH.min(left / 4));
        if warning.len() > left {
            break;
        }
        left -= warning.len();
        shown.push(warning);
    }
    match warnings.len() - shown.len() {
        0 => {}
        more if shown.is_empty() => shown.push(format!("{more} warnings; raise max_bytes")),
        more => shown.push(format!("and {more} more")),
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_cut_until_it_fits_or_nothing_is_left() {
        let value = json!({"id": 7, "names": vec!["name"; 2000], "text": "x".repeat(9000),
            "see": {"tool": "why", "arguments": {"type": "x".repeat(90)}}});
        for most in (0..12_000).step_by(37) {
            let mut cut = value.clone();
            assert!(cut_value(&mut cut, |value| value.to_string().len() <= most));
            let length = cut.to_string().len();
            assert!(length <= most || cut == json!({}), "{most}: {cut}");
            let see = cut.get("see");
            assert!(see.is_none() || see == value.get("see"), "{cut}");
        }
        assert!(!cut_value(&mut value.clone(), |_| true));
    }

    #[test]
    fn many_long_warnings_become_few_short_ones() {
        let warnings = vec!["ä".repeat(1000); 100];
        let shown = shorten_warnings(&warnings, 1 << 20);
        assert_eq!(
            (shown.len(), shown[0].chars().count()),
            (MAX_WARNINGS + 1, MAX_WARNING_LENGTH + 1)
        );
        assert_eq!(shown[MAX_WARNINGS], "and 80 more");
        for bytes in [0, 10, 100, 1000, 10_000] {
            let shown = shorten_warnings(&warnings, bytes);
            let length: usize = shown.iter().map(String::len).sum();
            assert!(length <= bytes + 40, "{bytes}: {length}");
            assert!(!shown.is_empty());
        }
    }
}
