//! Rewords polars errors in terms of `.schema` and SQL. No other file depends on its messages.

use polars::error::{PolarsWarning, set_warning_function};
use polars::prelude::{DataFrame, IntoLazy, PolarsError};
use std::sync::LazyLock;

use handlescope_model::{PolarsReason, innermost, without_plan};
use regex::{Captures, Regex};

use handlescope_session::suggest;

/// Maximum number of characters for the columns of a table in a message.
const MAX_LISTED: usize = 160;

/// Patterns for polars messages, and how to reword them: `{1}` stands for what the first group matched, and `{1:type}` for
/// that in one of the forms of [`in_form`].
const MESSAGES: &[(&str, &str)] = &[
    (r"^relation '(.+)' was not found$", "table '{1}' not found{1:table}"),
    (
        r"^sql parser error: Expected: (.+?), found: (.+?)(?: at (Line: \d+, Column: \d+))?$",
        "expected {1}, found {2:found}{3:position}",
    ),
    (r"^sql parser error: (.+?)(?: at (Line: \d+, Column: \d+))?$", "{1:clause}{2:position}"),
    (
        r"(?i)^.*\bone \(and only one\) statement .*$",
        "a query is one statement; run one after the other",
    ),
    (
        r"(?s)^expression (\w+)\b.* is not currently supported$",
        "{1:sql} is not possible here; write it with joins, CASE and GROUP BY",
    ),
    (
        r"(?s)^unsupported join constraint (?:expression|operator).*$",
        "ON compares columns of both tables, joined by AND; write other conditions in WHERE",
    ),
    (
        r"(?s)^(?:unary )?operator \W?(\w+?)\W? is not (?:currently )?supported$",
        "the operator {1:sql} is not supported; calculate with + - * / // % and | &",
    ),
    (r"^unsupported function '(.+)'$", "{1:function}"),
    (
        r#"^cannot parse literal: "(.+)"$"#,
        "{1} has more than 64 bits; write {1}.0 for a number with a fraction",
    ),
    (
        r"^datatype (\w+).* is not currently supported$",
        "the type {1:upper} is not supported; use BIGINT, DOUBLE, VARCHAR, BOOLEAN or DATE",
    ),
    (
        r"^cannot cast List type .*$",
        "HAVING filters counts and other aggregates; filter columns with WHERE",
    ),
    (r"^no table or struct column named '(.+)' found$", "the query names no table '{1}'"),
    (
        r"(?s)^HAVING clause not valid outside of GROUP BY; found:.*$",
        "HAVING is allowed only after GROUP BY; use WHERE without it",
    ),
    (
        r"^(?:projections|group_by aggregations) contained duplicate output name '(.+?)'\. ",
        "two columns of the answer have the name '{1}'; rename one with AS",
    ),
    (
        r"^sort expressions must have same length as DataFrame, got .*$",
        "ORDER BY uses an expression that is not in SELECT; add it there, and order by its name",
    ),
    (
        r"^conversion from `(.+?)` to `(.+?)` failed in column '(.+?)' for (\d+) out of (\d+) values: (?s:(.+))$",
        "{4} of {5} values of '{3}' cannot be converted from {1:type} to {2:type}: {6}",
    ),
    (
        r"^arithmetic on dtypes (.+?) and (.+?) is not allowed(?: \((.+?)\))?; try an explicit cast first$",
        "arithmetic on {1:type} and {2:type} is not possible{3:columns}; convert one with CAST",
    ),
    (
        r"^filter predicate must be of type `Boolean`, got `(.+?)`$",
        "a condition must be bool, but this is {1:type}; compare it with a value",
    ),
    (
        r"^cannot compare string with numeric type \((.+?)\)$",
        "text cannot be compared with a number ({1:type}); convert one with CAST",
    ),
    (r"^`(\w+)` operation not supported for dtype `(.+?)`$", "{1} is not possible for {2:type}"),
    (
        r"^invalid series dtype: expected `(.+?)`, got `(.+?)` for series with name `(?:literal)?`$",
        "{1:type} is needed, not {2:type}",
    ),
    (
        r"^invalid series dtype: expected `(.+?)`, got `(.+?)` for series with name `(.*)`$",
        "'{3}' is {2:type}, but {1:type} is needed",
    ),
    (r"^expected (.+?) type, got: (.+?)$", "{1:type} is needed, not {2:type}"),
    (r"^cannot unpack series of type `(.+?)` into `(.+?)`$", "{2:type} is needed, not {1:type}"),
    (
        r"^'is_in' cannot check for (.+?) values in (.+?) data$",
        "IN cannot look for {2:type} among {1:items}; convert one with CAST",
    ),
];

