//! A gate for CI: what makes it fail, and the formats of findings.

use handlescope_query::{Suspect, Verdict, WhyAnswer};
use handlescope_session::filter::ProcessFilter;
use handlescope_session::grammar::value::{FAIL_ON, ValueKind, WORD};
use handlescope_session::grammar::{Opt, ParseError, WordChoices, choice, to, words};
use handlescope_session::values::{FailOn, FindingFormat, Format};

use super::Has;
use crate::SharedArgs;

/// `-FailOn` and `-Format`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gate {
    /// What makes it fail; empty if there is no gate.
    pub fail_on: Vec<FailOn>,
    /// The format of findings; replaces the table.
    pub format: Option<FindingFormat>,
}

impl Gate {
    /// Returns for each suspect of a trace whether it fails the gate. Known leaks never do, and without a gate nothing
    /// does.
    pub fn failures(&self, answer: &WhyAnswer<'_>) -> Vec<bool> {
        let mut failures = vec![false; answer.suspects.len()];
        let is_known = |suspect: &Suspect| suspect.ignored.is_some();
        for on in &self.fail_on {
            let suspects = answer.suspects.iter();
            let fails: Vec<bool> = match on {
                FailOn::Leak => vec![true; suspects.len()],
                FailOn::Steady => {
                    suspects.map(|suspect| suspect.growth.verdict == Verdict::Steady).collect()
                }
                FailOn::Processes { processes, most } => {
                    let is_of = |of: &Suspect| !is_known(of) && is_of(of, processes);
                    let is_of: Vec<bool> = suspects.map(is_of).collect();
                    let all: u64 = answer
                        .suspects
                        .iter()
                        .zip(&is_of)
                        .filter(|(_, is_of)| **is_of)
                        .map(|(suspect, _)| suspect.counts.unreleased())
                        .sum();
                    is_of.into_iter().map(|is_of| is_of && all > *most).collect()
                }
            };
            failures.iter_mut().zip(fails).for_each(|(sum, fails)| *sum |= fails);
        }
        let known = answer.suspects.iter().map(is_known);
        failures.iter_mut().zip(known).for_each(|(fails, is_known)| *fails &= !is_known);
        failures
    }
}

/// Whether one of the suspect's processes matches.
fn is_of(suspect: &Suspect, processes: &ProcessFilter) -> bool {
    suspect
        .processes
        .iter()
        .map(|process| process.pid.unwrap_or_default())
        .any(|pid| processes.matches(suspect.program(), pid))
}

/// Rejects `-Format` together with another format.
///
/// # Errors
/// If both are given.
pub fn no_other_format(gate: &Gate, shared: &SharedArgs) -> Result<(), ParseError> {
    let Some(format) = gate.format else { return Ok(()) };
    // SARIF is JSON, and its files may be named so.
    let fits_file = |named: Format| {
        let is_json = matches!(named, Format::Json(_)) && shared.output.formats.is_empty();
        is_json && format == FindingFormat::Sarif
    };
    match shared.output.requested() {
        Some((spec, other)) if !fits_file(spec.format) => {
            let (option, reason) = ("-Format", "an answer has one format");
            Err(ParseError::Conflict { option, other, reason })
        }
        _ => Ok(()),
    }
}

const FORMATS: &WordChoices<FindingFormat> = &[
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
        details: "leak: any suspect. steady: a steady leak. leaky.exe:0: processes with this name \
                  or pid leak more than that many handles and allocations, including those closed \
                  only by process exit. Without handle events the status is 2. The option may be \
                  given several times.",
        example: "-FailOn steady",
        take: to(&(FAIL_ON, |args, on| args.part().fail_on.push(on))),
    }
}

pub const fn format_option<A: Has<Gate>>() -> Opt<A> {
    Opt {
        names: FORMAT,
        help: "write findings for CI and tickets: junit, sarif, github or markdown",
        details: "With source lines. Of a comparison, what got worse in the second trace. Findings \
                  that fail -FailOn are failures or errors, all others warnings.",
        example: "-Format markdown",
        take: to(&(ValueKind { words: || words(FORMATS), ..WORD }, |args, index| {
            args.part().format = choice(FORMATS, index);
        })),
    }
}
