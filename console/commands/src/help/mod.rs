//! `.help`, generated from the registry.

mod page;

use std::fmt;

use handlescope_model::Untrusted;
use thiserror::Error;

use self::page::HelpPage;
use super::call::invocation;
use super::shared::groups;
use super::syntax::Syntax;
use super::topics::TopicSpec;
use super::{
    AnyCommand, Command, CommandError, Context, EnteredLine, Invocation, Registry, Signature,
};
use handlescope_session::grammar::{Arguments, Example, OptionSpec, ParseError};
use handlescope_session::settings::Aliases;
use handlescope_session::suggest;

/// The topic to explain, its registry, and where the page is read.
#[derive(Default)]
pub struct HelpArgs(Option<(Topic, Registry, Syntax)>);

/// Returns the page on a topic, for users of a shell.
///
/// # Errors
/// If there is no such topic.
pub fn help_in_shell(words: &[String], registry: Registry) -> Result<Invocation, ParseError> {
    let topic = topic(words, registry, Aliases::NONE)?;
    Ok(invocation::<Help>(HelpArgs(Some((topic, registry, Syntax::Shell)))))
}

/// Returns the usage of a command as a shell command line.
pub fn shell_usage(command: &dyn AnyCommand) -> String {
    Syntax::Shell.usage(&command.usage())
}

/// Returns the examples of a command as shell command lines, under their heading.
pub fn shell_examples(command: &dyn AnyCommand) -> String {
    let lines = command
        .signature()
        .examples
        .iter()
        .map(|example| format!("\n  {}", Syntax::Shell.line(example.line)));
    std::iter::once("Examples:".to_owned()).chain(lines).collect()
}

pub struct Help;

impl Command for Help {
    type Args = HelpArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".help", "help", "?", ".?"],
        group: groups::SESSION,
        usage: "[TOPIC]",
        arguments: Arguments::Topic,
        summary: "list commands, or explain one",
        details: "TOPIC is a command, a kind of .dump, an option, an alias, or a word that .why prints, such as \
             steady or race.",
        examples: &Example::lines([
            ".help",
            ".help ObjectRef",
            ".help ObjectRef -Leak",
            ".help .load",
        ]),
    };

    fn parse(entered: &EnteredLine<'_>) -> Result<HelpArgs, ParseError> {
        if let Some(word) = entered.tokens.get(3) {
            return Err(entered.too_many("a command, a kind of .dump or an option", word));
        }
        let topic = topic(&entered.texts(), entered.registry, entered.aliases)?;
        Ok(HelpArgs(Some((topic, entered.registry, Syntax::Prompt))))
    }

    fn run(args: HelpArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let HelpArgs(Some((topic, registry, syntax))) = args else { return Ok(()) };
        let aliases = &context.session.settings.aliases;
        write(topic, aliases, HelpPage::new(context.out, context.screen, registry, syntax))
    }
}

fn write(topic: Topic, aliases: &Aliases, page: HelpPage<'_>) -> Result<(), CommandError> {
    match topic {
        Topic::Everything => page.everything(aliases),
        Topic::Command(command) => page.command(command),
        Topic::Kind(kind) => page.kind(kind),
        Topic::Option(option) => page.option(option),
        Topic::Other(topic) => page.topic(topic),
        Topic::Term(topic, term) => page.term(topic, term),
        Topic::Alias { name, line } => page.alias(&name, &line),
    }
}

impl fmt::Debug for HelpArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.as_ref().map(|(topic, ..)| match topic {
            Topic::Alias { name, .. } => name,
            Topic::Everything => "everything",
            Topic::Command(command) => command.name(),
            Topic::Kind(kind) => kind.name(),
            Topic::Option(option) => option.name(),
            Topic::Other(topic) => topic.name,
            Topic::Term(_, term) => term,
        });
        write!(f, "help on {}", name.unwrap_or_default())
    }
}

