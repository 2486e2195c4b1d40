//! `.help`, drawn from the registry.

mod page;

use std::io::Write;

use page::Page;

use crate::{
    command::ParseError,
    error::CommandError,
    registry::{
        self, COMMANDS, CommandSpec, KINDS, KindSpec, OptionSpec, TOPICS, TopicSpec, suggest,
    },
    screen::Screen,
};

/// Prints the list of commands, or what is known about one command, kind, option or topic.
///
/// # Errors
/// When there is no such topic, or `out` cannot be written.
pub fn help(words: &[String], out: &mut dyn Write, screen: Screen) -> Result<(), CommandError> {
    let page = Page::new(out, screen);
    match topic(words)? {
        Topic::Everything => page.everything(),
        Topic::Command(command) => page.command(command),
        Topic::Kind(kind) => page.kind(kind),
        Topic::Option(option) => page.option(option),
        Topic::Other(topic) => page.topic(topic),
    }
}

enum Topic {
    Everything,
    Command(&'static CommandSpec),
    Kind(&'static KindSpec),
    Option(&'static dyn OptionSpec),
    Other(&'static TopicSpec),
}

/// Finds what the words are about: `.dump` in front of a kind, and a kind in front of an option,
/// may be there or not.
fn topic(words: &[String]) -> Result<Topic, ParseError> {
    if let [command, name] = words
        && let Some(option) = registry::command(command).and_then(|command| command.option(name))
    {
        return Ok(Topic::Option(option));
    }
    let words = match words {
        [first, rest @ ..] if !rest.is_empty() && registry::command(first).is_some() => rest,
        _ => words,
    };
    let (kind, option) = match words {
        [] => return Ok(Topic::Everything),
        [word] if word.starts_with('-') => (None, Some(word)),
        [kind] => (Some(kind), None),
        [kind, option, ..] => (Some(kind), Some(option)),
    };
    let unknown = || unknown_topic(&words.join(" "));
    let found = kind.map(|name| registry::kind(name));
    match (found, option) {
        (Some(Some(kind)), None) => Ok(Topic::Kind(kind)),
        (Some(Some(kind)), Some(name)) => kind.option(name).map(Topic::Option).ok_or_else(unknown),
        (None, Some(name)) => {
            KINDS.iter().find_map(|kind| kind.option(name)).map(Topic::Option).ok_or_else(unknown)
        }
        _ => command_named(words)
            .map(Topic::Command)
            .or_else(|| other(words).map(Topic::Other))
            .ok_or_else(unknown),
    }
}

/// A command, whose dot may be missing.
fn command_named(words: &[String]) -> Option<&'static CommandSpec> {
    let [name] = words else { return None };
    registry::command(name).or_else(|| registry::command(&format!(".{name}")))
}

/// A topic that is none of these.
fn other(words: &[String]) -> Option<&'static TopicSpec> {
    let [name] = words else { return None };
    registry::topic(name)
}

fn unknown_topic(topic: &str) -> ParseError {
    let names = COMMANDS
        .iter()
        .flat_map(|command| command.names.iter().copied())
        .chain(KINDS.iter().map(|kind| kind.name))
        .chain(TOPICS.iter().map(|topic| topic.name));
    let hint = suggest::nearest(topic, names)
        .map_or_else(|| "; .help lists what there is".to_owned(), suggest::did_you_mean);
    ParseError::UnknownTopic { topic: topic.to_owned(), hint }
}

#[cfg(test)]
mod tests;
