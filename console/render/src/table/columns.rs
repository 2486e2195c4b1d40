//! Columns: their names, values and display in each format, declared in one place before there are rows.

use std::{
    io::{self, Write},
    rc::Rc,
};

use handlescope_model::Untrusted;
use indicatif::HumanCount;
use polars::prelude::{AnyValue, Column, DataFrame, IntoColumn, PlSmallStr, PolarsResult, Series};
use serde::Serialize;

use super::document::{Depth, MemberMeaning, PartOf, PartsOf};
use super::value::{CellType, CellValue, DocumentMember, Show, cell, hex};
use crate::json::Document;
use handlescope_session::values::Size;

/// The number of a file; its rows are together anyway.
pub const FILE: &str = "file";

/// The heading of a column and the format of its values.
#[derive(Debug, Clone, Default)]
pub struct ColumnFormat {
    title: Option<String>,
    show: Show,
    /// Texts to show instead of the values, by row of the frame.
    texts: Option<Vec<String>>,
    unknown: Option<&'static str>,
    pub rank: i8,
    pub scope: ColumnScope,
    pub omits_unknown: bool,
}

/// The formats that include a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColumnScope {
    #[default]
    All,
    /// Text only: the column repeats what other columns say.
    Text,
    /// Text and files of rows; the document has something else instead.
    Rows,
}

impl ColumnFormat {
    /// Creates the description of a column that came without one.
    pub fn new(column: &Column) -> ColumnFormat {
        ColumnFormat {
            title: Some(column.name().to_string()),
            show: Show::Lines,
            unknown: Some("null"),
            ..ColumnFormat::default()
        }
    }

    /// Adapts a column that the user chose: it keeps the chosen position, and is shown under its name if it has no
    /// title.
    pub fn selected_by(self, name: &str) -> ColumnFormat {
        let show = match (&self.title, self.show) {
            (None, Show::Plain) => Show::Lines,
            (_, show) => show,
        };
        let title = self.title.or_else(|| Some(name.to_owned()));
        ColumnFormat { title, show, rank: 0, ..self }
    }

    pub fn is_hex(&self) -> bool {
        self.show == Show::Hex
    }

    pub fn is_clipped(&self) -> bool {
        self.show == Show::Clipped
    }

    /// Returns the heading with the unit of the values.
    pub fn heading(&self) -> Option<String> {
        let title = Untrusted(self.title.as_deref()?);
        Some(match self.show {
            Show::Seconds => format!("{title} [s]"),
            _ => title.to_string(),
        })
    }

    /// Whether this is the heading in text, ignoring case, with or without the unit.
    pub fn is_titled(&self, name: &str) -> bool {
        let names = [self.title.clone(), self.heading()];
        names.into_iter().flatten().any(|title| title.eq_ignore_ascii_case(name))
    }