/// The polars messages about a missing column.
const MISSING: &[&str] = &[
    r#"(?s)^unable to find column "(?<name>.+?)"; valid columns: \[(?<columns>[^\]]*)\]"#,
    r"^no column named '(?<name>.+?)' found in table '(?<table>.+?)'$",
    r#"^"(?<name>[^"]+)" not found$"#,
];

static KNOWN: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    MESSAGES.iter().filter_map(|(text, words)| Some((Regex::new(text).ok()?, *words))).collect()
});

static KNOWN_MISSING: LazyLock<Vec<Regex>> =
    LazyLock::new(|| MISSING.iter().filter_map(|text| Regex::new(text).ok()).collect());

/// Names that a query may have meant instead of a missing one.
#[derive(Debug, Default)]
pub struct QueryNames<'a> {
    pub tables: Vec<&'a str>,
    /// Columns to list if the message lists none.
    pub columns: Vec<&'a str>,
    /// The query as it was typed.
    pub query: &'a str,
}

/// Explains an error in terms of the query. Unknown messages stay as polars words them.
pub fn polars_reason(error: &PolarsError, names: &QueryNames<'_>) -> String {
    let text = without_plan(message(innermost(error)));
    // The rest is advice about polars.
    let text = text.split("\n\n").next().unwrap_or(text);
    let reworded = reworded(text, names);
    reworded.unwrap_or_else(|| {
        let reason = PolarsReason(error).to_string();
        if TREES.iter().any(|part| reason.contains(part)) {
            "the query has a part that is not supported; write it another way".to_owned()
        } else {
            reason.lines().next().unwrap_or_default().to_owned()
        }
    })
}

/// Parts of messages in which polars prints its parser's tree.
const TREES: [&str; 3] = ["Span(", "Ident {", "quote_style"];

/// Rewrites a parser name such as `SimilarTo` in SQL words.
fn spaced(name: &str) -> String {
    name.trim_start_matches("PG")
        .chars()
        .flat_map(|letter| {
            let space = letter.is_uppercase().then_some(' ');
            space.into_iter().chain(letter.to_uppercase())
        })
        .collect::<String>()
        .trim_start()
        .to_owned()
}

/// Functions that a query may have meant.
const FUNCTIONS: &str = "abs array_agg avg cbrt ceil coalesce concat concat_ws corr cos count covar_pop date_part degrees \
    dense_rank ends_with exp first_value floor greatest hex ifnull lag lead least left length ln log10 log2 lower lpad ltrim \
    max median min mod nullif number octet_length pow quantile_cont quantile_disc radians rank regexp_like replace reverse \
    right round row_number rpad rtrim sign sin split_part sqrt starts_with stddev strftime string_agg strpos strptime substr \
    sum tan trunc upper utc_time variance";

/// Prefixes of function names in other databases, and the function to use here.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("regexp_", "regexp_like"),
    ("instr", "strpos"),
    ("contains", "strpos"),
    ("locate", "strpos"),
    ("from_unixtime", "utc_time"),
    ("to_timestamp", "utc_time"),
    ("make_timestamp", "utc_time"),
    ("date_trunc", "strftime"),
    ("len", "length"),
];

