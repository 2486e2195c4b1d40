//! Calculations where polars differs from DuckDB: whole numbers have 64 bits and do not wrap, division and remainder
//! round towards zero, and halves round away from zero. `dialect` replaces operators by these functions.

use polars::prelude::{
    ChunkedBuilder as _, Column, DataType, Field, Int64Type, IntoColumn as _, NewChunkedArray as _,
    PolarsNumericType, PolarsResult, PrimitiveChunkedBuilder, RoundMode, RoundSeries as _,
    TimeUnit, UInt64Type, UnknownKind, polars_bail, polars_ensure,
};

/// A floating-point total below this proves that the sum fits.
const LARGEST_SUM: f64 = i64::MAX as f64;

/// A function called only by rewritten queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    Plus,
    Minus,
    Times,
    /// `//`
    Quotient,
    /// `%`
    Remainder,
    /// A whole number with 64 bits; anything else unchanged.
    Wide,
    /// A whole number as floating point; NULL for anything else.
    Approximate,
    /// A sum, and the sum of approximate values, which reveals when the first does not fit.
    Total,
    /// Rounds to a number of decimals.
    Round,
    /// The nearest whole number, for CAST.
    Nearest,
    /// A number to be averaged.
    Averaged,
    /// A value that must not be NULL.
    Present,
    /// A value that has the same text everywhere.
    Textual,
    /// `||`
    Joined,
}

/// The names under which rewritten queries call the functions.
const NAMES: [(&str, Exact); 14] = [
    ("_plus", Exact::Plus),
    ("_minus", Exact::Minus),
    ("_times", Exact::Times),
    ("_quotient", Exact::Quotient),
    ("_remainder", Exact::Remainder),
    ("_wide", Exact::Wide),
    ("_approximate", Exact::Approximate),
    ("_total", Exact::Total),
    ("_round", Exact::Round),
    ("_nearest", Exact::Nearest),
    ("_averaged", Exact::Averaged),
    ("_present", Exact::Present),
    ("_textual", Exact::Textual),
    ("_joined", Exact::Joined),
];

