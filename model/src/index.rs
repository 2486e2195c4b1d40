//! Row numbers as types: an index names the table it points into.

use polars::prelude::{Column, PolarsResult};
use serde::{Deserialize, Serialize};

use crate::{Cell, ColumnType};

macro_rules! index {
    ($($(#[$doc:meta])+ $name:ident;)+) => {$(
        $(#[$doc])+
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The row number, for indexing a column.
            pub fn row(self) -> usize {
                self.0 as usize
            }
        }

        impl Cell for $name {
            const TYPE: ColumnType = ColumnType::U32;
            const NULLABLE: bool = false;
            fn column(name: &str, values: Vec<Self>) -> Column {
                u32::column(name, values.into_iter().map(|index| index.0).collect())
            }
            fn read(column: &Column) -> PolarsResult<Vec<Self>> {
                Ok(u32::read(column)?.into_iter().map(Self).collect())
            }
        }

        impl Cell for Option<$name> {
            const TYPE: ColumnType = ColumnType::U32;
            const NULLABLE: bool = true;
            fn column(name: &str, values: Vec<Self>) -> Column {
                let rows = values.into_iter().map(|index| index.map(|index| index.0));
                Option::<u32>::column(name, rows.collect())
            }
            fn read(column: &Column) -> PolarsResult<Vec<Self>> {
                let rows = Option::<u32>::read(column)?.into_iter();
                Ok(rows.map(|row| row.map($name)).collect())
            }
        }
    )+};
}

index! {
    /// A row of the processes table: one lifetime of one pid.
    ProcessIdx;
    /// A row of the modules table.
    ModuleIdx;
    /// A row of the objects table; the object's id is one more.
    ObjectIdx;
    /// A row of the events table.
    EventIdx;
    /// A row of the stacks table.
    StackIdx;
    /// A row of the frames table.
    FrameIdx;
    /// A row of the methods table.
    MethodIdx;
    /// A row of the names table.
    NameIdx;
}

/// The value that no row number takes, for columns kept without a null mask while they are built.
pub const fn sentinel() -> u32 {
    u32::MAX
}
