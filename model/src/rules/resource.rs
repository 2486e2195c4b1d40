//! Classes of allocation kinds, and what the end of an allocation means.

use crate::tables::{ResourceEnd, ResourceKind};

/// Whether an allocation was never freed: it is open at the end of the trace, or only the end of its process released
/// it.
pub fn is_never_freed(end: ResourceEnd) -> bool {
    matches!(end, ResourceEnd::Open | ResourceEnd::AtExit)
}

/// Whether a call freed an allocation.
pub fn is_freed(end: ResourceEnd) -> bool {
    matches!(end, ResourceEnd::Freed | ResourceEnd::Reallocated)
}

/// Returns a short description of what is allocated.
pub const fn about(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Heap => "blocks of heaps",
        ResourceKind::Commit => "committed pages",
        ResourceKind::Reserve => "reserved addresses",
        ResourceKind::Resource => "what events acquire and release",
        ResourceKind::Gdi => "handles of GDI",
        ResourceKind::User => "handles of USER",
    }
}

/// Whether allocations of a kind consist of pages. Pages may be replaced in parts, so only bytes say how many there
/// are.
pub const fn is_of_pages(kind: ResourceKind) -> bool {
    match kind {
        ResourceKind::Commit | ResourceKind::Reserve => true,
        ResourceKind::Heap | ResourceKind::Resource | ResourceKind::Gdi | ResourceKind::User => {
            false
        }
    }
}

/// Whether every allocation of a kind has bytes. Events of providers may have some, in units of their own.
pub const fn has_bytes(kind: ResourceKind) -> bool {
    match kind {
        ResourceKind::Heap | ResourceKind::Commit | ResourceKind::Reserve => true,
        ResourceKind::Resource | ResourceKind::Gdi | ResourceKind::User => false,
    }
}

/// Whether the name of an allocator says what is allocated; heaps and pages are all alike.
pub const fn is_named_by_allocator(kind: ResourceKind) -> bool {
    match kind {
        ResourceKind::Resource | ResourceKind::Gdi | ResourceKind::User => true,
        ResourceKind::Heap | ResourceKind::Commit | ResourceKind::Reserve => false,
    }
}

/// Whether an allocator has the same name in every trace. A heap is named by its handle, which differs each time.
pub const fn has_lasting_names(kind: ResourceKind) -> bool {
    match kind {
        ResourceKind::Heap => false,
        ResourceKind::Commit
        | ResourceKind::Reserve
        | ResourceKind::Resource
        | ResourceKind::Gdi
        | ResourceKind::User => true,
    }
}

/// Returns the kind that covers the same memory in more detail: committed pages for reserved addresses.
pub const fn backed_by(kind: ResourceKind) -> Option<ResourceKind> {
    match kind {
        ResourceKind::Reserve => Some(ResourceKind::Commit),
        ResourceKind::Heap
        | ResourceKind::Commit
        | ResourceKind::Resource
        | ResourceKind::Gdi
        | ResourceKind::User => None,
    }
}

/// How the events of allocations are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingMethod {
    /// A heap session, for chosen processes.
    HeapSession,
    /// Virtual memory events of the kernel.
    VirtualMemory,
    /// A provider of such events.
    Provider,
}

impl RecordingMethod {
    pub const ALL: [Self; 3] = [Self::HeapSession, Self::VirtualMemory, Self::Provider];

    /// Returns how a kind is recorded.
    pub const fn for_kind(kind: ResourceKind) -> Self {
        match kind {
            ResourceKind::Heap => Self::HeapSession,
            ResourceKind::Commit | ResourceKind::Reserve => Self::VirtualMemory,
            ResourceKind::Resource | ResourceKind::Gdi | ResourceKind::User => Self::Provider,
        }
    }

    pub fn kinds(self) -> impl Iterator<Item = ResourceKind> {
        ResourceKind::ALL.into_iter().filter(move |kind| Self::for_kind(*kind) == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(of: impl Fn(ResourceKind) -> bool) -> Vec<&'static str> {
        ResourceKind::ALL.into_iter().filter(|kind| of(*kind)).map(ResourceKind::name).collect()
    }

    #[test]
    fn pages_are_committed_and_reserved_and_have_bytes_as_blocks_have() {
        assert_eq!(kinds(is_of_pages), ["commit", "reserve"]);
        assert_eq!(kinds(has_bytes), ["heap", "commit", "reserve"]);
        assert_eq!(kinds(|kind| backed_by(kind).is_some()), ["reserve"]);
        assert_eq!(backed_by(ResourceKind::Reserve), Some(ResourceKind::Commit));
    }

    #[test]
    fn allocators_of_providers_name_their_resources_and_heaps_have_no_lasting_names() {
        assert_eq!(kinds(is_named_by_allocator), ["resource", "gdi", "user"]);
        assert_eq!(kinds(|kind| !has_lasting_names(kind)), ["heap"]);
    }

    #[test]
    fn each_kind_has_a_single_way_of_recording() {
        let recorded =
            |way: RecordingMethod| way.kinds().map(ResourceKind::name).collect::<Vec<_>>();
        assert_eq!(recorded(RecordingMethod::HeapSession), ["heap"]);
        assert_eq!(recorded(RecordingMethod::VirtualMemory), ["commit", "reserve"]);
        assert_eq!(recorded(RecordingMethod::Provider), ["resource", "gdi", "user"]);
        let count: usize = RecordingMethod::ALL.into_iter().map(|way| way.kinds().count()).sum();
        assert_eq!(count, ResourceKind::ALL.len());
    }

    #[test]
    fn every_kind_is_described_in_distinct_words() {
        for kind in ResourceKind::ALL {
            let alike = ResourceKind::ALL.into_iter().filter(|known| about(*known) == about(kind));
            assert_eq!(alike.count(), 1, "{kind:?}");
        }
    }

    #[test]
    fn an_allocation_is_freed_or_lost_or_neither() {
        let ends = |of: fn(ResourceEnd) -> bool| {
            ResourceEnd::ALL
                .into_iter()
                .filter(|end| of(*end))
                .map(ResourceEnd::name)
                .collect::<Vec<_>>()
        };
        assert_eq!(ends(is_never_freed), ["open", "at_exit"]);
        assert_eq!(ends(is_freed), ["freed", "reallocated"]);
    }
}
