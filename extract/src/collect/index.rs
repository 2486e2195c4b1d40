//! Looks up the family of an event and its name in event counts, and validates mappings.

use handlescope_model::Table;
use rustc_hash::FxHashMap;

use crate::etl::{Event, EventId};
use crate::kernel::{FACTS_GUID, IDENTITY_GUID};
use crate::mapping::{MappingError, ResourceMapping};
use crate::metadata::Decoder;
use crate::payload::Field;
use crate::raw::{EventFamily, RowKind, event_families, kernel_classes};

/// What a family declares.
pub struct FamilyDeclaration {
    pub family: FamilyId,
    pub events: &'static [(EventId, &'static str)],
    pub tables: &'static [Table],
}

macro_rules! index {
    ($($field:ident: $family:ident in $module:ident [$($kind:ident),*],)*) => {
        $(use crate::$module::$family;)*

        /// Event families.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum FamilyId {
            $($family,)*
        }

        impl FamilyId {
            /// Returns the payload fields of an event of this family.
            pub fn fields(self, event: &Event<'_>) -> &'static [Field] {
                match self {
                    $(Self::$family => $family::fields(event),)*
                }
            }

            /// Returns the family of a timeline row.
            pub fn from_row(kind: RowKind) -> Self {
                match kind {
                    $($(RowKind::$kind => Self::$family,)*)*
                }
            }
        }

        /// All families, in the order of the list.
        pub const FAMILIES: &[FamilyDeclaration] = &[
            $(FamilyDeclaration {
                family: FamilyId::$family,
                events: $family::EVENTS,
                tables: $family::TABLES,
            },)*
        ];
    };
}

event_families!(index);

/// Families by hook id.
static HOOKS: [Option<FamilyId>; 1 << 16] = hooks();

/// Fails to compile if two families take the same hook.
const fn hooks() -> [Option<FamilyId>; 1 << 16] {
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
#[derive(Clone)]
pub struct FamilyIndex {
    /// Events without a hook id.
    by_id: FxHashMap<EventId, FamilyId>,
}

impl Default for FamilyIndex {
    fn default() -> Self {
        let events = FAMILIES
            .iter()
            .flat_map(|declared| declared.events.iter().map(|(id, _)| (*id, declared.family)));
        Self { by_id: events.filter(|(id, _)| !matches!(id, EventId::Hook(_))).collect() }
    }
}

impl FamilyIndex {
    /// Returns the family of the event with a hook id.
    pub fn of_hook(hook: u16) -> Option<FamilyId> {
        HOOKS.get(usize::from(hook)).copied().flatten()
    }

    pub fn family(&self, id: EventId) -> Option<FamilyId> {
        match id {
            EventId::Hook(hook) => Self::of_hook(hook),
            // A manifest chunk has the GUID of its provider.
            id if Decoder::is_metadata(id) => Some(FamilyId::Metadata),
            id => self.by_id.get(&id).copied(),
        }
    }
}

/// Events that no family takes.
const WITHOUT_FAMILY: &[(EventId, &str)] = &[
    (EventId::Hook(0x0000), "LogfileHeader"),
    (EventId::Hook(0x0005), "GroupMasks"),
    (EventId::Hook(0x0008), "RundownComplete"),
    (EventId::Hook(0x030b), "ProcessTerminate"),
    (EventId::Hook(0x0427), "MapFileDCStart"),
    (EventId::Hook(0x0524), "ContextSwitch"),
    (EventId::Hook(0x0f2e), "ProfileSample"),
    (EventId::Hook(0x1421), "KernelBase"),
    (EventId::Hook(0x1422), "HypercallPage"),
    (EventId::Hook(0x1822), "StackKeyCreate"),
    (EventId::Classic { guid: IDENTITY_GUID, opcode: 32 }, "DbgID_None"),
    (EventId::Classic { guid: IDENTITY_GUID, opcode: 37 }, "DbgID_ILRSDS"),
    (EventId::Classic { guid: FACTS_GUID, opcode: 33 }, "SystemPaths"),
    (EventId::Classic { guid: FACTS_GUID, opcode: 34 }, "SystemVolume"),
    (EventId::Message, "TraceMessage"),
];

/// Returns the name of an event kind; `None` for unknown kinds.
pub fn event_name(id: EventId) -> Option<&'static str> {
    if matches!(id, EventId::Manifest { .. }) && Decoder::is_metadata(id) {
        return Some("ManifestData");
    }
    let taken = FAMILIES.iter().flat_map(|family| family.events);
    taken.chain(WITHOUT_FAMILY).find(|(known, _)| *known == id).map(|(_, name)| *name)
}

/// Provider name of events with a hook id, which have no provider.
pub const KERNEL: &str = "Windows Kernel";

/// Checks that mappings are for events that can be mapped.
///
/// # Errors
/// Fails for the first mapping that names a provider of kernel events, which have a family and no schema.
pub fn check_mappings(mappings: &[ResourceMapping]) -> Result<(), MappingError> {
    let events = FAMILIES.iter().flat_map(|family| family.events);
    let classic = events.filter_map(|(id, _)| match id {
        EventId::Classic { guid, .. } => Some(*guid),
        _ => None,
    });
    let guids: Vec<String> = classic.chain(kernel_classes()).map(|guid| guid.to_string()).collect();
    let of_kernel = mappings.iter().find(|mapping| {
        mapping.names_provider(KERNEL, "")
            || guids.iter().any(|guid| mapping.names_provider("", guid))
    });
    match of_kernel {
        None => Ok(()),
        Some(ResourceMapping { provider, event, .. }) => {
            Err(MappingError::OfKernel { event: format!("{provider}/{event}") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_kernel_events_are_refused_by_name_and_guid() {
        let checked = |provider: &str| {
            let words = format!("Contoso/1 acquire; {provider}/MyEvent release");
            let list = words.split(';').map(|words| {
                let (event, action) = words.trim().rsplit_once(' ').unwrap();
                format!("[[resource]]\nevent = '{event}'\naction = '{action}'\n")
            });
            let mappings = ResourceMapping::from_list(&list.collect::<String>()).unwrap();
            check_mappings(&mappings).map_err(|error| error.to_string())
        };
        for provider in [
            "windows kernel",
            "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c",
            "{89497F50-EFFE-4440-8CF2-CE6B1CDCACA7}",
        ] {
            let error = checked(provider).unwrap_err();
            assert!(error.starts_with(&format!("{provider}/MyEvent: ")), "{error}");
        }
        for provider in
            ["*", "Contoso", "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4", "Microsoft-Windows-Win32k"]
        {
            assert_eq!(checked(provider), Ok(()), "{provider}");
        }
    }
}
