//! Allocations other than handles: heap blocks, virtual memory, handles of GDI and USER, and anything that events
//! acquire and release.

use super::declare::{codes, table};
use crate::index::{AllocatorIdx, ProcessIdx, StackIdx};

codes! {
    /// Kind of an allocation.
    ResourceKind {
        /// A block of a heap.
        Heap = "heap",
        /// Committed pages.
        Commit = "commit",
        /// Reserved addresses.
        Reserve = "reserve",
        /// Resource acquired and released by events of a provider.
        Resource = "resource",
        /// A handle of GDI.
        Gdi = "gdi",
        /// A handle of USER.
        User = "user",
    }
}

codes! {
    /// End of an allocation.
    ResourceEnd {
        /// It did not: its process was alive when the trace ended.
        Open = "open",
        /// It was freed.
        Freed = "freed",
        /// It was freed by a reallocation, which made another one of it.
        Reallocated = "reallocated",
        /// Another allocation took its place: its free was lost.
        Replaced = "replaced",
        /// The heap was destroyed.
        Destroyed = "destroyed",
        /// The process ended.
        AtExit = "at_exit",
        /// It had no bytes that were not allocated before.
        Empty = "empty",
    }
}

codes! {
    /// Reason that an event neither began nor ended an allocation.
    ResourceMissKind {
        /// It freed what was not allocated: twice, elsewhere, or before the trace.
        OrphanFree = "orphan_free",
        /// It failed, or has nothing that could be followed.
        Ignored = "ignored",
    }
}

table! {
    /// Columns of the allocators table: each kind, name and provider of each process once, a heap once for each of its lives.
    Allocators => Allocators,
    /// Allocator of resources.
    Allocator {
        /// 0 heap, 1 commit, 2 reserve, 3 resource, 4 gdi, 5 user.
        kind: u32,
        /// The heap in hex, VirtualAlloc, the allocator named in the event, or the type of the GDI or USER handle.
        name: String,
        /// The provider of the events, by its name or else its GUID; null for the kernel and heaps.
        provider: Option<String>,
        /// The owner of the allocations; null if no process of this id is known.
        process: Option<ProcessIdx>,
        /// Process id; null if the events have none.
        pid: Option<u32>,
        /// Creation time of a heap; null for one from before the trace and for other kinds.
        ["ns since session start"] created_ns: Option<i64>,
        /// Stack that created the heap.
        create_stack: Option<StackIdx>,
        /// Time at which a heap was destroyed.
        ["ns since session start"] destroyed_ns: Option<i64>,
    }
}

table! {
    /// Columns of the resource misses table, in time order: frees without allocation, and events that were ignored.
    ResourceMisses => ResourceMisses,
    /// An event that neither began nor ended an allocation.
    ResourceMiss {
        /// The allocator, with the process and kind.
        allocator: AllocatorIdx,
        /// 0 orphan_free, 1 ignored.
        what: u32,
        /// Address or handle in the event.
        ["hex"] key: u64,
        /// Bytes in the event; 0 if it has none.
        ["bytes"] size: i64,
        /// Time of the event.
        ["ns since session start"] time_ns: i64,
        /// Thread of the event.
        tid: Option<u32>,
        /// Stack of the event.
        stack: Option<StackIdx>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_describe_their_numbers() {
        fn listed<T: Copy>(
            values: &[T],
            code: impl Fn(T) -> u32,
            name: impl Fn(T) -> &'static str,
        ) -> String {
            let each: Vec<String> =
                values.iter().map(|value| format!("{} {}", code(*value), name(*value))).collect();
            format!("{}.", each.join(", "))
        }
        let kinds = listed(&ResourceKind::ALL, ResourceKind::code, ResourceKind::name);
        let misses = listed(&ResourceMissKind::ALL, ResourceMissKind::code, ResourceMissKind::name);
        for (spec, listed) in
            [(Allocators::kind.spec(), kinds), (ResourceMisses::what.spec(), misses)]
        {
            assert_eq!(spec.doc.trim(), listed);
        }
    }
}
