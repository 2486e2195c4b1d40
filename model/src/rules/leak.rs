//! Leaks of handles and views that stay open, and ownership of duplicates.

use super::{OPENING, OPENING_HANDLES};
use crate::tables::EventKind;

/// Whether an event leaks: it opened something that nothing in the trace closes.
pub const fn is_leak(kind: EventKind, is_closed: bool) -> bool {
    OPENING.contains(kind) && !is_closed
}

/// Whether an event opened a handle or view of the program's own that only the end of the process closed.
///
/// A child that inherited a handle did not open it and need not close it.
pub const fn is_leak_at_exit(kind: EventKind, is_inherited: bool, is_closed_at_exit: bool) -> bool {
    OPENING.contains(kind) && !is_inherited && is_closed_at_exit
}

/// Whether an event opened a handle, not a view, that leaked.
pub const fn is_leaked_handle(kind: EventKind, is_leaked: bool) -> bool {
    OPENING_HANDLES.contains(kind) && is_leaked
}

/// Whether an event mapped a view that leaked.
pub const fn is_leaked_view(kind: EventKind, is_leaked: bool) -> bool {
    OPENING.contains(kind) && !OPENING_HANDLES.contains(kind) && is_leaked
}

/// Whether a duplicate makes a handle that a child inherits: equal handle values in one process mean that the handle
/// table of a parent is being cloned. Unknown processes do not count as the same.
pub fn is_inherited<H: PartialEq + Copy, P: PartialEq + Copy>(
    source_handle: H,
    handle: H,
    source: Option<P>,
    target: Option<P>,
) -> bool {
    source_handle == handle && source.is_some() && source == target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_opens_leak_and_only_handles_are_leaked_handles() {
        for kind in EventKind::ALL {
            let is_handle = matches!(kind, EventKind::HandleCreate | EventKind::HandleDuplicate);
            let opens = is_handle || kind == EventKind::Map;
            assert_eq!(is_leak(kind, false), opens, "{kind:?}");
            assert!(!is_leak(kind, true), "{kind:?}");
            assert_eq!(is_leaked_handle(kind, true), is_handle, "{kind:?}");
            assert!(!is_leaked_handle(kind, false), "{kind:?}");
            assert_eq!(is_leaked_view(kind, true), kind == EventKind::Map, "{kind:?}");
            assert!(!is_leaked_view(kind, false), "{kind:?}");
            assert_eq!(is_leak_at_exit(kind, false, true), opens, "{kind:?}");
            assert!(!is_leak_at_exit(kind, true, true) && !is_leak_at_exit(kind, false, false));
        }
    }

    #[test]
    fn a_child_inherits_the_same_handle_of_the_same_known_process() {
        assert!(is_inherited(4, 4, Some(1), Some(1)));
        assert!(!is_inherited(4, 8, Some(1), Some(1)));
        assert!(!is_inherited(4, 4, Some(1), Some(2)));
        assert!(!is_inherited(4, 4, None, Some(1)));
        assert!(!is_inherited(4, 4, None::<u32>, None));
    }
}
