//! `.sql`: options, the query as it stands there, options.

use std::process;

use indicatif::{HumanBytes, HumanCount};
use polars::prelude::DataFrame;

use super::schema::views;
use super::shared::names::WatchedSymbols;
use super::shared::options::{check_output, format_options, row_options};
use super::shared::{fields, groups};
use super::{AnyCommand, Command, CommandError, Context, Entered, SharedArgs, Signature};
use crate::dataset::Dataset;
use crate::grammar::{
    Arguments, Opt, OptionGroup, ParseError, Quotes, Redirect, Take, Token, parse,
};
use crate::render;
use crate::settings::DisplayArgs;
use crate::sql::{self, MemoryLimit};
use crate::terminal::{ColorChoice, Messages, standard};
use crate::trace::NoFile;

/// Words that a query starts with.
const STARTS: [&str; 9] =
    ["SELECT", "WITH", "FROM", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "VALUES", "TABLE"];

/// First words of statements that end with their line, without a semicolon.
const ONE_LINE: [&str; 3] = ["SHOW", "DESCRIBE", "DESC"];

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SqlArgs {
    pub(crate) query: String,
    /// Memory that the query may use, in bytes.
    pub(crate) max_memory: Option<u64>,
    /// The files to query, and the format and destination of the answer.
    pub(crate) shared: SharedArgs,
}

fields!(SqlArgs { shared: SharedArgs });

pub(crate) struct Sql;

impl Command for Sql {
    type Args = SqlArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".sql"],
        group: groups::QUERIES,
        usage: "SELECT …",
        arguments: Arguments::Sql,
        summary: "query the tables of the loaded traces with SQL",
        details: "The tables are those of .schema, plus a column row, which other tables refer \
             to, and file_index, the number of the trace. Views have names instead of row \
             numbers: leaks and handles one row per handle, resource_leaks and allocations one \
             per allocation, provider_values one per value of a kept event, and stacks the text \
             of each stack. Addresses, kernel keys and handles are text like 0xC0 everywhere, so that \
             they join, and are compared with literals: WHERE pointer = 0xffffad8f1234. number(x) \
             makes them numbers to calculate with, hex(x) makes text of a number, and \
             TABLE_COLUMN(row), as in \
             processes_name(process), looks up a column of another table. Files in the folder \
             named by the setting sql-views add views: .schema leaks shows what one looks like. \
             The dialect is that of polars: joins, groups, WITH, window functions, LIKE, ~ for \
             regular expressions. Column names are in lower case. A query may span lines: it ends \
             with ; or an empty line, options come after it, and in a script it ends at the next \
             command. Text shows the first 1000 rows. > FILE at the end writes a file if it has a \
             folder or an extension like .csv or .txt. Several traces are queried as one; row \
             numbers continue from one to the next.",
        examples: &[
            ".sql SELECT process, pid, type, count(*) AS n FROM leaks GROUP BY ALL ORDER BY n DESC",
            ".sql SELECT s.text, count(*) AS n FROM leaks l JOIN stacks s ON s.row = l.stack \
             GROUP BY s.text ORDER BY n DESC LIMIT 3",
            ".sql SELECT type, name, lifetime_ns / 1000000 AS ms FROM handles WHERE process = \
             'leaky.exe' AND NOT leaked ORDER BY ms DESC LIMIT 10",
            ".sql SELECT kind_name, count(*) AS n FROM events GROUP BY kind_name ORDER BY n DESC \
             -json",
            ".sql SELECT o.id, o.type, h.process, h.handle FROM objects o JOIN open_handles h ON \
             h.pointer = o.pointer WHERE h.handle < 0x120 ORDER BY o.id LIMIT 3",
            ".sql SELECT m.name, l.base FROM module_loads l JOIN modules m ON m.row = l.module \
             WHERE l.pid = 0 -csv modules.csv",
        ],
    };
    const OPTIONS: &'static [OptionGroup<SqlArgs>] = &[
        OptionGroup {
            title: groups::DISPLAY,
            options: &row_options("-SortBy pid SELECT name, pid FROM processes"),
        },
        OptionGroup { title: groups::SCRIPTS, options: &format_options() },
        OptionGroup {
            title: groups::LIMITS,
            options: &[Opt {
                names: &["-MaxMemory"],
                help: "memory limit of the query",
                details: "Half of the machine's memory by default. A query that needs more is \
                     stopped. Units: KB, KiB, MB, MiB, GB, GiB.",
                example: "-MaxMemory 4GB SELECT count(*) FROM events",
                take: Take::Size(|args: &mut SqlArgs| &mut args.max_memory),
            }],
        },
    ];

    fn parse(entered: &Entered<'_>) -> Result<SqlArgs, ParseError> {
        let Some(words) = SqlWords::of(entered.tokens) else { return Err(not_a_query(entered)) };
        let options = [words.before, words.behind].concat();
        let mut args: SqlArgs = parse::options(&entered.help(), &options, Self::OPTIONS)?;
        check_output(&args.shared.output)?;
        args.shared.text = entered.line.to_owned();
        args.query = query(entered.line, words.query);
        Ok(args)
    }

    fn shared(args: &SqlArgs) -> Option<&SharedArgs> {
        Some(&args.shared)
    }

    fn run(args: SqlArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let overwrite = context.session.overwrite(args.shared.output.force);
        args.shared.output.check_file(&overwrite)?;
        let answer = answer(&args, context)?;
        let Context { session, cancel, screen, out, messages, .. } = context;
        let SharedArgs { output, text, .. } = args.shared;
        let display = session.settings.display(&DisplayArgs::default(), *screen);
        let rows = answer.height();
        let table = render::frame(answer, &text);
        let left_out = table.write(&output, &output.display(display), &overwrite, cancel, *out)?;
        // The end of the answer: a note would disturb a pager.
        out.flush()?;
        if left_out > 0 {
            messages.note(format_args!(
                "note: the first {} of {} rows; -json and -csv write all of them",
                HumanCount((rows - left_out) as u64),
                HumanCount(rows as u64)
            ));
        }
        session.warn_of_missing_symbols(messages);
        Ok(())
    }
}

