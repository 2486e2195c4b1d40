//! Lines about processes that have ended and are still in memory.

use indicatif::HumanCount;

use super::StackStyle;
use handlescope_query::{ZombieHolder, ZombieSummary};

/// Maximum number of programs and processes that a line names.
const NAMED: usize = 3;

/// Describes how many zombies there are, and of which programs; `None` if there are none.
pub fn line_of_zombies(zombies: &ZombieSummary) -> Option<String> {
    let programs = zombies.programs.iter().map(|(name, count)| match name.as_str() {
        "" => format!("{} of unknown name", HumanCount(*count)),
        name => format!("{} {name}", HumanCount(*count)),
    });
    let programs = named(programs, "program")?;
    Some(format!("{} still in memory: {programs}", ended(zombies.count)))
}

/// Describes who has handles to zombies, and where they were opened; `None` if no open handle to one is known.
pub fn line_of_holders(zombies: &ZombieSummary, stacks: &StackStyle<'_>) -> Option<String> {
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
    let holders = named_with(holders, "process", separator)?;
    Some(format!("{} kept in memory by open handles: {holders}", ended(zombies.held)))
}

fn ended(count: u64) -> String {
    match count {
        1 => "1 ended process is".to_owned(),
        count => format!("{} ended processes are", HumanCount(count)),
    }
}

fn named(texts: impl ExactSizeIterator<Item = String>, noun: &str) -> Option<String> {
    named_with(texts, noun, ", ")
}

/// Lists the first texts, and counts the others.
fn named_with(
    mut texts: impl ExactSizeIterator<Item = String>,
    noun: &str,
    separator: &str,
) -> Option<String> {
    let mut first: Vec<String> = texts.by_ref().take(NAMED).collect();
    if let more @ 1.. = texts.len() {
        let plural = if more == 1 {
            ""
        } else if noun.ends_with('s') {
            "es"
        } else {
            "s"
        };
        first.push(format!("and {more} more {noun}{plural}"));
    }
    (!first.is_empty()).then(|| first.join(separator))
}
