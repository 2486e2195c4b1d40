//! Macros that declare tables, and enumerations stored as codes.

/// Declares a table from one list of columns: its row type, column builder, keys and schema.
macro_rules! table {
    (
        $(#[$table_doc:meta])+
        $table:ident => $name:ident,
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

        impl $crate::key::Columns for $table {
            const TABLE: $crate::table::Table = $crate::table::Table::$name;
        }

        // Keys are spelled like their columns.
        #[allow(non_upper_case_globals)]
        impl $table {
            $(
                #[doc = $doc]
                pub const $column: $crate::key::Key<Self, $ty> =
                    $crate::key::Key::new(stringify!($column), concat!($($unit)?), $doc);
            )+
        }

        impl $table {
            /// The columns, in archive order.
            pub const COLUMNS: &'static [$crate::column::ColumnSpec] =
                &[ $( Self::$column.spec(), )+ ];

            /// Appends one row.
            // Inlined, because a row passed in memory would be read in larger pieces than it was just written in, which
            // stalls.
            #[inline(always)]
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

            /// Returns the rows as a frame whose columns are [`Self::COLUMNS`]. A nullable column that was left empty
            /// becomes all null.
            ///
            /// # Errors
            /// If columns were filled to different lengths.
            pub fn into_frame(self) -> polars::prelude::PolarsResult<polars::prelude::DataFrame> {
                let height = self.len();
                polars::prelude::DataFrame::new(height, vec![
                    $( if <$ty as $crate::column::Cell>::NULLABLE && self.$column.is_empty() {
                        Self::$column.spec().nulls(height)
                    } else {
                        <$ty as $crate::column::Cell>::column(stringify!($column), self.$column)
                    }, )+
                ])
            }
        }

        impl Extend<$row> for $table {
            fn extend<I: IntoIterator<Item = $row>>(&mut self, rows: I) {
                rows.into_iter().for_each(|row| self.push(row));
            }
        }

        impl FromIterator<$row> for $table {
            fn from_iter<I: IntoIterator<Item = $row>>(rows: I) -> Self {
                let mut table = Self::default();
                table.extend(rows);
                table
            }
        }

        impl $crate::tables::TableRows for $table {
            type Row = $row;

            fn read_rows<S: $crate::tables::Cells>(
                source: &S,
                first: usize,
                count: usize,
            ) -> Result<Self, S::Error> {
                Ok(Self { $( $column: source.cells(Self::$column, first, count)?, )+ })
            }

            fn row(&self, row: usize) -> Option<$row> {
                Some($row { $( $column: self.$column.get(row)?.clone(), )+ })
            }
        }
    };
}

pub(super) use table;

/// Declares an enumeration that a column stores as a number.
macro_rules! codes {
    ($(#[$doc:meta])+ $name:ident { $( #[doc = $text:literal] $variant:ident = $word:literal, )+ }) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum $name { $( #[doc = $text] $variant, )+ }

        impl $name {
            /// All variants; the position is the stored number.
            pub const ALL: [Self; [$( $word, )+].len()] = [ $( Self::$variant, )+ ];

            /// Returns the stored number.
            pub fn code(self) -> u32 {
                self as u32
            }

            /// Returns the variant with a stored number; `None` for a number of a newer layout.
            #[inline]
            pub fn from_code(code: u32) -> Option<Self> {
                Self::ALL.get(code as usize).copied()
            }

            /// Returns the name used in JSON and in options.
            pub fn name(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }
    };
}

pub(super) use codes;
