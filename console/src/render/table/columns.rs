//! Columns: name, value, and how text shows it, said in one place.

use handlescope_model::Untrusted;
use indicatif::{HumanBytes, HumanCount};
use polars::prelude::{
    AnyValue, Column, DataFrame, DataType, Int64Type, IntoColumn, ListBuilderTrait,
    ListPrimitiveChunkedBuilder, NamedFrom, PolarsResult, Series, UInt32Type,
};

use super::value::{cell, hex};

/// What a column is called, and how its values are written.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnSpec {
    title: Option<String>,
    show: Show,
    /// What text shows, by rows of the frame, instead of the values.
    texts: Option<Vec<String>>,
    unknown: Option<&'static str>,
    pub(super) place: i8,
    pub(super) is_text_only: bool,
    pub(super) omits_unknown: bool,
}

/// How text shows a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Show {
    /// As it is.
    #[default]
    Plain,
    /// As it is, lines as lines.
    Lines,
    /// A number with separators between thousands.
    Grouped,
    /// Bytes with a unit.
    Bytes,
    /// Nanoseconds as seconds.
    Seconds,
    /// A number like 0xC0, in every format: it may exceed 2^53.
    Hex,
    /// Small codes are chosen by programs, the others are NTSTATUS values that people know in hex.
    ExitCode,
}

impl ColumnSpec {
    /// A column that came without a description.
    pub(super) fn of(column: &Column) -> ColumnSpec {
        ColumnSpec {
            title: Some(column.name().to_string()),
            show: Show::Lines,
            unknown: Some("null"),
            ..ColumnSpec::default()
        }
    }

    /// Its heading in the text, which shows only columns with one.
    pub(crate) fn title(&mut self, title: &str) -> &mut ColumnSpec {
        self.title = Some(title.to_owned());
        self
    }

    /// How text shows its values.
    pub(crate) fn show(&mut self, show: Show) -> &mut ColumnSpec {
        self.show = show;
        self
    }

    /// What text shows for the known values, one for each row.
    pub(crate) fn texts(&mut self, texts: Vec<String>) -> &mut ColumnSpec {
        self.texts = Some(texts);
        self
    }

    /// What text shows for an unknown value instead of `-`.
    pub(crate) fn unknown(&mut self, unknown: &'static str) -> &mut ColumnSpec {
        self.unknown = Some(unknown);
        self
    }

    /// Where it stands in the text, when not where it was declared: before the others with a
    /// negative number, after them with a positive one.
    pub(crate) fn place(&mut self, place: i8) -> &mut ColumnSpec {
        self.place = place;
        self
    }

    /// Only text has it: it repeats what other columns say.
    pub(crate) fn text_only(&mut self) -> &mut ColumnSpec {
        self.is_text_only = true;
        self
    }

    /// JSON leaves it out where it is unknown, instead of writing null.
    pub(crate) fn omit_unknown(&mut self) -> &mut ColumnSpec {
        self.omits_unknown = true;
        self
    }

    /// The same where it was chosen: it stands where it was named, if only files have it under its name.
    pub(super) fn chosen(self, name: &str) -> ColumnSpec {
        let show = match (&self.title, self.show) {
            (None, Show::Plain) => Show::Lines,
            (_, show) => show,
        };
        let title = self.title.or_else(|| Some(name.to_owned()));
        ColumnSpec { title, show, place: 0, ..self }
    }

    pub(super) fn is_hex(&self) -> bool {
        self.show == Show::Hex
    }

    /// The heading with the unit of the values.
    pub(super) fn heading(&self) -> Option<String> {
        let title = Untrusted(self.title.as_deref()?);
        Some(match self.show {
            Show::Seconds => format!("{title} [s]"),
            _ => title.to_string(),
        })
    }

    /// Whether the text calls it so, in any case and with or without the unit.
    pub(super) fn is_titled(&self, name: &str) -> bool {
        let names = [self.title.clone(), self.heading()];
        names.into_iter().flatten().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// The value of a row as text.
    pub(super) fn shown(&self, value: &AnyValue<'_>, row: usize) -> String {
        let number = || value.extract::<i64>().unwrap_or_default();
        let text = self.texts.as_ref().and_then(|texts| texts.get(row));
        if let Some(text) = text.filter(|_| !value.is_null()) {
            return Untrusted(text).to_string();
        }
        match (self.show, value) {
            (_, AnyValue::Null) => self.unknown.unwrap_or("-").to_owned(),
            (Show::Grouped, _) => HumanCount(value.extract().unwrap_or_default()).to_string(),
            (Show::Bytes, _) => bytes(number()),
            (Show::Seconds, _) => format!("{:.6}", number() as f64 / 1e9),
            (Show::Hex, _) => hex(value),
            (Show::ExitCode, AnyValue::Int32(code)) => exit_code(*code),
            (_, AnyValue::Float64(number)) => rounded(*number),
            (show, value) => {
                let mut text = String::new();
                cell(value, &mut text);
                if show == Show::Lines { lines(&text) } else { Untrusted(&text).to_string() }
            }
        }
    }
}

/// Makes a frame of rows, column by column.
pub(crate) struct Columns<'r, R> {
    rows: &'r [R],
    columns: Vec<Column>,
    specs: Vec<ColumnSpec>,
}

