//! Addresses, keys and handles: text like `0xC0` in every table and view, and the literals in a query that are compared
//! with them.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use handlescope_model::{ColumnSpec, Table};
use polars::prelude::{
    Column, DataType, IntoColumn, NewChunkedArray, PolarsResult, StringChunkedBuilder,
    UInt64Chunked, polars_err,
};
use sqlparser::{
    ast::{BinaryOperator, Expr, Select, SelectItem, Statement, Value, VisitMut as _, VisitorMut},
    dialect::GenericDialect,
    parser::Parser,
    tokenizer::{Token, Tokenizer},
};

use super::columns::RelationColumn;

/// The function that formats addresses the way they are shown everywhere else.
pub const HEX: &str = "hex";

/// The function that parses them, to compare and to calculate.
pub const NUMBER: &str = "number";

/// Formats numbers like `0xC0`.
pub fn hex_of(numbers: &Column) -> PolarsResult<Column> {
    let numbers = numbers.cast(&DataType::UInt64)?;
    let mut texts = StringChunkedBuilder::new(numbers.name().clone(), numbers.len());
    let mut text = String::new();
    for number in numbers.u64()?.iter() {
        text.clear();
        // Writing to a string does not fail.
        let _ = number.map(|number| write!(text, "0x{number:X}"));
        texts.append_option(number.map(|_| &*text));
    }
    Ok(texts.finish().into_column())
}

/// Parses texts like `0xC0`, for a function; numbers stay as they are.
///
/// # Errors
/// If a text is not like that.
pub fn number_of(function: &str, column: &Column) -> PolarsResult<Column> {
    let Ok(texts) = column.str() else { return column.cast(&DataType::UInt64) };
    let wrong = |text| polars_err!(SQLInterface: "{function} takes a number or text like 0xC0, not '{text}'");
    let numbers = texts
        .iter()
        .map(|text| text.map(|text| parsed(text).ok_or_else(|| wrong(text))).transpose())
        .collect::<PolarsResult<Vec<Option<u64>>>>()?;
    Ok(UInt64Chunked::from_iter_options(column.name().clone(), numbers.into_iter()).into_column())
}

/// Parses a text like `0xC0`, in any case.
fn parsed(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Converts literals of addresses, keys and handles in a query to the form of the columns they are compared with:
/// `pointer = 0xffffad8f1234`. `None` if there are none. `columns` are those of the query's tables and views. Polars
/// would take such literals for bytes.
pub fn with_literals(query: &str, columns: &[RelationColumn]) -> Option<String> {
    let tokens = Tokenizer::new(&GenericDialect {}, query).tokenize().ok()?;
    let mut literals = Literals::new(columns);
    let is_concerned = |token: &Token| match token {
        Token::HexStringLiteral(_) => true,
        Token::Word(word) => literals.are_hex(&word.value),
        _ => false,
    };
    if !tokens.iter().any(is_concerned) {
        return None;
    }
    let mut statements = Parser::parse_sql(&GenericDialect {}, query).ok()?;
    let before = statements.clone();
    let _ = statements.visit(&mut literals);
    let statements = (before != statements).then_some(statements)?;
    let texts: Vec<String> = statements.iter().map(Statement::to_string).collect();
    Some(texts.join("; "))
}

/// Converts literals, based on the names of columns.
struct Literals {
    hex: HashSet<String>,
    numbers: HashSet<String>,
}

/// The two forms of a value in a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparisonForm {
    Text,
    Number,
    /// An expression of unknown type.
    Unknown,
}

impl VisitorMut for Literals {
    type Break = ();

    /// Takes names that the query gives to its columns, because later parts of it may compare them.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &select.projection {
            let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
            let (name, form) = (alias.value.to_lowercase(), self.form(expr));
            self.hex.remove(&name);
            self.numbers.remove(&name);
            match form {
                ComparisonForm::Text => self.hex.insert(name),
                ComparisonForm::Number => self.numbers.insert(name),
                ComparisonForm::Unknown => false,
            };
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.convert(expr);
        ControlFlow::Continue(())
    }
}