    /// Returns the value of a row for programs.
    pub fn value<'c>(&self, column: &'c Column, row: usize) -> PolarsResult<AnyValue<'c>> {
        let value = column.get(row)?;
        let is_hex = self.is_hex() && !value.is_null();
        Ok(if is_hex { AnyValue::StringOwned(hex(&value).into()) } else { value })
    }

    /// Returns the value of a row as text.
    pub fn shown(&self, value: &AnyValue<'_>, row: usize) -> String {
        let number = || value.extract::<i64>().unwrap_or_default();
        let text = self.texts.as_ref().and_then(|texts| texts.get(row));
        if let Some(text) = text.filter(|_| !value.is_null()) {
            return Untrusted(text).to_string();
        }
        match (self.show, value) {
            (_, AnyValue::Null) => self.unknown.unwrap_or("-").to_owned(),
            (Show::Grouped, _) => HumanCount(value.extract().unwrap_or_default()).to_string(),
            (Show::Bytes, _) => Size(number()).to_string(),
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

/// The columns of a row, and its text.
pub struct Columns<'a, R> {
    columns: Vec<ColumnDeclaration<'a, R>>,
    text: Option<RowText<'a, R>>,
}

/// Writes a row as its own text instead of as a line of a grid; gets the row or its number.
pub type RowText<'a, R = usize> = Box<dyn Fn(&R, &mut dyn Write) -> io::Result<()> + 'a>;

/// Receives a value of any type.
type Taker<'t> = &'t mut dyn FnMut(DocumentMember<'_>);

/// The text of a row's value, its value for a document, and the values of all rows as a named series.
type TextOf<'a, R> = Box<dyn Fn(&R) -> String + 'a>;
type ValueOf<'a, R> = Box<dyn Fn(&R, Taker<'_>) + 'a>;
type SeriesOf<'a, R> = Box<dyn Fn(PlSmallStr, &[R]) -> Series + 'a>;

/// Whether a row has this member in a document.
type Applies<'a, R> = Box<dyn Fn(&R) -> bool + 'a>;

/// A column and the source of its values.
pub struct ColumnDeclaration<'a, R> {
    name: &'static str,
    /// The type as in JSON Schema, with `?` if it may be null.
    kind: &'static str,
    /// The meaning of the value, in Markdown.
    meaning: &'static str,
    /// The members of the value.
    inner: Vec<MemberMeaning>,
    depth: Depth,
    value: ValueOf<'a, R>,
    /// The values in tables; `None` for a member that only documents have.
    series: Option<SeriesOf<'a, R>>,
    texts: Option<TextOf<'a, R>>,
    applies: Option<Applies<'a, R>>,
    /// The column that it follows in a document, if not the one declared before it.
    follows: Option<&'static str>,
    /// Index of the column in the frame of a document's rows.
    cell: Option<usize>,
    spec: ColumnFormat,
}

/// The member for the number of rows left out.
const LEFT_OUT: &str = "left_out";

/// The type of lists in JSON Schema.
const LIST: &str = "array";

/// The members of a document's rows, in order.
pub struct RowMembers<'a, R>(Vec<ColumnDeclaration<'a, R>>);

/// Passes on the members of the row with a number.
pub type RowDocument<'a> = Box<dyn Fn(usize, MemberTaker<'_>) + 'a>;

/// Receives a member and its name.
pub type MemberTaker<'t> = &'t mut dyn FnMut(&'static str, DocumentMember<'_>);

impl<R> Default for Columns<'_, R> {
    fn default() -> Self {
        Columns { columns: Vec::new(), text: None }
    }
}

impl<'a, R> Columns<'a, R> {
    /// Declares a document with nothing but rows.
    pub fn with_rows(name: &'static str, meaning: &'static str) -> Self {
        let mut document = Columns::default();
        document.rows(name, meaning);
        document
    }

