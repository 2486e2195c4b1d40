//! Row numbers and keys as types: the type of an index says which table it points into.

use std::fmt;
use std::marker::PhantomData;

use polars::prelude::{ChunkedArray, Column, IntoColumn, UInt32Type};
use serde::{Deserialize, Serialize};

use crate::column::{ColumnType, Number, Reference};
use crate::table::Table;

/// A row number of one table.
pub trait RowIndex: Copy + Default + 'static {
    const TABLE: Table;
}

/// Implements [`Number`] for 32-bit numbers whose type says what they refer to.
macro_rules! number {
    ($(@[$($of:tt)*])? $name:ty, $refers_to:expr, $make:expr, $get:expr) => {
        impl$($($of)*)? Number for $name {
            const TYPE: ColumnType = ColumnType::U32;
            const REFERS_TO: Option<Reference> = Some($refers_to);
            type Physical = UInt32Type;
            #[inline]
            fn from_native(native: u32) -> Self {
                $make(native)
            }
            #[inline]
            fn into_native(self) -> u32 {
                $get(self)
            }
            fn into_column(numbers: ChunkedArray<UInt32Type>) -> Column {
                numbers.into_column()
            }
        }
    };
}

macro_rules! index {
    ($($(#[$doc:meta])+ $name:ident => $table:ident;)+) => {$(
        $(#[$doc])+
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// No row. It takes no more memory than a row, unlike an `Option`.
            pub const NONE: Self = Self(sentinel());

            /// Returns the index unless it is [`NONE`](Self::NONE).
            #[inline]
            pub fn known(self) -> Option<Self> {
                (self != Self::NONE).then_some(self)
            }

            /// Returns the row number, for indexing a column.
            #[inline]
            pub fn row(self) -> usize {
                self.0 as usize
            }

            /// Returns the index of a row; [`NONE`](Self::NONE) if the number is too large for one.
            #[inline]
            pub fn from_row(row: usize) -> Self {
                u32::try_from(row).map_or(Self::NONE, Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl RowIndex for $name {
            const TABLE: Table = Table::$table;
        }

        number!($name, Reference::Row(Table::$table), Self, |index: Self| index.0);
    )+};
}

index! {
    /// A row of the processes table: one lifetime of one pid.
    ProcessIdx => Processes;
    /// A row of the modules table.
    ModuleIdx => Modules;
    /// A row of the objects table; the object's id is one more.
    ObjectIdx => Objects;
    /// A row of the acquisitions table.
    AcquisitionIdx => Acquisitions;
    /// A row of the events table.
    EventIdx => Events;
    /// A row of the stacks table.
    StackIdx => Stacks;
    /// A row of the frames table.
    FrameIdx => Frames;
    /// A row of the methods table.
    MethodIdx => Methods;
    /// A row of the event counts table: a kind of events.
    EventCountIdx => EventCounts;
    /// A row of the event fields table.
    EventFieldIdx => EventFields;
    /// A row of the provider events table.
    ProviderEventIdx => ProviderEvents;
    /// A row of the event values table.
    EventValueIdx => EventValues;
    /// A row of the allocators table.
    AllocatorIdx => Allocators;
    /// A row of the table of frees without allocation and ignored events.
    ResourceMissIdx => ResourceMisses;
    /// A row of the names table.
    NameIdx => Names;
}

/// The id of an object type as in events; the object types table maps `type_id` to a name.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TypeId(pub u32);

number!(TypeId, Reference::Key(Table::ObjectTypes, "type_id"), Self, |id: Self| id.0);

/// The number of rows of another table that belong to a row. They are adjacent and belong to no other row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RowCount<I>(pub u32, #[serde(skip)] PhantomData<I>);

impl<I> RowCount<I> {
    /// Counts this many rows.
    pub const fn new(rows: u32) -> Self {
        Self(rows, PhantomData)
    }
}

number!(@[<I: RowIndex>] RowCount<I>, Reference::Count(I::TABLE), Self::new, |count: Self| count.0);

/// Returns the value that no row number takes, for columns built without a null mask.
pub const fn sentinel() -> u32 {
    u32::MAX
}
