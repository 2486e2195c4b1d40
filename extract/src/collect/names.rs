//! Names of event kinds, for people who read the event counts.

use super::index::FAMILIES;
use crate::etl::EventId;
use crate::kernel::{FACTS_GUID, IDENTITY_GUID};
use crate::metadata::Decoder;

/// Events that no family takes.
const OTHERS: &[(EventId, &str)] = &[
    (EventId::Hook(0x0000), "LogfileHeader"),
    (EventId::Hook(0x0005), "GroupMasks"),
    (EventId::Hook(0x0008), "RundownComplete"),
    (EventId::Hook(0x030b), "ProcessTerminate"),
    (EventId::Hook(0x0327), "ProcessDefunct"),
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

/// The name of an event kind; `None` for kinds this program does not know.
pub fn event_name(id: EventId) -> Option<&'static str> {
    if matches!(id, EventId::Manifest { .. }) && Decoder::is_metadata(id) {
        return Some("ManifestData");
    }
    let taken = FAMILIES.iter().flat_map(|family| family.events);
    taken.chain(OTHERS).find(|(known, _)| *known == id).map(|(_, name)| *name)
}