    /// Adds a column of numbers, texts, flags or lists: its name, its meaning, and the value of a row.
    pub fn add<T: CellType + 'a>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        value: impl Fn(&R) -> T + 'a,
    ) -> &mut ColumnDeclaration<'a, R> {
        let value = Rc::new(value);
        let cell = Rc::clone(&value);
        let series =
            move |name, rows: &[R]| T::series(name, rows.iter().map(|row| cell(row)).collect());
        let added = self.nest(name, T::JSON, meaning, move |row| value(row)).show(T::SHOW);
        added.series = Some(Box::new(series));
        added
    }

    /// Adds a member that only documents have: its name, its type, its meaning, and the value of a row.
    pub fn nest<T: Serialize + 'a>(
        &mut self,
        name: &'static str,
        kind: &'static str,
        meaning: &'static str,
        value: impl Fn(&R) -> T + 'a,
    ) -> &mut ColumnDeclaration<'a, R> {
        self.declare(name, kind, meaning, move |row, take| take(DocumentMember::Made(&value(row))))
    }

    /// Adds a member of a document, or of a member: its name, its meaning, and its value.
    pub fn member<T: Serialize + 'a>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        value: impl Fn(&R) -> T + 'a,
    ) -> &mut ColumnDeclaration<'a, R> {
        self.nest(name, "", meaning, value)
    }

    /// Like [`member`](Self::member), but omits the member if it has no value.
    pub fn member_if<T: Serialize + 'a>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        value: impl Fn(&R) -> Option<T> + 'a,
    ) -> &mut ColumnDeclaration<'a, R> {
        self.declare(name, "", meaning, move |row, take| {
            if let Some(value) = value(row) {
                take(DocumentMember::Made(&value));
            }
        })
    }

    /// Adds a member that has members itself; omits it if it has no value.
    pub fn part_if<P: 'a>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        members: Columns<'a, P>,
        value: impl Fn(&R) -> Option<P> + 'a,
    ) -> &mut ColumnDeclaration<'a, R> {
        let members = Rc::new(members.in_document());
        let inner = members.described();
        let value = move |row: &R| Some(PartOf(Rc::clone(&members), value(row)?));
        self.member_if(name, meaning, value).inner(inner)
    }

    /// Adds a list of values that have members.
    pub fn parts<P: 'a>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        members: Columns<'a, P>,
        values: impl Fn(&R) -> Vec<P> + 'a,
    ) -> &mut ColumnDeclaration<'a, R> {
        let members = Rc::new(members.in_document());
        let inner = members.described();
        let values = move |row: &R| PartsOf(Rc::clone(&members), values(row));
        self.nest(name, LIST, meaning, values).inner(inner)
    }

    /// Adds the word for the kind of document.
    pub fn kind(&mut self, meaning: &'static str, word: &'static str) {
        self.member("kind", meaning, move |_| word).for_programs();
    }

    /// Places the rows in the document around them.
    pub fn rows(
        &mut self,
        name: &'static str,
        meaning: &'static str,
    ) -> &mut ColumnDeclaration<'a, R> {
        self.declare(name, "", meaning, |_, take| take(DocumentMember::Rows))
    }

    /// Places the number of rows that `-TopN` leaves out in the document around them.
    pub fn left_out(&mut self, rows: &'static str, meaning: &'static str) {
        let left_out =
            self.declare(LEFT_OUT, "", "only if `-TopN` omits something", move |_, take| {
                take(DocumentMember::LeftOut(rows));
            });
        left_out.for_programs().inner(vec![MemberMeaning::new(rows, meaning)]);
    }

    fn declare(
        &mut self,
        name: &'static str,
        kind: &'static str,
        meaning: &'static str,
        value: impl Fn(&R, Taker<'_>) + 'a,
    ) -> &mut ColumnDeclaration<'a, R> {
        self.columns.push(ColumnDeclaration {
            name,
            kind,
            meaning,
            inner: Vec::new(),
            depth: Depth::Brief,
            value: Box::new(value),
            series: None,
            texts: None,
            applies: None,
            follows: None,
            cell: None,
            spec: ColumnFormat::default(),
        });
        let last = self.columns.len() - 1;
        &mut self.columns[last]
    }

    /// Keeps the columns with these names, in this order, and gives them new headings.
    pub fn only(mut self, selected: &[(&'static str, &str)]) -> Self {
        let columns = selected.iter().filter_map(|(name, title)| {
            let index = self.columns.iter().position(|column| column.name == *name)?;
            let mut column = self.columns.swap_remove(index);
            column.title(title);
            Some(column)
        });
        Columns { columns: columns.collect(), text: None }
    }

    /// Describes the columns to a script that draws them.
    pub fn drawn(&self) -> Vec<Document<'static>> {
        let drawn = |column: &ColumnDeclaration<'_, R>| {
            Document::default()
                .with("key", column.name)
                .with("title", column.spec.title.clone())
                .with("number", column.kind == i64::JSON)
                .with("bytes", column.spec.show == Show::Bytes)
        };
        self.columns.iter().map(drawn).collect()
    }

    /// Makes text show rows as their own lines instead of in a grid.
    pub fn row_text(&mut self, text: impl Fn(&R, &mut dyn Write) -> io::Result<()> + 'a) {
        self.text = Some(Box::new(text));
    }

    /// Returns the names that `-SortBy` accepts.
    pub fn names(&self) -> Vec<String> {
        let cells = self.columns.iter().filter(|column| column.series.is_some());
        let sortable = cells.filter(|column| column.kind != LIST && column.name != FILE);
        sortable.map(|column| column.name.to_owned()).collect()
    }

    /// Describes the members of a document or of its rows, in order.
    pub fn members(self) -> Vec<MemberMeaning> {
        self.in_document().described()
    }

    /// Combines a value with the names of its members.
    pub fn part(self, value: R) -> PartOf<'a, R> {
        PartOf(Rc::new(self.in_document()), value)
    }

    /// Combines values with the names of their members.
    pub fn parts_of(self, values: Vec<R>) -> PartsOf<'a, R> {
        PartsOf(Rc::new(self.in_document()), values)
    }

    /// Returns the columns of documents, in order.
    pub fn in_document(self) -> RowMembers<'a, R> {
        let columns =
            self.columns.into_iter().filter(|column| column.spec.scope == ColumnScope::All);
        let (moved, mut members): (Vec<_>, Vec<_>) =
            columns.partition(|column| column.follows.is_some());
        for column in moved {
            let before = members.iter().rposition(|before: &ColumnDeclaration<'_, R>| {
                Some(before.name) == column.follows || before.follows == column.follows
            });
            members.insert(before.map_or(members.len(), |before| before + 1), column);
        }
        RowMembers(members)
    }

    /// Returns the values of some rows.
    pub fn frame(&self, rows: &[R]) -> PolarsResult<(DataFrame, Vec<ColumnFormat>)> {
        let columns = self.columns.iter().filter_map(|column| {
            let series = column.series.as_ref()?(column.name.into(), rows);
            let texts = column.texts.as_ref().map(|text| rows.iter().map(text).collect());
            Some((series.into_column(), ColumnFormat { texts, ..column.spec.clone() }))
        });
        let (columns, specs): (Vec<Column>, Vec<_>) = columns.unzip();
        Ok((DataFrame::new(rows.len(), columns)?, specs))
    }

    /// Returns the documents of rows, with values from their frame, and the text of a row.
    pub fn over(mut self, rows: Vec<R>, frame: DataFrame) -> (RowDocument<'a>, Option<RowText<'a>>)
    where
        R: 'a,
    {
        let rows = Rc::new(rows);
        let text = self.text.take().map(|text| {
            let rows = Rc::clone(&rows);
            let text = move |row: &usize, out: &mut dyn Write| {
                rows.get(*row).map_or(Ok(()), |row| text(row, out))
            };
            Box::new(text) as RowText<'a>
        });
        let cells = self.columns.iter_mut().filter(|column| column.series.is_some());
        (0..).zip(cells).for_each(|(index, column)| column.cell = Some(index));
        let members = self.in_document();
        let document: RowDocument<'a> = Box::new(move |row, take| {
            if let Some(members_of) = rows.get(row) {
                members.each(members_of, Some((&frame, row)), take);
            }
        });
        (document, text)
    }
}

