//! `.help`, drawn from the registry.

use std::io::Write;

use comfy_table::{Cell, Color, ColumnConstraint, Table};
use nu_ansi_term::Style;

use crate::{
    command::ParseError,
    error::CommandError,
    registry::{self, COMMANDS, CommandSpec, KINDS, KindSpec, OptionSpec, ValueKind, suggest},
    screen::Screen,
    table,
};

/// Prints the list of commands, or what is known about one command, kind or option.
///
/// # Errors
/// When there is no such topic, or `out` cannot be written.
pub fn help(words: &[String], out: &mut dyn Write, screen: Screen) -> Result<(), CommandError> {
    let page = Page { out, screen };
    match topic(words)? {
        Topic::Everything => page.everything(),
        Topic::Command(command) => page.command(command),
        Topic::Kind(kind) => page.kind(kind),
        Topic::Option(option) => page.option(option),
    }
}

enum Topic {
    Everything,
    Command(&'static CommandSpec),
    Kind(&'static KindSpec),
    Option(&'static dyn OptionSpec),
}

/// Finds what the words are about: `.dump` in front of a kind, and a kind in front of an option,
/// may be there or not.
fn topic(words: &[String]) -> Result<Topic, ParseError> {
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
        _ => command_named(words).map(Topic::Command).ok_or_else(unknown),
    }
}

/// A command, whose dot may be missing.
fn command_named(words: &[String]) -> Option<&'static CommandSpec> {
    let [name] = words else { return None };
    registry::command(name).or_else(|| registry::command(&format!(".{name}")))
}

fn unknown_topic(topic: &str) -> ParseError {
    let names = COMMANDS
        .iter()
        .flat_map(|command| command.names.iter().copied())
        .chain(KINDS.iter().map(|kind| kind.name));
    let hint = suggest::nearest(topic, names)
        .map_or_else(|| "; .help lists what there is".to_owned(), suggest::did_you_mean);
    ParseError::UnknownTopic { topic: topic.to_owned(), hint }
}

struct Page<'a> {
    out: &'a mut dyn Write,
    screen: Screen,
}

impl Page<'_> {
    fn everything(mut self) -> Result<(), CommandError> {
        let mut group = "";
        let mut rows: Vec<[String; 2]> = Vec::new();
        for command in COMMANDS {
            if command.group != group {
                self.rows(&std::mem::take(&mut rows))?;
                group = command.group;
                self.heading(group)?;
            }
            rows.push([join(command.name(), command.usage), command.summary.into()]);
            if command.arguments == registry::Arguments::Kind {
                let kinds =
                    KINDS.iter().map(|kind| [format!("  {}", kind.name), kind.summary.into()]);
                rows.extend(kinds);
            }
        }
        self.rows(&rows)?;
        writeln!(
            self.out,
            "\n.help TOPIC tells more about a command, a kind or an option: .help ObjectRef"
        )?;
        Ok(())
    }

    fn command(mut self, command: &CommandSpec) -> Result<(), CommandError> {
        writeln!(self.out, "{}", self.bold(join(command.name(), command.usage)))?;
        self.paragraph(command.summary)?;
        if command.names.len() > 1 {
            let others = command.names.get(1..).unwrap_or_default().join(", ");
            self.paragraph(&format!("Also called {others}."))?;
        }
        writeln!(self.out)?;
        self.paragraph(command.details)?;
        if command.arguments == registry::Arguments::Kind {
            self.heading("Kinds")?;
            let kinds: Vec<_> =
                KINDS.iter().map(|kind| [kind.name.to_owned(), kind.summary.to_owned()]).collect();
            self.rows(&kinds)?;
        }
        self.heading("Examples")?;
        for example in command.examples {
            writeln!(self.out, "  {example}")?;
        }
        Ok(())
    }

    fn kind(mut self, kind: &KindSpec) -> Result<(), CommandError> {
        writeln!(self.out, "{}", self.bold(format!(".dump {} [OPTION…]", kind.name)))?;
        self.paragraph(kind.summary)?;
        self.paragraph(kind.details)?;
        let groups = (kind.groups)();
        let usages = groups.iter().flat_map(|group| &group.options).map(|option| option.usage());
        let width = usages.map(|usage| usage.chars().count()).max().unwrap_or_default();
        for group in &groups {
            self.heading(group.title)?;
            let rows = group.options.iter().map(|o| [o.usage(), o.doc().help.to_owned()]);
            self.aligned(&rows.collect::<Vec<_>>(), width)?;
        }
        if kind.options().iter().any(|option| takes_filter(&option.value())) {
            self.heading("Filters")?;
            self.paragraph(
                "a;b matches a or b, !c excludes c, * stands for any characters, ? for one. Case \
                 does not matter. A process is a name (.exe may be missing) or a pid.",
            )?;
        }
        self.heading("Examples")?;
        for example in kind.examples {
            writeln!(self.out, "  {}", self.dim(example.goal))?;
            writeln!(self.out, "    {}", example.line)?;
        }
        if let Some(option) = kind.options().first() {
            let name = option.name();
            writeln!(self.out, "\n.help {} {name} tells more about an option.", kind.name)?;
        }
        Ok(())
    }

    fn option(mut self, option: &dyn OptionSpec) -> Result<(), CommandError> {
        writeln!(self.out, "{}", self.bold(option.usage()))?;
        self.paragraph(option.doc().help)?;
        if let ValueKind::Choice(words) = option.value() {
            let words: Vec<_> =
                words.iter().map(|(word, help)| [(*word).to_owned(), (*help).to_owned()]).collect();
            self.rows(&words)?;
        }
        writeln!(self.out)?;
        self.paragraph(option.doc().details)?;
        self.heading("Example")?;
        writeln!(self.out, "  {}", option.doc().example)?;
        Ok(())
    }

    fn heading(&mut self, title: &str) -> Result<(), CommandError> {
        writeln!(self.out, "\n{}", self.bold(title))?;
        Ok(())
    }

    fn paragraph(&mut self, text: &str) -> Result<(), CommandError> {
        let mut table = table::columns(self.screen, [[text]]);
        pad(&mut table, 0, (0, 0));
        write!(self.out, "{}", table::text(&table))?;
        Ok(())
    }

    fn rows(&mut self, rows: &[[String; 2]]) -> Result<(), CommandError> {
        let widths = COMMANDS.iter().map(|c| join(c.name(), c.usage).chars().count());
        self.aligned(rows, widths.max().unwrap_or_default())
    }

    /// Two columns, the first at least so wide that several such tables are aligned.
    fn aligned(&mut self, rows: &[[String; 2]], width: usize) -> Result<(), CommandError> {
        if rows.is_empty() {
            return Ok(());
        }
        let cells =
            rows.iter().map(|[name, text]| [Cell::new(name).fg(Color::Cyan), Cell::new(text)]);
        let mut table = table::columns(self.screen, cells);
        pad(&mut table, 0, (2, 2));
        pad(&mut table, 1, (0, 0));
        if let Some(column) = table.column_mut(0) {
            let width = u16::try_from(width + 4).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(comfy_table::Width::Fixed(width)));
        }
        write!(self.out, "{}", table::text(&table))?;
        Ok(())
    }

    fn bold<T: std::fmt::Display>(&self, text: T) -> impl std::fmt::Display + use<T> {
        self.screen.paint(Style::new().bold(), text)
    }

    fn dim<T: std::fmt::Display>(&self, text: T) -> impl std::fmt::Display + use<T> {
        self.screen.paint(Style::new().dimmed(), text)
    }
}

