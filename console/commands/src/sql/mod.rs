//! `.sql`: options, then the query itself or the name of its file, then options.

mod args;
mod words;

pub use self::args::{QuerySource, SqlArgs};
pub use self::words::{SqlWords, is_complete, is_unfinished};

use std::path::PathBuf;
use std::process;

use indicatif::{HumanBytes, HumanCount};
use polars::prelude::DataFrame;

use self::args::OPTIONS;
use self::words::is_file;
use super::shared::groups;
use super::shared::names::WatchedSymbols;
use super::shared::output_file::complete_output;
use super::{Command, CommandError, Context, EnteredLine, SharedArgs, Signature};
use handlescope_fleet::dataset::Dataset;
use handlescope_render as render;
use handlescope_session::grammar::{Arguments, Example, OptionGroup, ParseError, Token};
use handlescope_session::paths::with_home;
use handlescope_session::settings::DisplayArgs;
use handlescope_session::terminal::{ColorChoice, Messages, standard};
use handlescope_session::trace::NoFile;
use handlescope_sql::{self as sql, MemoryLimit, SqlError, Views};

pub struct Sql;

impl Command for Sql {
    type Args = SqlArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".sql"],
        group: groups::QUERIES,
        usage: "SELECT …|FILE.sql",
        arguments: Arguments::Sql,
        summary: "query the tables of the loaded traces with SQL",
        details: "The tables of .schema also have a column row, which other tables refer to, and \
             file_index, the number of the trace. Views have names instead of row numbers: \
             acquisitions has one row per handle, mapped view and allocation; leaks, handles, \
             allocations and open_handles have some of these rows. provider_values has one row per \
             value of a kept event, and stacks has the text of each stack. Addresses, kernel keys \
             and handles are text like 0xC0 everywhere, so that they join, and are compared with \
             literals: WHERE pointer = 0xffffad8f1234. number(x) makes them numbers to calculate \
             with, hex(x) makes text of a number, and TABLE_COLUMN(row), as in \
             processes_name(process), looks up a column of another table. utc_time(opened_ns) makes \
             a calendar time of any column in ns since session start, for strftime, extract and \
             CAST to DATE; if traces started at different times, utc_time(opened_ns, file_index) \
             does. Files in the folder named by the setting sql-views add views: .schema leaks \
             shows what one looks like. The dialect is DuckDB's: joins, groups, WITH, window \
             functions, LIKE, ~ for regular expressions. An error about unsupported SQL names \
             another way to write it: a running sum needs ROWS UNBOUNDED PRECEDING after ORDER BY, \
             one value of another table a CROSS JOIN with a subquery. Column names are in lower \
             case. A column without a name gets its expression as heading, and the second of two \
             columns with the same name gets a number: pid_1. Text is in single quotes; double ones \
             are for names. A query may span lines: at the prompt, Enter runs it when it is \
             complete, Alt-Enter starts a line, and ; or an empty line ends it in any case. In a \
             script it ends at the next command, too. Options come after it. Comment lines that \
             begin with -- may precede it, and FILE.sql reads it from a file. Text shows the first \
             1000 rows. > FILE at the end writes a file if it has a folder or an extension like \
             .txt; .csv, .json, .ndjson and .parquet choose its format, and | PROGRAM pipes into a \
             program, unless it can be the operator |. Several traces are queried as one; row \
             numbers continue from one to the next.",
        examples: &Example::lines([
            ".sql SELECT process, pid, type, count(*) AS n FROM leaks GROUP BY ALL ORDER BY n DESC",
            ".sql SELECT s.text, count(*) AS n FROM leaks l JOIN stacks s ON s.row = l.opened_stack \
             GROUP BY s.text ORDER BY n DESC LIMIT 3",
            ".sql SELECT type, name, lifetime_ns / 1000000 AS ms FROM handles WHERE process = \
             'leaky.exe' AND NOT leaked ORDER BY ms DESC LIMIT 10",
            ".sql SELECT kind_name, count(*) AS n FROM events GROUP BY kind_name ORDER BY n DESC \
             -json",
            ".sql SELECT o.id, o.type, h.process, h.key FROM objects o JOIN open_handles h ON \
             h.pointer = o.pointer WHERE h.key < 0x120 ORDER BY o.id LIMIT 3",
            ".sql SELECT strftime(utc_time(opened_ns), '%H:%M:%S') AS time, type, 100.0 * count(*) / \
             sum(count(*)) OVER () AS percent FROM leaks GROUP BY 1, type ORDER BY time, type LIMIT 3",
            ".sql SELECT m.name, l.base FROM module_loads l JOIN modules m ON m.row = l.module \
             WHERE l.pid = 0 -csv modules.csv",
        ]),
    };
    const OPTIONS: &'static [OptionGroup<SqlArgs>] = OPTIONS;

    fn parse(entered: &EnteredLine<'_>) -> Result<SqlArgs, ParseError> {
        let (mut args, query) = match SqlWords::new(entered.line, entered.tokens) {
            Some(words) => {
                let options = [words.before, words.behind].concat();
                let args: SqlArgs =
                    EnteredLine { tokens: &options, ..*entered }.options(OPTIONS)?;
                (args, QuerySource::Text(words.text(entered.line)))
            }
            None => {
                let (args, words) = entered.options_and_words(OPTIONS)?;
                (args, QuerySource::File(file(entered, &words)?))
            }
        };
        complete_output(&mut args.shared.output, entered.file)?;
        args.shared.text = entered.line.to_owned();
        args.query = query;
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
        // The answer is complete here, so that the note does not disturb a pager.
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

/// Returns the answer to a query without writing it.
///
/// # Errors
/// If there is no trace to query, the query has no answer, or it was cancelled.
pub fn answer(args: &SqlArgs, context: &mut Context<'_, '_>) -> Result<DataFrame, CommandError> {
    let Context { session, cancel, messages, .. } = context;
    let limit = MemoryLimit { most: args.max_memory, end_program };
    let query = args.query.text()?;
    if let Some(folder) = &session.dataset {
        if !args.shared.files.is_empty() {
            return Err(NoFile::FilterOverDataset.into());
        }
        messages.wait("searching");
        let dataset = Dataset::open(folder)?;
        return Ok(sql::sql_over_dataset(&dataset, &query, limit, cancel)?);
    }
    let files = session.choose(&args.shared.files, messages)?;
    let views = Views::from_query(session.settings.sql_views(), &query, cancel);
    let views = views.map_err(SqlError::from)?;
    messages.wait("searching");
    let names = WatchedSymbols::new(session.symbolizer(), messages.spinner(), cancel);
    let system = session.settings.system_modules();
    Ok(sql::sql(&files, &query, &views, limit, &names, system, cancel)?)
}

/// Ends the program, because an abandoned query took more than this many bytes.
pub fn end_program(limit: u64) {
    let limit = HumanBytes(limit);
    Messages::to_stderr(&mut standard::error(), ColorChoice::Auto).error(format_args!(
        "a stopped query still takes memory beyond {limit}, so the program ends"
    ));
    process::exit(1);
}

/// Returns the file of a query.
///
/// # Errors
/// If the words are neither a query nor the name of one file.
fn file(entered: &EnteredLine<'_>, words: &[&Token]) -> Result<PathBuf, ParseError> {
    match words {
        [] => Err(entered.missing("a query, as in SELECT type, count(*) FROM leaks GROUP BY type")),
        [word, ..] if is_file(&word.text) => {
            let takes = "one file of SQL, in quotes if its name has spaces";
            Ok(with_home(&entered.at_most_one(words, takes)?.unwrap_or_default()))
        }
        [word, ..] => {
            let hint =
                ", a query starts with SELECT, and its file ends in .sql; .help sql has examples";
            Err(ParseError::unexpected(word, hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::{args, args_of_words, error};
    use handlescope_session::grammar::split;
    use handlescope_session::values::{Format, JsonMode, RequestedFormat};

    /// Returns the query in a line.
    fn query(line: &str) -> String {
        text(args(line))
    }

    fn text(args: SqlArgs) -> String {
        match args.query {
            QuerySource::Text(text) => text,
            QuerySource::File(path) => panic!("{}", path.display()),
        }
    }

    #[test]
    fn a_query_is_taken_as_it_stands_there() {
        let typed = r#"SELECT "a b", 'x  -json', count(*) FROM leaks -- -csv"#;
        assert_eq!(query(&format!(".sql {typed}")), typed);
        assert_eq!(query(".sql  (select 1)  "), "(select 1)");
        assert_eq!(query(".sql \"SELECT a - b FROM t\""), "SELECT a - b FROM t");
        assert_eq!(query(".sql SELECT a -json FROM t"), "SELECT a -json FROM t");
    }

    #[test]
    fn comments_in_front_of_a_query_do_not_belong_to_it() {
        for comments in ["-- Which?\n", "--\n-- Which -csv \"x\"?\n\n  --SELECT 2\n"] {
            let line = format!(".sql {comments}SELECT 1 -- one\n-json");
            let parsed: SqlArgs = args(&line);
            assert_eq!(parsed.shared.output.format(), Format::Json(JsonMode::Lines), "{line}");
            assert_eq!(text(parsed), "SELECT 1 -- one", "{line}");
            let args: SqlArgs =
                args_of_words(&[".sql", &format!("{comments}SELECT 1")].map(str::to_owned));
            assert_eq!(args.query.text().unwrap(), "SELECT 1", "{comments}");
            let open = format!(".sql -json {}", comments.trim_end());
            assert!(is_unfinished(&open, split(&open).split_first().unwrap().1), "{comments}");
        }
        assert!(
            error(".sql -- SELECT 1").contains("needs a query"),
            "{}",
            error(".sql -- SELECT 1")
        );
    }

    #[test]
    fn a_name_that_ends_in_sql_is_a_file_even_if_it_starts_as_queries_do() {
        for (line, file) in [
            (".sql leaks.sql", "leaks.sql"),
            (".sql -json a/with_names.SQL", "a/with_names.SQL"),
            (".sql \"a b.sql\" -json", "a b.sql"),
        ] {
            assert_eq!(args::<SqlArgs>(line).query, QuerySource::File(file.into()), "{line}");
            assert!(!is_unfinished(line, split(line).split_first().unwrap().1), "{line}");
        }
        assert_eq!(query(".sql SELECT t.sql"), "SELECT t.sql");
        assert_eq!(query(".sql \"SELECT t.sql\""), "SELECT t.sql");
        assert!(
            error(".sql a.sql b.sql").contains("one file of SQL"),
            "{}",
            error(".sql a.sql b.sql")
        );
    }

    #[test]
    fn a_file_is_read_without_its_mark_and_comments_and_named_if_it_cannot_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sql");
        let error = || QuerySource::File(path.clone()).text().unwrap_err().to_string();
        assert!(error().contains("a.sql: the query cannot be read"), "{}", error());
        std::fs::write(&path, "\u{feff}-- Which?\r\nSELECT 1;\r\n").unwrap();
        assert_eq!(QuerySource::File(path.clone()).text().unwrap(), "SELECT 1;");
        std::fs::write(&path, b"SELECT '\xff'").unwrap();
        assert!(error().contains("UTF-8"), "{}", error());
        std::fs::write(&path, " ".repeat(2 << 20)).unwrap();
        assert!(error().contains("too large"), "{}", error());
    }

    #[test]
    fn options_stand_in_front_of_the_query_or_behind_it() {
        for line in [".sql -json SELECT 1", ".sql SELECT 1 -json", ".SQL SELECT 1 -JSON"] {
            let args: SqlArgs = args(line);
            assert_eq!(args.shared.output.format(), Format::Json(JsonMode::Lines), "{line}");
            assert_eq!(text(args), "SELECT 1", "{line}");
        }
        let csv = |line: &str| args::<SqlArgs>(line).shared.output.formats;
        let expected = |file: Option<&str>| {
            vec![RequestedFormat::new("-csv", file.map(Into::into)).expect("a format")]
        };
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
        assert_eq!(args.shared.output.format(), Format::Json(JsonMode::Lines));
        assert_eq!(text(args), "SELECT \"a\" FROM t WHERE x = 'y z'");
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
