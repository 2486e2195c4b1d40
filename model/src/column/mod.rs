//! Columns: their types, how vectors of Rust values become columns, and typed access to columns.

mod cell;
mod number;
mod sparse;
mod spec;
mod values;

pub use cell::flat_lists;
pub use cell::{Bytes, Cell};
pub use number::Number;
pub use sparse::{RowSet, Sparse};
pub use spec::{ColumnSpec, ColumnType, Reference};
pub use values::{Blobs, Flags, Lists, Numbers, Texts};