impl Literals {
    fn new(columns: &[RelationColumn]) -> Literals {
        let named = |is_named: fn(&RelationColumn) -> bool| {
            columns
                .iter()
                .filter(|column| is_named(column))
                .map(|column| column.name.to_lowercase())
                .collect()
        };
        Literals {
            hex: named(|column| column.unit == "hex"),
            numbers: named(|column| column.dtype.is_primitive_numeric()),
        }
    }

    fn are_hex(&self, name: &str) -> bool {
        self.hex.contains(&name.to_lowercase())
    }

    fn form(&self, expr: &Expr) -> ComparisonForm {
        match expr {
            Expr::Nested(expr) => self.form(expr),
            Expr::Identifier(name) => self.form_of_name(&name.value),
            Expr::CompoundIdentifier(names) => {
                names.last().map_or(ComparisonForm::Unknown, |name| self.form_of_name(&name.value))
            }
            Expr::Function(function) => {
                let name = function.name.to_string();
                if function_is_hex(&name) { ComparisonForm::Text } else { ComparisonForm::Number }
            }
            Expr::BinaryOp { .. } | Expr::UnaryOp { .. } => ComparisonForm::Number,
            _ => ComparisonForm::Unknown,
        }
    }

    fn form_of_name(&self, name: &str) -> ComparisonForm {
        match () {
            () if self.are_hex(name) => ComparisonForm::Text,
            () if self.numbers.contains(&name.to_lowercase()) => ComparisonForm::Number,
            () => ComparisonForm::Unknown,
        }
    }

    /// Converts the operands of a comparison or calculation; any other hex literal becomes a number.
    fn convert(&self, expr: &mut Expr) {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } => {
                self.make_equal(left, right);
                self.make_equal(right, left);
            }
            Expr::BinaryOp { left, op, right } if is_of_numbers(op) => {
                self.make_numbers(&mut [left, right]);
            }
            Expr::Between { expr, low, high, .. } => self.make_numbers(&mut [expr, low, high]),
            Expr::InList { expr, list, .. } => {
                list.iter_mut().for_each(|literal| self.make_equal(expr, literal));
            }
            _ => {
                if let Some((number, Spelling::Hex)) = literal(expr) {
                    *expr = number_literal(number);
                }
            }
        }
    }

    /// Gives a literal the form of the value it is compared with.
    fn make_equal(&self, value: &Expr, other: &mut Expr) {
        let Some((number, spelling)) = literal(other) else { return };
        let is_text = match self.form(value) {
            ComparisonForm::Text => true,
            ComparisonForm::Unknown => spelling == Spelling::Hex && literal(value).is_none(),
            ComparisonForm::Number => false,
        };
        if is_text {
            *other = text_literal(number);
        }
    }

    /// Converts hex texts to numbers, if there are any.
    fn make_numbers(&self, values: &mut [&mut Box<Expr>]) {
        if values.iter().all(|value| self.form(value) != ComparisonForm::Text) {
            return;
        }
        for value in values {
            let number = match literal(value) {
                Some((_, Spelling::Decimal)) => None,
                Some((number, _)) => Some(number_literal(number)),
                None if self.form(value) == ComparisonForm::Text => {
                    expression(&format!("{NUMBER}({value})"))
                }
                None => None,
            };
            if let Some(number) = number {
                ***value = number;
            }
        }
    }
}

/// Whether a function returns hex texts: `hex`, or one like `objects_pointer`.
fn function_is_hex(name: &str) -> bool {
    let is_column = |table: Table| {
        let column = name.strip_prefix(table.name()).and_then(|rest| rest.strip_prefix('_'));
        column.and_then(|column| table.column(column)).is_some_and(ColumnSpec::is_hex)
    };
    name.eq_ignore_ascii_case(HEX) || Table::queried().any(is_column)
}

