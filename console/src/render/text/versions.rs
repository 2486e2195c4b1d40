//! `.dump Version` as text: who runs which version of what.

use std::collections::BTreeMap;
use std::io::{self, Write};

use nu_ansi_term::Color;

use super::process::ProcessStyle;
use super::tables::{known, write_header};
use crate::query::{LoadedModule, Loader, ModuleAnswer};
use crate::settings::Display;
use crate::terminal::Clean;
use crate::terminal::table;
use crate::terminal::wrapped;

/// Modules that the same processes loaded stand under the names of these, once.
pub(in crate::render) fn versions(
    answers: &[ModuleAnswer<'_>],
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let screen = display.screen;
    for answer in answers {
        write_header(answer.path, screen, out)?;
        for (loaders, modules) in by_loaders(answer) {
            let width = screen.width.filter(|_| display.clip);
            let heading = wrapped(&heading(answer, &loaders, display), width);
            writeln!(out, "{}", screen.paint(Color::Purple, heading))?;
            write!(out, "{}", table_of(&modules, display))?;
        }
        writeln!(out, "Selected {}/{} of all loaded modules", answer.modules.len(), answer.total)?;
    }
    Ok(())
}

/// The modules by those who loaded them.
fn by_loaders<'a>(answer: &'a ModuleAnswer<'_>) -> BTreeMap<Vec<Loader>, Vec<&'a LoadedModule>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for module in &answer.modules {
        groups.entry(module.loaders()).or_default().push(module);
    }
    groups
}

fn heading(answer: &ModuleAnswer<'_>, loaders: &[Loader], display: &Display) -> String {
    if loaders.is_empty() {
        return "not mapped".to_owned();
    }
    let style = ProcessStyle::new(&answer.info, display);
    let names = loaders.iter().map(|loader| match *loader {
        Loader::Kernel => "kernel".to_owned(),
        Loader::Process { row, .. } => style.marked(answer.processes.get(row)),
        Loader::Unknown(pid) => format!("pid {pid}"),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn table_of(modules: &[&LoadedModule], display: &Display) -> String {
    let header = ["Name", "Version", "Product", "Description", "Path"];
    let mut table = table::table(display.screen, &header);
    for LoadedModule { module, .. } in modules {
        table.add_row([
            Clean(&module.name).to_string(),
            known(module.file_version.as_deref().map(Clean)),
            known(module.product_name.as_deref().map(Clean)),
            known(module.description.as_deref().map(Clean)),
            Clean(&module.path).to_string(),
        ]);
    }
    table::text(&table)
}
