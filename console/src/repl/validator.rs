//! Whether Enter ends what was typed, or starts another line of it.

use reedline::{ValidationResult, Validator};

use crate::script::{goes_on, steps};

/// A query takes more lines until it ends; every other command has one.
pub(super) struct QueryValidator;

impl Validator for QueryValidator {
    fn validate(&self, text: &str) -> ValidationResult {
        match is_waiting(text) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Complete,
        }
    }
}

/// Whether the last of the commands is a query whose end is missing. An empty line is an end.
pub(super) fn is_waiting(text: &str) -> bool {
    let is_line_empty = text.rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
    let last = steps(text.as_bytes()).last();
    !is_line_empty && last.and_then(Result::ok).is_some_and(|step| goes_on(&step.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_waits_for_its_end_and_nothing_else_does() {
        for text in [".sql SELECT 1", ".sql", ".list\n.sql SELECT type,\n count(*)", ".SQL -json"] {
            assert!(is_waiting(text), "{text:?}");
        }
        let ended = [".sql SELECT 1;", ".sql SELECT 1\n", ".sql SELECT 1\nFROM leaks -csv"];
        for text in ["", ".list", "nonsense", ".sql SHOW TABLES", ".sql SELECT 1\n.list"]
            .into_iter()
            .chain(ended)
        {
            assert!(!is_waiting(text), "{text:?}");
        }
    }
}