impl<R> RowMembers<'_, R> {
    fn described(&self) -> Vec<MemberMeaning> {
        let described = self.0.iter().flat_map(|column| {
            let &ColumnDeclaration { name, kind, meaning, depth, .. } = column;
            let own = MemberMeaning { name: name.to_owned(), kind, meaning, depth };
            std::iter::once(own).chain(column.inner.iter().cloned())
        });
        described.collect()
    }

    /// Passes on each member that a row has. If the row belongs to a frame, takes the values from the frame.
    pub fn each(&self, row: &R, frame_row: Option<(&DataFrame, usize)>, take: MemberTaker<'_>) {
        for ColumnDeclaration { name, value, cell, spec, applies, .. } in &self.0 {
            if applies.as_ref().is_some_and(|applies| !applies(row)) {
                continue;
            }
            let cell = frame_row.zip(*cell).and_then(|((frame, row), column)| {
                spec.value(frame.columns().get(column)?, row).ok()
            });
            match cell {
                Some(cell) => take(name, DocumentMember::Cell(CellValue(cell))),
                None => value(row, &mut |value| take(name, value)),
            }
        }
    }
}

impl<'a, R> ColumnDeclaration<'a, R> {
    /// Omits it in brief answers to agents, unless they ask for details.
    pub fn detail(&mut self) -> &mut Self {
        self.depth = Depth::Detail;
        self
    }

