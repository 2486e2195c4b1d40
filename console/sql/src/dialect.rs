//! The SQL of queries is DuckDB's, as far as polars answers it the same way. Each statement passes through here between
//! the parser and polars. A construct that polars gets wrong is rewritten if that takes a few lines, and otherwise
//! refused with a sentence that tells how to write it.

use std::ops::ControlFlow;

use jiff::civil::Date;
use sqlparser::{
    ast::{
        BinaryOperator, DataType, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr,
        FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, JoinConstraint,
        JoinOperator, NamedWindowExpr, ObjectName, OrderByExpr, OrderByKind, Query, Select,
        SelectItem, SetExpr, Statement, TableFactor, UnaryOperator, Value, ValueWithSpan, VisitMut,
        VisitorMut, WindowFrameUnits, WindowSpec, WindowType, visit_relations,
    },
    dialect::GenericDialect,
    parser::Parser,
};

use super::exact::Exact;
use super::groups::{group_by_position, order_by_alias, over_groups};
use super::shapes::{
    RefusalReason, contains, is_column, is_grouped, is_of_many_rows, is_window, lower_name,
};

/// A table of one row, for `SELECT` without `FROM`.
pub const ONE_ROW: &str = "_one_row";

/// Functions allowed over a sorted window, where rows of equal order cause no trouble.
const SORTED: [&str; 6] = ["row_number", "rank", "dense_rank", "lag", "lead", "first_value"];

/// Aggregates that polars can compute as a running value.
const RUNNING: [&str; 4] = ["sum", "min", "max", "count"];

