//! Facts about the recording system: classic events of KernelTraceControl, inserted by the merge
//! of a trace, and the kernel's own configuration events.

use super::Payload;
use crate::etl::Event;

/// The build of Windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemBuild {
    /// As in 7601.17640.amd64fre.win7sp1_gdr.110622-1506.
    pub build: String,
    /// As in Windows 8 Pro.
    pub product: String,
}

impl SystemBuild {
    /// The opcode.
    pub const OPCODE: u8 = 32;

    /// Decodes the record.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        p.u64()?;
        Some(Self { build: p.utf16(), product: p.utf16() })
    }
}

/// The name of the computer (MOF class SystemConfig_CPU), the first text of the event after clock,
/// processors, memory, page size and allocation granularity; `None` when it is empty.
pub fn computer_name(event: &Event<'_>) -> Option<String> {
    let mut p = Payload::new(event.payload, event.pointer_size);
    p.skip(5 * 4)?;
    Some(p.utf16()).filter(|name| !name.is_empty())
}

/// The memory of the computer, MB, from the same event.
pub fn memory_size(event: &Event<'_>) -> Option<u32> {
    let mut p = Payload::new(event.payload, event.pointer_size);
    p.skip(2 * 4)?;
    p.u32().filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{hook, test_event};

    #[test]
    fn the_computer_has_a_name() {
        let mut payload = vec![0; 20];
        payload[9] = 0x40;
        payload.extend(b"L\0A\0B\0\0\0");
        payload.extend([0; 504]);
        let event = test_event(hook::SYSTEM_CPU, 3, &payload, 8);
        assert_eq!(computer_name(&event).as_deref(), Some("LAB"));
        assert_eq!(memory_size(&event), Some(16384));
        assert_eq!(memory_size(&Event { payload: &[0; 532], ..event }), None);
        assert_eq!(computer_name(&Event { payload: &payload[..19], ..event }), None);
        assert_eq!(computer_name(&Event { payload: &[0; 532], ..event }), None);
    }
}
