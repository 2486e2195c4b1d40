//! The language of the prompt: tokens, options with their values, and the errors in a line. Knows no commands.

mod option;
pub mod parse;
mod redirect;
mod token;
pub mod value;

pub use option::{
    Arguments, Doc, Example, GroupView, Opt, OptionGroup, OptionSpec, Take, To, WordChoices,
    choice, to, words,
};
pub use parse::ParseError;
pub use redirect::{Redirect, Target, definition, definition_start};
pub use token::{Quotes, Token, join, split, with_one_dash, with_plain_dashes};

/// Starts a comment, which runs to the end of the line.
const MARK: &str = "--";

/// Whether a text starts with a comment.
pub fn starts_comment(text: &str) -> bool {
    text.starts_with(MARK)
}

/// Skips leading blank and `--` comment lines of a text.
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
