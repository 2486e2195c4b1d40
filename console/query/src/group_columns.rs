//! Columns of `-GroupBy`: how those of handles and of allocations are declared, and what a group has in one.

use handlescope_model::StackIdx;

/// Declares columns: of each its word, which stays the same, its help, and a constant with what else is said of it.
macro_rules! group_columns {
    ($(#[$doc:meta])* $name:ident: $declared:ty;
        $($column:ident: $word:literal, $help:literal => $rest:expr;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $help] $column,)*
        }

        impl $name {
            /// Every column.
            pub const ALL: &[Self] = &[$(Self::$column),*];

            /// The word it goes by.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$column => $word,)*
                }
            }

            /// The words of all columns, each with its help.
            pub fn words() -> Vec<(&'static str, &'static str)> {
                vec![$(($word, $help)),*]
            }

            const fn declared(self) -> $declared {
                match self {
                    $(Self::$column => $rest,)*
                }
            }
        }
    };
}
pub(crate) use group_columns;

/// Value that the handles or allocations of a group have in common in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKey<T> {
    /// A name of whatever it is.
    Text(T),
    Number(i64),
    /// A stack: one of those that are equal.
    Stack(StackIdx),
    /// No value: no name, no stack, not closed.
    None,
}
