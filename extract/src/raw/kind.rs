//! What a row of the timeline is.

use super::list::event_families;

macro_rules! row_kinds {
    ($($field:ident: $family:ident in $module:ident [$($kind:ident),*],)*) => {
        /// What a row of the timeline is; each kind belongs to one family.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum RowKind {
            $($($kind,)*)*
        }
    };
}

event_families!(row_kinds);