/// Rewrites a statement for polars.
///
/// # Errors
/// If it has a construct that polars would answer wrongly.
pub fn translate(statement: &mut Statement) -> Result<(), RefusalReason> {
    let mut visited = statement.visit(&mut TableFunctions);
    if visited.is_continue() {
        visited = statement.visit(&mut Dialect);
    }
    match visited {
        ControlFlow::Break(reason) => Err(reason),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Refuses functions in place of tables, because those of polars can open any file and any URL.
struct TableFunctions;

impl VisitorMut for TableFunctions {
    type Break = RefusalReason;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<RefusalReason> {
        let name = match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                name.to_string()
            }
            TableFactor::TableFunction { expr, .. } => expr.to_string(),
            _ => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(format!("FROM takes tables and views, not a function like {name}"))
    }
}

struct Dialect;

impl VisitorMut for Dialect {
    type Break = RefusalReason;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<RefusalReason> {
        if let SetExpr::Select(select) = &mut *query.body {
            name_windows(select);
        }
        go_on(check_names_of_with(query).and_then(|()| over_groups(query)))?;
        order_by_alias(query);
        match query.order_by.as_mut().map(|order| &mut order.kind) {
            Some(OrderByKind::Expressions(by)) => by.iter_mut().for_each(nulls_last),
            Some(OrderByKind::All(options)) => {
                let _ = options.nulls_first.get_or_insert(false);
            }
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<RefusalReason> {
        name_windows(select);
        go_on(check_select(select).and_then(|()| simplify_joins(select)))?;
        group_by_position(select);
        let has_wildcard = select.projection.iter().any(|item| {
            matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
        });
        if select.from.is_empty() && !has_wildcard {
            let one_row = Parser::new(&GenericDialect {}).try_with_sql(ONE_ROW);
            let one_row = one_row.and_then(|mut parser| parser.parse_table_and_joins());
            select.from.extend(one_row);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<RefusalReason> {
        go_on(check_expr(expr))?;
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if let FunctionArguments::List(list) = &mut function.args {
            for clause in &mut list.clauses {
                if let FunctionArgumentClause::OrderBy(by) = clause {
                    by.iter_mut().for_each(nulls_last);
                }
            }
        }
        go_on(check_constant(function))?;
        go_on(check_window(function))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<RefusalReason> {
        if let Some(rewritten) = rewritten(expr) {
            *expr = rewritten;
        }
        ControlFlow::Continue(())
    }

    /// Polars parses `1.0e9`, but not `1e9`.
    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<RefusalReason> {
        if let Value::Number(digits, _) = &mut value.value
            && let Some(exponent) = digits.find(['e', 'E'])
            && !digits.contains('.')
        {
            digits.insert_str(exponent, ".0");
        }
        ControlFlow::Continue(())
    }
}

fn go_on(checked: Result<(), RefusalReason>) -> ControlFlow<RefusalReason> {
    match checked {
        Ok(()) => ControlFlow::Continue(()),
        Err(reason) => ControlFlow::Break(reason),
    }
}

/// Puts NULL last, ascending and descending.
fn nulls_last(by: &mut OrderByExpr) {
    let _ = by.options.nulls_first.get_or_insert(false);
}

/// Replaces references to named windows by their definitions.
fn name_windows(select: &mut Select) {
    struct Naming<'a>(&'a [(Ident, WindowSpec)]);
    impl VisitorMut for Naming<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Function(Function { over: Some(over), .. }) = expr
                && let WindowType::NamedWindow(name) = over
                && let Some((_, spec)) = self.0.iter().find(|(known, _)| known == name)
            {
                *over = WindowType::WindowSpec(spec.clone());
            }
            ControlFlow::Continue(())
        }
    }
    let named: Vec<(Ident, WindowSpec)> = select
        .named_window
        .iter()
        .filter_map(|window| match &window.1 {
            NamedWindowExpr::WindowSpec(spec) => Some((window.0.clone(), spec.clone())),
            NamedWindowExpr::NamedWindow(_) => None,
        })
        .collect();
    if !named.is_empty() {
        let _ = VisitMut::visit(&mut select.projection, &mut Naming(&named));
        let _ = VisitMut::visit(&mut select.qualify, &mut Naming(&named));
        select.named_window.clear();
    }
}

/// Refuses `WITH t AS (SELECT … FROM t)`, because to polars every `t` is the same table.
fn check_names_of_with(query: &Query) -> Result<(), RefusalReason> {
    let Some(with) = query.with.as_ref().filter(|with| !with.recursive) else { return Ok(()) };
    for table in &with.cte_tables {
        let name = &table.alias.name.value;
        let is_same = |relation: &ObjectName| {
            if relation.to_string().eq_ignore_ascii_case(name) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        if visit_relations(&table.query, is_same).is_break() {
            return Err(format!("the WITH query {name} selects from {name}; give it another name"));
        }
    }
    Ok(())
}

fn check_select(select: &Select) -> Result<(), RefusalReason> {
    if select.projection.is_empty() {
        return Err("SELECT names no column; write * for all".to_owned());
    }
    let has_window = contains(&select.selection, is_window)
        || contains(&select.having, is_window)
        || contains(&select.group_by, is_window)
        || contains(&select.from, is_window);
    if has_window {
        return Err(
            "a window (OVER) is allowed only in SELECT, ORDER BY and QUALIFY; select it in a \
                    subquery, and filter that"
                .to_owned(),
        );
    }
    if is_grouped(select) && contains(&select.projection, is_window) {
        return Err(
            "a window (OVER) over groups is not possible in a UNION; select the groups in a \
                    subquery, and the window from it"
                .to_owned(),
        );
    }
    Ok(())
}

/// Leaves in ON the conditions that polars respects, and moves others of inner joins to WHERE.
fn simplify_joins(select: &mut Select) -> Result<(), RefusalReason> {
    let is_inner = |operator: &JoinOperator| {
        matches!(
            operator,
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_)
        )
    };
    let all_inner =
        select.from.iter().flat_map(|table| &table.joins).all(|join| is_inner(&join.join_operator));
    for join in select.from.iter_mut().flat_map(|table| &mut table.joins) {
        use JoinOperator::{FullOuter, Right, RightOuter};
        if let Right(constraint) | RightOuter(constraint) | FullOuter(constraint) =
            &join.join_operator
            && matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
        {
            return Err("USING in RIGHT and FULL JOIN is not possible; write ON a.x = b.x, and \
                        coalesce(a.x, b.x) in SELECT"
                .to_owned());
        }
        let may_differ = all_inner || is_inner(&join.join_operator);
        let Some(on) = condition(&mut join.join_operator) else { continue };
        let (kept, moved): (Vec<Expr>, Vec<Expr>) =
            conditions(on).into_iter().partition(|part| is_kept(part, may_differ));
        if moved.is_empty() {
            continue;
        }
        if !all_inner {
            return Err("beside an outer join, ON takes only equal columns, joined by AND; filter rows in a \
                        subquery, as \
                        in LEFT JOIN (SELECT … WHERE …) AS t ON …".to_owned());
        }
        let Some(kept) = joined(kept) else {
            return Err("JOIN … ON compares columns of both tables, joined by AND; write CROSS JOIN, and other conditions in \
                        WHERE".to_owned());
        };
        *on = kept;
        select.selection = joined(select.selection.take().into_iter().chain(moved).collect());
    }
    Ok(())
}

fn condition(operator: &mut JoinOperator) -> Option<&mut Expr> {
    use JoinOperator as J;
    match operator {
        J::Join(constraint)
        | J::Inner(constraint)
        | J::Left(constraint)
        | J::LeftOuter(constraint)
        | J::Right(constraint)
        | J::RightOuter(constraint)
        | J::FullOuter(constraint)
        | J::Semi(constraint)
        | J::LeftSemi(constraint)
        | J::RightSemi(constraint)
        | J::Anti(constraint)
        | J::LeftAnti(constraint)
        | J::RightAnti(constraint) => match constraint {
            JoinConstraint::On(on) => Some(on),
            _ => None,
        },
        _ => None,
    }
}

/// Whether polars respects a condition in ON. It must compare columns, and for equality in an outer join.
fn is_kept(condition: &Expr, may_differ: bool) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    match condition {
        Expr::BinaryOp { left, op, right } => {
            let is_known = op == &Eq || (may_differ && matches!(op, Gt | GtEq | Lt | LtEq | NotEq));
            is_known && contains(left, is_column) && contains(right, is_column)
        }
        _ => false,
    }
}

/// Returns the conditions combined by AND.
fn conditions(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            [conditions(left), conditions(right)].concat()
        }
        Expr::Nested(inner) => conditions(inner),
        other => vec![other.clone()],
    }
}