fn pad(table: &mut Table, column: usize, padding: (u16, u16)) {
    if let Some(column) = table.column_mut(column) {
        column.set_padding(padding);
    }
}

fn takes_filter(value: &ValueKind) -> bool {
    matches!(value, ValueKind::Filter(_) | ValueKind::Processes)
}

fn join(name: &str, usage: &str) -> String {
    format!("{name} {usage}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &[&str], screen: Screen) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut out = Vec::new();
        help(&words, &mut out, screen).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        String::from_utf8(out).expect("text")
    }

    const NARROW: Screen = Screen { width: Some(80), color: false };

    #[test]
    fn the_list_names_every_command_and_kind() {
        let page = page(&[], Screen::PLAIN);
        for name in COMMANDS.iter().map(CommandSpec::name).chain(KINDS.iter().map(|k| k.name)) {
            assert!(page.contains(name), "{name}");
        }
    }

    #[test]
    fn a_kind_is_found_with_and_without_the_command() {
        let short = page(&["objectref"], NARROW);
        assert_eq!(short, page(&[".dump", "ObjectRef"], NARROW));
        for option in registry::kind("ObjectRef").expect("a kind").options() {
            for name in option.doc().names {
                assert!(short.contains(name), "{name}");
            }
        }
    }

    #[test]
    fn no_page_is_wider_than_the_terminal_and_none_is_colored_unasked() {
        let topics = COMMANDS.iter().map(CommandSpec::name).chain(KINDS.iter().map(|k| k.name));
        for topic in topics {
            let page = page(&[topic], NARROW);
            assert!(!page.contains('\u{1b}'), "{topic}");
            for line in
                page.lines().filter(|line| !line.contains(".dump ") && !line.contains("srv*"))
            {
                assert!(line.chars().count() <= 80, "{topic}: {line}");
            }
        }
    }

    #[test]
    fn a_pipe_gets_a_line_for_each_option() {
        let page = page(&["ObjectRef"], Screen::PLAIN);
        let line = page.lines().find(|line| line.contains("-ShowTotal Total")).expect("a line");
        assert!(line.ends_with("instead of listing objects"), "{line}");
    }

    #[test]
    fn an_option_is_explained_alone_or_behind_its_kind() {
        let text = page(&["-showtotal"], Screen::PLAIN);
        assert!(text.contains("open handles by process"));
        assert_eq!(text, page(&[".dump", "ObjectRef", "-ShowTotal"], Screen::PLAIN));
    }

    #[test]
    fn an_unknown_topic_names_the_nearest() {
        let error = help(&["objectreff".into()], &mut Vec::new(), Screen::PLAIN).expect_err("none");
        assert_eq!(error.to_string(), "there is no help on 'objectreff', did you mean ObjectRef?");
    }
}
