//! Sessions that record the names of .NET methods beside the kernel's session.
//!
//! Keywords and levels are from learn, "CLR ETW Keywords and Levels" and "Method ETW Events": events with names have
//! the level verbose. A rundown lists the existing methods when its provider is enabled, so it comes at the end (learn,
//! "CLR ETW Providers").

use serde::{Serialize, Serializer};

use crate::family::Guid;

/// A provider and which of its events it logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provider {
    pub name: &'static str,
    pub guid: Guid,
    /// Logs events of this level and below.
    pub level: u8,
    /// Logs events with at least one of these keywords.
    pub keywords: Keywords,
}

/// Keyword bits and their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Keywords {
    /// All bits together.
    #[serde(serialize_with = "as_hex")]
    pub value: u64,
    /// The names of the bits that are set.
    pub names: &'static [&'static str],
}

/// When the session of a provider starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// With the recording.
    WithRecording,
    /// When the recording is about to end; the session lasts until no more events come.
    AtEnd,
}

/// A session of a provider, whose trace is merged into the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderSession {
    /// Logger name.
    pub logger: &'static str,
    /// File name, within a temporary folder.
    pub log_file: &'static str,
    pub begin: Begin,
    pub provider: Provider,
    /// `BufferSize`, KiB.
    pub buffer_kib: u32,
    /// `MinimumBuffers`
    pub minimum_buffers: u32,
    /// `MaximumBuffers`
    pub maximum_buffers: u32,
}

/// `LOG_VERBOSE`, the level of method events with names.
const VERBOSE: u8 = 5;

/// Buffers for a rundown, which logs as fast as it can.
const BUFFER_KIB: u32 = 1024;
const BUFFERS: u32 = 64;

static METHODS: ProviderSession = ProviderSession {
    logger: "handlescope .NET",
    log_file: "dotnet.etl",
    begin: Begin::WithRecording,
    provider: Provider {
        name: "Microsoft-Windows-DotNETRuntime",
        guid: Guid(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4),
        level: VERBOSE,
        keywords: Keywords { value: 0x18, names: &["Loader", "JIT"] },
    },
    buffer_kib: BUFFER_KIB,
    minimum_buffers: BUFFERS,
    maximum_buffers: BUFFERS,
};

/// Includes the methods of native images, because nothing else names them if there is no toolkit to make NGEN PDBs.
static RUNDOWN: ProviderSession = ProviderSession {
    logger: "handlescope .NET rundown",
    log_file: "rundown.etl",
    begin: Begin::AtEnd,
    provider: Provider {
        name: "Microsoft-Windows-DotNETRuntimeRundown",
        guid: Guid(0xa669021c_c450_4609_a035_5af59af4df18),
        level: VERBOSE,
        keywords: Keywords { value: 0x138, names: &["Loader", "JIT", "NGen", "EndRundown"] },
    },
    buffer_kib: BUFFER_KIB,
    minimum_buffers: BUFFERS,
    maximum_buffers: BUFFERS,
};

impl ProviderSession {
    /// Returns the sessions for .NET. A ring has only the last moments' events, so for a ring it is only the rundown.
    pub fn dot_net(is_ring: bool) -> impl Iterator<Item = &'static ProviderSession> {
        [&METHODS, &RUNDOWN]
            .into_iter()
            .filter(move |session| !is_ring || session.begin == Begin::AtEnd)
    }
}

fn as_hex<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{value:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// learn, "CLR ETW Keywords and Levels".
    fn value(name: &str) -> u64 {
        match name {
            "Loader" => 0x8,
            "JIT" => 0x10,
            "NGen" => 0x20,
            "EndRundown" => 0x100,
            _ => panic!("{name}"),
        }
    }

    #[test]
    fn keywords_are_those_of_their_names() {
        for session in [&METHODS, &RUNDOWN] {
            let Keywords { value: bits, names } = session.provider.keywords;
            assert_eq!(names.iter().fold(0, |bits, name| bits | value(name)), bits, "{names:?}");
        }
        assert_eq!(METHODS.provider.guid.to_string(), "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
        assert_eq!(RUNDOWN.provider.guid.to_string(), "a669021c-c450-4609-a035-5af59af4df18");
    }

    #[test]
    fn a_ring_has_the_rundown_only() {
        let begins = |is_ring| ProviderSession::dot_net(is_ring).map(|session| session.begin);
        assert!(begins(false).eq([Begin::WithRecording, Begin::AtEnd]));
        assert!(begins(true).eq([Begin::AtEnd]));
    }
}
