//! `.schema` and `handlescope schema`: describes the tables, from the declarations that create them, and the views of
//! `.sql`.

use std::io::{self, Write};
use std::sync::Arc;

use handlescope_model::{Cancel, SCHEMA_VERSION, Table, Untrusted};
use thiserror::Error;

use super::shared::groups;
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_fleet as fleet;
use handlescope_fleet::dataset::TABLES;
use handlescope_render::MemberPage;
use handlescope_session::grammar::value::SWITCH;
use handlescope_session::grammar::{Arguments, Example, Opt, OptionGroup, ParseError, Token, to};
use handlescope_session::settings::Settings;
use handlescope_session::suggest;
use handlescope_session::terminal::{Role, Screen, table, wrapped};
use handlescope_sql::{Relation, RelationColumn, SqlError, Views, dataset_columns};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaArgs {
    /// The tables and views to describe; empty for all.
    names: Vec<Token>,
    /// `-markdown`: as in the document in docs/.
    markdown: bool,
    /// `-members`: the members of JSON documents instead.
    members: bool,
}

pub struct Schema;

impl Command for Schema {
    type Args = SchemaArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".schema"],
        group: groups::QUERIES,
        usage: "[TABLE…]",
        arguments: Arguments::Relations,
        summary: "describe the tables: columns, types, units and meanings",
        details: "A type with ? can be null: unknown or not applicable. A unit like row of \
             objects is a row number of that table, from 0. A named view is followed by its SQL.",
        examples: &Example::lines([".schema", ".schema objects events", ".schema leaks"]),
    };
    const OPTIONS: &'static [OptionGroup<SchemaArgs>] = &[OptionGroup {
        title: "Options",
        options: &[
            Opt {
                names: &["-markdown", "--markdown"],
                help: "print the document docs/reference/tables.md",
                details: "As Markdown, with headings and tables.",
                example: "-markdown",
                take: to(&(SWITCH, |args, ()| args.markdown = true)),
            },
            Opt {
                names: &["-members", "--members"],
                help: "describe the members of JSON documents instead",
                details: "The document docs/reference/json.md, as Markdown: what -json prints.",
                example: "-members",
                take: to(&(SWITCH, |args, ()| args.members = true)),
            },
        ],
    }];

    fn parse(entered: &EnteredLine<'_>) -> Result<SchemaArgs, ParseError> {
        let (args, words) = entered.options_and_words(Self::OPTIONS)?;
        match words.first().filter(|_| args.members) {
            Some(word) => Err(ParseError::unexpected(word, "; -members describes all documents")),
            None => Ok(SchemaArgs { names: words.into_iter().cloned().collect(), ..args }),
        }
    }

    fn run(args: SchemaArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        if args.members {
            return Ok(write!(context.out, "{MemberPage}")?);
        }
        if context.session.dataset.is_some() {
            return dataset_schema(&args.names, context.out, context.screen);
        }
        let views = views(&context.session.settings, context.cancel)?;
        let relations: Result<Vec<Relation<'_>>, _> =
            args.names.iter().map(|word| relation(&views, word)).collect();
        Ok(schema(&relations?, &views, args.markdown, context.out, context.screen)?)
    }
}

/// A name that no table or view has.
#[derive(Debug, Error)]
#[error("no table or view is named '{}'{hint}", Untrusted(.name))]
struct UnknownRelation {
    name: String,
    /// The nearest name, or how to list them.
    hint: String,
}

fn relation<'a>(views: &'a Views, word: &Token) -> Result<Relation<'a>, ParseError> {
    views.relation(&word.text).ok_or_else(|| {
        let names = views.relations().map(Relation::name);
        let hint = suggest::nearest(&word.text, names)
            .map_or_else(|| "; .schema alone lists them".to_owned(), suggest::did_you_mean);
        ParseError::refused(UnknownRelation { name: word.text.clone(), hint })
    })
}

/// Returns the views that queries know with these settings.
///
/// # Errors
/// If one of the user's views cannot be read or planned, or `cancel` asks to stop.
pub fn views(settings: &Settings, cancel: &Cancel) -> Result<Arc<Views>, SqlError> {
    Ok(Views::with(settings.sql_views(), cancel)?)
}