/// The answer to a query, before it is written.
///
/// # Errors
/// When there is no trace to query, the query has no answer, or it was cancelled.
pub(crate) fn answer(
    args: &SqlArgs,
    context: &mut Context<'_, '_>,
) -> Result<DataFrame, CommandError> {
    let Context { session, cancel, messages, .. } = context;
    let limit = MemoryLimit { most: args.max_memory, end_program };
    if let Some(folder) = &session.dataset {
        if !args.shared.files.is_empty() {
            return Err(NoFile::FilterOverDataset.into());
        }
        messages.wait("searching");
        let dataset = Dataset::open(folder)?;
        return Ok(sql::sql_over_dataset(&dataset, &args.query, limit, cancel)?);
    }
    let files = session.choose(&args.shared.files, messages)?;
    let views = views(&session.settings)?;
    messages.wait("searching");
    let names = WatchedSymbols::new(session.symbolizer(), messages.spinner(), cancel);
    let system = session.settings.system_modules();
    Ok(sql::sql(&files, &args.query, &views, limit, &names, system, cancel)?)
}

fn end_program(limit: u64) {
    let limit = HumanBytes(limit);
    Messages::to_stderr(&mut standard::error(), ColorChoice::Auto).error(format_args!(
        "a stopped query keeps taking memory, beyond {limit}; the program ends"
    ));
    process::exit(1);
}

fn not_a_query(entered: &Entered<'_>) -> ParseError {
    match entered.options_and_words(Sql::OPTIONS) {
        Err(error) => error,
        Ok((_, words)) => match words.first() {
            Some(word) => {
                let hint = ", a query starts with SELECT; .help sql has examples";
                ParseError::unexpected(word, hint)
            }
            None => entered.missing("a query: .sql SELECT type, count(*) FROM leaks GROUP BY type"),
        },
    }
}

/// The words after `.sql`.
pub(crate) struct SqlWords<'t> {
    /// Options in front of the query.
    pub(crate) before: &'t [Token],
    /// The query; not empty.
    pub(crate) query: &'t [Token],
    /// Options after it.
    pub(crate) behind: &'t [Token],
}