fn function_hint(name: &str) -> String {
    let name = name.to_lowercase();
    let other = OTHER_NAMES.iter().find(|(start, _)| name.starts_with(start));
    let known = other.map(|(_, known)| *known);
    // Short names are similar to too many others.
    let is_long = name.len() > 3;
    let nearest = || suggest::nearest(&name, FUNCTIONS.split_whitespace()).filter(|_| is_long);
    let known = known.or_else(nearest);
    known.map_or_else(String::new, suggest::did_you_mean)
}

/// Returns the message of a polars error, if it is of a kind with known wording.
fn message(error: &PolarsError) -> &str {
    use PolarsError as E;
    match error {
        E::ColumnNotFound(message)
        | E::SchemaFieldNotFound(message)
        | E::ComputeError(message)
        | E::Duplicate(message)
        | E::InvalidOperation(message)
        | E::SchemaMismatch(message)
        | E::ShapeMismatch(message)
        | E::SQLInterface(message)
        | E::SQLSyntax(message) => message,
        _ => "",
    }
}

fn reworded(text: &str, names: &QueryNames<'_>) -> Option<String> {
    if let Some(captures) = KNOWN_MISSING.iter().find_map(|known| known.captures(text)) {
        return missing_column(&captures, names);
    }
    KNOWN.iter().find_map(|(known, words)| filled(words, &known.captures(text)?, names))
}

/// Fills in what the groups of a pattern matched; `None` if a part of it is unknown.
fn filled(words: &str, captures: &Captures<'_>, names: &QueryNames<'_>) -> Option<String> {
    let (mut text, mut rest) = (String::new(), words);
    while let Some((before, place)) = rest.split_once('{') {
        let (place, after) = place.split_once('}')?;
        let (group, form) = place.split_once(':').unwrap_or((place, ""));
        text.push_str(before);
        // A group that matched nothing says nothing in any form.
        if let Some(part) = captures.get(group.parse().ok()?) {
            text.push_str(&in_form(form, part.as_str(), names)?);
        }
        rest = after;
    }
    Some(text + rest)
}

/// Returns a part of a message as SQL and `.schema` write it, or a hint about it.
fn in_form(form: &str, part: &str, names: &QueryNames<'_>) -> Option<String> {
    Some(match form {
        "" => part.to_owned(),
        "type" => type_name(part)?,
        "items" => {
            let name = type_name(part)?;
            name.strip_prefix("list of ").unwrap_or(&name).to_owned()
        }
        "sql" => spaced(part),
        "upper" => part.to_uppercase(),
        "clause" => {
            let mut letters = part.chars();
            format!("{}{}", letters.next()?.to_lowercase(), letters.as_str())
        }
        "found" if part == "EOF" => "the end of the query".to_owned(),
        "found" => part.to_owned(),
        // Where the parser stopped.
        "position" => format!(" at {}", part.to_lowercase().replace(':', "")),
        "columns" => both_columns(part).unwrap_or_default(),
        "function" if part.starts_with('_') => {
            let reason = "EXISTS takes conditions without calculations";
            format!("{reason}; join the tables, or calculate in a subquery in FROM")
        }
        "function" => format!("unsupported function '{part}'{}", function_hint(part)),
        "table" => suggest::hint(part, names.tables.iter().copied()),
        _ => return None,
    })
}

/// Describes a missing column with the most similar one, or with all columns. In double quotes it may have been meant
/// as text.
fn missing_column(captures: &Captures<'_>, names: &QueryNames<'_>) -> Option<String> {
    let name = captures.name("name")?.as_str();
    if names.query.contains(&format!("\"{name}\"")) {
        return Some(format!("column '{name}' not found; put text in single quotes: '{name}'"));
    }
    let listed: Option<Vec<&str>> = captures.name("columns").map(|columns| {
        columns
            .as_str()
            .split(", ")
            .map(|column| column.trim_matches('"'))
            .filter(|column| !column.is_empty())
            .collect()
    });
    let has_no_table = listed.as_ref().is_some_and(Vec::is_empty);
    let columns = listed.unwrap_or_else(|| names.columns.clone());
    let table =
        captures.name("table").map(|table| format!(" in '{}'", table.as_str())).unwrap_or_default();
    let hint = match suggest::nearest(name, columns.iter().copied()) {
        Some(nearest) => suggest::did_you_mean(nearest),
        None if has_no_table => "; the query names no table".to_owned(),
        None => list(&columns),
    };
    Some(format!("column '{name}' not found{table}{hint}"))
}

