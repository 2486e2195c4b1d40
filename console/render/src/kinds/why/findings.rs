//! Suspects as findings for other tools and for tickets.

use std::collections::HashSet;

use super::CommandOf;
use super::text::{first_lines, stacks_with_lines};
use crate::findings::{Findings, LeakFinding};
use crate::text::{
    StackStyle, callers, cause, growth, ignored_because, line_of_ignored, named_objects,
    shown_path, title, with_telling,
};
use handlescope_query::{Suspect, WhyAnswer};

/// Returns the suspects of each trace as findings. `failures` says which suspects of each trace fail a gate, and `rows`
/// which are kept; `None` keeps all.
pub fn why_findings(
    answers: &[WhyAnswer<'_>],
    failures: Option<&[Vec<bool>]>,
    rows: Option<&[HashSet<usize>]>,
    command: CommandOf<'_>,
) -> Vec<Findings> {
    let of_trace = |(trace, answer): (usize, &WhyAnswer<'_>)| {
        let (stacks, file) = (stacks_with_lines(answer), answer.file.about.index);
        let failures = failures.map(|failures| failures.get(trace));
        let is_failure = |place| {
            failures.is_none_or(|failures| failures.and_then(|it| it.get(place)) == Some(&true))
        };
        let rows = rows.and_then(|rows| rows.get(trace));
        let is_left = |place: &usize| rows.is_none_or(|rows| rows.contains(place));
        let left = answer.suspects.iter().enumerate().filter(|(place, _)| is_left(place));
        let list = left.map(|(place, suspect)| {
            let finding = finding(suspect, &stacks, command(file, suspect));
            LeakFinding { is_failure: is_failure(place), ..finding }
        });
        findings(answer, &answer.suspects, list.collect())
    };
    answers.iter().enumerate().map(of_trace).collect()
}

/// Returns one suspect of a trace as the only finding.
pub fn findings_of_suspect(
    answer: &WhyAnswer<'_>,
    suspect: &Suspect,
    stacks: &StackStyle<'_>,
    command: String,
) -> Findings {
    let list = vec![finding(suspect, stacks, command)];
    findings(answer, std::slice::from_ref(suspect), list)
}

/// Returns findings about some suspects of a trace.
fn findings(answer: &WhyAnswer<'_>, suspects: &[Suspect], list: Vec<LeakFinding>) -> Findings {
    let about = shown_path(answer.file.about.path);
    let mut headline = first_lines(answer, suspects);
    // If ignored suspects were asked for, all suspects are ignored ones.
    let has_others = suspects.iter().any(|suspect| suspect.ignored.is_none());
    headline.extend(line_of_ignored(answer.ignored.len(), "suspect").filter(|_| has_others));
    Findings { about, headline, list }
}

fn finding(suspect: &Suspect, stacks: &StackStyle<'_>, command: String) -> LeakFinding {
    let telling = with_telling(&suspect.diagnoses).filter(|(_, is_shown)| *is_shown);
    let causes = telling.map(|(diagnosis, _)| cause(stacks, diagnosis, suspect.program()));
    let finding = LeakFinding {
        rule: suspect.growth.verdict.word(),
        program: suspect.program().to_owned(),
        title: title(suspect),
        sentences: std::iter::once(growth(suspect))
            .chain(callers(suspect, false))
            .chain(named_objects(suspect, false))
            .chain(causes)
            .chain(suspect.ignored.as_ref().map(|entry| ignored_because(entry)))
            .collect(),
        command: Some(command),
        id: Some(suspect.id.text().to_owned()),
        ..LeakFinding::default()
    };
    finding.at(stacks.frames.as_ref(), suspect.create_stack)
}