/// Describes tables and views; all of them if none is named.
///
/// # Errors
/// If `out` cannot be written.
pub fn schema(
    requested: &[Relation<'_>],
    views: &Views,
    is_markdown: bool,
    out: &mut dyn Write,
    screen: Screen,
) -> io::Result<()> {
    // `acquisitions` is the first view; most people query it.
    let tables = Table::queried().map(Relation::Table);
    let relations: Vec<Relation<'_>> = views.all().map(Relation::View).chain(tables).collect();
    let relations = if requested.is_empty() { &relations } else { requested };
    if is_markdown {
        return markdown(relations, out);
    }
    text(relations, out, screen)?;
    for relation in requested {
        let Relation::View(view) = relation else { continue };
        for sql in views.texts(view) {
            writeln!(out)?;
            for line in sql.lines() {
                writeln!(out, "{}", Untrusted(line))?;
            }
        }
    }
    Ok(())
}

fn text(relations: &[Relation<'_>], out: &mut dyn Write, screen: Screen) -> io::Result<()> {
    for (index, &relation) in relations.iter().enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        let name = screen.paint(Role::Name, relation.name());
        let title = format!("{name}{}: {}", kind(relation), relation.doc());
        writeln!(out, "{gap}{}", wrapped(&title, screen.width))?;
        let mut table = table::table(screen, &["Column", "Type", "Unit", "Meaning"]);
        for column in stored_columns(relation) {
            table.add_row([&*column.name, &column.type_text(), &column.unit, &column.doc]);
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

fn markdown(relations: &[Relation<'_>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# The tables\n\n\
         Version {SCHEMA_VERSION} of the layout. This page is what `handlescope schema --markdown` \
         prints.\n\n\
         * A type with `?` has values that are unknown or do not apply: they are null.\n\
         * A unit like `row of objects` means that the number counts rows of that table from 0.\n\
         * Addresses, kernel keys and handles have the unit `hex`. In `.sql` they are text like \
         `0xFFFF810008BE66F0`, in tables and views alike, so that `objects.pointer = processes.key` \
         joins.\n\
         * Times that end in `_ns` are nanoseconds since the session start.\n\
         * Columns in italics and views exist only in `.sql`. There every table begins with a \
         column `row`, which other tables refer to, and has `file_index`, the number of the trace \
         in `.list`. Several traces are queried as one: row numbers continue from one to the next."
    )?;
    for &relation in relations {
        writeln!(out, "\n## {}{}\n\n{}", relation.name(), kind(relation), relation.doc())?;
        writeln!(out, "\n| Column | Type | Unit | Meaning |\n|---|---|---|---|")?;
        for column in stored_columns(relation) {
            markdown_row(&column, &format!("`{}`", column.name), out)?;
        }
        // The introduction describes the columns that every table has.
        for column in relation.added().skip(2) {
            markdown_row(&RelationColumn::new(column), &format!("*{}*", column.name), out)?;
        }
    }
    Ok(())
}

fn markdown_row(column: &RelationColumn, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let doc = column.doc.replace('|', "\\|");
    writeln!(out, "| {name} | {} | {} | {doc} |", column.type_text(), column.unit)
}

/// Describes tables of a dataset; all of them if none is named.
fn dataset_schema(
    names: &[Token],
    out: &mut dyn Write,
    screen: Screen,
) -> Result<(), CommandError> {
    let named = |word: &Token| {
        let tables = TABLES.iter().map(|table| -> &str { table.name });
        fleet::table(&word.text).ok_or_else(|| {
            let hint = suggest::nearest(&word.text, tables)
                .map_or_else(|| "; .schema alone lists them".to_owned(), suggest::did_you_mean);
            ParseError::refused(UnknownRelation { name: word.text.clone(), hint })
        })
    };
    let tables = match names {
        [] => TABLES.iter().collect(),
        names => names.iter().map(named).collect::<Result<Vec<_>, _>>()?,
    };
    for (index, described) in tables.into_iter().enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        let title = format!("{}: {}", screen.paint(Role::Name, described.name), described.doc);
        writeln!(out, "{gap}{}", wrapped(&title, screen.width))?;
        let mut columns = table::table(screen, &["Column", "Type", "Meaning"]);
        for column in dataset_columns(described) {
            columns.add_row([&*column.name, &column.type_text(), &column.doc]);
        }
        write!(out, "{}", table::text(columns))?;
    }
    Ok(())
}

/// Returns the columns as stored in the archive; for a view, all columns.
fn stored_columns(relation: Relation<'_>) -> Vec<RelationColumn> {
    match relation {
        Relation::Table(table) => table.columns().iter().map(RelationColumn::new).collect(),
        Relation::View(_) => relation.columns(),
    }
}

/// Returns the suffix for a relation that is not a table, and for the table that `.sql` replaces by a view.
fn kind(relation: Relation<'_>) -> &'static str {
    match relation {
        Relation::Table(Table::Acquisitions) => " (in files; .sql has the view)",
        Relation::Table(_) => "",
        Relation::View(_) => " (a view of .sql)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(relations: &[Relation<'_>], is_markdown: bool) -> String {
        let (mut out, views) = (Vec::new(), Views::with(None, &Cancel::default()).expect("views"));
        schema(relations, &views, is_markdown, &mut out, Screen::PLAIN).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_document_is_what_is_printed() {
        let document = include_str!("../../../docs/reference/tables.md").replace("\r\n", "\n");
        assert_eq!(printed(&[], true), document, "print it again: handlescope schema --markdown");
    }

    #[test]
    fn an_unknown_table_names_the_nearest_or_how_to_list_them() {
        let views = Views::with(None, &Cancel::default()).expect("views");
        let error = |name: &str| {
            let (_, tokens) = handlescope_session::grammar::join(&[name.to_owned()]);
            relation(&views, &tokens[0]).map(drop).expect_err("unknown").to_string()
        };
        assert_eq!(error("objekts"), "no table or view is named 'objekts', did you mean objects?");
        let listed = "no table or view is named 'nothere'; .schema alone lists them";
        assert_eq!(error("nothere"), listed);
    }

    #[test]
    fn tables_are_described_in_the_order_they_are_named() {
        let relations = [Relation::Table(Table::Names), Relation::Table(Table::Stacks)];
        insta::assert_snapshot!(printed(&relations, false), @r"
        names: Object names, each once.
        Column  Type  Unit  Meaning
        name    text        The name, as in \Sessions\1\BaseNamedObjects\X; never empty.
        in .sql also: file_index, row

        stacks: Call stacks, each once.
        Column  Type         Unit            Meaning
        frames  list of u32  rows of frames  Frames, innermost first: the kernel part, then the user part.
        in .sql also: file_index, row, depth, function, text
        ");
    }
}
