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

            /// Its help.
            pub fn help(self) -> &'static str {
                match self {
                    $(Self::$column => $help,)*
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

group_columns! {
    /// A column of `-GroupBy` of handles.
    GroupColumn: Declared;
    CreateStack: "createstack", "stack of the event that opened the handle" => of(Some("no stack"), OPENINGS, false);
    CloseStack: "closestack", "stack of the event that closed it" => of(Some("not closed, or no stack"), CLOSES, false);
    Type: "type", "type of the object" => of(None, NEITHER, false);
    Process: "process", "owner of the handle" => of(None, NEITHER, false);
    Name: "name", "name of the object" => of(Some("no name"), NEITHER, false);
    NamePattern: "namepattern", "name with # for numbers and GUIDs" => of(Some("no name"), NEITHER, false);
    Module: "module", "module of the first frame outside the system" => of(None, OPENINGS, false);
    Function: "function", "that frame" => of(None, OPENINGS, false);
    Thread: "thread", "thread that opened it" => of(None, NEITHER, true);
    Lifetime: "lifetime", "how long it was open" => of(None, NEITHER, false);
}

/// Whether stacks of openings, or of closes, are needed.
const OPENINGS: (bool, bool) = (true, false);
const CLOSES: (bool, bool) = (false, true);
const NEITHER: (bool, bool) = (false, false);

/// Declaration of a column.
struct Declared {
    none: Option<&'static str>,
    needs: (bool, bool),
    is_number: bool,
}

const fn of(none: Option<&'static str>, needs: (bool, bool), is_number: bool) -> Declared {
    Declared { none, needs, is_number }
}

impl GroupColumn {
    /// Text for a group that has no value in the column, if there is one.
    pub fn none(self) -> Option<&'static str> {
        self.declared().none
    }

    /// Whether it is a number, not a text.
    pub fn is_number(self) -> bool {
        self.declared().is_number
    }

    /// Whether it needs stacks of openings, or of closes.
    pub fn needs_stacks(self) -> (bool, bool) {
        self.declared().needs
    }
}

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
