//! The pages of the help.

use std::io::Write;

use comfy_table::{Cell, Color, ColumnConstraint, Table};
use nu_ansi_term::Style;

use crate::{
    error::CommandError,
    registry::{
        Arguments, COMMANDS, CommandSpec, GroupView, KINDS, KindSpec, OptionSpec, TOPICS,
        TopicSpec, ValueKind,
    },
    screen::Screen,
    sql::Relation,
    table,
};

/// Writes a page.
pub(super) struct Page<'a> {
    out: &'a mut dyn Write,
    screen: Screen,
}

impl<'a> Page<'a> {
    pub(super) fn new(out: &'a mut dyn Write, screen: Screen) -> Page<'a> {
        Page { out, screen }
    }

    pub(super) fn everything(mut self) -> Result<(), CommandError> {
        let mut group = "";
        let mut rows: Vec<[String; 2]> = Vec::new();
        for command in COMMANDS {
            if command.group != group {
                self.rows(&std::mem::take(&mut rows))?;
                group = command.group;
                self.heading(group)?;
            }
            rows.push([join(command.name(), command.usage), command.summary.into()]);
            if command.arguments == Arguments::Kind {
                let kinds =
                    KINDS.iter().map(|kind| [format!("  {}", kind.name), kind.summary.into()]);
                rows.extend(kinds);
            }
        }
        self.rows(&rows)?;
        self.heading("More")?;
        let topics = TOPICS.iter().map(|t| [format!(".help {}", t.name), t.summary.to_owned()]);
        let about = |topic: &str, text: &str| [format!(".help {topic}"), text.to_owned()];
        let others = [
            about("ObjectRef", "a kind of .dump with its options and examples"),
            about(".load", "a command"),
            about("-Leak", "an option"),
        ];
        self.rows(&others.into_iter().chain(topics).collect::<Vec<_>>())
    }

    pub(super) fn command(mut self, command: &CommandSpec) -> Result<(), CommandError> {
        writeln!(self.out, "{}", self.bold(join(command.name(), command.usage)))?;
        self.paragraph(command.summary)?;
        if command.names.len() > 1 {
            let others = command.names.get(1..).unwrap_or_default().join(", ");
            self.paragraph(&format!("Also called {others}."))?;
        }
        writeln!(self.out)?;
        self.paragraph(command.details)?;
        self.options(&(command.groups)())?;
        if command.arguments == Arguments::Kind {
            self.heading("Kinds")?;
            let kinds: Vec<_> =
                KINDS.iter().map(|kind| [kind.name.to_owned(), kind.summary.to_owned()]).collect();
            self.rows(&kinds)?;
        }
        if command.arguments == Arguments::Sql {
            self.heading("Tables and views; .schema NAME lists their columns")?;
            let relations = Relation::all();
            let rows = relations.map(|r| [r.name().to_owned(), r.doc().to_owned()]);
            let width = Relation::all().map(|relation| relation.name().len()).max();
            self.aligned(&rows.collect::<Vec<_>>(), width.unwrap_or_default())?;
        }
        self.heading("Examples")?;
        for example in command.examples {
            writeln!(self.out, "  {example}")?;
        }
        Ok(())
    }

    pub(super) fn kind(mut self, kind: &KindSpec) -> Result<(), CommandError> {
        let title = format!(".dump {} [OPTION…]", kind.name);
        writeln!(self.out, "{}  {}", self.bold(title), kind.summary)?;
        self.paragraph(kind.details)?;
        self.options(&(kind.groups)())?;
        self.heading("Examples")?;
        let lines = kind.examples.iter().map(|example| example.line.chars().count());
        let width = lines.max().unwrap_or_default();
        let rows = kind.examples.iter().map(|e| [e.line.to_owned(), e.goal.to_owned()]);
        self.aligned(&rows.collect::<Vec<_>>(), width)?;
        let about_filters = if kind.options().iter().any(takes_filter) {
            "; .help filters, about filters"
        } else {
            ""
        };
        if let Some(option) = kind.options().first() {
            let name = option.name();
            writeln!(
                self.out,
                "\n.help {} {name} tells more about an option{about_filters}.",
                kind.name
            )?;
        }
        Ok(())
    }

    pub(super) fn topic(mut self, topic: &TopicSpec) -> Result<(), CommandError> {
        writeln!(self.out, "{}  {}", self.bold(topic.name), topic.summary)?;
        let width = topic.rows.iter().map(|(what, _)| what.chars().count()).max();
        let rows = topic.rows.iter().map(|(what, text)| [(*what).to_owned(), (*text).to_owned()]);
        self.aligned(&rows.collect::<Vec<_>>(), width.unwrap_or_default())
    }

    pub(super) fn option(mut self, option: &dyn OptionSpec) -> Result<(), CommandError> {
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

    /// Options under their headings; those without effect are only named.
    fn options(&mut self, groups: &[GroupView]) -> Result<(), CommandError> {
        let (idle, active): (Vec<_>, Vec<_>) =
            groups.iter().partition(|group| group.options.iter().all(is_idle));
        let usages = active.iter().flat_map(|group| &group.options).map(|option| option.usage());
        let width = usages.map(|usage| usage.chars().count()).max().unwrap_or_default();
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
}

fn pad(table: &mut Table, column: usize, padding: (u16, u16)) {
    if let Some(column) = table.column_mut(column) {
        column.set_padding(padding);
    }
}

fn takes_filter(option: &&dyn OptionSpec) -> bool {
    matches!(option.value(), ValueKind::Filter(_) | ValueKind::Processes)
}

/// Whether the option is there for old command lines only.
fn is_idle(option: &&dyn OptionSpec) -> bool {
    matches!(option.value(), ValueKind::Ignored(_))
}

fn join(name: &str, usage: &str) -> String {
    format!("{name} {usage}").trim_end().to_owned()
}
