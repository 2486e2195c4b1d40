//! The tables of a trace, one file each.

/// Declares a table: its row type, its column builder and its schema, from one list of columns.
macro_rules! table {
    (
        $(#[$table_doc:meta])+
        $table:ident,
        $(#[$row_doc:meta])+
        $row:ident {
            $( #[doc = $doc:literal] $([$unit:literal])? $column:ident : $ty:ty, )+
        }
    ) => {
        $(#[$row_doc])+
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $row { $( #[doc = $doc] pub $column: $ty, )+ }

        $(#[$table_doc])+
        #[derive(Debug, Default, Clone)]
        pub struct $table { $( #[doc = $doc] pub $column: Vec<$ty>, )+ }

        impl $table {
            /// The columns, in their order in the archive.
            pub const COLUMNS: &'static [$crate::ColumnSpec] = &[ $( $crate::ColumnSpec {
                name: stringify!($column),
                dtype: <$ty as $crate::Cell>::TYPE,
                nullable: <$ty as $crate::Cell>::NULLABLE,
                unit: concat!($($unit)?),
                doc: $doc,
            }, )+ ];

            /// Appends one row.
            pub fn push(&mut self, row: $row) {
                $( self.$column.push(row.$column); )+
            }

            /// Number of rows.
            pub fn len(&self) -> usize {
                [$( self.$column.len(), )+][0]
            }

            /// Whether there are no rows.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The rows as a frame whose columns are [`Self::COLUMNS`].
            ///
            /// # Errors
            /// When columns were filled to different lengths.
            pub fn into_frame(self) -> polars::prelude::PolarsResult<polars::prelude::DataFrame> {
                let height = self.len();
                polars::prelude::DataFrame::new(height, vec![
                    $( <$ty as $crate::Cell>::column(stringify!($column), self.$column), )+
                ])
            }
        }

        impl $crate::TableRows for $table {
            type Row = $row;

            const TABLE: $crate::Table = Self::OF;

            fn read_rows(
                trace: &$crate::Trace,
                first: usize,
                count: usize,
            ) -> Result<Self, $crate::ArchiveError> {
                Ok(Self {
                    $( $column: trace.cells(Self::OF, stringify!($column), first, count)?, )+
                })
            }

            fn row(&self, row: usize) -> Option<$row> {
                Some($row { $( $column: self.$column.get(row)?.clone(), )+ })
            }
        }
    };
}

mod diagnostics;
mod events;
mod frames;
mod handles;
mod methods;
mod modules;
mod names;
mod object_types;
mod objects;
mod processes;
mod stack_events;
mod stacks;
mod symbols;
mod trace;

pub use diagnostics::{EventCount, EventCounts, Warning, Warnings};
pub use events::{Event, EventKind, Events};
pub use frames::{Frame, Frames};
pub use handles::{ExistingHandle, ExistingHandles, StartHandle, StartHandles};
pub use methods::{Method, Methods};
pub use modules::{Module, ModuleLoad, ModuleLoads, Modules};
pub use names::{Name, Names};
pub use object_types::{
    FILE_MAPPING_NAME, FILE_MAPPING_TYPE, ObjectType, ObjectTypes, UNKNOWN_TYPE_NAME,
};
pub use objects::{Object, Objects};
pub use processes::{Process, Processes};
pub use stack_events::{StackEvent, StackEvents};
pub use stacks::{Stack, Stacks};
pub use symbols::{Symbol, Symbols};
pub use trace::{TraceInfo, TraceInfos};

use crate::{ArchiveError, ColumnSpec, Trace};

/// A table as rows that are typed, instead of columns.
pub trait TableRows: Sized {
    /// A row; its serialization has the names of the columns.
    type Row: serde::Serialize + serde::de::DeserializeOwned;

    /// The table.
    const TABLE: Table;

    /// Copies at most `count` rows out of a trace, from the row `first` on.
    ///
    /// # Errors
    /// When the archive is damaged.
    fn read_rows(trace: &Trace, first: usize, count: usize) -> Result<Self, ArchiveError>;

    /// A copy of one row; `None` behind the last.
    fn row(&self, row: usize) -> Option<Self::Row>;

    /// Copies the whole table out of a trace.
    ///
    /// # Errors
    /// When the archive is damaged.
    fn read(trace: &Trace) -> Result<Self, ArchiveError> {
        Self::read_rows(trace, 0, usize::MAX)
    }

    /// Copies of all rows.
    fn rows(&self) -> impl Iterator<Item = Self::Row> {
        (0..).map_while(|row| self.row(row))
    }
}

/// Declares the tables: their enumeration, names, meanings and columns, from one list.
macro_rules! tables {
    ($( #[doc = $doc:literal] $table:ident = $name:literal, $columns:ident; )+) => {
        /// The tables of a trace.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Table { $( #[doc = $doc] $table, )+ }

        impl Table {
            /// Every table, in archive order.
            pub const ALL: [Self; [$( $name, )+].len()] = [ $( Self::$table, )+ ];

            /// The name, as in `module_loads`.
            pub fn name(self) -> &'static str {
                match self { $( Self::$table => $name, )+ }
            }

            /// What its rows are.
            pub fn doc(self) -> &'static str {
                match self { $( Self::$table => $doc.trim_ascii_start(), )+ }
            }

            /// The columns, in their order in the archive.
            pub fn columns(self) -> &'static [ColumnSpec] {
                match self { $( Self::$table => $columns::COLUMNS, )+ }
            }
        }

        $( impl $columns {
            /// What these are the columns of.
            pub(crate) const OF: Table = Table::$table;
        } )+
    };
}

tables! {
    /// One row about the trace itself.
    Trace = "trace", TraceInfos;
    /// Processes, one row per lifetime.
    Processes = "processes", Processes;
    /// Modules, one row per file identity.
    Modules = "modules", Modules;
    /// Where and when modules were mapped.
    ModuleLoads = "module_loads", ModuleLoads;
    /// Names of the object types.
    ObjectTypes = "object_types", ObjectTypes;
    /// Object names, each once.
    Names = "names", Names;
    /// Kernel objects and mapped views, one row per lifetime.
    Objects = "objects", Objects;
    /// What happened to the objects.
    Events = "events", Events;
    /// Handles open at the end (rundown).
    ExistingHandles = "existing_handles", ExistingHandles;
    /// Handles open at the start (rundown).
    StartHandles = "start_handles", StartHandles;
    /// Call stacks, each once.
    Stacks = "stacks", Stacks;
    /// Every stack that was recorded, when all were asked for.
    StackEvents = "stack_events", StackEvents;
    /// Frames, each once.
    Frames = "frames", Frames;
    /// Methods of managed code.
    Methods = "methods", Methods;
    /// Function names, when they were resolved at extraction.
    Symbols = "symbols", Symbols;
    /// How many events of each kind the source held.
    EventCounts = "event_counts", EventCounts;
    /// What was lost, damaged or left out.
    Warnings = "warnings", Warnings;
}

impl Table {
    /// The archive member that holds the table, as in `module_loads.parquet`.
    pub fn member(self) -> String {
        format!("{}.parquet", self.name())
    }

    /// The table of a name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_and_column_has_a_unique_documented_name() {
        let mut tables = std::collections::HashSet::new();
        for table in Table::ALL {
            assert!(tables.insert(table.name()));
            let mut columns = std::collections::HashSet::new();
            for column in table.columns() {
                assert!(columns.insert(column.name), "{}.{}", table.name(), column.name);
                assert!(!column.doc.trim().is_empty(), "{}.{}", table.name(), column.name);
            }
        }
    }

    #[test]
    fn a_table_becomes_a_frame_with_the_declared_columns() {
        let mut processes = Processes::default();
        processes.push(Process { pid: 4, name: "System".into(), ..Process::default() });
        let frame = processes.into_frame().unwrap();
        assert_eq!(frame.height(), 1);
        let names: Vec<_> = frame.get_column_names().into_iter().map(|n| n.to_string()).collect();
        let declared: Vec<_> = Processes::COLUMNS.iter().map(|c| c.name.to_string()).collect();
        assert_eq!(names, declared);
        for spec in Processes::COLUMNS {
            assert_eq!(frame.column(spec.name).unwrap().dtype(), &spec.dtype.dtype());
        }
    }
}
