use std::io::Write;

use comfy_table::{Cell, ColumnConstraint, Table};
use handlescope_model::Untrusted;

use crate::syntax::Syntax;
use crate::topics::TopicSpec;
use crate::{AnyCommand, CommandError, Registry};
use handlescope_session::grammar::{Arguments, Example, GroupView, OptionSpec};
use handlescope_session::settings::{Aliases, SettingKey};
use handlescope_session::terminal::theme::name_cell;
use handlescope_session::terminal::{Role, Screen, table, wrapped};
use handlescope_sql::Relation;

/// Writes a page.
pub struct HelpPage<'a> {
    out: &'a mut dyn Write,
    screen: Screen,
    registry: Registry,
    syntax: Syntax,
}

impl<'a> HelpPage<'a> {
    pub fn new(
        out: &'a mut dyn Write,
        screen: Screen,
        registry: Registry,
        syntax: Syntax,
    ) -> HelpPage<'a> {
        HelpPage { out, screen, registry, syntax }
    }

    pub fn everything(mut self, aliases: &Aliases) -> Result<(), CommandError> {
        let mut group = "";
        let mut rows: Vec<[String; 2]> = Vec::new();
        for command in self.registry.commands() {
            let signature = command.signature();
            if signature.group != group {
                self.rows(&std::mem::take(&mut rows))?;
                group = signature.group;
                self.heading(group)?;
            }
            rows.push([command.usage(), signature.summary.into()]);
            if matches!(signature.arguments, Arguments::Kind) {
                rows.extend(kinds(self.registry, "  "));
            }
        }
        self.rows(&rows)?;
        let aliases: Vec<_> = aliases.dotted().map(|(name, line)| [name, escape(line)]).collect();
        if !aliases.is_empty() {
            self.heading("Aliases")?;
            self.rows(&aliases)?;
        }
        self.heading("More")?;
        let topics = self
            .registry
            .topics
            .iter()
            .map(|topic| [format!(".help {}", topic.name), topic.summary.to_owned()]);
        let page = |topic: &str, text: &str| [format!(".help {topic}"), text.to_owned()];
        let pages = [
            page("ObjectRef", "a kind of .dump with its options and examples"),
            page(".load", "a command"),
            page("-Leak", "an option"),
        ];
        self.rows(&pages.into_iter().chain(topics).collect::<Vec<_>>())
    }

    pub fn command(mut self, command: &dyn AnyCommand) -> Result<(), CommandError> {
        let signature = command.signature();
        writeln!(self.out, "{}", self.bold(self.syntax.usage(&command.usage())))?;
        self.paragraph(signature.summary)?;
        if signature.names.len() > 1 {
            let aliases = signature.names.get(1..).unwrap_or_default().join(", ");
            self.paragraph(&format!("Also called {aliases}."))?;
        }
        writeln!(self.out)?;
        self.paragraph(signature.details)?;
        self.sources(signature.names)?;
        self.options(&command.groups())?;
        if matches!(signature.arguments, Arguments::Setting) {
            self.heading("Settings and where they come from, first source first")?;
            let rows = SettingKey::ALL.iter().map(|key| [key.name().to_owned(), key.sources()]);
            let width = SettingKey::ALL.iter().map(|key| key.name().len()).max();
            self.aligned(&rows.collect::<Vec<_>>(), width.unwrap_or_default())?;
        }
        if matches!(signature.arguments, Arguments::Kind) {
            self.heading("Kinds")?;
            self.rows(&kinds(self.registry, "").collect::<Vec<_>>())?;
        }
        if matches!(signature.arguments, Arguments::Sql) {
            self.heading("Tables and views; .schema NAME lists their columns")?;
            let relations = Relation::all();
            let rows =
                relations.map(|relation| [relation.name().to_owned(), relation.doc().to_owned()]);
            let width = Relation::all().map(|relation| relation.name().len()).max();
            self.aligned(&rows.collect::<Vec<_>>(), width.unwrap_or_default())?;
        }
        self.heading("Examples")?;
        for example in signature.examples {
            self.line(&format!("  {}", self.syntax.line(example.line)))?;
        }
        Ok(())
    }

    pub fn kind(mut self, kind: &dyn AnyCommand) -> Result<(), CommandError> {
        let signature = kind.signature();
        let title = self.syntax.usage(&format!(".dump {}", kind.usage()));
        self.title(&title, signature.summary)?;
        self.paragraph(signature.details)?;
        self.options(&kind.groups())?;
        self.heading("Examples")?;
        self.examples(signature.examples)?;
        let about_filters = if kind.options().iter().any(|option| option.value().is_filter()) {
            format!("; {}, about filters", self.syntax.line(".help filters"))
        } else {
            String::new()
        };
        if let Some(option) = kind.options().first() {
            let line = format!(".help {} {}", kind.name(), option.name());
            let line = self.syntax.line(&line);
            self.line(&format!("\n{line} explains an option{about_filters}."))?;
        }
        Ok(())
    }

    pub fn topic(mut self, topic: &TopicSpec) -> Result<(), CommandError> {
        self.title(topic.name, topic.summary)?;
        let rows = topic.rows();
        let width = rows.iter().map(|(label, _)| label.chars().count()).max();
        let rows = rows.iter().map(|(label, text)| [(*label).to_owned(), (*text).to_owned()]);
        self.aligned(&rows.collect::<Vec<_>>(), width.unwrap_or_default())
    }

    /// Writes the row of a topic that explains a word.
    pub fn term(mut self, topic: &TopicSpec, term: &str) -> Result<(), CommandError> {
        let is_of_term = |label: &str| label.split(", ").any(|word| word == term);
        for (_, text) in topic.rows().into_iter().filter(|(label, _)| is_of_term(label)) {
            self.title(term, text)?;
        }
        let line = self.syntax.line(&format!(".help {}", topic.name));
        self.line(&format!("\n{line} has the other {}.", topic.summary))
    }

    pub fn option(mut self, option: &dyn OptionSpec) -> Result<(), CommandError> {
        writeln!(self.out, "{}", self.bold(option.usage()))?;
        self.paragraph(option.doc().help)?;
        let words = (option.value().words)().into_iter().map(|(word, help)| [word, help]);
        self.rows(&words.map(|row| row.map(str::to_owned)).collect::<Vec<_>>())?;
        writeln!(self.out)?;
        self.paragraph(option.doc().details)?;
        self.sources(option.doc().names)?;
        self.heading("Example")?;
        self.line(&format!("  {}", option.doc().example))
    }

    pub fn alias(mut self, name: &str, line: &str) -> Result<(), CommandError> {
        self.title(name, "an alias")?;
        self.paragraph(&format!("Stands for {}", escape(line)))
    }

    /// Prints where the value set by an option or command can come from.
    fn sources(&mut self, names: &[&str]) -> Result<(), CommandError> {
        SettingKey::sources_of(names).map_or(Ok(()), |sources| self.paragraph(&sources))
    }

    /// Writes options under their headings; options without effect are only named.
    fn options(&mut self, groups: &[GroupView]) -> Result<(), CommandError> {
        let (idle, active): (Vec<_>, Vec<_>) =
            groups.iter().partition(|group| group.options.iter().all(is_idle));
        let width = active
            .iter()
            .flat_map(|group| &group.options)
            .map(|option| option.usage())
            .map(|usage| usage.chars().count())
            .max()
            .unwrap_or_default();
        for group in &active {
            self.heading(group.title)?;
            let rows = group.options.iter().map(|o| [o.usage(), o.doc().help.to_owned()]);
            self.aligned(&rows.collect::<Vec<_>>(), width)?;
        }
        for group in &idle {
            let names: Vec<_> = group.options.iter().map(|option| option.name()).collect();
            writeln!(self.out)?;
            self.paragraph(&format!("{}: {}", group.title, names.join(", ")))?;
        }
        Ok(())
    }

    /// Writes examples on lines that are never broken, with their goals next to them, or below if the lines are too
    /// long.
    fn examples(&mut self, examples: &[Example]) -> Result<(), CommandError> {
        let rows: Vec<_> =
            examples.iter().map(|example| (self.syntax.line(example.line), example.goal)).collect();
        let goals = rows.iter().map(|(_, goal)| goal.chars().count()).max().unwrap_or_default();
        let room = self.screen.width.map_or(usize::MAX, |width| width.saturating_sub(goals + 4));
        let width = rows
            .iter()
            .map(|(line, _)| line.chars().count())
            .filter(|width| *width <= room)
            .max()
            .unwrap_or_default();
        for (line, goal) in rows {
            let gap = match width.checked_sub(line.chars().count()) {
                Some(gap) => " ".repeat(gap + 2),
                None => format!("\n{:1$}", "", width + 4),
            };
            let line = self.screen.paint(Role::Name, line);
            self.line(&format!("  {line}{gap}{goal}"))?;
        }
        Ok(())
    }

    fn title(&mut self, name: &str, summary: &str) -> Result<(), CommandError> {
        self.line(&format!("{}  {summary}", self.bold(name)))
    }

    /// Writes a text with its own indentation; continuation lines are indented further.
    fn line(&mut self, text: &str) -> Result<(), CommandError> {
        writeln!(self.out, "{}", wrapped(text, self.screen.width))?;
        Ok(())
    }

    fn heading(&mut self, title: &str) -> Result<(), CommandError> {
        writeln!(self.out, "\n{}", self.bold(title))?;
        Ok(())
    }

    fn paragraph(&mut self, text: &str) -> Result<(), CommandError> {
        let mut table = table::columns(self.screen, [[text]]);
        pad(&mut table, 0, (0, 0));
        write!(self.out, "{}", table::text(table))?;
        Ok(())
    }

    fn rows(&mut self, rows: &[[String; 2]]) -> Result<(), CommandError> {
        let widths = self.registry.commands().map(|command| command.usage().chars().count());
        self.aligned(rows, widths.max().unwrap_or_default())
    }

    /// Writes two columns. The first has at least this width, so that several tables align.
    fn aligned(&mut self, rows: &[[String; 2]], width: usize) -> Result<(), CommandError> {
        if rows.is_empty() {
            return Ok(());
        }
        let cells = rows.iter().map(|[name, text]| [name_cell(name), Cell::new(text)]);
        let mut table = table::columns(self.screen, cells);
        pad(&mut table, 0, (2, 2));
        pad(&mut table, 1, (0, 0));
        if let Some(column) = table.column_mut(0) {
            let width = u16::try_from(width + 4).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(comfy_table::Width::Fixed(width)));
        }
        write!(self.out, "{}", table::text(table))?;
        Ok(())
    }

    fn bold<T: std::fmt::Display>(&self, text: T) -> impl std::fmt::Display + use<T> {
        self.screen.paint(Role::Heading, text)
    }
}

fn pad(table: &mut Table, column: usize, padding: (u16, u16)) {
    if let Some(column) = table.column_mut(column) {
        column.set_padding(padding);
    }
}

/// Escapes text from outside.
fn escape(text: &str) -> String {
    Untrusted(text).to_string()
}

/// Whether the option exists only for old command lines.
fn is_idle(option: &&dyn OptionSpec) -> bool {
    !option.has_effect()
}

/// Returns the kinds of `.dump`, each with its summary.
fn kinds(registry: Registry, indent: &'static str) -> impl Iterator<Item = [String; 2]> {
    registry
        .kinds()
        .map(move |kind| [format!("{indent}{}", kind.name()), kind.signature().summary.to_owned()])
}
