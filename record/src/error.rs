//! Errors of configuring, starting, losing and merging a session, and the limits set by Windows.

use std::io;

use thiserror::Error;

/// An invalid value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// More object types than the kernel's filter has room for.
    #[error(
        "too many object types ({count}): the kernel's filter takes at most {MAX_TYPES}; name the ones that \
         leak, or none for all"
    )]
    TooManyTypes { count: usize },
    /// Nothing between two `;`.
    #[error("an object type is empty; separate the types with ;, as in Event;File")]
    EmptyType,
    /// A name that no Windows object type can have.
    #[error(
        "{name:?} is not an object type: their names consist of ASCII letters, as in Event;File"
    )]
    TypeNotAscii { name: String },
    /// A buffer that is too small, too large, or not a whole number of KiB.
    #[error("a buffer must have {MIN_KIB} to {MAX_KIB} KiB, in whole KiB, not {bytes} bytes")]
    BufferSize { bytes: u64 },
    /// Too few buffers.
    #[error(
        "there must be at least {MIN_BUFFERS} buffers, not {count}: one is written while another fills"
    )]
    BufferCount { count: u32 },
}

/// Reasons why Windows did not merge a trace.
#[derive(Debug, Error)]
pub enum MergeError {
    /// The merging library is not installed.
    #[error("{library} of the Windows Performance Toolkit is not installed")]
    NoLibrary { library: &'static str },
    /// The library is not the expected one.
    #[error("{library} has no CreateMergedTraceFile")]
    NoFunction { library: &'static str },
    /// The library returned a Windows error code.
    #[error("CreateMergedTraceFile failed with {code:#x}")]
    Failed { code: u32 },
    /// The trace cannot be replaced, for the reason given by the source.
    #[error("the trace cannot be replaced by the merged one")]
    Replace(#[from] io::Error),
}

/// Number of object types that the kernel's filter takes (etwcontroller).
pub const MAX_TYPES: usize = 4;

/// Limits of a buffer's size in KiB (learn, `EVENT_TRACE_PROPERTIES`). Before Windows 8 the maximum is 1024.
pub const MIN_KIB: u32 = 4;
pub const MAX_KIB: u32 = 16384;

/// Windows uses at least two buffers per processor (learn, `EVENT_TRACE_PROPERTIES`), however few are requested.
pub const MIN_BUFFERS: u32 = 2;

/// learn, `System Error Codes`.
const ACCESS_DENIED: u32 = 5;
const ALREADY_EXISTS: u32 = 183;
const NO_SYSTEM_RESOURCES: u32 = 1450;

/// A call that Windows refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SessionError {
    #[error("needs Windows, and this is {system}")]
    NotWindows {
        /// The system, as Rust calls it.
        system: &'static str,
    },
    /// The user is not an administrator.
    #[error(
        "Windows records handles for administrators only; open the prompt with \"Run as administrator\""
    )]
    NotElevated,
    /// Another tool uses the kernel logger.
    #[error(
        "another tool uses the session \"NT Kernel Logger\"; end that, or stop the session: \
         logman stop \"NT Kernel Logger\" -ets"
    )]
    Active,
    /// The maximum number of sessions is reached.
    #[error("Windows has reached its limit of sessions; stop one that logman query -ets lists")]
    TooMany,
    /// Any other error.
    #[error("{call} failed with {code:#x}; xperf and wpr may record here, see handlescope wprp")]
    Failed {
        /// The Windows function.
        call: &'static str,
        /// The returned code: a system error code or an NTSTATUS.
        code: u32,
    },
}

impl SessionError {
    /// Converts a call's system error code; 0 means success.
    ///
    /// # Errors
    /// The error that the code stands for.
    pub fn check(call: &'static str, code: u32) -> Result<(), SessionError> {
        Err(match code {
            0 => return Ok(()),
            ACCESS_DENIED => SessionError::NotElevated,
            ALREADY_EXISTS => SessionError::Active,
            NO_SYSTEM_RESOURCES => SessionError::TooMany,
            code => SessionError::Failed { call, code },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_have_a_remedy_say_it() {
        assert_eq!(SessionError::check("StartTraceW", 0), Ok(()));
        for (code, remedy) in [
            (5, "Run as administrator"),
            (183, "logman stop \"NT Kernel Logger\" -ets"),
            (1450, "logman query -ets"),
            (87, "StartTraceW failed with 0x57"),
        ] {
            let error = SessionError::check("StartTraceW", code).expect_err("an error");
            assert!(error.to_string().contains(remedy), "{code}: {error}");
        }
    }
}