fn joined(conditions: Vec<Expr>) -> Option<Expr> {
    conditions
        .into_iter()
        .map(|condition| match condition {
            Expr::BinaryOp { op: BinaryOperator::Or, .. } => Expr::Nested(Box::new(condition)),
            condition => condition,
        })
        .reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        })
}

fn check_expr(expr: &Expr) -> Result<(), RefusalReason> {
    let is_null = |expr: &Expr| matches!(expr, Expr::Value(value) if value.value == Value::Null);
    let is_negative = |expr: &Expr| matches!(expr, Expr::UnaryOp { op: UnaryOperator::Minus, .. });
    match expr {
        Expr::Subquery(_) => Err(
            "a subquery cannot be a value here; join it, as in FROM handles CROSS JOIN (SELECT \
                                  max(tid) AS most FROM handles) AS t"
                .to_owned(),
        ),
        Expr::InList { list, .. } if list.iter().any(is_null) => {
            Err("IN with NULL in its list is never false; leave NULL out, and write IS NULL for it"
                .to_owned())
        }
        Expr::TypedString(time) if time.data_type == DataType::Date => match &time.value.value {
            // Polars would treat it as NULL.
            Value::SingleQuotedString(text) if text.parse::<Date>().is_err() => {
                Err(format!("'{text}' is not a date; write one like DATE '2026-02-10'"))
            }
            _ => Ok(()),
        },
        // Polars has one pattern for all rows.
        Expr::Like { pattern, .. } | Expr::ILike { pattern, .. } if is_column(pattern) => {
            Err(match pattern.as_ref() {
                Expr::Identifier(name) if name.quote_style == Some('"') => {
                    format!("{name} is a column; put text in single quotes: LIKE '{}'", name.value)
                }
                _ => format!("LIKE takes a text in single quotes, not the column {pattern}"),
            })
        }
        Expr::Substring { substring_from: Some(from), .. } if is_negative(from) => {
            Err("substr counts from 1; write right(text, n) for the last letters".to_owned())
        }
        _ => Ok(()),
    }
}

/// Refuses `sum(1)`, which polars evaluates to 1.
fn check_constant(function: &Function) -> Result<(), RefusalReason> {
    let arguments = arguments(function);
    let is_count_of_rows =
        lower_name(function) == "count" && matches!(arguments[..], [Expr::Value(_)]);
    let is_constant =
        !arguments.is_empty() && arguments.iter().all(|argument| !contains(*argument, is_column));
    if is_of_many_rows(function) && is_constant && !is_count_of_rows {
        Err(format!("{function} has no column; for the number of rows write count(*)"))
    } else {
        Ok(())
    }
}

