//! `.sql` as entered.

use super::{Command, Entered, Quotes, error::ParseError, line::Token, parse, redirect};
use crate::{filter::Filter, registry, render::OutputOptions};

/// Words that a query starts with.
const STARTS: [&str; 7] = ["SELECT", "WITH", "FROM", "SHOW", "EXPLAIN", "VALUES", "TABLE"];

/// What was typed behind `.sql`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SqlArgs {
    /// The query.
    pub query: String,
    /// How the answer is written, and where.
    pub output: OutputOptions,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}

/// `.sql`: options, the query as it stands there, options.
pub(crate) fn sql(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let (entered, file) = redirect::of_query(entered);
    let Some(words) = SqlWords::of(entered.tokens) else {
        let (_, words): (SqlArgs, _) =
            parse::options_and_words(entered.name, entered.tokens, registry::SQL)?;
        return Err(match words.first() {
            Some(word) => ParseError::UnexpectedWord {
                word: word.text.clone(),
                hint: ", a query starts with SELECT; .help sql has examples".to_owned(),
                help: String::new(),
            },
            None => ParseError::MissingArgument {
                command: entered.name.to_owned(),
                what: "a query: .sql SELECT type, count(*) FROM leaks GROUP BY type",
            },
        });
    };
    let options = [words.before, words.behind].concat();
    let mut args: SqlArgs = parse::options(entered.name, &options, registry::SQL)?;
    args.output.file = file;
    redirect::one_output(&args.output)?;
    args.query = query(entered.line, words.query);
    args.text = entered.line.to_owned();
    Ok(Command::Sql(args))
}

/// The words behind `.sql`.
pub(crate) struct SqlWords<'t> {
    /// Options in front of the query.
    pub(crate) before: &'t [Token],
    /// The query; not empty.
    pub(crate) query: &'t [Token],
    /// Options behind it.
    pub(crate) behind: &'t [Token],
}

impl<'t> SqlWords<'t> {
    /// `None` when no query starts. What stands at the end and consists of options belongs to the
    /// command; any other `-json` is SQL.
    pub(crate) fn of(tokens: &'t [Token]) -> Option<SqlWords<'t>> {
        let are_options = |tokens: &[Token]| {
            let options = registry::sql_options();
            let items = parse::known_items(&options, tokens);
            items.iter().all(|item| matches!(item, parse::Item::Option { .. }))
        };
        let start = tokens.iter().position(starts_query)?;
        let (before, rest) = tokens.split_at(start);
        if !are_options(before) {
            return None;
        }
        let behind = (1..rest.len()).find(|&at| {
            rest.get(at..)
                .is_some_and(|tail| tail.first().is_some_and(Token::is_switch) && are_options(tail))
        });
        let (query, behind) = rest.split_at(behind.unwrap_or(rest.len()));
        Some(SqlWords { before, query, behind })
    }
}

/// Whether a query starts here. One that a shell has cut out is a word in quotes.
fn starts_query(token: &Token) -> bool {
    let text = token.text.trim_start_matches(['(', ' ', '\t', '\n']);
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    STARTS.iter().any(|start| start.eq_ignore_ascii_case(word))
}

/// The text of a query, with its quotes; without those around the whole.
fn query(line: &str, words: &[Token]) -> String {
    match words {
        [only] if only.quotes != Quotes::No => only.text.clone(),
        [first, .., last] => {
            line.get(first.span.start..last.span.end).unwrap_or_default().to_owned()
        }
        [only] => only.text.clone(),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{CsvTarget, Format, JsonMode};

    fn read(line: &str) -> SqlArgs {
        match Command::parse(line) {
            Ok(Some(Command::Sql(args))) => args,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        Command::parse(line).expect_err(line).to_string()
    }

    #[test]
    fn a_query_is_taken_as_it_stands_there() {
        let query = r#"SELECT "a b", 'x  -json', count(*) FROM leaks -- -csv"#;
        assert_eq!(read(&format!(".sql {query}")).query, query);
        assert_eq!(read(".sql  (select 1)  ").query, "(select 1)");
        assert_eq!(read(".sql \"SELECT a - b FROM t\"").query, "SELECT a - b FROM t");
        assert_eq!(read(".sql SELECT a -json FROM t").query, "SELECT a -json FROM t");
    }

    #[test]
    fn options_stand_in_front_of_the_query_or_behind_it() {
        for line in [".sql -json SELECT 1", ".sql SELECT 1 -json", ".SQL SELECT 1 -JSON"] {
            let args = read(line);
            assert_eq!(
                (args.query.as_str(), args.output.json),
                ("SELECT 1", JsonMode::Lines),
                "{line}"
            );
        }
        let file = |path: &str| Some(CsvTarget::File(path.into()));
        assert_eq!(read(".sql -csv SELECT 1").output.csv, Some(CsvTarget::Output));
        assert_eq!(read(".sql SELECT 1 -csv").output.csv, Some(CsvTarget::Output));
        assert_eq!(read(".sql -csv a.csv SELECT 1").output.csv, file("a.csv"));
        assert_eq!(read(".sql SELECT 1 -fd *x* -csv \"a b.csv\"").output.csv, file("a b.csv"));
        assert_eq!(read(".sql SELECT 1").output.format(), Format::Text);
    }

    #[test]
    fn words_of_a_shell_make_the_same_query() {
        let words = [".sql", "SELECT \"a\" FROM t WHERE x = 'y z'", "-json"].map(str::to_owned);
        let Ok(Some(Command::Sql(args))) = Command::from_words(&words) else { panic!("no query") };
        assert_eq!(args.query, "SELECT \"a\" FROM t WHERE x = 'y z'");
        assert_eq!(args.output.json, JsonMode::Lines);
    }

    #[test]
    fn what_is_no_query_is_refused_with_an_example() {
        assert!(
            refused(".sql").contains("SELECT type, count(*) FROM leaks"),
            "{}",
            refused(".sql")
        );
        assert!(refused(".sql leaks").contains("starts with SELECT"), "{}", refused(".sql leaks"));
        assert!(refused(".sql DELETE FROM leaks").starts_with("unexpected 'DELETE', a query"));
        assert!(refused(".sql -jsn SELECT 1").contains("-json"));
        assert!(refused(".sql -json SELECT 1 -csv").contains("choose one"));
    }
}
