//! `| PROGRAM` at the end of a command line: pipes the answer into a program of the system.

use crate::sql::SqlWords;
use handlescope_session::grammar::{Arguments, Quotes, Token, definition_start};
use handlescope_sql::{QueryState, Relation, query_state};

/// A command line without `| PROGRAM`, and the program.
pub struct Pipe<'l, 't> {
    pub line: &'l str,
    pub tokens: &'t [Token],
    /// The command line of the program, for the system's shell; empty if it is missing.
    pub program: Option<&'l str>,
    /// Position of the `|`.
    pub start: usize,
}

const BAR: char = '|';

impl<'l, 't> Pipe<'l, 't> {
    /// Returns a line without a pipe.
    pub fn none(line: &'l str, tokens: &'t [Token]) -> Pipe<'l, 't> {
        Pipe { line, tokens, program: None, start: line.len() }
    }

    /// Finds the pipe of a command that takes these arguments. A `|` inside a word or in quotes belongs to the word. In
    /// a query `|` is an operator, unless the query before it is complete.
    pub fn from_command(takes: Arguments, line: &'l str, tokens: &'t [Token]) -> Pipe<'l, 't> {
        if matches!(takes, Arguments::Alias) && definition_start(line, tokens).is_some() {
            return Pipe::none(line, tokens);
        }
        let bar = tokens.iter().position(|token| {
            let before = line.get(..token.span.start).unwrap_or_default();
            let behind = line.get(token.span.start + 1..).unwrap_or_default();
            let is_query = matches!(takes, Arguments::Sql);
            let in_front = tokens.iter().take_while(|other| other.span.start < token.span.start);
            let in_front: Vec<Token> =
                if is_query && is_bar(token) { in_front.cloned().collect() } else { Vec::new() };
            is_bar(token) && (!is_query || is_behind_query(before, &in_front, behind))
        });
        let Some((index, token)) = bar.and_then(|index| Some((index, tokens.get(index)?))) else {
            return Pipe::none(line, tokens);
        };
        let start = token.span.start;
        let (line, program) = line.split_at(start);
        let program = program.strip_prefix(BAR).unwrap_or(program).trim();
        let tokens = tokens.get(..index).unwrap_or_default();
        Pipe { line: line.trim_end(), tokens, program: Some(program), start }
    }
}

fn is_bar(token: &Token) -> bool {
    token.quotes == Quotes::No && token.text.starts_with(BAR) && !token.text.starts_with("||")
}

/// Whether a query, or the name of its file, and options end before a `|`, and a program follows.
fn is_behind_query(before: &str, tokens: &[Token], behind: &str) -> bool {
    let Some(words) = SqlWords::new(before, tokens) else { return true };
    let query = words.text(before);
    if query_state(&query) != QueryState::Complete {
        return false;
    }
    let is_ended = query.trim_end().ends_with(';') || !words.behind.is_empty();
    is_ended || !is_operand(behind.trim_start(), &query)
}

/// Whether a query may continue with this text after a `|`: a number, a string, a call, or a column.
fn is_operand(text: &str, query: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = text.split(|c: char| !is_of_word(c)).next().unwrap_or_default();
    if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
        return text.starts_with(|c: char| c.is_ascii_digit() || "('\"-".contains(c));
    }
    let is_called = text.get(word.len()..).is_some_and(|rest| rest.starts_with('('));
    let mut words = query.split(|c: char| !is_of_word(c));
    is_called
        || words.any(|known| known.eq_ignore_ascii_case(word))
        || Relation::all()
            .flat_map(Relation::columns)
            .any(|column| column.name.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::REGISTRY;
    use handlescope_session::grammar::split;

    /// Returns the line before the pipe, and the program.
    fn read(line: &str) -> (&str, Option<&str>) {
        let tokens = split(line);
        let (first, rest) = tokens.split_first().expect("a command");
        let command = REGISTRY.command_of_line(&first.text).expect("a command");
        let pipe = Pipe::from_command(command.signature().arguments, line, rest);
        assert_eq!(pipe.tokens.len(), split(pipe.line).len() - 1, "{line}");
        (pipe.line, pipe.program)
    }

    #[test]
    fn a_program_follows_a_bar_of_its_own() {
        for (line, command, program) in [
            (".why | grep heap", ".why", "grep heap"),
            (".why |sort|uniq -c | head -n 3", ".why", "sort|uniq -c | head -n 3"),
            (".dump Process -pn a | grep \"x y\" > z", ".dump Process -pn a", "grep \"x y\" > z"),
            (".dump Process |", ".dump Process", ""),
            (".sql SELECT type FROM leaks | sort", ".sql SELECT type FROM leaks", "sort"),
            (".sql SELECT 1 -csv | cat", ".sql SELECT 1 -csv", "cat"),
            (".sql SELECT 1; | cat", ".sql SELECT 1;", "cat"),
            (".sql a.sql | cat", ".sql a.sql", "cat"),
            (".sql SHOW TABLES | wc -l", ".sql SHOW TABLES", "wc -l"),
            (
                ".sql SELECT a || ' | ' FROM t WHERE pid = 4 | ./x.sh",
                ".sql SELECT a || ' | ' FROM t WHERE pid = 4",
                "./x.sh",
            ),
        ] {
            assert_eq!(read(line), (command, Some(program)), "{line}");
        }
    }

    #[test]
    fn any_other_bar_belongs_to_a_value_or_a_query() {
        for line in [
            ".dump ObjectRef -ObjectName a|b",
            ".dump ObjectRef -ObjectName \"a | b\"",
            ".dump ObjectRef -pn a || b",
            ".alias x = .why | head",
            ".sql SELECT 'a | sort' FROM leaks",
            ".sql SELECT name || 'x' FROM leaks",
            ".sql SELECT name || sort FROM leaks",
            ".sql SELECT pid | 1 FROM processes",
            ".sql SELECT pid FROM processes WHERE pid = 4 | 1",
            ".sql SELECT pid FROM processes WHERE pid = 4 | tid",
            ".sql SELECT pid FROM processes WHERE pid = 4 | abs(1)",
            ".sql SELECT pid AS p FROM processes WHERE pid = 4 | p",
            ".sql SELECT name | grep",
        ] {
            assert_eq!(read(line), (line, None));
        }
    }
}
