//! The families of kernel events in a session, each with all its names: for our own sessions, for WPR and for xperf.

use std::fmt::{self, Display, Formatter};

use serde::{Serialize, Serializer};

/// A GUID, most significant digit first, as in `windows::core::GUID::from_u128`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guid(pub u128);

impl Display for Guid {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let part = |low: u32, digits: u32| (self.0 >> low) & ((1 << (4 * digits)) - 1);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 8),
            part(80, 4),
            part(64, 4),
            part(48, 4),
            part(0, 12)
        )
    }
}

impl Serialize for Guid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An event whose stack is recorded: a `CLASSIC_EVENT_ID` for the stack-tracing list (learn).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StackEvent {
    /// The WPR keyword.
    pub name: &'static str,
    /// The xperf keyword.
    #[serde(skip)]
    pub xperf: &'static str,
    pub class: Guid,
    /// Opcode in the class.
    pub opcode: u8,
}

/// A flag of the kernel logger, or one of its groups. The upper three bits are the index in the group mask, which is 0
/// for the flags (ntwmi.h, `PERF_GET_MASK_INDEX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask {
    pub name: &'static str,
    value: u32,
}

impl Mask {
    const INDEX_BITS: u32 = 0xE000_0000;

    /// Returns the index of its mask among the eight of the group mask.
    pub fn index(self) -> usize {
        (self.value >> Self::INDEX_BITS.trailing_zeros()) as usize
    }

    /// Returns its bits in that mask.
    pub fn bits(self) -> u32 {
        self.value & !Self::INDEX_BITS
    }
}

/// Events that are enabled together.
pub struct Family {
    pub masks: &'static [Mask],
    /// The keyword of a WPR system provider.
    pub keyword: &'static str,
    /// The kernel flag of xperf.
    pub xperf: &'static str,
    /// Events whose stacks are worth the space.
    pub stacks: &'static [StackEvent],
}

/// learn, `ObTrace`.
const OBJECT: Guid = Guid(0x89497f50_effe_4440_8cf2_ce6b1cdcaca7);
/// learn, `FileIo`.
const FILE_IO: Guid = Guid(0x90cbdc39_4a3e_11d1_84f4_0000f80464e3);
/// learn, `PageFault_V2`.
const PAGE_FAULT: Guid = Guid(0x3d6fa8d3_fe05_11d0_9dda_00c04fd7ba7c);

const fn mask(name: &'static str, value: u32) -> Mask {
    Mask { name, value }
}

const fn stack(name: &'static str, class: Guid, opcode: u8) -> StackEvent {
    StackEvent { name, xperf: name, class, opcode }
}

/// Processes with names and command lines, and threads. The masks with index 0 are the flags in learn,
/// `EVENT_TRACE_PROPERTIES`.
pub static PROCESSES: Family = Family {
    masks: &[mask("EVENT_TRACE_FLAG_PROCESS", 0x1), mask("EVENT_TRACE_FLAG_THREAD", 0x2)],
    keyword: "ProcessThread",
    xperf: "PROC_THREAD",
    stacks: &[],
};

/// The modules that addresses of stacks belong to.
pub static IMAGES: Family = Family {
    masks: &[mask("EVENT_TRACE_FLAG_IMAGE_LOAD", 0x4)],
    keyword: "Loader",
    xperf: "LOADER",
    stacks: &[],
};

/// Handles created, closed and duplicated. The groups are from ntwmi.h; learn, `ObTrace`, names the first one.
pub static HANDLES: Family = Family {
    masks: &[mask("PERF_OB_HANDLE", 0x8000_0040)],
    keyword: "Handle",
    xperf: "OB_HANDLE",
    stacks: &[
        stack("HandleCreate", OBJECT, 32),
        HANDLE_CLOSE,
        stack("HandleDuplicate", OBJECT, 34),
    ],
};

/// The event whose stacks `--drop-close-stacks` leaves out.
pub const HANDLE_CLOSE: StackEvent = stack("HandleClose", OBJECT, 33);

/// Objects created and deleted, and every change of their reference counts.
pub static REFERENCES: Family = Family {
    masks: &[mask("PERF_OB_OBJECT", 0x8000_0080)],
    keyword: "Object",
    xperf: "OB_OBJECT",
    stacks: &[
        stack("ObjectCreate", OBJECT, 48),
        stack("ObjectDelete", OBJECT, 49),
        stack("ObjectReference", OBJECT, 50),
        OBJECT_DEREFERENCE,
    ],
};

/// Known to xperf, but not used in any WPR profile that was found (learn, `Stack`; MSO; ETWAnalyzer,
/// `DumpObjectRefCommand.md`, which lists it for xperf and leaves it out for WPR).
pub const OBJECT_DEREFERENCE: StackEvent = stack("ObjectDeReference", OBJECT, 51);

/// Views of files mapped and unmapped.
pub static MAPPINGS: Family = Family {
    masks: &[mask("EVENT_TRACE_FLAG_VAMAP", 0x8000)],
    keyword: "VAMap",
    xperf: "VAMAP",
    stacks: &[stack("MapFile", FILE_IO, 37), stack("UnMapFile", FILE_IO, 38)],
};

/// Memory committed, reserved and released.
pub static VIRTUAL_ALLOC: Family = Family {
    masks: &[mask("EVENT_TRACE_FLAG_VIRTUAL_ALLOC", 0x4000)],
    keyword: "VirtualAllocation",
    xperf: "VIRT_ALLOC",
    stacks: &[
        StackEvent { xperf: "VirtualAlloc", ..stack("VirtualAllocation", PAGE_FAULT, 98) },
        stack("VirtualFree", PAGE_FAULT, 99),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_written_as_everywhere() {
        assert_eq!(OBJECT.to_string(), "89497f50-effe-4440-8cf2-ce6b1cdcaca7");
        assert_eq!(FILE_IO.to_string(), "90cbdc39-4a3e-11d1-84f4-0000f80464e3");
        assert_eq!(PAGE_FAULT.to_string(), "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c");
    }

    #[test]
    fn the_upper_three_bits_of_a_mask_are_its_index() {
        for (family, index, bits) in
            [(&HANDLES, 4, 0x40), (&REFERENCES, 4, 0x80), (&IMAGES, 0, 4), (&MAPPINGS, 0, 0x8000)]
        {
            let masks: Vec<_> = family.masks.iter().map(|m| (m.index(), m.bits())).collect();
            assert_eq!(masks, [(index, bits)], "{}", family.keyword);
        }
    }
}