/// Returns the end of a message that lists columns, as many as fit in a line or two.
fn list(columns: &[&str]) -> String {
    let mut length = 0;
    let shown: Vec<&str> = columns
        .iter()
        .take_while(|column| {
            length += column.len() + 2;
            length <= MAX_LISTED
        })
        .copied()
        .collect();
    match columns.len().saturating_sub(shown.len()) {
        _ if shown.is_empty() => String::new(),
        0 => format!("; the columns are {}", shown.join(", ")),
        count => format!("; the columns are {} and {count} more", shown.join(", ")),
    }
}

/// Describes both sides of an operation, if both are columns.
fn both_columns(sides: &str) -> Option<String> {
    let (left, right) = sides.strip_prefix("lhs: column ")?.split_once(", rhs: column ")?;
    Some(format!(" ({left} and {right})"))
}

/// Returns a type as `.schema` and `DESCRIBE` write it. Polars has two spellings of each.
pub fn type_name(dtype: &str) -> Option<String> {
    let inner = dtype.strip_prefix("list[").and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.or_else(|| dtype.strip_prefix("List(")?.strip_suffix(')'));
    if let Some(inner) = inner {
        return Some(format!("list of {}", type_name(inner)?));
    }
    let name = dtype.to_lowercase();
    let number = name.replace("uint", "u").replace("int", "i").replace("float", "f");
    let name = match name.as_str() {
        "str" | "string" => "text",
        "bool" | "boolean" => "bool",
        "binary" => "bytes",
        "dyn int" => "a whole number",
        "dyn float" => "a number",
        "date" => "date",
        "time" => "time of day",
        name if name.starts_with("datetime") => "time",
        name if name.starts_with("duration") => "duration",
        _ if NUMBERS.contains(&number.as_str()) => &number,
        _ => return None,
    };
    Some(name.to_owned())
}

/// The numeric types in the short spelling.
const NUMBERS: [&str; 11] =
    ["i8", "i16", "i32", "i64", "i128", "u8", "u16", "u32", "u64", "f32", "f64"];

/// Starts the engine's threads.
///
/// Polars starts its threads with the first query, and hangs if the system refuses one. That happens when other threads
/// use up the address space, so they are started early, while there are few threads.
pub fn start_engine() {
    // Otherwise polars writes to standard error about plans that it makes itself.
    set_warning_function(|_: &str, _: PolarsWarning| ());
    // An empty table is valid; only starting the threads could fail.
    let _ = DataFrame::empty().lazy().collect();
}

#[cfg(test)]
mod tests {
    use polars::{
        prelude::{Column, DataFrame, IntoLazy, LazyFrame, UInt32Chunked},
        sql::SQLContext,
    };

    use super::*;

    fn reason(error: &PolarsError) -> String {
        let names = QueryNames {
            tables: vec!["processes", "objects"],
            columns: vec!["type", "pointer"],
            query: "",
        };
        polars_reason(error, &names)
    }

    fn computed(text: &str) -> String {
        reason(&PolarsError::ComputeError(text.to_owned().into()))
    }

    #[test]
    fn every_pattern_is_a_regex() {
        assert_eq!((KNOWN.len(), KNOWN_MISSING.len()), (MESSAGES.len(), MISSING.len()));
    }

