//! A gate for CI: what fails it, and the formats of what is found.

use handlescope_query::{Suspect, Verdict, WhyAnswer};
use handlescope_session::grammar::value::{FAIL_ON, Value, WORD};
use handlescope_session::grammar::{Choices, Opt, ParseError, choice, to, words};
use handlescope_session::values::{FailOn, FindingFormat};

use super::Has;
use crate::SharedArgs;

/// `-FailOn` and `-Format`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gate {
    /// What fails it; nothing where there is no gate.
    pub fail_on: Vec<FailOn>,
    /// The format of what is found, in place of a table.
    pub format: Option<FindingFormat>,
}

impl Gate {
    /// Whether each suspect of a trace fails it.
    pub fn failures(&self, answer: &WhyAnswer<'_>) -> Vec<bool> {
        let fails = |suspect: &Suspect, on: &FailOn| match on {
            FailOn::Leak => true,
            FailOn::Steady => suspect.growth.verdict == Verdict::Steady,
            FailOn::Processes { processes, most } => {
                let is_of = |suspect: &&Suspect| {
                    let pids = suspect.processes.iter().map(|process| process.pid.unwrap_or(0));
                    pids.into_iter().any(|pid| processes.matches(suspect.program(), pid))
                };
                let all = answer.suspects.iter().filter(is_of);
                let all: u64 = all.map(|suspect| suspect.counts.unreleased()).sum();
                all > *most && is_of(&suspect)
            }
        };
        let suspects = answer.suspects.iter();
        suspects.map(|suspect| self.fail_on.iter().any(|on| fails(suspect, on))).collect()
    }
}

/// Refuses `-Format` beside another format.
///
/// # Errors
/// When both are given.
pub fn no_other_format(gate: &Gate, shared: &SharedArgs) -> Result<(), ParseError> {
    match (gate.format, shared.output.formats.first()) {
        (Some(_), Some(_)) => Err(ParseError::Conflict {
            option: "-Format",
            other: "another format",
            reason: "an answer has one format",
        }),
        _ => Ok(()),
    }
}

const FORMATS: &Choices<FindingFormat> = &[
    ("junit", "XML that CI servers show as tests", FindingFormat::JUnit),
    ("sarif", "SARIF 2.1.0 for code scanning", FindingFormat::Sarif),
    ("github", "annotations of GitHub Actions", FindingFormat::GitHub),
    ("markdown", "text for a ticket", FindingFormat::Markdown),
];

/// The names of `-Format`.
pub const FORMAT: &[&str] = &["-Format", "--format"];

/// The names of `-FailOn`.
pub const FAIL: &[&str] = &["-FailOn", "--fail-on"];

pub const fn fail_on_option<A: Has<Gate>>() -> Opt<A> {
    Opt {
        names: FAIL,
        help: "status 1 if anything leaks, leaks steadily, or a program leaks more than N",
        details: "leak: any suspect. steady: a steady leak. leaky.exe:0: processes with this name or pid \
             leak more than that many handles and allocations, those that only process exit closed included. Without \
             handle events the status is 2. The option may be given several times.",
        example: "-FailOn steady",
        take: to(&(FAIL_ON, |args, on| args.part().fail_on.push(on))),
    }
}

pub const fn format_option<A: Has<Gate>>() -> Opt<A> {
    Opt {
        names: FORMAT,
        help: "write findings for CI and tickets: junit, sarif, github or markdown",
        details: "With source lines. Of a comparison, what got worse in the second trace. What fails \
             -FailOn is a failure or an error, the rest a warning.",
        example: "-Format markdown",
        take: to(&(Value { words: || words(FORMATS), ..WORD }, |args, index| {
            args.part().format = choice(FORMATS, index);
        })),
    }
}
