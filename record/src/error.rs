//! Errors of configuring, starting, losing and merging a session, and the limits set by Windows.

use std::io;

use thiserror::Error;

/// An invalid value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// More object types than the kernel's filter has places for.
    #[error(
        "too many object types ({count}): the kernel's filter takes at most {MAX_TYPES}; name those that leak, \
         or none for all"
    )]
    TooManyTypes { count: usize },
    /// Nothing between two `;`.
    #[error("an object type is empty; separate the types with ;, as in Event;File")]
    EmptyType,
    /// A name that no object type of Windows has.
    #[error(
        "{name:?} is not an object type: their names consist of ASCII letters, as in Event;File"
    )]
    TypeNotAscii { name: String },
    /// A buffer that is too small, too large, or no whole number of KiB.
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
    /// It is not the library it should be.
    #[error("{library} has no CreateMergedTraceFile")]
    NoFunction { library: &'static str },
    /// It returned an error code of Windows.
    #[error("CreateMergedTraceFile failed with {code:#x}")]
    Failed { code: u32 },
    /// The trace cannot be replaced; the reason is that of the source.
    #[error("the trace cannot be replaced by the merged one")]
    Replace(#[from] io::Error),
}

/// Places of the kernel's filter of object types (etwcontroller).
pub const MAX_TYPES: usize = 4;

/// The size of a buffer in KiB (learn, `EVENT_TRACE_PROPERTIES`); before Windows 8 the most is 1024.
pub const MIN_KIB: u32 = 4;
pub const MAX_KIB: u32 = 16384;

/// Windows takes two buffers for each processor (learn, `EVENT_TRACE_PROPERTIES`), however few are asked for.
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
    /// Not an administrator.
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
    #[error(
        "Windows has reached its limit of sessions; logman query -ets lists those that could be stopped"
    )]
    TooMany,
    /// Anything else.
    #[error("{call} failed with {code:#x}; xperf and wpr may record here, see handlescope wprp")]
    Failed {
        /// The function of Windows.
        call: &'static str,
        /// Returned code: a system error code, or an NTSTATUS.
        code: u32,
    },
}

impl SessionError {
    /// Converts the system error code of a call; 0 is success.
    ///
    /// # Errors
    /// The error, if it is one.
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
