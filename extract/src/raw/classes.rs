//! Classes of kernel events. A file identifies these events by hook id; a real-time session uses the GUID of their
//! class and an opcode.
//!
//! The GUIDs are from learn.microsoft.com, `MSNT_SystemTrace` and its child classes. For heap and registry events, they
//! are the control GUIDs of their providers.

use std::ops::RangeInclusive;

use uuid::{Uuid, uuid};

use crate::etl::{EventId, Guid};

/// Class; its hook ids are `group << 8 | opcode`.
struct Class {
    guid: Guid,
    group: u16,
    /// Opcodes of the class in the group.
    opcodes: RangeInclusive<u8>,
}

const fn class(uuid: Uuid, group: u16) -> Class {
    Class { guid: Guid::from_uuid(uuid), group, opcodes: 0..=0xFF }
}

/// ImageLoad.
const IMAGE: Uuid = uuid!("2cb15d1d-5fc1-11d2-abe1-00a0c911f518");

const CLASSES: [Class; 12] = [
    // EventTraceEvent
    class(uuid!("68fdd900-4a3e-11d1-84f4-0000f80464e3"), 0x00),
    // PageFault
    class(uuid!("3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c"), 0x02),
    // Image loads have a hook id of the process group.
    Class { guid: Guid::from_uuid(IMAGE), group: 0x03, opcodes: 10..=10 },
    // Process
    class(uuid!("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c"), 0x03),
    // FileIo
    class(uuid!("90cbdc39-4a3e-11d1-84f4-0000f80464e3"), 0x04),
    // Thread
    class(uuid!("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c"), 0x05),
    // Registry
    class(uuid!("ae53722e-c863-11d2-8659-00c04fa321a1"), 0x09),
    // SystemConfig
    class(uuid!("01853a65-418f-4f36-aefc-dc0f1d2fd235"), 0x0b),
    // HeapTraceProvider
    class(uuid!("222962ab-6180-4b88-a825-346b75f2a24a"), 0x10),
    // ObTrace
    class(uuid!("89497f50-effe-4440-8cf2-ce6b1cdcaca7"), 0x11),
    class(IMAGE, 0x14),
    // StackWalk
    class(uuid!("def2fe46-7bd6-4b80-bd94-f57fe20d0ce3"), 0x18),
];

pub fn kernel_classes() -> impl Iterator<Item = Guid> {
    CLASSES.iter().map(|class| class.guid)
}

/// Converts an event id from a real-time session, which has its class, to its id in a file. Ids of unknown classes
/// stay.
pub fn id_in_file(id: EventId) -> EventId {
    let EventId::Classic { guid, opcode } = id else { return id };
    let class = CLASSES.iter().find(|class| class.guid == guid && class.opcodes.contains(&opcode));
    class.map_or(id, |class| EventId::Hook(class.group << 8 | u16::from(opcode)))
}

/// Converts an event id from a file to its id in a real-time session. Kernel events of an unknown class keep their id.
pub fn id_in_session(id: EventId) -> EventId {
    let EventId::Hook(hook) = id else { return id };
    let (group, opcode) = (hook >> 8, hook as u8);
    let class =
        CLASSES.iter().find(|class| class.group == group && class.opcodes.contains(&opcode));
    class.map_or(id, |class| EventId::Classic { guid: class.guid, opcode })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_names_that_are_documented() {
        for (hook, name) in [
            (0x0301, "classic:3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c:1"),
            (0x030a, "classic:2cb15d1d-5fc1-11d2-abe1-00a0c911f518:10"),
            (0x0425, "classic:90cbdc39-4a3e-11d1-84f4-0000f80464e3:37"),
            (0x1120, "classic:89497f50-effe-4440-8cf2-ce6b1cdcaca7:32"),
            (0x1402, "classic:2cb15d1d-5fc1-11d2-abe1-00a0c911f518:2"),
            (0x1820, "classic:def2fe46-7bd6-4b80-bd94-f57fe20d0ce3:32"),
            (0x0f2e, "hook:0f2e"),
        ] {
            assert_eq!(id_in_session(EventId::Hook(hook)).to_string(), name);
        }
    }

    #[test]
    fn an_event_of_a_provider_keeps_its_id() {
        let ids = [EventId::Classic { guid: Guid([7; 16]), opcode: 1 }, EventId::Message];
        assert_eq!(ids.map(id_in_file), ids);
        assert_eq!(ids.map(id_in_session), ids);
    }
}