enum Topic {
    Everything,
    Command(&'static dyn AnyCommand),
    Kind(&'static dyn AnyCommand),
    Option(&'static dyn OptionSpec),
    Other(&'static TopicSpec),
    /// One row of a topic.
    Term(&'static TopicSpec, &'static str),
    Alias {
        name: String,
        line: String,
    },
}

/// A topic without a page.
#[derive(Debug, Error)]
#[error("no help on '{}'{hint}{help}", Untrusted(.topic))]
struct UnknownTopic {
    topic: String,
    /// The nearest topic, or how to list them.
    hint: String,
    /// The help line of the nearest option on its own line; may be empty.
    help: String,
}

/// Finds the topic that the words name. `.dump` before a kind and a kind before an option are optional.
fn topic(words: &[String], registry: Registry, aliases: &Aliases) -> Result<Topic, ParseError> {
    if let [command, name] = words
        && let Some(option) = command_named(command, registry).and_then(|known| known.option(name))
    {
        return Ok(Topic::Option(option));
    }
    let words = match words {
        [first, rest @ ..] if !rest.is_empty() && registry.command(first).is_some() => rest,
        _ => words,
    };
    let (kind, option) = match words {
        [] => return Ok(Topic::Everything),
        [word] if word.starts_with('-') => (None, Some(word)),
        [kind] => (Some(kind), None),
        [kind, option, ..] => (Some(kind), Some(option)),
    };
    let unknown = || unknown_topic(&words.join(" "), registry, aliases);
    match (kind.map(|name| registry.kind(name)), option) {
        (Some(Some(kind)), None) => Ok(Topic::Kind(kind)),
        (Some(Some(kind)), Some(name)) => kind.option(name).map(Topic::Option).ok_or_else(unknown),
        (None, Some(name)) => option_named(name, registry).map(Topic::Option).ok_or_else(unknown),
        _ => {
            let [name] = words else { return Err(unknown()) };
            command_named(name, registry)
                .map(Topic::Command)
                .or_else(|| registry.topic(name).map(Topic::Other))
                .or_else(|| {
                    let (name, line) = aliases.get(name)?;
                    Some(Topic::Alias { name: format!(".{name}"), line: line.to_owned() })
                })
                .or_else(|| {
                    registry
                        .topics
                        .iter()
                        .find_map(|topic| Some(Topic::Term(topic, topic.term(name)?)))
                })
                .or_else(|| option_named(&format!("-{name}"), registry).map(Topic::Option))
                .ok_or_else(unknown)
        }
    }
}

/// Returns the first option with this name.
fn option_named(name: &str, registry: Registry) -> Option<&'static dyn OptionSpec> {
    registry.options().find(|option| option.is_named(name))
}

/// Finds a command; its dot may be missing.
fn command_named(name: &str, registry: Registry) -> Option<&'static dyn AnyCommand> {
    registry.command(name).or_else(|| registry.command(&format!(".{name}")))
}

fn unknown_topic(topic: &str, registry: Registry, aliases: &Aliases) -> ParseError {
    let options = registry
        .options()
        .filter(|option| option.has_effect())
        .flat_map(|option| option.doc().names)
        .copied();
    let option = suggest::nearest(topic, options).filter(|_| topic.starts_with('-'));
    let help = option.and_then(|name| option_named(name, registry));
    let help = help.map_or_else(String::new, |option| format!("\n  {}", option.help_line()));
    let names = registry
        .commands()
        .flat_map(|command| command.signature().names.iter().copied())
        .chain(registry.kinds().map(|kind| kind.name()))
        .chain(registry.topics.iter().map(|topic| topic.name))
        .chain(registry.topics.iter().flat_map(|topic| topic.terms().map(|term| -> &str { term })))
        .chain(aliases.iter().map(|(name, _)| name));
    let hint = option
        .or_else(|| suggest::nearest(topic, names))
        .map_or_else(|| "; .help lists what there is".to_owned(), suggest::did_you_mean);
    ParseError::refused(UnknownTopic { topic: topic.to_owned(), hint, help })
}

#[cfg(test)]
mod tests;
