//! `.alias`

use handlescope_model::Untrusted;

use super::shared::groups;
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_session::grammar::value::{TEXT, ValueKind};
use handlescope_session::grammar::{
    Arguments, Example, Opt, OptionGroup, ParseError, definition, split, to,
};
use handlescope_session::settings::{AliasError, ConfigEntry};
use handlescope_session::terminal::table;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AliasArgs {
    /// The alias to show or define; `None` for all.
    name: Option<String>,
    /// The command line to store under this name.
    line: Option<String>,
    /// `-Remove`: the alias to remove.
    remove: Option<String>,
}

pub struct Alias;

impl Command for Alias {
    type Args = AliasArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".alias"],
        group: groups::SESSION,
        usage: "[NAME [= COMMAND]]",
        arguments: Arguments::Alias,
        summary: "list aliases, or define one",
        details: "An alias is used like a command, with a dot in front: .leaks -pn x. The rest of \
             the line is appended to COMMAND. Aliases are kept in the configuration file (.config \
             shows where), may use other aliases, and cannot have the name of a command.",
        examples: &Example::lines([
            ".alias leaks = .dump ObjectRef -Leak -ShowTotal Process",
            ".alias leaks",
            ".alias -Remove leaks",
            ".alias",
        ]),
    };
    const OPTIONS: &'static [OptionGroup<AliasArgs>] = &[OptionGroup {
        title: "Options",
        options: &[Opt {
            names: &["-Remove"],
            help: "remove an alias, also from the configuration file",
            details: "Aliases that use it fail until they are changed.",
            example: "-Remove leaks",
            take: to(&(ValueKind { placeholder: "NAME", ..TEXT }, |args, text| {
                args.remove = Some(text);
            })),
        }],
    }];

    fn parse(entered: &EnteredLine<'_>) -> Result<AliasArgs, ParseError> {
        let text = entered.tokens.first().and_then(|first| entered.line.get(first.span.start..));
        if let Some((name, line)) = text.and_then(definition) {
            let mut aliases = entered.aliases.clone();
            let is_command = |word: &str| entered.registry.command(word).is_some();
            let name = aliases.define(name, line, is_command).map_err(ParseError::refused)?;
            let expanded = aliases.expand(line).map_err(ParseError::refused)?;
            let first = split(&expanded).into_iter().next().map(|first| first.text);
            let first = first.unwrap_or_default();
            if !is_command(&first) {
                return Err(entered.registry.unknown_command(&first, &aliases));
            }
            let (name, line) = (Some(name), Some(line.to_owned()));
            return Ok(AliasArgs { name, line, remove: None });
        }
        let (args, words) = entered.options_and_words(Self::OPTIONS)?;
        let takes = "NAME = COMMAND, one alias, or -Remove NAME";
        match (entered.at_most_one(&words, takes)?, words.first()) {
            (Some(_), Some(word)) if args.remove.is_some() => Err(entered.too_many(takes, word)),
            (name, _) => Ok(AliasArgs { name, ..args }),
        }
    }

    fn run(args: AliasArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, messages, out, screen, .. } = context;
        let settings = &mut session.settings;
        match args {
            AliasArgs { remove: Some(name), .. } => {
                let mut aliases = settings.aliases.clone();
                let name = aliases.remove(&name)?;
                let path = settings.file.write(ConfigEntry::Alias(&name, None))?;
                messages.note(format_args!("{}: removed the alias .{name}", Untrusted(path)));
                settings.aliases = aliases;
            }
            AliasArgs { name: Some(name), line: Some(line), .. } => {
                let path = settings.file.write(ConfigEntry::Alias(&name, Some(&line)))?;
                messages.note(format_args!("{}: .{name} is {}", Untrusted(path), Untrusted(&line)));
                // The parser has already rejected names of commands.
                settings.aliases.define(&name, &line, |_| false)?;
            }
            AliasArgs { name: Some(name), .. } => {
                let alias = settings.aliases.get(&name);
                let (_, line) = alias.ok_or(AliasError::Missing { name })?;
                writeln!(out, "{}", Untrusted(line))?;
            }
            AliasArgs { .. } if settings.aliases.iter().next().is_none() => {
                writeln!(out, "No alias is defined; .alias NAME = COMMAND defines one.")?;
            }
            AliasArgs { .. } => {
                let mut rows = table::table(*screen, &["Alias", "Command"]);
                let aliases = settings.aliases.dotted();
                rows.add_rows(aliases.map(|(name, line)| [name, Untrusted(line).to_string()]));
                write!(out, "{}", table::text(rows))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::{args, error};

    fn definition(name: &str, line: &str) -> AliasArgs {
        AliasArgs { name: Some(name.into()), line: Some(line.into()), remove: None }
    }

    #[test]
    fn everything_after_the_equals_sign_belongs_to_the_alias() {
        for (line, expected) in [
            (".alias leaks = .dump ObjectRef -Leak", definition("leaks", ".dump ObjectRef -Leak")),
            (".alias .a=.dump Stats > a.txt", definition("a", ".dump Stats > a.txt")),
            (".alias h = .dump ObjectRef -help", definition("h", ".dump ObjectRef -help")),
            (".alias e = .sql SELECT a = b", definition("e", ".sql SELECT a = b")),
            (".alias r = .load -Remove x", definition("r", ".load -Remove x")),
            (".alias a > b.txt", AliasArgs { name: Some("a".into()), ..AliasArgs::default() }),
            (".alias -Remove a", AliasArgs { remove: Some("a".into()), ..AliasArgs::default() }),
            (".alias", AliasArgs::default()),
        ] {
            assert_eq!(args::<AliasArgs>(line), expected, "{line}");
        }
    }

    #[test]
    fn a_wrong_alias_is_refused_at_once() {
        for (line, expected) in [
            (".alias list = .dump Stats", ".list is a command; choose another name for the alias"),
            (".alias a = .dmup Stats", "unknown command .dmup, did you mean .dump?"),
            (".alias a = dump Stats", "must be one line that starts with a command"),
            (".alias a =", "must be one line that starts with a command"),
            (".alias a = .a", "refers to itself: .a → .a"),
            (".alias a b", "unexpected 'b'"),
            (".alias -Remove a b", "unexpected 'b'"),
        ] {
            let error = error(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
