//! Row numbers as types: an index names the table it points into.

macro_rules! index {
    ($($(#[$doc:meta])+ $name:ident;)+) => {$(
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The row number, for indexing a column.
            pub fn row(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// Row numbers fit in 32 bits: the extractor refuses tables of 2^32 - 1 rows.
            fn from(row: usize) -> Self {
                Self(u32::try_from(row).unwrap_or(sentinel()))
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
    /// A row of the names table.
    NameIdx;
}

/// The value that no row number takes, for columns kept without a null mask while they are built.
pub const fn sentinel() -> u32 {
    u32::MAX
}