/// Whether an operator compares by size or calculates.
fn is_of_numbers(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Gt, GtEq, Lt, LtEq, Minus, Modulo, Plus};
    matches!(op, Gt | GtEq | Lt | LtEq | Plus | Minus | Modulo)
}

/// How a literal is spelled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// `0xC0`.
    Hex,
    /// `'0xC0'`.
    Quoted,
    /// `192`.
    Decimal,
}

fn literal(expr: &Expr) -> Option<(u64, Spelling)> {
    let Expr::Value(value) = expr else { return None };
    match &value.value {
        Value::HexStringLiteral(digits) => {
            Some((u64::from_str_radix(digits, 16).ok()?, Spelling::Hex))
        }
        Value::Number(digits, _) => Some((digits.parse().ok()?, Spelling::Decimal)),
        Value::SingleQuotedString(text) => Some((parsed(text)?, Spelling::Quoted)),
        _ => None,
    }
}

fn text_literal(number: u64) -> Expr {
    Expr::Value(Value::SingleQuotedString(format!("0x{number:X}")).into())
}

/// Returns a literal as a number. Polars cannot parse one that does not fit into a signed integer.
fn number_literal(number: u64) -> Expr {
    let plain = Expr::Value(Value::Number(number.to_string(), false).into());
    let call = i64::try_from(number).is_err().then(|| format!("{NUMBER}('0x{number:X}')"));
    call.and_then(|call| expression(&call)).unwrap_or(plain)
}

fn expression(text: &str) -> Option<Expr> {
    Parser::new(&GenericDialect {}).try_with_sql(text).ok()?.parse_expr().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Relation;

    #[test]
    fn literals_have_the_form_of_what_they_are_compared_with() {
        let columns: Vec<RelationColumn> = ["objects", "processes", "module_loads", "handles"]
            .iter()
            .flat_map(|name| Relation::named(name).expect(name).columns())
            .collect();
        for (query, expected) in [
            ("pointer = 0xffffad8f1234", "pointer = '0xFFFFAD8F1234'"),
            ("0x00C0 <> h.key", "'0xC0' <> h.key"),
            ("key = 192", "key = '0xC0'"),
            ("key IN ('0xc0', 0xC4)", "key IN ('0xC0', '0xC4')"),
            ("pid = 0x1A4", "pid = 420"),
            ("x = 0x10", "x = '0x10'"),
            ("size > 0x1000", "size > 4096"),
            ("base <= 0xFFFF810008BE66F0", "number(base) <= number('0xFFFF810008BE66F0')"),
            (
                "pointer BETWEEN base AND base + 0x10",
                "number(pointer) BETWEEN number(base) AND number(base) + 16",
            ),
            ("objects_pointer(object) = 0xC0", "objects_pointer(object) = '0xC0'"),
            ("hex(pid) = 0xc0", "hex(pid) = '0xC0'"),
        ] {
            let query = format!("SELECT * FROM objects WHERE {query}");
            let expected = format!("SELECT * FROM objects WHERE {expected}");
            assert_eq!(with_literals(&query, &columns), Some(expected));
        }
        for query in [
            "pointer = key",
            "pid = 420",
            "name = '0xc0'",
            "count(pointer) = 3",
            "min(pointer) IS NULL",
        ] {
            let query = format!("SELECT * FROM objects WHERE {query}");
            assert_eq!(with_literals(&query, &columns), None);
        }
        let renamed = "WITH t AS (SELECT count(*) AS key, pointer AS p FROM objects) SELECT * FROM t WHERE key = 2";
        assert_eq!(with_literals(renamed, &columns), None);
        let renamed = format!("{renamed} AND p = 7");
        let expected = renamed.replace("p = 7", "p = '0x7'");
        assert_eq!(with_literals(&renamed, &columns), Some(expected));
    }
}
