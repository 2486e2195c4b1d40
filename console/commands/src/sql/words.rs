//! The words of a `.sql` line: options, comments, the query, options.

use std::path::Path;

use super::args::OPTIONS;
use crate::pipe::Pipe;
use handlescope_session::grammar::{
    Arguments, GroupView, Quotes, Redirect, Token, parse, starts_comment, without_comments,
};
use handlescope_session::paths::has_extension;
use handlescope_sql::{QueryState, query_state};

/// Words that start a query.
const STARTS: [&str; 9] =
    ["SELECT", "WITH", "FROM", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "VALUES", "TABLE"];

/// First words of statements that end with their line, without a semicolon.
const ONE_LINE: [&str; 3] = ["SHOW", "DESCRIBE", "DESC"];

/// The words after `.sql`.
pub struct SqlWords<'t> {
    /// Options before the query.
    pub before: &'t [Token],
    /// The query; never empty.
    pub query: &'t [Token],
    /// Options after it.
    pub behind: &'t [Token],
}

impl<'t> SqlWords<'t> {
    /// Splits the words of a line; `None` if no query starts. Options at the end belong to the command; any other
    /// `-json` is SQL.
    pub fn new(line: &str, tokens: &'t [Token]) -> Option<SqlWords<'t>> {
        let (before, rest) = around_comments(line, tokens);
        if !rest.first().is_some_and(starts_query) || !are_options(before) {
            return None;
        }
        let behind = (1..rest.len()).find(|&index| {
            rest.get(index..)
                .is_some_and(|tail| tail.first().is_some_and(Token::is_switch) && are_options(tail))
        });
        let (query, behind) = rest.split_at(behind.unwrap_or(rest.len()));
        Some(SqlWords { before, query, behind })
    }

    /// Returns the words of a query that may have files next to it. It is a single word with the whole query, or
    /// everything from its start on, or the name of its file.
    pub fn behind_files(line: &str, tokens: &'t [Token]) -> &'t [Token] {
        let start = tokens.iter().position(starts_query);
        let start = start.or_else(|| tokens.iter().position(|token| is_file(&token.text)));
        let words = start.and_then(|start| tokens.get(start..)).unwrap_or_default();
        let is_whole = words.first().is_some_and(|first| {
            let is_cut = first.quotes == Quotes::Closed && first.text.contains(char::is_whitespace);
            is_cut || is_file(&first.text)
        });
        if is_whole {
            words.get(..1).unwrap_or_default()
        } else {
            SqlWords::new(line, words).map_or(words, |words| words.query)
        }
    }

    /// Returns the text of the query with its quotes, except quotes around all of it.
    pub fn text(&self, line: &str) -> String {
        match self.query {
            [word] if word.quotes != Quotes::No => word.text.clone(),
            [first, .., last] => {
                line.get(first.span.start..last.span.end).unwrap_or_default().to_owned()
            }
            [word] => word.text.clone(),
            [] => String::new(),
        }
    }
}

/// Whether the query in a line is a complete statement, or one that no further line can fix.
pub fn is_complete(line: &str, tokens: &[Token]) -> bool {
    let words = SqlWords::new(line, tokens);
    words.is_some_and(|words| query_state(&words.text(line)) != QueryState::Open)
}

/// Whether a word is the name of a query file.
pub fn is_file(text: &str) -> bool {
    has_extension(Path::new(text), &["sql"])
}

/// Whether a query, or the options before it, may continue on the next line: it has not been ended by `;`, an option, a
/// file or a program. A statement that describes tables has only one line.
pub fn is_unfinished(line: &str, tokens: &[Token]) -> bool {
    let Pipe { line, tokens, program, .. } = Pipe::from_command(Arguments::Sql, line, tokens);
    let Redirect { tokens, file, .. } = Redirect::from_command(Arguments::Sql, line, tokens);
    match SqlWords::new(line, tokens) {
        _ if file.is_some() || program.is_some() => false,
        None => {
            let (before, rest) = around_comments(line, tokens);
            rest.is_empty() && are_options(before)
        }
        Some(words) => {
            let is_ended = words.query.last().is_some_and(|last| last.text.ends_with(';'));
            let is_one_line = words.query.first().is_some_and(|first| {
                ONE_LINE.iter().any(|word| word.eq_ignore_ascii_case(&first.text))
            });
            words.behind.is_empty() && !is_ended && !is_one_line
        }
    }
}

/// Splits words into those before a query and its comments, and those from the query on.
fn around_comments<'t>(line: &str, tokens: &'t [Token]) -> (&'t [Token], &'t [Token]) {
    let is_comment = |token: &Token| token.quotes == Quotes::No && starts_comment(&token.text);
    let start = tokens.iter().position(|token| starts_query(token) || is_comment(token));
    let (before, rest) = tokens.split_at(start.unwrap_or(tokens.len()));
    let comments = rest.first().filter(|first| is_comment(first));
    let query = comments.and_then(|first| line.get(first.span.start..)).map(without_comments);
    let start = query.map_or(0, |query| line.len() - query.len());
    let is_query = |token: &Token| token.span.start >= start;
    let count = rest.iter().position(is_query).unwrap_or(rest.len());
    (before, rest.split_at(count).1)
}

/// Whether all words are options of `.sql` and their values, if there are any words.
fn are_options(tokens: &[Token]) -> bool {
    let options: Vec<_> =
        GroupView::all(OPTIONS).into_iter().flat_map(|group| group.options).collect();
    let items = parse::known_items(&options, tokens);
    items.iter().all(|item| matches!(item, parse::Item::Option { .. }))
}

/// Whether a query starts here. If a shell has split the line, the query is a quoted word, with the comments before it.
fn starts_query(token: &Token) -> bool {
    let text = match token.quotes {
        Quotes::No => &token.text,
        _ => without_comments(&token.text),
    };
    let text = text.trim_start_matches(['(', ' ', '\t', '\n']);
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let is_known = STARTS.iter().any(|start| start.eq_ignore_ascii_case(word));
    is_known && (text.contains(char::is_whitespace) || !is_file(text))
}
