//! Numbers as they are written everywhere else.

use polars::prelude::{Column, DataType, IntoColumn, NewChunkedArray, PolarsResult, StringChunked};

/// Numbers as text like `0xC0`.
pub(super) fn hex(numbers: &Column) -> PolarsResult<Column> {
    let numbers = numbers.cast(&DataType::UInt64)?;
    let texts = numbers.u64()?.iter().map(|number| number.map(|number| format!("0x{number:X}")));
    Ok(StringChunked::from_iter_options(numbers.name().clone(), texts).into_column())
}
