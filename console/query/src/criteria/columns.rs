//! Columns of `-GroupBy`: how columns of handles and allocations are declared, and the value of a group in a column.

use handlescope_model::StackIdx;

/// Declares columns, each with its word (which never changes), its help text, and a constant with further properties.
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

            /// Returns the word for the column.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$column => $word,)*
                }
            }

            /// Returns the help text.
            pub fn help(self) -> &'static str {
                match self {
                    $(Self::$column => $help,)*
                }
            }

            /// Returns the words of all columns with their help texts.
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
    GroupColumn: GroupColumnSpec;
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

/// Whether stacks of openings, and of closes, are needed.
const OPENINGS: (bool, bool) = (true, false);
const CLOSES: (bool, bool) = (false, true);
const NEITHER: (bool, bool) = (false, false);

/// The declaration of a column.
struct GroupColumnSpec {
    none: Option<&'static str>,
    needs: (bool, bool),
    is_number: bool,
}

const fn of(none: Option<&'static str>, needs: (bool, bool), is_number: bool) -> GroupColumnSpec {
    GroupColumnSpec { none, needs, is_number }
}

impl GroupColumn {
    /// Returns the text for a group without a value in the column, if there is one.
    pub fn none(self) -> Option<&'static str> {
        self.declared().none
    }

    /// Whether it is a number rather than a text.
    pub fn is_number(self) -> bool {
        self.declared().is_number
    }

    /// Whether it needs stacks of openings, and of closes.
    pub fn needs_stacks(self) -> (bool, bool) {
        self.declared().needs
    }
}

/// The value that the handles or allocations of a group share in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKey<T> {
    /// A name of any kind.
    Text(T),
    Number(i64),
    /// A stack; one of several equal ones.
    Stack(StackIdx),
    /// No value: no name, no stack, not closed.
    None,
}
