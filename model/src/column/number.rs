//! Numbers in columns, plain or as a type of their own.

use polars::prelude::{
    ChunkedArray, Column, Float64Type, Int32Type, Int64Type, IntoColumn, PolarsNumericType,
    UInt32Type, UInt64Type,
};

use super::{ColumnType, Reference};

/// Native polars representation of a number.
pub type Native<T> = <<T as Number>::Physical as PolarsNumericType>::Native;

/// A number that can be the value of a column.
pub trait Number: Copy + Default + 'static {
    const TYPE: ColumnType;
    /// Which rows of another table the number refers to.
    const REFERS_TO: Option<Reference> = None;
    /// Physical polars type.
    type Physical: PolarsNumericType;
    /// Converts the native polars representation to the number.
    fn from_native(native: <Self::Physical as PolarsNumericType>::Native) -> Self;
    /// Converts the number to its native polars representation.
    fn into_native(self) -> <Self::Physical as PolarsNumericType>::Native;
    /// Converts numbers to a column.
    fn into_column(numbers: ChunkedArray<Self::Physical>) -> Column;
}

macro_rules! number {
    ($($rust:ty => $variant:ident, $physical:ty;)+) => {$(
        impl Number for $rust {
            const TYPE: ColumnType = ColumnType::$variant;
            type Physical = $physical;
            #[inline]
            fn from_native(native: $rust) -> Self {
                native
            }
            #[inline]
            fn into_native(self) -> $rust {
                self
            }
            fn into_column(numbers: ChunkedArray<$physical>) -> Column {
                numbers.into_column()
            }
        }
    )+};
}

number! {
    i32 => I32, Int32Type;
    i64 => I64, Int64Type;
    u32 => U32, UInt32Type;
    u64 => U64, UInt64Type;
    f64 => F64, Float64Type;
}
