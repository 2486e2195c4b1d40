//! `.schema` and `handlescope schema`: the tables, from the declarations that make them, and the views
//! of `.sql`.

use std::io::{self, Write};

use handlescope_model::{ColumnSpec, SCHEMA_VERSION, Table};

use super::{Command, CommandError, Context, Entered, Signature, shared::groups};
use crate::{
    grammar::{Arguments, Opt, OptionGroup, ParseError, Take, Token, parse},
    sql::{Relation, View},
    suggest,
    terminal::{Role, Screen, table, wrapped},
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaArgs {
    /// The tables and views to describe; none for all.
    pub relations: Vec<Relation>,
    /// `-markdown`: as the document in docs/.
    pub markdown: bool,
}

pub(crate) struct Schema;

impl Command for Schema {
    type Args = SchemaArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".schema"],
        group: groups::QUERIES,
        usage: "[TABLE…]",
        arguments: Arguments::Words(relations),
        summary: "describe the tables: columns, types, units and meanings",
        details: "A type with ? has values that are unknown or do not apply. A unit like row of \
                  objects means that the number counts rows of that table from 0.",
        examples: &[".schema", ".schema objects events"],
    };
    const OPTIONS: &'static [OptionGroup<SchemaArgs>] = &[OptionGroup {
        title: "Options",
        options: &[Opt {
            names: &["-markdown"],
            help: "print the document docs/tables.md",
            details: "The same content with headings and tables of Markdown.",
            example: "-markdown",
            take: Take::Switch(|args| &mut args.markdown),
        }],
    }];

    fn parse(entered: &Entered<'_>) -> Result<SchemaArgs, ParseError> {
        let (args, words) =
            parse::options_and_words(&entered.help(), entered.tokens, Self::OPTIONS)?;
        let relations: Result<Vec<Relation>, _> = words.into_iter().map(relation).collect();
        Ok(SchemaArgs { relations: relations?, ..args })
    }

    fn run(args: SchemaArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        Ok(schema(&args, context.out, context.screen)?)
    }
}

/// Tables and views with their meanings.
fn relations() -> Vec<(&'static str, &'static str)> {
    Relation::all().map(|relation| (relation.name(), relation.doc())).collect()
}

fn relation(word: &Token) -> Result<Relation, ParseError> {
    Relation::named(&word.text).ok_or_else(|| {
        let names = Relation::all().map(Relation::name);
        ParseError::UnexpectedWord {
            word: word.text.clone(),
            hint: suggest::hint(&word.text, names),
            help: String::new(),
        }
    })
}

/// Describes tables and views.
///
/// # Errors
/// When `out` cannot be written.
pub fn schema(args: &SchemaArgs, out: &mut dyn Write, screen: Screen) -> io::Result<()> {
    let all: Vec<Relation>;
    let relations = match args.relations.is_empty() {
        true => {
            let tables = Table::ALL.into_iter().map(Relation::Table);
            all = tables.chain(View::ALL.into_iter().map(Relation::View)).collect();
            &all
        }
        false => &args.relations,
    };
    if args.markdown { markdown(relations, out) } else { text(relations, out, screen) }
}

fn text(relations: &[Relation], out: &mut dyn Write, screen: Screen) -> io::Result<()> {
    for (at, &relation) in relations.iter().enumerate() {
        let gap = if at > 0 { "\n" } else { "" };
        let name = screen.paint(Role::Name, relation.name());
        let title = format!("{name}{}: {}", kind(relation), relation.doc());
        writeln!(out, "{gap}{}", wrapped(&title, screen.width))?;
        let mut table = table::table(screen, &["Column", "Type", "Unit", "Meaning"]);
        for column in own_columns(relation) {
            table.add_row([column.name, &type_of(&column), &column.unit_text(), column.doc.trim()]);
        }
        write!(out, "{}", table::text(table))?;
        let added: Vec<&str> = relation.added().map(|column| column.name).collect();
        if !added.is_empty() {
            let added = format!("in .sql also: {}", added.join(", "));
            writeln!(out, "{}", wrapped(&added, screen.width))?;
        }
    }
    Ok(())
}

fn markdown(relations: &[Relation], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# The tables\n\n\
         Version {SCHEMA_VERSION} of the layout. This page is what `handlescope schema --markdown` \
         prints.\n\n\
         * A type with `?` has values that are unknown or do not apply: they are null.\n\
         * A unit like `row of objects` means that the number counts rows of that table from 0.\n\
         * Times that end in `_ns` are nanoseconds since the session start.\n\
         * Columns in italics are there in `.sql` only, as are the views. There every table has a \
         column `row` in front, which other tables point to, and `file_index`, the number of the \
         trace as `.list` shows it. Several traces count as one: their rows count on."
    )?;
    for &relation in relations {
        writeln!(out, "\n## {}{}\n\n{}", relation.name(), kind(relation), relation.doc())?;
        writeln!(out, "\n| Column | Type | Unit | Meaning |\n|---|---|---|---|")?;
        for column in own_columns(relation) {
            markdown_row(&column, &format!("`{}`", column.name), out)?;
        }
        // What all tables have is said above.
        for column in relation.added().skip(2) {
            markdown_row(column, &format!("*{}*", column.name), out)?;
        }
    }
    Ok(())
}

fn markdown_row(column: &ColumnSpec, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let doc = column.doc.trim().replace('|', "\\|");
    writeln!(out, "| {name} | {} | {} | {doc} |", type_of(column), column.unit_text())
}

/// The columns in the archive; of a view all.
fn own_columns(relation: Relation) -> impl Iterator<Item = ColumnSpec> {
    relation.columns().into_iter().skip(relation.added().count())
}

/// What it is if it is not a table.
fn kind(relation: Relation) -> &'static str {
    match relation {
        Relation::Table(_) => "",
        Relation::View(_) => " (a view of .sql)",
    }
}

/// The type of a column, with `?` if values may be missing.
pub(crate) fn type_of(column: &ColumnSpec) -> String {
    format!("{}{}", column.dtype, if column.nullable { "?" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(args: &SchemaArgs) -> String {
        let mut out = Vec::new();
        schema(args, &mut out, Screen::PLAIN).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_document_is_what_is_printed() {
        let args = SchemaArgs { markdown: true, ..SchemaArgs::default() };
        let document = include_str!("../../../docs/tables.md").replace("\r\n", "\n");
        assert_eq!(printed(&args), document, "print it again: handlescope schema --markdown");
    }

    #[test]
    fn tables_are_described_in_the_order_they_are_named() {
        let args = SchemaArgs {
            relations: vec![Relation::Table(Table::Names), Relation::Table(Table::Stacks)],
            markdown: false,
        };
        insta::assert_snapshot!(printed(&args), @r"
        names: Object names, each once.
        Column  Type  Unit  Meaning
        name    text        The name, as in \Sessions\1\BaseNamedObjects\X; never empty.
        in .sql also: file_index, row

        stacks: Call stacks, each once.
        Column  Type         Unit            Meaning
        frames  list of u32  rows of frames  Frames, innermost first: the kernel part, then the user part.
        in .sql also: file_index, row, depth, text
        ");
    }
}
