//! `.schema` and `handlescope schema`: the tables, from the declarations that make them.

use std::io::{self, Write};

use handlescope_model::{ColumnSpec, SCHEMA_VERSION, Table};
use nu_ansi_term::Color;

use crate::{command::SchemaArgs, screen::Screen, table};

/// Describes tables.
///
/// # Errors
/// When `out` cannot be written.
pub fn schema(args: &SchemaArgs, out: &mut dyn Write, screen: Screen) -> io::Result<()> {
    let all = Table::ALL;
    let tables = if args.tables.is_empty() { &all[..] } else { &args.tables };
    if args.markdown { markdown(tables, out) } else { text(tables, out, screen) }
}

fn text(tables: &[Table], out: &mut dyn Write, screen: Screen) -> io::Result<()> {
    for (at, described) in tables.iter().enumerate() {
        let (name, doc) = (described.name(), described.doc());
        let gap = if at > 0 { "\n" } else { "" };
        writeln!(out, "{gap}{}: {doc}", screen.paint(Color::Cyan, name))?;
        let mut table = table::table(screen, &["Column", "Type", "Unit", "Meaning"]);
        for column in described.columns() {
            table.add_row([column.name, &type_of(column), column.unit, column.doc.trim()]);
        }
        write!(out, "{}", table::text(&table))?;
    }
    Ok(())
}

fn markdown(tables: &[Table], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# The tables\n\n\
         Version {SCHEMA_VERSION} of the layout. This page is what `handlescope schema --markdown` \
         prints.\n\n\
         * A type with `?` has values that are unknown or do not apply: they are null.\n\
         * A unit like `row of objects` says that the number counts rows of that table from 0.\n\
         * Times that end in `_ns` are nanoseconds since the session start."
    )?;
    for described in tables {
        writeln!(out, "\n## {}\n\n{}", described.name(), described.doc())?;
        writeln!(out, "\n| Column | Type | Unit | Meaning |\n|---|---|---|---|")?;
        for column in described.columns() {
            let ColumnSpec { name, unit, doc, .. } = column;
            let doc = doc.trim().replace('|', "\\|");
            writeln!(out, "| `{name}` | {} | {unit} | {doc} |", type_of(column))?;
        }
    }
    Ok(())
}

fn type_of(column: &ColumnSpec) -> String {
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
        let document = include_str!("../../docs/tables.md").replace("\r\n", "\n");
        assert_eq!(printed(&args), document, "print it again: handlescope schema --markdown");
    }

    #[test]
    fn tables_are_described_in_the_order_they_are_named() {
        let args = SchemaArgs { tables: vec![Table::Names, Table::Stacks], markdown: false };
        insta::assert_snapshot!(printed(&args), @r"
        names: Object names, each once.
        Column  Type  Unit  Meaning
        name    text        The name, as in \Sessions\1\BaseNamedObjects\X; never empty.

        stacks: Call stacks, each once.
        Column  Type         Unit            Meaning
        frames  list of u32  rows of frames  Frames, innermost first: the kernel part, then the user part.
        ");
    }
}
