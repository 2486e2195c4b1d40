//! When a CI gate fails, and the formats of its findings.

use super::ValueError;
use crate::filter::ProcessFilter;

/// When a gate fails.
#[derive(Debug, Clone, PartialEq)]
pub enum FailOn {
    /// Any suspect.
    Leak,
    /// A steady leak.
    Steady,
    /// More than `most` handles or allocations that these processes do not release.
    Processes { processes: ProcessFilter, most: u64 },
}

impl FailOn {
    /// Reads `leak`, `steady` or `leaky.exe:0`.
    ///
    /// # Errors
    /// For anything else.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        if text.eq_ignore_ascii_case("leak") {
            return Ok(Self::Leak);
        }
        if text.eq_ignore_ascii_case("steady") {
            return Ok(Self::Steady);
        }
        let refused = || ValueError::NoGate { value: text.to_owned() };
        let (processes, most) = text.rsplit_once(':').ok_or_else(refused)?;
        let processes = ProcessFilter::new(processes);
        let processes =
            processes.map_err(|error| ValueError::Filter { reason: error.to_string() })?;
        let most = most.parse().map_err(|_| ValueError::NotWhole { value: most.to_owned() })?;
        Ok(Self::Processes { processes, most })
    }
}

/// A format of findings for other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingFormat {
    JUnit,
    Sarif,
    GitHub,
    Markdown,
}
