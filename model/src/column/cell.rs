//! Rust types that can be the value of a column.

use polars::prelude::{
    ArrowDataType, BinaryChunked, BooleanChunked, ChunkedArray, Column, DataType, IntoColumn,
    ListBuilderTrait, ListChunked, ListPrimitiveChunkedBuilder, NewChunkedArray, PolarsResult,
    StringChunked, UInt32Type, polars_ensure,
};
use polars_arrow::array::{ListArray, PrimitiveArray};
use polars_arrow::bitmap::Bitmap;
use polars_arrow::offset::Offsets;
use serde::{Deserialize, Serialize};

use super::number::Number;
use super::values::{Blobs, Flags, Lists, Numbers, Texts};
use super::{ColumnType, Reference};

/// A Rust type that can be the value of a column.
pub trait Cell: Sized {
    const TYPE: ColumnType;
    /// Whether the column may hold nulls.
    const NULLABLE: bool;
    /// Which rows of another table the values refer to.
    const REFERS_TO: Option<Reference> = None;
    /// Typed access to a column of these values.
    type Values;
    /// Moves the values into a column.
    fn column(name: &str, values: Vec<Self>) -> Column;
    /// Returns typed access to a column.
    ///
    /// # Errors
    /// If the column has another type.
    fn values(column: &Column) -> PolarsResult<Self::Values>;
    /// Copies the values out of a column.
    ///
    /// # Errors
    /// If the column has another type.
    fn read(column: &Column) -> PolarsResult<Vec<Self>>;
}

impl<T: Number> Cell for T {
    const TYPE: ColumnType = T::TYPE;
    const NULLABLE: bool = false;
    const REFERS_TO: Option<Reference> = T::REFERS_TO;
    type Values = Numbers<T>;

    fn column(name: &str, values: Vec<Self>) -> Column {
        let natives = values.into_iter().map(T::into_native).collect();
        T::into_column(ChunkedArray::from_vec(name.into(), natives))
    }

    fn values(column: &Column) -> PolarsResult<Numbers<T>> {
        Numbers::from_column(column)
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        Ok(Numbers::from_column(column)?.iter().map(Option::unwrap_or_default).collect())
    }
}

impl<T: Number> Cell for Option<T> {
    const TYPE: ColumnType = T::TYPE;
    const NULLABLE: bool = true;
    const REFERS_TO: Option<Reference> = T::REFERS_TO;
    type Values = Numbers<T>;

    fn column(name: &str, values: Vec<Self>) -> Column {
        let mut natives = Vec::with_capacity(values.len());
        let mut validity = Vec::with_capacity(values.len().next_multiple_of(64) / 8);
        // In chunks small enough that the second pass finds the values in the cache.
        for values in values.chunks(u64::BITS as usize) {
            let bits =
                values.iter().rev().fold(0, |bits, value| bits << 1 | u64::from(value.is_some()));
            validity.extend(bits.to_le_bytes());
            natives.extend(values.iter().map(|value| value.unwrap_or_default().into_native()));
        }
        let validity = Bitmap::from_u8_vec(validity, values.len());
        let validity = Some(validity).filter(|validity| validity.unset_bits() > 0);
        T::into_column(ChunkedArray::from_vec_validity(name.into(), natives, validity))
    }

    fn values(column: &Column) -> PolarsResult<Numbers<T>> {
        Numbers::from_column(column)
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        Ok(Numbers::from_column(column)?.iter().collect())
    }
}

/// Maximum bytes of text in a column that is read into rows, because a text that the table stores once is then copied
/// for each row. A valid table with more text is read as [`Texts`].
const MAX_TEXT: usize = 256 << 20;

/// Refuses a column whose rows would take too much memory.
fn limited(texts: Texts) -> PolarsResult<Texts> {
    let bytes: usize = texts.iter().flatten().map(str::len).sum();
    polars_ensure!(
        bytes <= MAX_TEXT,
        ComputeError: "its rows have {bytes} bytes of text, more than {MAX_TEXT}"
    );
    Ok(texts)
}

impl Cell for String {
    const TYPE: ColumnType = ColumnType::Text;
    const NULLABLE: bool = false;
    type Values = Texts;

    fn column(name: &str, values: Vec<Self>) -> Column {
        Column::new(name.into(), values)
    }

    fn values(column: &Column) -> PolarsResult<Texts> {
        Texts::new(column)
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        let texts = limited(Texts::new(column)?)?;
        Ok(texts.iter().map(|text| text.unwrap_or_default().to_owned()).collect())
    }
}

impl Cell for Option<String> {
    const TYPE: ColumnType = ColumnType::Text;
    const NULLABLE: bool = true;
    type Values = Texts;

    fn column(name: &str, values: Vec<Self>) -> Column {
        StringChunked::from_iter_options(name.into(), values.into_iter()).into_column()
    }

