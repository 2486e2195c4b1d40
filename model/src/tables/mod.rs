//! The tables of a trace, one file each.

mod acquisitions;
mod declare;
mod diagnostics;
mod events;
mod modules;
mod objects;
mod processes;
mod provider_events;
mod resources;
mod schema;
mod stacks;
mod trace;

pub use self::acquisitions::{
    Acquisition, AcquisitionKind, Acquisitions, End, Origin, ReferenceChange, ReferenceChanges,
};
pub use self::diagnostics::{EventCount, EventCounts, Loss, LossKind, Losses, Warning, Warnings};
pub use self::events::{ClosedUnseen, Event, EventKind, Events};
pub use self::modules::{Module, ModuleLoad, ModuleLoads, Modules, Volume, Volumes};
pub use self::objects::{
    FILE_MAPPING_NAME, FILE_MAPPING_TYPE, Name, Names, Object, ObjectType, ObjectTypes, Objects,
    UNKNOWN_TYPE_NAME,
};
pub use self::processes::{Process, Processes, Thread, Threads, Zombie, Zombies};
pub use self::provider_events::{
    EventField, EventFields, EventValue, EventValues, ProviderEvent, ProviderEvents,
};
pub use self::resources::{
    Allocator, Allocators, ResourceEnd, ResourceKind, ResourceMiss, ResourceMissKind,
    ResourceMisses,
};
pub use self::schema::SCHEMA_VERSION;
pub use self::stacks::{
    Frame, Frames, Method, Methods, Stack, StackEvent, StackEvents, StackRows, Stacks, Symbol,
    Symbols,
};
pub use self::trace::{
    HANDLE_LIST, MINIDUMP, NO_CLOCK, SYSTEM_CLOCK, TraceInfo, TraceInfos, UNKNOWN_CLOCK,
    UtcOffsets, is_merged, is_ring,
};
use crate::column::Cell;
use crate::key::{Columns, Key};

/// A source of column values.
pub trait Cells {
    /// The error of reading values.
    type Error;

    /// Copies at most `count` values of a column, starting at row `first`.
    ///
    /// # Errors
    /// If the column cannot be read.
    fn cells<C: Columns, T: Cell>(
        &self,
        key: Key<C, T>,
        first: usize,
        count: usize,
    ) -> Result<Vec<T>, Self::Error>;
}

/// A table as typed rows instead of columns.
pub trait TableRows: Columns {
    /// A row, serialized with the names of the columns.
    type Row: serde::Serialize + serde::de::DeserializeOwned;

    /// Copies at most `count` rows, starting at row `first`.
    ///
    /// # Errors
    /// If a column cannot be read.
    fn read_rows<S: Cells>(source: &S, first: usize, count: usize) -> Result<Self, S::Error>;

    /// Returns a copy of one row; `None` after the last.
    fn row(&self, row: usize) -> Option<Self::Row>;

    /// Copies the whole table.
    ///
    /// # Errors
    /// If a column cannot be read.
    fn read<S: Cells>(source: &S) -> Result<Self, S::Error> {
        Self::read_rows(source, 0, usize::MAX)
    }

    /// Iterates over copies of all rows.
    fn rows(&self) -> impl Iterator<Item = Self::Row> {
        (0..).map_while(|row| self.row(row))
    }
}
