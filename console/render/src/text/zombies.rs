//! Lines about processes that have ended and are still in memory.

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::{StackStyle, counted};
use crate::kinds::stacks_with_lines;
use handlescope_query::{WhyAnswer, ZombieHolder, ZombieSummary};
use handlescope_session::values::CountedNoun;

/// Maximum number of programs and processes that a line names.
const NAMED: usize = 3;

/// Returns lines about processes that have ended and are still in memory, and about who keeps them there.
pub fn lines_of_zombies(answer: &WhyAnswer<'_>) -> Vec<String> {
    let all = hint_at_zombies(&answer.zombies);
    let holders = line_of_holders(&answer.zombies, &stacks_with_lines(answer));
    let lines = all.into_iter().chain(holders);
    lines.map(|line| Untrusted(&line).to_string()).collect()
}

/// Like [`line_of_zombies`], with the command that lists them.
pub fn hint_at_zombies(zombies: &ZombieSummary) -> Option<String> {
    let line = line_of_zombies(zombies)?;
    Some(format!("{line}; .dump Process -Zombie lists them"))
}

/// Describes how many zombies there are, and of which programs; `None` if there are none.
pub fn line_of_zombies(zombies: &ZombieSummary) -> Option<String> {
    let programs = zombies.programs.iter().map(|(name, count)| match name.as_str() {
        "" => format!("{} of unknown name", HumanCount(*count)),
        name => format!("{} {name}", HumanCount(*count)),
    });
    let programs = named(programs, "more program", ", ")?;
    Some(format!("{} still in memory: {programs}", ended(zombies.count)))
}

/// Describes who has handles to zombies, and where they were opened; `None` if no open handle to one is known.
fn line_of_holders(zombies: &ZombieSummary, stacks: &StackStyle<'_>) -> Option<String> {
    let holders = zombies.holders.iter().map(|holder| {
        let ZombieHolder { process, zombies, program, .. } = holder;
        let opened = holder
            .create_stack
            .map(|stack| stacks.calls(stack, program, Some(1)))
            .filter(|calls| !calls.is_empty());
        let opened = opened.map_or_else(String::new, |calls| format!(", opened by {calls}"));
        format!("{} of {process}{opened}", HumanCount(*zombies))
    });
    let separator =
        if zombies.holders.iter().any(|it| it.create_stack.is_some()) { "; " } else { ", " };
    let holders = named(holders, "more process", separator)?;
    Some(format!("{} kept in memory by open handles: {holders}", ended(zombies.held)))
}

fn ended(count: u64) -> String {
    format!("{} {}", CountedNoun(count, "ended process"), if count == 1 { "is" } else { "are" })
}

/// Lists the first texts, and counts the others with a noun.
fn named(
    mut texts: impl ExactSizeIterator<Item = String>,
    noun: &'static str,
    separator: &str,
) -> Option<String> {
    let mut first: Vec<String> = texts.by_ref().take(NAMED).collect();
    if let more @ 1.. = texts.len() {
        first.push(format!("and {}", counted(more as u64, noun)));
    }
    (!first.is_empty()).then(|| first.join(separator))
}