    fn values(column: &Column) -> PolarsResult<Texts> {
        Texts::new(column)
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        let texts = limited(Texts::new(column)?)?;
        Ok(texts.iter().map(|text| text.map(str::to_owned)).collect())
    }
}

/// A string of bytes as the value of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub Vec<u8>);

impl Cell for Option<Bytes> {
    const TYPE: ColumnType = ColumnType::Bytes;
    const NULLABLE: bool = true;
    type Values = Blobs;

    fn column(name: &str, values: Vec<Self>) -> Column {
        let bytes = values.into_iter().map(|value| value.map(|Bytes(bytes)| bytes));
        BinaryChunked::from_iter_options(name.into(), bytes).into_column()
    }

    fn values(column: &Column) -> PolarsResult<Blobs> {
        Blobs::new(column)
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        let blobs = Blobs::new(column)?;
        let bytes: usize = blobs.iter().flatten().map(<[u8]>::len).sum();
        polars_ensure!(
            bytes <= MAX_TEXT,
            ComputeError: "its rows have {bytes} bytes, more than {MAX_TEXT}"
        );
        Ok(blobs.iter().map(|bytes| bytes.map(|bytes| Bytes(bytes.to_vec()))).collect())
    }
}

impl Cell for bool {
    const TYPE: ColumnType = ColumnType::Bool;
    const NULLABLE: bool = false;
    type Values = Flags;

    fn column(name: &str, values: Vec<Self>) -> Column {
        BooleanChunked::from_slice(name.into(), &values).into_column()
    }

    fn values(column: &Column) -> PolarsResult<Flags> {
        Flags::new(column)
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        Ok(Flags::new(column)?.iter().collect())
    }
}

impl Cell for Option<bool> {
    const TYPE: ColumnType = ColumnType::Bool;
    const NULLABLE: bool = true;
    type Values = Flags;

    fn column(name: &str, values: Vec<Self>) -> Column {
        BooleanChunked::from_iter_options(name.into(), values.into_iter()).into_column()
    }

    fn values(column: &Column) -> PolarsResult<Flags> {
        Flags::new(column)
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        Ok(column.bool()?.iter().collect())
    }
}

/// Moves lists into a column.
fn list_column<T: Number<Physical = UInt32Type>>(name: &str, lists: &[Option<Vec<T>>]) -> Column {
    let total = lists.iter().flatten().map(Vec::len).sum();
    let mut builder = ListPrimitiveChunkedBuilder::<UInt32Type>::new(
        name.into(),
        lists.len(),
        total,
        DataType::UInt32,
    );
    for list in lists {
        match list {
            Some(list) => {
                builder.append_values_iter(list.iter().map(|number| number.into_native()));
            }
            None => builder.append_null(),
        }
    }
    builder.finish().into_column()
}

/// Moves lists stored back to back in `values` into a column; `offsets` holds the start of each list and the end of the
/// last.
///
/// # Errors
/// If the offsets do not ascend within the values.
pub fn flat_lists(name: &str, offsets: Vec<i64>, values: Vec<u32>) -> PolarsResult<Column> {
    let dtype = ListArray::<i64>::default_datatype(ArrowDataType::UInt32);
    let offsets = Offsets::try_from(offsets)?.into();
    let lists = ListArray::try_new(dtype, offsets, PrimitiveArray::from_vec(values).boxed(), None)?;
    Ok(ListChunked::with_chunk(name.into(), lists).into_column())
}

impl<T: Number<Physical = UInt32Type>> Cell for Vec<T> {
    const TYPE: ColumnType = ColumnType::U32List;
    const NULLABLE: bool = false;
    const REFERS_TO: Option<Reference> = T::REFERS_TO;
    type Values = Lists<T>;

    fn column(name: &str, values: Vec<Self>) -> Column {
        list_column(name, &values.into_iter().map(Some).collect::<Vec<_>>())
    }

    fn values(column: &Column) -> PolarsResult<Lists<T>> {
        Lists::new(column)
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        let lists = Lists::new(column)?;
        Ok((0..lists.len()).map(|row| lists.get(row).collect()).collect())
    }
}

impl<T: Number<Physical = UInt32Type>> Cell for Option<Vec<T>> {
    const TYPE: ColumnType = ColumnType::U32List;
    const NULLABLE: bool = true;
    const REFERS_TO: Option<Reference> = T::REFERS_TO;
    type Values = Lists<T>;

    fn column(name: &str, values: Vec<Self>) -> Column {
        list_column(name, &values)
    }

    fn values(column: &Column) -> PolarsResult<Lists<T>> {
        Lists::new(column)
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        let lists = Lists::new(column)?;
        let is_known = column.is_not_null();
        let known = is_known.iter().map(Option::unwrap_or_default);
        Ok(known
            .enumerate()
            .map(|(row, is_known)| is_known.then(|| lists.get(row).collect()))
            .collect())
    }
}
