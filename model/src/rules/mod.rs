//! The rules of the domain, in one place: what events mean for handles, views and objects.
//!
//! Importers, writers, queries and SQL views call these instead of listing kinds of events themselves. [`Kinds`] are
//! sets of kinds; the other functions derive facts from the events of one object. The rules are those of ETWAnalyzer.

mod handle;
mod leak;
mod losses;
mod object;
mod resource;
mod target;

pub use self::handle::{handle_slot, is_kernel_handle};
pub use self::leak::{is_inherited, is_leak, is_leak_at_exit, is_leaked_handle, is_leaked_view};
pub use self::losses::LossTimes;
pub use self::object::{DeriveScratch, ObjectEvents, ObjectTraits, derive, has_overlap};
pub use self::resource::{
    RecordingMethod, about, backed_by, has_bytes, has_lasting_names, is_freed,
    is_named_by_allocator, is_never_freed, is_of_pages,
};
pub use self::target::NamedTarget;
use crate::tables::EventKind;

/// The lifetime that filters assume for an object whose creation or end is unknown: 9999 s.
pub const UNKNOWN_LIFETIME_NS: i64 = 9_999_000_000_000;

/// Returns the nanoseconds between creation and end; `None` if either is unknown.
pub fn lifetime_ns(create_ns: Option<i64>, end_ns: Option<i64>) -> Option<i64> {
    Some(end_ns?.saturating_sub(create_ns?))
}

/// A set of kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u32);

/// Events that open a handle or a view.
pub const OPENING: Kinds =
    Kinds::new(&[EventKind::HandleCreate, EventKind::HandleDuplicate, EventKind::Map]);

/// Events that open a handle.
pub const OPENING_HANDLES: Kinds =
    Kinds::new(&[EventKind::HandleCreate, EventKind::HandleDuplicate]);

/// Events that end a handle or a view.
pub const CLOSING: Kinds = Kinds::new(&[EventKind::HandleClose, EventKind::Unmap]);

/// Events that carry a handle value.
pub const WITH_HANDLE: Kinds =
    Kinds::new(&[EventKind::HandleCreate, EventKind::HandleDuplicate, EventKind::HandleClose]);

/// Events of a view of a file.
pub const VIEWS: Kinds = Kinds::new(&[EventKind::Map, EventKind::Unmap]);

/// Events that change the reference count of an object.
pub const REFERENCE_CHANGES: Kinds = Kinds::new(&[EventKind::Reference, EventKind::Dereference]);

/// Events that can count as the creation of an object.
pub const CREATING: Kinds = Kinds::new(&[
    EventKind::ObjectCreate,
    EventKind::HandleCreate,
    EventKind::Map,
    EventKind::HandleDuplicate,
]);

impl Kinds {
    /// Returns the set of these kinds.
    pub const fn new(kinds: &[EventKind]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u32;
            at += 1;
        }
        Self(bits)
    }

    /// Whether a kind is in the set.
    #[inline]
    pub const fn contains(self, kind: EventKind) -> bool {
        self.contains_code(kind as u32)
    }

    /// Whether the kind with this stored number is in the set; a number of a newer layout is in none.
    #[inline]
    pub const fn contains_code(self, code: u32) -> bool {
        code < u32::BITS && self.0 >> code & 1 == 1
    }

    /// Returns the stored numbers of the kinds in the set, ascending.
    pub fn codes(self) -> impl Iterator<Item = u32> {
        (0..u32::BITS).filter(move |code| self.contains_code(*code))
    }
}

/// Kernel functions that close a process's open handles when it ends.
pub const EXIT_FUNCTIONS: [&str; 3] = ["ExSweepHandleTable", "ObKillProcess", "PspExitProcess"];

/// Whether a function on the stack of a close shows that the end of the process caused it.
pub fn is_exit_function(name: &str) -> bool {
    EXIT_FUNCTIONS.contains(&name)
}

/// Name of the event in the rundown at the end that lists one open handle.
pub const HANDLE_RUNDOWN_END: &str = "HandleDCEnd";

/// Name of the event in the rundown at the end that lists one object type. So there are some even if nothing was open.
pub const TYPE_RUNDOWN_END: &str = "TypeDCEnd";

/// Whether an event with this name belongs to the rundown at the end.
pub fn is_of_end_rundown(name: &str) -> bool {
    [HANDLE_RUNDOWN_END, TYPE_RUNDOWN_END].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_needs_creation_and_end() {
        assert_eq!(lifetime_ns(Some(5), Some(9)), Some(4));
        assert_eq!(lifetime_ns(None, Some(9)), None);
        assert_eq!(lifetime_ns(Some(5), None), None);
    }

    #[test]
    fn opens_and_closes_are_distinct_kinds() {
        for kind in EventKind::ALL {
            assert!(!(OPENING.contains(kind) && CLOSING.contains(kind)), "{kind:?}");
            let is_used =
                [OPENING, CLOSING, REFERENCE_CHANGES].iter().any(|set| set.contains(kind));
            let is_object = matches!(kind, EventKind::ObjectCreate | EventKind::ObjectDelete);
            assert_eq!(is_used, !is_object, "{kind:?}");
        }
        assert_eq!(WITH_HANDLE.codes().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_kind_of_a_newer_layout_is_in_no_set() {
        for code in [9, 31, 32, 99, u32::MAX] {
            assert!(!OPENING.contains_code(code) && !CREATING.contains_code(code), "{code}");
        }
    }
}
