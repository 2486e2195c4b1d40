//! Session details and facts about the system.

use super::{ClassicPayload, KernelPayload};
use crate::bytes::{ByteString, Guid};

/// Event class of facts about the system, inserted by a merge.
const SYSTEM_FACTS_GUID: Guid = Guid::new(0x9b79ee91_b5fd_41c0_a243_4248e266e9d0);

/// Returns the groups that the session enabled (0x0005).
#[must_use]
pub fn group_masks(masks: [u32; 8]) -> KernelPayload {
    let bytes = masks.iter().fold(ByteString::new(), |bytes, mask| bytes.u32(*mask)).u32(0x55);
    KernelPayload { hook: 0x0005, version: 2, bytes: bytes.into_vec() }
}

/// Returns the end of a rundown (0x0008), an event without payload.
#[must_use]
pub fn end_of_rundown() -> KernelPayload {
    KernelPayload { hook: 0x0008, version: 2, bytes: Vec::new() }
}

/// Returns processors, memory and computer name (MOF class `SystemConfig_CPU`, 0x0b0a).
#[must_use]
pub fn computer(name: &str, processors: u32, memory_mb: u32) -> KernelPayload {
    let numbers = [2_918, processors, memory_mb, 0x1000, 0x1_0000];
    let bytes = numbers.iter().fold(ByteString::new(), |bytes, number| bytes.u32(*number));
    // Arrays of 256 and 134 characters for the computer name and the domain name, then a flag.
    let rest = 2 * (256 + 134) + 4 - 2 * (name.encode_utf16().count() + 1);
    let bytes = bytes.utf16z(name).zeros(rest).into_vec();
    KernelPayload { hook: 0x0b0a, version: 2, bytes }
}

/// Returns build string and product name (opcode 32).
#[must_use]
pub fn build_string(build: &str, product: &str) -> ClassicPayload {
    facts(32, ByteString::new().u64(0).utf16z(build).utf16z(product))
}

/// Returns the system and Windows directories (opcode 33).
#[must_use]
pub fn system_directories(system: &str, windows: &str) -> ClassicPayload {
    facts(33, ByteString::new().utf16z(system).utf16z(windows))
}

/// Returns the device of the system volume (opcode 34).
#[must_use]
pub fn volume_device(device: &str) -> ClassicPayload {
    facts(34, ByteString::new().utf16z(device))
}

/// Returns one line of the map from NT to DOS paths (opcode 35).
#[must_use]
pub fn path_prefix(nt: &str, dos: &str) -> ClassicPayload {
    facts(35, ByteString::new().utf16z(nt).utf16z(dos))
}

fn facts(opcode: u8, bytes: ByteString) -> ClassicPayload {
    ClassicPayload { guid: SYSTEM_FACTS_GUID, opcode, version: 0, bytes: bytes.into_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_facts_are_terminated_strings() {
        assert_eq!(path_prefix("a", "").bytes, [b'a', 0, 0, 0, 0, 0]);
        let build = build_string("b", "p");
        assert_eq!(build.opcode, 32);
        assert_eq!(build.bytes, [0, 0, 0, 0, 0, 0, 0, 0, b'b', 0, 0, 0, b'p', 0, 0, 0]);
    }

    #[test]
    fn the_name_of_a_computer_follows_five_numbers() {
        let payload = computer("LAB", 4, 16_384);
        assert_eq!((payload.hook, payload.bytes.len()), (0x0b0a, 804));
        assert_eq!(payload.bytes[8..12], [0, 0x40, 0, 0]);
        assert_eq!(payload.bytes[20..28], *b"L\0A\0B\0\0\0");
    }

    #[test]
    fn group_masks_take_36_bytes() {
        let masks = group_masks([7, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!((masks.hook, masks.bytes.len()), (5, 36));
        assert_eq!(masks.bytes[..12], [7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    }
}
