//! The events table, column by column as filters ask for them.

use handlescope_model::{ArchiveError, Table, Trace};

use crate::trace::columns::{Flags, I32s, I64s, U32s, U64s};

/// Gives typed columns of the events table.
#[derive(Clone, Copy)]
pub(crate) struct Events<'t>(pub(crate) &'t Trace);

impl Events<'_> {
    pub(crate) fn kind(self) -> Result<U32s, ArchiveError> {
        U32s::load(self.0, Table::Events, "kind")
    }

    pub(crate) fn time(self) -> Result<I64s, ArchiveError> {
        I64s::load(self.0, Table::Events, "time_ns")
    }

    pub(crate) fn leaked(self) -> Result<Flags, ArchiveError> {
        Flags::load(self.0, Table::Events, "leaked")
    }

    /// A column of row numbers or ids.
    pub(crate) fn u32s(self, name: &str) -> Result<U32s, ArchiveError> {
        U32s::load(self.0, Table::Events, name)
    }

    /// A column of handle values, addresses or sizes.
    pub(crate) fn u64s(self, name: &str) -> Result<U64s, ArchiveError> {
        U64s::load(self.0, Table::Events, name)
    }

    pub(crate) fn ref_delta(self) -> Result<I32s, ArchiveError> {
        I32s::load(self.0, Table::Events, "ref_delta")
    }
}
