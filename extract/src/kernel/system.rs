//! System facts (classic events of KernelTraceControl, inserted by the merge of a trace).

use super::Payload;
use crate::etl::Event;

/// Where an NT path prefix lies in the DOS name space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPrefix {
    /// NT prefix, as in `\Device\HarddiskVolume3\`.
    pub nt: String,
    /// DOS prefix, as in `C:\`; can be empty.
    pub dos: String,
}

/// A fact about the recording system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemFact {
    /// Build string and product name.
    Build {
        /// As in 7601.17640.amd64fre.win7sp1_gdr.110622-1506.
        build: String,
        /// As in Windows 8 Pro.
        product: String,
    },
    /// A path prefix.
    Path(PathPrefix),
}

impl SystemFact {
    /// Decodes opcodes 32 and 35; the others are not needed.
    pub fn decode(event: &Event<'_>, opcode: u8) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        match opcode {
            32 => {
                p.u64()?;
                Some(Self::Build { build: p.utf16(), product: p.utf16() })
            }
            35 => Some(Self::Path(PathPrefix { nt: p.utf16(), dos: p.utf16() })),
            _ => None,
        }
    }
}