    #[test]
    fn a_missing_column_has_the_nearest_name_or_all_names() {
        let missing = |text: &str| reason(&PolarsError::ColumnNotFound(text.to_owned().into()));
        let with_two_columns = |name: &str| {
            missing(&format!(
                "unable to find column \"{name}\"; valid columns: [\"pid\", \"name\"]\n\nx"
            ))
        };
        assert_eq!(with_two_columns("nme"), "column 'nme' not found, did you mean name?");
        assert_eq!(with_two_columns("zzqq"), "column 'zzqq' not found; the columns are pid, name");
        let without_table = missing("unable to find column \"pid\"; valid columns: []");
        assert_eq!(without_table, "column 'pid' not found; the query names no table");
        assert_eq!(missing("\"typ\" not found"), "column 'typ' not found, did you mean type?");
        let alias = reason(&PolarsError::SQLInterface(
            "no column named 'poiner' found in table 'o'".to_owned().into(),
        ));
        assert_eq!(alias, "column 'poiner' not found in 'o', did you mean pointer?");
    }

    #[test]
    fn many_columns_are_not_all_listed() {
        let names: Vec<String> = (0..200).map(|number| format!("column{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = list(&names);
        assert!(text.len() < MAX_LISTED + 50 && text.ends_with(" more"), "{text}");
    }

    #[test]
    fn types_have_the_names_of_the_schema() {
        for (polars, ours) in [
            (
                "conversion from `str` to `i32` failed in column 'name' for 6 out of 7 values: [\"Idle\", … \"a\"]",
                "6 of 7 values of 'name' cannot be converted from text to i32: [\"Idle\", … \"a\"]",
            ),
            (
                "arithmetic on dtypes str and u32 is not allowed (lhs: column 'name', rhs: column 'pid'); try an \
                 explicit cast first",
                "arithmetic on text and u32 is not possible ('name' and 'pid'); convert one with CAST",
            ),
            (
                "filter predicate must be of type `Boolean`, got `String`",
                "a condition must be bool, but this is text; compare it with a value",
            ),
            ("cannot unpack series of type `str` into `u32`", "u32 is needed, not text"),
            ("expected String type, got: list[u32]", "text is needed, not list of u32"),
        ] {
            assert_eq!(computed(polars), ours);
        }
    }

    #[test]
    fn errors_of_the_parser_name_what_was_expected_and_where() {
        for (polars, ours) in [
            (
                "sql parser error: Expected: an expression, found: EOF",
                "expected an expression, found the end of the query",
            ),
            (
                "sql parser error: Expected: ), found: FROM at Line: 1, Column: 14",
                "expected ), found FROM at line 1, column 14",
            ),
            (
                "sql parser error: Unterminated string literal at Line: 1, Column: 8",
                "unterminated string literal at line 1, column 8",
            ),
            (
                "relation 'processs' was not found",
                "table 'processs' not found, did you mean processes?",
            ),
        ] {
            assert_eq!(computed(polars), ours);
        }
    }

    /// Queries over `t` that cause known messages, each with a part of the reworded message.
    const PROVOKING: &[(&str, &str)] = &[
        ("SELECT (", "found the end of the query"),
        ("SELECT (pid FROM t", "expected ), found FROM at line 1, column 13"),
        ("SELECT 'x", "unterminated string literal"),
        ("SELECT 1; SELECT 2", "a query is one statement"),
        ("SELECT q.pid FROM t", "the query names no table 'q'"),
        ("SELECT pid FROM t HAVING pid > 1", "HAVING is allowed only after GROUP BY"),
        ("SELECT pid, pid FROM t", "two columns of the answer have the name 'pid'"),
        (
            "SELECT name, max(pid) AS name FROM t GROUP BY name",
            "two columns of the answer have the name 'name'",
        ),
        ("SELECT name FROM t ORDER BY max(pid)", "ORDER BY uses an expression"),
        (
            "SELECT CAST(name AS INT) FROM t",
            "2 of 2 values of 'name' cannot be converted from text to i32",
        ),
        (
            "SELECT name - pid FROM t",
            "arithmetic on text and u32 is not possible ('name' and 'pid')",
        ),
        ("SELECT name - 1 FROM t", "arithmetic on text and a whole number is not possible"),
        ("SELECT pid FROM t WHERE name", "a condition must be bool, but this is text"),
        ("SELECT pid FROM t WHERE name > pid", "text cannot be compared with a number (u32)"),
        ("SELECT sum(name) FROM t", "sum is not possible for text"),
        ("SELECT upper(pid) FROM t", "'pid' is u32, but text is needed"),
        ("SELECT upper(1) FROM t", "text is needed, not i32"),
        ("SELECT starts_with(pid, 'a') FROM t", "text is needed, not u32"),
        ("SELECT pid FROM t WHERE pid IN ('a')", "IN cannot look for u32 among text"),
        ("SELECT pid FROM t WHERE name SIMILAR TO 'a'", "SIMILAR TO is not possible here; write"),
        (
            "SELECT a.pid FROM t a JOIN t b ON a.pid = b.pid OR a.pid = 1",
            "ON compares columns of both tables",
        ),
        ("SELECT pid << 1 FROM t", "the operator BITWISE SHIFT LEFT is not supported"),
        ("SELECT regexp_matches(name, 'a') FROM t", "did you mean regexp_like?"),
        ("SELECT 9223372036854775808", "9223372036854775808 has more than 64 bits"),
        ("SELECT CAST(pid AS DECIMAL(10, 2)) FROM t", "the type DECIMAL is not supported"),
        ("SELECT name FROM t GROUP BY name HAVING name LIKE 'I%'", "HAVING filters counts"),
        ("SELECT pid FROM tt", "table 'tt' not found"),
        ("SELECT nme FROM t", "column 'nme' not found, did you mean name?"),
        (
            "SELECT pid FROM t WHERE name = \"Idle\"",
            "column 'Idle' not found; put text in single quotes: 'Idle'",
        ),
        ("SELECT p.nme FROM t p", "column 'nme' not found in 'p', did you mean name?"),
    ];

    /// Returns the polars error for a query.
    fn provoked(query: &str) -> PolarsError {
        let names = Column::new("name".into(), ["Idle", "System"]);
        let frame = DataFrame::new(2, vec![names, Column::new("pid".into(), [0_u32, 4])]);
        let mut context = SQLContext::new();
        context.register("t", frame.expect("a frame").lazy());
        context.execute(query).and_then(LazyFrame::collect).expect_err(query)
    }

    /// The polars version in use must word its messages as this file expects.
    #[test]
    fn polars_says_what_is_known() {
        let mut errors: Vec<PolarsError> = Vec::new();
        for (query, expected) in PROVOKING {
            let error = provoked(query);
            let names = QueryNames { tables: vec!["t"], columns: vec!["name", "pid"], query };
            let reason = polars_reason(&error, &names);
            assert!(reason.contains(expected), "{query}: {reason}");
            errors.push(error);
        }
        // No query causes these messages, but reading columns does.
        let column = Column::new("name".into(), ["Idle"]);
        let series = column.as_materialized_series();
        let numbers = UInt32Chunked::from_vec("pid".into(), vec![0]);
        errors.extend(numbers.unpack_series_matching_type(series).err());
        let frame = DataFrame::new(1, vec![column.clone()]).expect("a frame");
        errors.extend(frame.column("pid").err());
        let texts: Vec<String> =
            errors.iter().map(|error| without_plan(message(innermost(error))).to_owned()).collect();
        let known = KNOWN.iter().map(|(known, _)| known).chain(KNOWN_MISSING.iter());
        for known in known {
            assert!(texts.iter().any(|texts| known.is_match(texts)), "{known}: {texts:#?}");
        }
    }

    #[test]
    fn unknown_messages_stay() {
        for text in ["unsupported function 'foo'", "expected Categorical type, got: struct[2]"] {
            assert_eq!(computed(text), text);
        }
        let inner = Box::new(PolarsError::ComputeError("odd".to_owned().into()));
        let context = PolarsError::Context { error: inner, msg: "in a join".to_owned().into() };
        assert_eq!(reason(&context), "odd: in a join");
        let shape = PolarsError::ShapeMismatch("3 and 4\n\nResolved plan: x".to_owned().into());
        assert_eq!(reason(&shape), "lengths don't match: 3 and 4");
    }
}