/// Refuses windows that treat rows of equal order together, and those polars does not sort. A window over all rows gets
/// a constant partition, because polars would make one row of it otherwise.
fn check_window(function: &mut Function) -> Result<(), RefusalReason> {
    let name = lower_name(function);
    let is_distinct = matches!(&function.args, FunctionArguments::List(list) if list.duplicate_treatment.is_some());
    let Some(WindowType::WindowSpec(spec)) = &mut function.over else { return Ok(()) };
    let has_rows =
        spec.window_frame.as_ref().is_some_and(|frame| frame.units == WindowFrameUnits::Rows);
    let is_sorted = !spec.order_by.is_empty();
    let is_descending = |by: &OrderByExpr| by.options.asc == Some(false);
    if spec.order_by.iter().any(is_descending) && !spec.order_by.iter().all(is_descending) {
        return Err(
            "OVER sorts all columns in one direction; write -x for a number x DESC".to_owned()
        );
    }
    if spec.order_by.iter().any(|by| by.options.nulls_first.is_some()) {
        return Err(
            "OVER does not place NULL; leave NULLS FIRST and NULLS LAST out, and sort by coalesce(x, …)"
                .to_owned(),
        );
    }
    if name == "last_value" {
        return Err("last_value is the value of the row itself here; write first_value, and ORDER BY … DESC in OVER".to_owned());
    }
    if is_sorted && !SORTED.contains(&name.as_str()) {
        if is_distinct || !RUNNING.contains(&name.as_str()) {
            return Err(format!(
                "{name} over a sorted window is not possible; write sum, min, max or count, as in sum(x) OVER \
                                (ORDER BY y ROWS UNBOUNDED PRECEDING)"
            ));
        }
        if !has_rows {
            return Err(format!(
                "{name} with ORDER BY in OVER cannot take rows of equal order together; write ORDER BY … \
                 ROWS UNBOUNDED PRECEDING to take row after row"
            ));
        }
    }
    if !is_sorted && spec.window_frame.is_some() {
        return Err("ROWS in OVER needs ORDER BY; leave it out to take all rows".to_owned());
    }
    if !is_sorted
        && spec.partition_by.is_empty()
        && is_of_many_rows(function)
        && let Some(WindowType::WindowSpec(spec)) = &mut function.over
    {
        spec.partition_by.push(number(1));
    }
    Ok(())
}

fn number(number: u32) -> Expr {
    Expr::Value(Value::Number(number.to_string(), false).into())
}

/// Returns the arguments of a function.
fn arguments(function: &Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    list.args
        .iter()
        .filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect()
}

fn call(function: Exact, arguments: Vec<Expr>) -> Expr {
    named_call(function.name(), arguments)
}

fn named_call(name: &str, arguments: Vec<Expr>) -> Expr {
    let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(argument).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Returns the expression polars should see; `None` if it stays.
fn rewritten(expr: &mut Expr) -> Option<Expr> {
    let boolean = |value: bool| Expr::Value(Value::Boolean(value).into());
    let known = |expr: &Expr, value| named_call("coalesce", vec![expr.clone(), boolean(value)]);
    let not = |expr| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) };
    Some(match expr {
        // In DuckDB this is a power in floating point.
        Expr::BinaryOp { left, op: BinaryOperator::BitwiseXor, right } => {
            named_call("pow", vec![floating(left), (**right).clone()])
        }
        // Polars compares a time with text in any time zone.
        Expr::BinaryOp { left, op, right } if calculating(op).is_none() => {
            compare_time(left, right);
            compare_time(right, left);
            return None;
        }
        Expr::BinaryOp { left, op, right } => calculation(&calculating(op)?, left, right)?,
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if !matches!(**expr, Expr::Value(_)) => {
            call(Exact::Minus, vec![number(0), (**expr).clone()])
        }
        // For these, polars returns NULL if the condition is NULL.
        Expr::IsTrue(condition) => known(condition, false),
        Expr::IsNotTrue(condition) => not(known(condition, false)),
        Expr::IsFalse(condition) => not(known(condition, true)),
        Expr::IsNotFalse(condition) => known(condition, true),
        Expr::IsUnknown(condition) => Expr::IsNull(condition.clone()),
        Expr::IsNotUnknown(condition) => Expr::IsNotNull(condition.clone()),
        Expr::Cast { data_type, expr, .. } if is_whole_type(&data_type.to_string()) => {
            **expr = call(Exact::Nearest, vec![(**expr).clone()]);
            return None;
        }
        Expr::Cast { data_type, expr, .. } if is_text_type(&data_type.to_string()) => {
            **expr = call(Exact::Textual, vec![(**expr).clone()]);
            return None;
        }
        Expr::Position { r#in, .. } => {
            let text = (**r#in).clone();
            null_with(expr, text)
        }
        // Polars returns a fraction.
        Expr::Extract {
            field: DateTimeField::Millisecond | DateTimeField::Milliseconds, ..
        } => named_call("floor", vec![expr.clone()]),
        Expr::Function(function) => return rewritten_function(function),
        _ => return None,
    })
}

