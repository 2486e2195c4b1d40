//! The rules of the domain, once: what events mean for handles, views and objects.
//!
//! Importers, writers, queries and SQL views call these instead of listing kinds of events themselves.
//! [`Kinds`] are sets of kinds; the other functions derive what follows from the events of one object.
//! The rules are ETWAnalyzer's.

mod handle;
mod kinds;
mod leak;
mod losses;
mod object;
mod resource;

pub use handle::{handle_slot, is_kernel_handle, is_pseudo_handle};
pub use kinds::{
    CLOSING, CREATING, EXIT_FUNCTIONS, HANDLE_RUNDOWN_END, Kinds, OPENING, OPENING_HANDLES,
    REFERENCE_CHANGES, TYPE_RUNDOWN_END, VIEWS, WITH_HANDLE, create_rank, is_exit_function,
    is_of_end_rundown,
};
pub use leak::{
    LeakClass, is_inherited, is_leak, is_leak_at_exit, is_leaked_handle, is_leaked_view, leak_class,
};
pub use losses::LossTimes;
pub use object::{DeriveScratch, Derived, ObjectEvents, creation, derive, end, has_overlap};
pub use resource::{
    Recording, about, backed_by, has_bytes, has_lasting_names, is_freed, is_named_by_allocator,
    is_never_freed, is_of_pages,
};

/// The lifetime of an object whose creation or end is unknown, as filters see it: 9999 s.
pub const UNKNOWN_LIFETIME_NS: i64 = 9_999_000_000_000;

/// Nanoseconds between creation and end; `None` when one of them is unknown.
pub fn lifetime_ns(create_ns: Option<i64>, end_ns: Option<i64>) -> Option<i64> {
    Some(end_ns?.saturating_sub(create_ns?))
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
}
