//! Result of one pass over a trace: the columns of each event family, and one timeline for all of them.
//!
//! [`event_families`] is the list of event families, which determines the kinds of timeline rows.
//!
//! Raw means: times are ticks, processes are pids, stacks are fragments. What depends on the whole trace, such as a
//! process that only the end rundown names, is resolved afterwards.

mod classes;
mod family;
mod timeline;

pub use self::classes::{id_in_file, id_in_session, kernel_classes};
pub use self::family::{EventFamily, GatheredFamily, LifeEvent, NameInterner, PassState};
pub use self::timeline::{IdSource, Timeline, UNKNOWN_ID};
pub(crate) use family::gathered_columns;

/// Passes the list to the macro `$make`. Each entry has the family's field among the collected columns, its type, its
/// module, and the row kinds it adds to the timeline.
///
/// Row kinds, selection, names of events, decoding and the documented table of families are all made from it. The names
/// are resolved where the macro is used.
macro_rules! event_families {
    ($make:ident) => {
        $make! {
            processes: Processes in kernel [],
            threads: Threads in kernel [],
            images: Images in kernel [],
            system: System in kernel [],
            losses: Losses in kernel [],
            object_types: ObjectTypes in kernel [],
            handles: Handles in kernel [HandleCreate, HandleClose, HandleAtEnd],
            duplicates: Duplicates in kernel [HandleDuplicate],
            objects: Objects in kernel [ObjectCreate, ObjectDelete],
            references: References in kernel [Reference, Dereference],
            views: Views in kernel [Map, Unmap],
            heaps: Heaps in kernel [HeapCreate, HeapAlloc, HeapReAlloc, HeapFree, HeapDestroy],
            virtual_memory: VirtualMemory in kernel [RangeAlloc, RangeFree],
            described: Described in described [
                Undescribed, Acquire, Release, ResourceIgnored, GuiCreate, GuiDestroy, GuiOwner, GuiTransform
            ],
            stacks: KeptStacks in stacks [],
            methods: Methods in managed [],
            metadata: Metadata in metadata [],
        }
    };
}

pub(crate) use event_families;

macro_rules! row_kinds {
    ($($field:ident: $family:ident in $module:ident [$($kind:ident),*],)*) => {
        /// Kind of a timeline row; each kind belongs to one family.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum RowKind {
            $($($kind,)*)*
        }
    };
}

event_families!(row_kinds);
