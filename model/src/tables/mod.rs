//! The tables of a trace, one file each.

mod declare;
mod diagnostics;
mod events;
mod modules;
mod objects;
mod processes;
mod provider_events;
mod resources;
mod rows;
mod schema;
mod stacks;
mod trace;

pub use diagnostics::{EventCount, EventCounts, Loss, LossKind, Losses, Warning, Warnings};
pub use events::{ClosedUnseen, Event, EventKind, Events};
pub use modules::{Module, ModuleLoad, ModuleLoads, Modules, Volume, Volumes};
pub use objects::{
    ExistingHandle, ExistingHandles, FILE_MAPPING_NAME, FILE_MAPPING_TYPE, Name, Names, Object,
    ObjectType, ObjectTypes, Objects, StartHandle, StartHandles, UNKNOWN_TYPE_NAME,
};
pub use processes::{Process, Processes, Thread, Threads};
pub use provider_events::{
    EventField, EventFields, EventValue, EventValues, ProviderEvent, ProviderEvents,
};
pub use resources::{
    Allocator, Allocators, Resource, ResourceEnd, ResourceKind, ResourceMiss, ResourceMissKind,
    ResourceMisses, Resources,
};
pub use rows::{Cells, TableRows};
pub use schema::SCHEMA_VERSION;
pub use stacks::{
    Frame, Frames, Method, Methods, Stack, StackEvent, StackEvents, StackRows, Stacks, Symbol,
    Symbols,
};
pub use trace::{
    MINIDUMP, NO_CLOCK, SYSTEM_CLOCK, TraceInfo, TraceInfos, UNKNOWN_CLOCK, UtcOffsets, is_merged,
    is_ring,
};
