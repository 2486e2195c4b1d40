//! What the end of an allocation means.

use crate::tables::ResourceEnd;

/// Whether an allocation was never freed: it is open at the end of the trace, or its process took it along.
pub fn is_never_freed(end: ResourceEnd) -> bool {
    matches!(end, ResourceEnd::Open | ResourceEnd::AtExit)
}

/// Whether a call freed an allocation.
pub fn is_freed(end: ResourceEnd) -> bool {
    matches!(end, ResourceEnd::Freed | ResourceEnd::Reallocated)
}
