//! The classes of kernel events. A file has these events by hook id, a real-time session by the GUID of their
//! class and an opcode.
//!
//! The GUIDs are those of learn.microsoft.com, `MSNT_SystemTrace` and its child classes; those of heap and registry
//! events are the control GUIDs of their providers.

use std::ops::RangeInclusive;

use crate::etl::{EventId, Guid};

/// A class: its hook ids are `group << 8 | opcode`.
struct Class {
    guid: Guid,
    group: u16,
    /// The opcodes of this group that are of the class.
    opcodes: RangeInclusive<u8>,
}

const fn class(guid: Guid, group: u16) -> Class {
    Class { guid, group, opcodes: 0..=0xFF }
}

/// The last eight bytes of the GUIDs of the first kernel classes.
const KERNEL: [u8; 8] = [0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c];
const LOG_FILE: [u8; 8] = [0x84, 0xf4, 0x00, 0x00, 0xf8, 0x04, 0x64, 0xe3];

/// ImageLoad.
const IMAGE: Guid =
    Guid::new(0x2cb1_5d1d, 0x5fc1, 0x11d2, [0xab, 0xe1, 0x00, 0xa0, 0xc9, 0x11, 0xf5, 0x18]);

const CLASSES: [Class; 12] = [
    // EventTraceEvent
    class(Guid::new(0x68fd_d900, 0x4a3e, 0x11d1, LOG_FILE), 0x00),
    // PageFault
    class(Guid::new(0x3d6f_a8d3, 0xfe05, 0x11d0, KERNEL), 0x02),
    // The load of an image has a hook id of the group of processes.
    Class { guid: IMAGE, group: 0x03, opcodes: 10..=10 },
    // Process
    class(Guid::new(0x3d6f_a8d0, 0xfe05, 0x11d0, KERNEL), 0x03),
    // FileIo
    class(Guid::new(0x90cb_dc39, 0x4a3e, 0x11d1, LOG_FILE), 0x04),
    // Thread
    class(Guid::new(0x3d6f_a8d1, 0xfe05, 0x11d0, KERNEL), 0x05),
    // Registry
    class(
        Guid::new(0xae53_722e, 0xc863, 0x11d2, [0x86, 0x59, 0x00, 0xc0, 0x4f, 0xa3, 0x21, 0xa1]),
        0x09,
    ),
    // SystemConfig
    class(
        Guid::new(0x0185_3a65, 0x418f, 0x4f36, [0xae, 0xfc, 0xdc, 0x0f, 0x1d, 0x2f, 0xd2, 0x35]),
        0x0b,
    ),
    // HeapTraceProvider
    class(
        Guid::new(0x2229_62ab, 0x6180, 0x4b88, [0xa8, 0x25, 0x34, 0x6b, 0x75, 0xf2, 0xa2, 0x4a]),
        0x10,
    ),
    // ObTrace
    class(
        Guid::new(0x8949_7f50, 0xeffe, 0x4440, [0x8c, 0xf2, 0xce, 0x6b, 0x1c, 0xdc, 0xac, 0xa7]),
        0x11,
    ),
    class(IMAGE, 0x14),
    // StackWalk
    class(
        Guid::new(0xdef2_fe46, 0x7bd6, 0x4b80, [0xbd, 0x94, 0xf5, 0x7f, 0xe2, 0x0d, 0x0c, 0xe3]),
        0x18,
    ),
];

pub fn kernel_classes() -> impl Iterator<Item = Guid> {
    CLASSES.iter().map(|class| class.guid)
}

/// The id under which families know an event that a real-time session names by its class. Others stay what they are.
pub fn id_in_file(id: EventId) -> EventId {
    let EventId::Classic { guid, opcode } = id else { return id };
    let class = CLASSES.iter().find(|class| class.guid == guid && class.opcodes.contains(&opcode));
    class.map_or(id, |class| EventId::Hook(class.group << 8 | u16::from(opcode)))
}

/// How a real-time session names an event of a file. Kernel events whose class is not known stay what they are.
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
    fn an_event_of_a_provider_stays_what_it_is() {
        let ids = [EventId::Classic { guid: Guid([7; 16]), opcode: 1 }, EventId::Message];
        assert_eq!(ids.map(id_in_file), ids);
        assert_eq!(ids.map(id_in_session), ids);
    }
}