/// Converts a literal like `TIMESTAMP '2026-02-10 09:30:00'` to text if a column is compared with it.
fn compare_time(column: &Expr, literal: &mut Expr) {
    if let Expr::TypedString(time) = literal
        && is_column(column)
        && matches!(time.data_type, DataType::Timestamp(..) | DataType::Datetime(_))
    {
        *literal = Expr::Value(time.value.clone());
    }
}

fn calculating(op: &BinaryOperator) -> Option<Exact> {
    Some(match op {
        BinaryOperator::Plus => Exact::Plus,
        BinaryOperator::Minus => Exact::Minus,
        BinaryOperator::Multiply => Exact::Times,
        BinaryOperator::Modulo => Exact::Remainder,
        BinaryOperator::StringConcat => Exact::Joined,
        BinaryOperator::DuckIntegerDivide | BinaryOperator::MyIntegerDivide => Exact::Quotient,
        _ => return None,
    })
}

/// Returns a calculation. A chain of one operator becomes one call, because the parser cannot handle deep nesting.
fn calculation(function: &Exact, left: &Expr, right: &Expr) -> Option<Expr> {
    // Polars handles intervals with months.
    if [left, right].iter().any(|side| matches!(side, Expr::Interval(_))) {
        return None;
    }
    let mut values = match left {
        Expr::Function(chain) if chain.name.to_string() == function.name() => {
            arguments(chain).into_iter().cloned().collect()
        }
        left => vec![left.clone()],
    };
    values.push(right.clone());
    Some(call(*function, values))
}

fn is_whole_type(name: &str) -> bool {
    let name = name.to_uppercase();
    name.contains("INT") && !name.starts_with("INTERVAL")
}

fn is_text_type(name: &str) -> bool {
    let name = name.to_uppercase();
    ["VARCHAR", "TEXT", "STRING", "CHAR"].iter().any(|text| name.starts_with(text))
}

/// Returns a number, or NULL where the text is NULL.
fn null_with(number_of: &Expr, text: Expr) -> Expr {
    let nothing = call(Exact::Times, vec![number(0), named_call("length", vec![text])]);
    call(Exact::Plus, vec![number_of.clone(), nothing])
}

fn floating(expr: &Expr) -> Expr {
    let one = Expr::Value(Value::Number("1.0".to_owned(), false).into());
    call(Exact::Times, vec![expr.clone(), one])
}

/// Wraps the `wanted` arguments in a function.
fn wrap_arguments(function: &mut Function, exact: Exact, wanted: impl Fn(&Expr) -> bool) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for argument in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument
            && wanted(value)
        {
            *value = call(exact, vec![value.clone()]);
        }
    }
}

fn rewritten_function(function: &mut Function) -> Option<Expr> {
    if let Some(WindowType::WindowSpec(spec)) = &mut function.over {
        for by in &mut spec.order_by {
            by.expr = call(Exact::Present, vec![by.expr.clone()]);
        }
    }
    let values: Vec<Expr> = arguments(function).into_iter().cloned().collect();
    Some(match (lower_name(function).as_str(), &values[..]) {
        ("sum", [value]) => {
            let of = |exact| {
                let mut sum = function.clone();
                if let FunctionArguments::List(list) = &mut sum.args {
                    let value = call(exact, vec![value.clone()]);
                    list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value))];
                }
                Expr::Function(sum)
            };
            call(Exact::Total, vec![of(Exact::Wide), of(Exact::Approximate)])
        }
        ("avg" | "mean" | "median", [_]) => {
            wrap_arguments(function, Exact::Averaged, |_| true);
            return None;
        }
        ("round", [_] | [_, _]) => call(Exact::Round, values),
        ("pow" | "power", [base, exponent]) => {
            named_call("pow", vec![floating(base), exponent.clone()])
        }
        ("strpos", [text, _]) => null_with(&Expr::Function(function.clone()), text.clone()),
        ("concat" | "concat_ws", [_, ..]) => {
            wrap_arguments(function, Exact::Textual, is_column);
            return None;
        }
        ("mod", [_, _]) => call(Exact::Remainder, values),
        _ => return None,
    })
}
