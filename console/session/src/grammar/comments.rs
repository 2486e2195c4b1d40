//! Comments in front of a query.

/// Start of a comment, which goes on to the end of its line.
const MARK: &str = "--";

/// Whether a text starts with a comment.
pub fn starts_comment(text: &str) -> bool {
    text.starts_with(MARK)
}

/// A text from its first word on that is not in a line that begins with `--`.
pub fn without_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix(MARK) {
        rest = comment.split_once('\n').map_or("", |(_, behind)| behind).trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_front_of_a_query_that_begin_with_dashes_are_no_part_of_it() {
        for (text, expected) in [
            ("", ""),
            (" SELECT 1 -- one\n", "SELECT 1 -- one\n"),
            ("-- a\n\n  --b\r\n SELECT - - 1", "SELECT - - 1"),
            ("-- SELECT 1", ""),
            ("- -\n1", "- -\n1"),
        ] {
            assert_eq!(without_comments(text), expected);
        }
    }
}
