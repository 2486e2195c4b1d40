//! Which family takes an event.

use handlescope_model::Table;
use rustc_hash::FxHashMap;

use crate::etl::{Event, EventId};
use crate::metadata::Decoder;
use crate::payload::Field;
use crate::raw::{EventFamily, event_families};

/// What a family declares.
pub struct Declared {
    pub family: Family,
    pub events: &'static [(EventId, &'static str)],
    pub tables: &'static [Table],
}

macro_rules! index {
    ($($field:ident: $family:ident in $module:ident [$($kind:ident),*],)*) => {
        $(use crate::$module::$family;)*

        /// The event families.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Family {
            $($family,)*
        }

        impl Family {
            /// The fields of the payload of an event of this family.
            pub(crate) fn fields(self, event: &Event<'_>) -> &'static [Field] {
                match self {
                    $(Self::$family => $family::fields(event),)*
                }
            }
        }

        /// All families, in the order of the list.
        pub const FAMILIES: &[Declared] = &[
            $(Declared {
                family: Family::$family,
                events: $family::EVENTS,
                tables: $family::TABLES,
            },)*
        ];
    };
}

event_families!(index);

/// The families of hook ids.
static HOOKS: [Option<Family>; 1 << 16] = hooks();

/// Two families that take the same hook are a compile error.
const fn hooks() -> [Option<Family>; 1 << 16] {
    let mut hooks = [None; 1 << 16];
    let mut family = 0;
    while family < FAMILIES.len() {
        let events = FAMILIES[family].events;
        let mut event = 0;
        while event < events.len() {
            if let EventId::Hook(hook) = events[event].0 {
                assert!(hooks[hook as usize].is_none());
                hooks[hook as usize] = Some(FAMILIES[family].family);
            }
            event += 1;
        }
        family += 1;
    }
    hooks
}

/// Finds the family of an event.
pub struct FamilyIndex {
    /// Those without hook id.
    others: FxHashMap<EventId, Family>,
}

impl Default for FamilyIndex {
    fn default() -> Self {
        let events = FAMILIES
            .iter()
            .flat_map(|declared| declared.events.iter().map(|(id, _)| (*id, declared.family)));
        Self { others: events.filter(|(id, _)| !matches!(id, EventId::Hook(_))).collect() }
    }
}

impl FamilyIndex {
    pub fn family(&self, id: EventId) -> Option<Family> {
        match id {
            EventId::Hook(hook) => HOOKS.get(usize::from(hook)).copied().flatten(),
            // A chunk of a manifest, which has the provider's own GUID.
            other if Decoder::is_metadata(other) => Some(Family::Metadata),
            other => self.others.get(&other).copied(),
        }
    }
}
