//! Typed keys: a table, a column, and the type of its values.

use std::marker::PhantomData;

use crate::column::{Cell, ColumnSpec, Reference};
use crate::table::Table;

/// The columns of one table.
pub trait Columns: Sized {
    const TABLE: Table;
}

/// A column of the table `C` with values of the type `T`. [`crate::tables`] declares them all, such as
/// `Events::time_ns`, so a name that no table has does not compile.
#[derive(Debug)]
pub struct Key<C, T> {
    spec: ColumnSpec,
    of: PhantomData<fn() -> (C, T)>,
}

impl<C, T> Clone for Key<C, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, T> Copy for Key<C, T> {}

impl<C: Columns, T: Cell> Key<C, T> {
    pub const fn new(name: &'static str, unit: &'static str, doc: &'static str) -> Self {
        // The column that identifies the rows of a table does not refer to itself.
        let refers_to = match T::REFERS_TO {
            Some(Reference::Key(table, _)) if table as u8 == C::TABLE as u8 => None,
            refers_to => refers_to,
        };
        let (dtype, nullable) = (T::TYPE, T::NULLABLE);
        let spec = ColumnSpec { name, dtype, nullable, unit, refers_to, doc };
        Self { spec, of: PhantomData }
    }

    pub const fn table(&self) -> Table {
        C::TABLE
    }

    /// Returns the specification of the column.
    pub const fn spec(&self) -> ColumnSpec {
        self.spec
    }

    pub const fn name(&self) -> &'static str {
        self.spec.name
    }
}