impl<'r, R> Columns<'r, R> {
    /// No columns of some rows.
    pub(crate) fn of(rows: &'r [R]) -> Columns<'r, R> {
        Columns { rows, columns: Vec::new(), specs: Vec::new() }
    }

    /// A column of numbers, texts or flags: its name as in JSON, and the value of a row.
    pub(crate) fn add<T>(&mut self, name: &str, value: impl FnMut(&'r R) -> T) -> &mut ColumnSpec
    where
        Series: NamedFrom<Vec<T>, [T]>,
    {
        let values: Vec<T> = self.rows.iter().map(value).collect();
        self.push(Series::new(name.into(), values))
    }

    /// A column of lists.
    pub(crate) fn add_list(
        &mut self,
        name: &str,
        mut values: impl FnMut(&'r R) -> Vec<u32>,
    ) -> &mut ColumnSpec {
        let height = self.rows.len();
        let mut lists = ListPrimitiveChunkedBuilder::<UInt32Type>::new(
            name.into(),
            height,
            height,
            DataType::UInt32,
        );
        self.rows.iter().for_each(|row| lists.append_slice(&values(row)));
        self.push(lists.finish())
    }

    /// A column of lists of signed numbers.
    pub(crate) fn add_long_list(
        &mut self,
        name: &str,
        mut values: impl FnMut(&'r R) -> Vec<i64>,
    ) -> &mut ColumnSpec {
        let height = self.rows.len();
        let mut lists = ListPrimitiveChunkedBuilder::<Int64Type>::new(
            name.into(),
            height,
            height,
            DataType::Int64,
        );
        self.rows.iter().for_each(|row| lists.append_slice(&values(row)));
        self.push(lists.finish())
    }

    fn push(&mut self, column: impl IntoColumn) -> &mut ColumnSpec {
        self.columns.push(column.into_column());
        self.specs.push(ColumnSpec::default());
        let last = self.specs.len() - 1;
        &mut self.specs[last]
    }

    pub(super) fn into_frame(self) -> PolarsResult<(DataFrame, Vec<ColumnSpec>)> {
        Ok((DataFrame::new(self.rows.len(), self.columns)?, self.specs))
    }
}

/// So many bytes, which may be fewer than none where events say so.
pub(in crate::render) fn bytes(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", HumanBytes(number.unsigned_abs()))
}

fn exit_code(code: i32) -> String {
    if (-0x1000..0x1_0000).contains(&code) { code.to_string() } else { format!("0x{code:X}") }
}

/// Lines of a stack stay lines, with an empty one after them.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| Untrusted(line).to_string()).collect();
    let end = if lines.len() > 1 { "\n" } else { "" };
    lines.join("\n") + end
}

/// Six digits after the point are what a nanosecond of a millisecond needs; more digits give no more
/// information.
fn rounded(number: f64) -> String {
    const LEAST: f64 = 1e-3;
    if !number.is_finite() || (number != 0.0 && number.abs() < LEAST) {
        return number.to_string();
    }
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        for (number, text) in [
            (1420.6535999999999, "1420.6536"),
            (0.1 + 0.2, "0.3"),
            (100.0, "100"),
            (0.0, "0"),
            (-2.5, "-2.5"),
            (0.000_012, "0.000012"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(rounded(number), text);
        }
    }

    #[test]
    fn a_stack_stays_a_stack_and_nothing_talks_to_the_terminal() {
        assert_eq!(lines("a!b\nc\u{1b}[2J"), "a!b\nc\\u{1b}[2J\n");
        assert_eq!(lines("one"), "one");
        assert_eq!(lines(""), "");
    }

    #[test]
    fn values_are_shown_as_people_know_them() {
        let shown = |show: Show, value: AnyValue<'_>| {
            ColumnSpec { show, ..ColumnSpec::default() }.shown(&value, 0)
        };
        assert_eq!(shown(Show::Plain, AnyValue::Null), "-");
        assert_eq!(shown(Show::Plain, AnyValue::String("a\nb\u{1b}")), "a\\nb\\u{1b}");
        assert_eq!(shown(Show::Grouped, AnyValue::UInt64(1_234_567)), "1,234,567");
        assert_eq!(shown(Show::Seconds, AnyValue::Int64(1_500)), "0.000002");
        assert_eq!(shown(Show::Hex, AnyValue::UInt64(u64::MAX)), "0xFFFFFFFFFFFFFFFF");
        assert_eq!(shown(Show::ExitCode, AnyValue::Int32(-1_073_741_819)), "0xC0000005");
        assert_eq!(shown(Show::ExitCode, AnyValue::Int32(-1)), "-1");
    }
}
