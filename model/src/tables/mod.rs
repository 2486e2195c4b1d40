//! The tables of a trace, one file each.

mod codes;
mod declare;
mod diagnostics;
mod events;
mod frames;
mod handles;
mod losses;
mod methods;
mod modules;
mod names;
mod object_types;
mod objects;
mod processes;
mod provider_events;
mod resources;
mod rows;
mod schema;
mod stack_events;
mod stacks;
mod symbols;
mod threads;
mod trace;
mod volumes;

pub use diagnostics::{EventCount, EventCounts, Warning, Warnings};
pub use events::{ClosedUnseen, Event, EventKind, Events};
pub use frames::{Frame, Frames};
pub use handles::{ExistingHandle, ExistingHandles, StartHandle, StartHandles};
pub use losses::{Loss, LossKind, Losses};
pub use methods::{Method, Methods};
pub use modules::{Module, ModuleLoad, ModuleLoads, Modules};
pub use names::{Name, Names};
pub use object_types::{
    FILE_MAPPING_NAME, FILE_MAPPING_TYPE, ObjectType, ObjectTypes, UNKNOWN_TYPE_NAME,
};
pub use objects::{Object, Objects};
pub use processes::{Process, Processes};
pub use provider_events::{
    EventField, EventFields, EventValue, EventValues, ProviderEvent, ProviderEvents,
};
pub use resources::{
    Allocator, Allocators, Resource, ResourceEnd, ResourceKind, ResourceMiss, ResourceMissKind,
    ResourceMisses, Resources,
};
pub use rows::{Cells, TableRows};
pub use schema::SCHEMA_VERSION;
pub use stack_events::{StackEvent, StackEvents};
pub use stacks::{Stack, Stacks};
pub use symbols::{Symbol, Symbols};
pub use threads::{Thread, Threads};
pub use trace::{
    NO_CLOCK, SYSTEM_CLOCK, TraceInfo, TraceInfos, UNKNOWN_CLOCK, UtcOffsets, is_ring,
};
pub use volumes::{Volume, Volumes};