impl Exact {
    pub fn named(name: &str) -> Option<Exact> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }

    /// The operator the function replaces.
    fn operator(self) -> &'static str {
        match self {
            Exact::Plus => "+",
            Exact::Minus => "-",
            Exact::Times => "*",
            Exact::Quotient => "//",
            Exact::Remainder => "%",
            _ => "",
        }
    }

    /// Returns the name and type of the result.
    pub fn field(self, arguments: &[Field]) -> PolarsResult<Field> {
        let empty = |field: &Field| Column::new_empty(field.name().clone(), &known(field.dtype()));
        let arguments: Vec<Column> = arguments.iter().map(empty).collect();
        let answer = self.run(&arguments)?;
        Ok(Field::new(answer.name().clone(), answer.dtype().clone()))
    }

    pub fn run(self, arguments: &[Column]) -> PolarsResult<Column> {
        match (self, arguments) {
            (Exact::Wide, [value]) => wide(value),
            (Exact::Approximate, [value]) => {
                if is_whole(value) {
                    value.cast(&DataType::Float64)
                } else {
                    Ok(Column::full_null(value.name().clone(), value.len(), &DataType::Float64))
                }
            }
            (Exact::Total, [sum, approximate]) => total(sum, approximate),
            (Exact::Round, [value]) => rounded(value, 0, RoundMode::HalfAwayFromZero),
            (Exact::Round, [value, decimals]) => {
                let decimals = decimals.cast(&DataType::Int64)?;
                let decimals = decimals.i64()?.iter().next().flatten().unwrap_or_default();
                let Ok(decimals) = u32::try_from(decimals) else {
                    polars_bail!(SQLInterface: "round takes 0 or more decimals, not {decimals}");
                };
                rounded(value, decimals, RoundMode::HalfAwayFromZero)
            }
            (Exact::Nearest, [value]) if value.dtype().is_float() => {
                rounded(value, 0, RoundMode::HalfToEven)
            }
            (Exact::Nearest, [value]) => Ok(value.clone()),
            (Exact::Averaged, [value]) => {
                polars_ensure!(
                    !matches!(value.dtype(), DataType::Datetime(..) | DataType::Duration(_)),
                    SQLInterface: "the mean of times is rounded differently elsewhere; write avg(ended_ns - opened_ns), in \
                     nanoseconds"
                );
                Ok(value.clone())
            }
            (Exact::Present, [value]) => {
                let name = value.name();
                polars_ensure!(
                    value.null_count() == 0,
                    SQLInterface: "OVER sorts by {name}, which is NULL in some rows; leave these out with WHERE {name} IS NOT \
                     NULL, or sort by coalesce({name}, …)"
                );
                Ok(value.clone())
            }
            (Exact::Textual, [value]) => textual(value),
            (Exact::Joined, [first, others @ ..]) => {
                let text = |value: &Column| textual(value)?.cast(&DataType::String);
                others.iter().try_fold(text(first)?, |left, right| &left + &text(right)?)
            }
            (_, [first, others @ ..]) if !others.is_empty() => {
                others.iter().try_fold(first.clone(), |left, right| self.calculate(&left, right))
            }
            _ => polars_bail!(SQLInterface: "a function has too few or too many values"),
        }
    }

    fn calculate(self, left: &Column, right: &Column) -> PolarsResult<Column> {
        let is_number = |side: &Column| is_whole(side) || side.dtype().is_float();
        if is_whole(left) && is_whole(right) {
            return self.whole(left, right);
        }
        if is_number(left) && is_number(right) {
            return self.floating(left, right);
        }
        let days = [left, right].map(|side| side.dtype().is_date());
        if days == [true, true] && self == Exact::Minus {
            return self.whole(&left.cast(&DataType::Int32)?, &right.cast(&DataType::Int32)?);
        }
        let is_temporal =
            |side: &Column| side.dtype().is_temporal() || side.dtype() == &DataType::Null;
        let is_refused = !is_temporal(left) || !is_temporal(right);
        match self {
            _ if is_refused => self.refuse(left, right),
            Exact::Plus => &midnight(left)? + &midnight(right)?,
            Exact::Minus => &midnight(left)? - &midnight(right)?,
            _ => self.refuse(left, right),
        }
    }

    /// Fails with the message polars would give.
    fn refuse(self, left: &Column, right: &Column) -> PolarsResult<Column> {
        let [left_type, right_type] = [left.dtype(), right.dtype()];
        let names = [left.name(), right.name()];
        let sides = if names.iter().any(|name| ["", "literal"].contains(&name.as_str())) {
            String::new()
        } else {
            format!(" (lhs: column '{}', rhs: column '{}')", names[0], names[1])
        };
        polars_bail!(
            InvalidOperation: "arithmetic on dtypes {left_type} and {right_type} is not allowed{sides}; try an explicit cast \
             first"
        )
    }

    /// Calculates with whole numbers. If one side is an unsigned 64-bit number, like an address, so is the result.
    fn whole(self, left: &Column, right: &Column) -> PolarsResult<Column> {
        if [left, right].iter().any(|side| side.dtype() == &DataType::UInt64) {
            self.whole_as::<UInt64Type>(left, right)
        } else {
            self.whole_as::<Int64Type>(left, right)
        }
    }

    fn whole_as<T: PolarsNumericType>(self, left: &Column, right: &Column) -> PolarsResult<Column>
    where
        T::Native: TryFrom<i128>,
    {
        let rows = if left.len() == 1 { right.len() } else { left.len() };
        let [left, right] = [left, right].map(|side| repeated(side, rows));
        let (wide_left, wide_right) = (wide(&left)?, wide(&right)?);
        let mut answer = PrimitiveChunkedBuilder::<T>::new(left.name().clone(), rows);
        for (left, right) in values(&wide_left)?.zip(values(&wide_right)?) {
            let sides = left.zip(right);
            // Division by zero has no result.
            let is_null = |(_, right): &(i128, i128)| {
                *right == 0 && matches!(self, Exact::Quotient | Exact::Remainder)
            };
            answer.append_option(match sides.filter(|sides| !is_null(sides)) {
                None => None,
                Some((left, right)) => Some(self.one::<T::Native>(left, right)?),
            });
        }
        Ok(answer.finish().into_column())
    }

    fn one<N: TryFrom<i128>>(self, left: i128, right: i128) -> PolarsResult<N> {
        let number = match self {
            Exact::Plus => left.checked_add(right),
            Exact::Minus => left.checked_sub(right),
            Exact::Times => left.checked_mul(right),
            Exact::Quotient => left.checked_div(right),
            _ => left.checked_rem(right),
        };
        let Some(number) = number.and_then(|number| N::try_from(number).ok()) else {
            let dtype = std::any::type_name::<N>();
            polars_bail!(
                ComputeError: "{left} {} {right} does not fit into {dtype}; convert one side with CAST(… AS DOUBLE)",
                self.operator()
            );
        };
        Ok(number)
    }

    fn floating(self, left: &Column, right: &Column) -> PolarsResult<Column> {
        let (left, right) = (left.cast(&DataType::Float64)?, right.cast(&DataType::Float64)?);
        match self {
            Exact::Plus => &left + &right,
            Exact::Minus => &left - &right,
            Exact::Times => &left * &right,
            Exact::Remainder => {
                let rows = if left.len() == 1 { right.len() } else { left.len() };
                let [left, right] = [left, right].map(|side| repeated(&side, rows));
                let rests = left
                    .f64()?
                    .iter()
                    .zip(right.f64()?.iter())
                    .map(|(left, right)| Some(left? % right.filter(|by| *by != 0.0)?));
                let rests =
                    polars::prelude::Float64Chunked::from_iter_options(left.name().clone(), rests);
                Ok(rests.into_column())
            }
            _ => polars_bail!(SQLInterface: "// takes whole numbers; write floor(a / b)"),
        }
    }
}

