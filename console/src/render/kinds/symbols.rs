//! `.dump Symbols`

use std::io;

use handlescope_extract::symbols::{ModuleReport, Outcome};
use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::index;
use crate::{
    query::{ModuleSymbols, SymbolsAnswer},
    render::{
        json,
        table::{Columns, Part, Show, Table},
    },
    values::Counted,
};

/// A row for each module; JSON has the places that were searched, too.
///
/// # Errors
/// None that a caller could do anything about.
pub fn symbols<'a>(answers: &'a [SymbolsAnswer<'_>]) -> io::Result<Table<'a>> {
    let of_file = |answer: &'a SymbolsAnswer<'_>| {
        answer.modules.iter().map(|module| (index(answer.index), module))
    };
    let rows: Vec<(u32, &ModuleSymbols)> = answers.iter().flat_map(of_file).collect();
    let pdb = |symbols: &'a ModuleSymbols| symbols.report.module.pdb.as_ref();
    let mut columns = Columns::of(&rows);
    columns.add("file", |(file, _)| *file);
    columns.add("module", |(_, symbols)| symbols.report.module.name.as_str()).title("Name");
    columns.add("path", |(_, symbols)| symbols.report.module.path.as_str());
    columns.add("pdb_name", |(_, symbols)| pdb(symbols).map(|pdb| pdb.name.as_str()));
    columns.add("pdb_guid", |(_, symbols)| pdb(symbols).map(|pdb| pdb.guid.to_string()));
    columns.add("pdb_age", |(_, symbols)| pdb(symbols).map(|pdb| pdb.age));
    let frames = columns.add("frames", |(_, symbols)| symbols.frames as u64);
    frames.title("Frames").show(Show::Grouped);
    let named = columns.add("frames_named", |(_, symbols)| symbols.named as u64);
    named.title("Named").show(Show::Grouped);
    let text = |symbols| {
        let pdb = pdb(symbols)?;
        Some(format!("{} {} {}", pdb.file_name(), pdb.guid, pdb.age))
    };
    columns.add("pdb", |(_, symbols)| text(symbols)).title("Pdb").text_only();
    columns.add("status", |(_, symbols)| json::symbol_status(symbols).0);
    columns.add("symbol_file", |(_, symbols)| json::symbol_status(symbols).1);
    columns.add("search", |(_, symbols)| search(symbols)).title("Symbols");
    let table = Table::new("symbols", columns, answers.iter().map(part))?;
    Ok(table.with_document(|parts, mode, out| json::symbols(answers, parts, mode, out)))
}

fn part(answer: &SymbolsAnswer<'_>) -> Part {
    let modules = &answer.modules;
    let resolved = modules.iter().filter(|module| module.report.is_resolved()).count();
    let sum = |count: fn(&ModuleSymbols) -> usize| {
        HumanCount(modules.iter().map(|module| count(module) as u64).sum())
    };
    let (named, frames) = (sum(|module| module.named), sum(|module| module.frames));
    Part::of(answer.path, modules.len()).below(format!(
        "{}, {resolved} with symbols; {named} of {frames} frames have names",
        Counted(modules.len() as u64, "module")
    ))
}

/// What became of the search for the symbols of a module.
fn search(symbols: &ModuleSymbols) -> String {
    let found = found(&symbols.report);
    match symbols.is_stored() {
        true => format!("names are stored in the extract; {found}"),
        false => found,
    }
}

/// Where symbols were found, or why not; and what went wrong on the way.
fn found(report: &ModuleReport) -> String {
    let origin = report.origin.as_ref().map(ToString::to_string).unwrap_or_default();
    let outcome = match &report.outcome {
        Outcome::Resolved { .. } => origin,
        Outcome::ResolvedFromExports { file } => format!("no pdb, exports of {}", Untrusted(file)),
        Outcome::NoPdbIdentity => "the trace names no pdb".to_owned(),
        Outcome::UnusableName => "the name of the pdb cannot be a file name".to_owned(),
        Outcome::NoSymbolPath => "no symbol path is set".to_owned(),
        Outcome::NotFound => "not found".to_owned(),
    };
    let missing = report.missing.iter().map(|missing| match missing.is_remembered {
        true if missing.is_refused => {
            format!("{} sent an unusable file minutes ago and got no new request", missing.place)
        }
        true => format!("{} did not have it lately", missing.place),
        false => format!("{} does not have it", missing.place),
    });
    let steps = std::iter::once(outcome).chain(missing).chain(report.troubles());
    steps.collect::<Vec<_>>().join("; ")
}