    /// Omits it in all answers to agents: it is for programs, or repeats the question.
    pub fn for_programs(&mut self) -> &mut Self {
        self.depth = Depth::Programs;
        self
    }

    /// Sets the members of the value.
    pub fn inner(&mut self, members: Vec<MemberMeaning>) -> &mut Self {
        let of_value = |member: MemberMeaning| {
            let name = format!("{}.{}", self.name, member.name);
            MemberMeaning { name, kind: "", ..member }
        };
        self.inner = members.into_iter().map(of_value).collect();
        self
    }

    /// Sets the heading in text; text shows only columns with a heading.
    pub fn title(&mut self, title: &str) -> &mut Self {
        self.spec.title = Some(title.to_owned());
        self
    }

    /// Sets the heading for a display with one value per line, and separates the thousands of counts.
    pub fn fact(&mut self, title: &str) -> &mut Self {
        if self.kind.starts_with("integer") {
            self.show(Show::Grouped);
        }
        self.title(title).unknown("unknown")
    }

    /// Sets the format of its values in text.
    pub fn show(&mut self, show: Show) -> &mut Self {
        self.spec.show = show;
        self
    }

    /// Sets the text of a row, to replace a known value.
    pub fn texts(&mut self, text: impl Fn(&R) -> String + 'a) -> &mut Self {
        self.texts = Some(Box::new(text));
        self
    }

    /// Sets the text for an unknown value, instead of `-`.
    pub fn unknown(&mut self, unknown: &'static str) -> &mut Self {
        self.spec.unknown = Some(unknown);
        self
    }

    /// Sets its position in text, if not where it was declared: a negative rank comes before the other columns, a
    /// positive one after.
    pub fn rank(&mut self, rank: i8) -> &mut Self {
        self.spec.rank = rank;
        self
    }

    /// Restricts it to text, because it repeats other columns.
    pub fn text_only(&mut self) -> &mut Self {
        self.spec.scope = ColumnScope::Text;
        self
    }

    /// Excludes it from documents, which have something else instead.
    pub fn rows_only(&mut self) -> &mut Self {
        self.spec.scope = ColumnScope::Rows;
        self
    }

    /// Omits it from JSON if it is unknown, instead of writing null.
    pub fn omit_unknown(&mut self, is_known: impl Fn(&R) -> bool + 'a) -> &mut Self {
        self.spec.omits_unknown = true;
        self.applies = Some(Box::new(is_known));
        self
    }

    /// Sets the column that precedes it in a document.
    pub fn follows(&mut self, name: &'static str) -> &mut Self {
        self.follows = Some(name);
        self
    }
}

fn exit_code(code: i32) -> String {
    if (-0x1000..0x1_0000).contains(&code) { code.to_string() } else { format!("0x{code:X}") }
}

/// Escapes a text but keeps its lines; a stack gets an empty line after it.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| Untrusted(line).to_string()).collect();
    let end = if lines.len() > 1 { "\n" } else { "" };
    lines.join("\n") + end
}

/// Formats a number with at most six decimals. Milliseconds need six to show nanoseconds, and more would mean nothing.
fn rounded(number: f64) -> String {
    const MIN: f64 = 1e-3;
    if !number.is_finite() || (number != 0.0 && number.abs() < MIN) {
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
            ColumnFormat { show, ..ColumnFormat::default() }.shown(&value, 0)
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