/// Returns the type a literal gets.
fn known(dtype: &DataType) -> DataType {
    match dtype {
        DataType::Unknown(UnknownKind::Int(_)) => DataType::Int64,
        DataType::Unknown(UnknownKind::Float) => DataType::Float64,
        DataType::Unknown(UnknownKind::Str) => DataType::String,
        DataType::Unknown(UnknownKind::Any) => DataType::Null,
        dtype => dtype.clone(),
    }
}

fn is_whole(column: &Column) -> bool {
    column.dtype().is_integer() || column.dtype() == &DataType::Null
}

fn wide(column: &Column) -> PolarsResult<Column> {
    if is_whole(column) && column.dtype() != &DataType::UInt64 {
        column.strict_cast(&DataType::Int64)
    } else {
        Ok(column.clone())
    }
}

/// Repeats a column of one value for some number of rows.
fn repeated(column: &Column, rows: usize) -> Column {
    if column.len() == 1 && rows != 1 { column.new_from_index(0, rows) } else { column.clone() }
}

/// Returns the numbers of a wide column.
fn values(column: &Column) -> PolarsResult<Box<dyn Iterator<Item = Option<i128>> + '_>> {
    Ok(match column.dtype() {
        DataType::UInt64 => Box::new(column.u64()?.iter().map(|value| value.map(i128::from))),
        _ => Box::new(column.i64()?.iter().map(|value| value.map(i128::from))),
    })
}

fn textual(value: &Column) -> PolarsResult<Column> {
    polars_ensure!(
        !matches!(value.dtype(), DataType::Datetime(..) | DataType::Duration(_)),
        SQLInterface: "a time needs a format to become text; write strftime(x, '%Y-%m-%d %H:%M:%S')"
    );
    Ok(value.clone())
}

fn total(sum: &Column, approximate: &Column) -> PolarsResult<Column> {
    let largest = match sum.dtype() {
        DataType::UInt64 => LARGEST_SUM * 2.0,
        _ => LARGEST_SUM,
    };
    let is_too_large = |sum: Option<f64>| sum.is_some_and(|sum| sum.abs() >= largest);
    polars_ensure!(
        !is_whole(sum) || !approximate.f64()?.iter().any(is_too_large),
        ComputeError: "a sum has more than 64 bits; write sum(CAST(… AS DOUBLE))"
    );
    Ok(sum.clone())
}

fn rounded(value: &Column, decimals: u32, mode: RoundMode) -> PolarsResult<Column> {
    Ok(value.as_materialized_series().round(decimals, mode)?.into_column())
}

/// Converts a date to the time it starts.
fn midnight(column: &Column) -> PolarsResult<Column> {
    match column.dtype() {
        DataType::Date => column.cast(&DataType::Datetime(TimeUnit::Microseconds, None)),
        _ => Ok(column.clone()),
    }
}