impl<'t> SqlWords<'t> {
    /// `None` when no query starts. Options at the end belong to the command; any other `-json` is
    /// SQL.
    pub(crate) fn of(tokens: &'t [Token]) -> Option<SqlWords<'t>> {
        let start = tokens.iter().position(starts_query)?;
        let (before, rest) = tokens.split_at(start);
        if !are_options(before) {
            return None;
        }
        let behind = (1..rest.len()).find(|&index| {
            rest.get(index..)
                .is_some_and(|tail| tail.first().is_some_and(Token::is_switch) && are_options(tail))
        });
        let (query, behind) = rest.split_at(behind.unwrap_or(rest.len()));
        Some(SqlWords { before, query, behind })
    }
}

/// Whether a query, or the options in front of it, may continue on the next line: no `;`, option or file ends it.
/// A statement that describes tables has one line.
pub(crate) fn is_unfinished(line: &str, tokens: &[Token]) -> bool {
    let Redirect { tokens, file, .. } = Redirect::of_command(Arguments::Sql, line, tokens);
    match SqlWords::of(tokens) {
        _ if file.is_some() => false,
        None => are_options(tokens),
        Some(words) => {
            let is_ended = words.query.last().is_some_and(|last| last.text.ends_with(';'));
            let is_one_line = words.query.first().is_some_and(|first| {
                ONE_LINE.iter().any(|word| word.eq_ignore_ascii_case(&first.text))
            });
            words.behind.is_empty() && !is_ended && !is_one_line
        }
    }
}

/// Whether these are options of `.sql` with their values, or nothing.
fn are_options(tokens: &[Token]) -> bool {
    let options = Sql.options();
    let items = parse::known_items(&options, tokens);
    items.iter().all(|item| matches!(item, parse::Item::Option { .. }))
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
        [word] if word.quotes != Quotes::No => word.text.clone(),
        [first, .., last] => {
            line.get(first.span.start..last.span.end).unwrap_or_default().to_owned()
        }
        [word] => word.text.clone(),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::{args, args_of_words, error};
    use crate::values::{Format, JsonMode, RequestedFormat};

    #[test]
    fn a_query_is_taken_as_it_stands_there() {
        let query = r#"SELECT "a b", 'x  -json', count(*) FROM leaks -- -csv"#;
        assert_eq!(args::<SqlArgs>(&format!(".sql {query}")).query, query);
        assert_eq!(args::<SqlArgs>(".sql  (select 1)  ").query, "(select 1)");
        assert_eq!(args::<SqlArgs>(".sql \"SELECT a - b FROM t\"").query, "SELECT a - b FROM t");
        assert_eq!(args::<SqlArgs>(".sql SELECT a -json FROM t").query, "SELECT a -json FROM t");
    }

    #[test]
    fn options_stand_in_front_of_the_query_or_behind_it() {
        for line in [".sql -json SELECT 1", ".sql SELECT 1 -json", ".SQL SELECT 1 -JSON"] {
            let args: SqlArgs = args(line);
            assert_eq!(
                (args.query.as_str(), args.shared.output.format()),
                ("SELECT 1", Format::Json(JsonMode::Lines)),
                "{line}"
            );
        }
        let csv = |line: &str| args::<SqlArgs>(line).shared.output.formats;
        let expected = |file: Option<&str>| vec![RequestedFormat::of("-csv", file.map(Into::into))];
        assert_eq!(csv(".sql -csv SELECT 1"), expected(None));
        assert_eq!(csv(".sql SELECT 1 -csv"), expected(None));
        assert_eq!(csv(".sql -csv a.csv SELECT 1"), expected(Some("a.csv")));
        assert_eq!(csv(".sql SELECT 1 -fd *x* -csv \"a b.csv\""), expected(Some("a b.csv")));
        assert_eq!(args::<SqlArgs>(".sql SELECT 1").shared.output.format(), Format::Text);
    }

    #[test]
    fn words_of_a_shell_make_the_same_query() {
        let words = [".sql", "SELECT \"a\" FROM t WHERE x = 'y z'", "-json"].map(str::to_owned);
        let args: SqlArgs = args_of_words(&words);
        assert_eq!(args.query, "SELECT \"a\" FROM t WHERE x = 'y z'");
        assert_eq!(args.shared.output.format(), Format::Json(JsonMode::Lines));
    }

    #[test]
    fn a_text_that_is_no_query_is_refused_with_an_example() {
        assert!(error(".sql").contains("SELECT type, count(*) FROM leaks"), "{}", error(".sql"));
        assert!(error(".sql leaks").contains("starts with SELECT"), "{}", error(".sql leaks"));
        assert!(error(".sql DELETE FROM leaks").starts_with("unexpected 'DELETE', a query"));
        assert!(error(".sql -jsn SELECT 1").contains("-json"));
        assert!(error(".sql -json SELECT 1 -csv").contains("choose one"));
    }
}
