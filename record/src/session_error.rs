//! Why Windows does not start a session, or loses it.

use thiserror::Error;

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
    /// No session more.
    #[error(
        "Windows has no place for another session; logman query -ets lists those that could be stopped"
    )]
    TooMany,
    /// Anything else.
    #[error("{call} failed with {code:#x}; xperf and wpr may record here, see handlescope wprp")]
    Failed {
        /// The function of Windows.
        call: &'static str,
        /// What it returned: a system error code, or an NTSTATUS.
        code: u32,
    },
}

impl SessionError {
    /// What a system error code of a call means; 0 is none.
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
