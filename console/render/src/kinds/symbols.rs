//! `.dump Symbols`

use std::{io, path::Path};

use handlescope_model::Untrusted;
use handlescope_symbols::{MissingAt, ModuleReport, SearchFailure, SearchOutcome, SymbolOrigin};
use indicatif::HumanCount;

use super::index;
use crate::table::{AnswerTable, Columns, FileRows, Show};
use handlescope_query::{ModuleSymbols, SymbolsAnswer};
use handlescope_session::values::CountedNoun;

/// A module and the number of its file.
pub type ModuleSymbolsRow<'a> = (u32, &'a ModuleSymbols);

/// Declares the columns of a module's symbols.
pub fn symbol_columns<'a>() -> Columns<'a, ModuleSymbolsRow<'a>> {
    const PDB: &str = "its PDB; null if the trace does not have it";
    let pdb = |symbols: &'a ModuleSymbols| symbols.report.module.pdb.as_ref();
    let mut columns = Columns::<ModuleSymbolsRow<'a>>::default();
    columns.add("file", "index of the trace", |(file, _)| *file);
    columns
        .add("module", "file name of the image", |(_, symbols)| symbols.report.module.name.as_str())
        .title("Name");
    columns
        .add("path", "path of the image", |(_, symbols)| symbols.report.module.path.as_str())
        .detail();
    columns.add("pdb_name", PDB, move |(_, symbols)| pdb(symbols).map(|pdb| pdb.name.as_str()));
    columns
        .add("pdb_guid", PDB, move |(_, symbols)| pdb(symbols).map(|pdb| pdb.guid.to_string()))
        .detail();
    columns.add("pdb_age", PDB, move |(_, symbols)| pdb(symbols).map(|pdb| pdb.age)).detail();
    let frames = columns
        .add("frames", "distinct frames in the module", |(_, symbols)| symbols.frames as u64);
    frames.title("Frames").show(Show::Grouped);
    let named =
        columns.add("frames_named", "frames with a name", |(_, symbols)| symbols.named as u64);
    named.title("Named").show(Show::Grouped);
    let shown = columns.add("pdb", "name, GUID and age of its PDB", move |(_, symbols)| {
        let pdb = pdb(symbols)?;
        Some(format!("{} {} {}", pdb.file_name(), pdb.guid, pdb.age))
    });
    shown.title("Pdb").text_only();
    columns.add(
        "status",
        "`pdb`: names found; `exports`: only exported names; `stored`: only names \
         stored in the extract; else the reason: `not_found`, `no_pdb_identity`, \
         `unusable_name`, `no_symbol_path`",
        |(_, symbols)| {
            if symbols.is_stored() { "stored" } else { outcome(&symbols.report).0 }
        },
    );
    columns
        .add("symbol_file", "the file that the names come from, or null", |(_, symbols)| {
            Some(outcome(&symbols.report).2?.to_string_lossy().into_owned())
        })
        .detail();
    columns
        .nest("found_in", "object?", "where that file was found; null without a file", |(_, s)| {
            Some(place_columns().part(s.report.origin.as_ref()?))
        })
        .detail()
        .inner(place_columns().members());
    columns.parts("missing_at", "servers without the PDB", missing_columns(), |(_, symbols)| {
        symbols.report.missing.iter().collect()
    });
    columns
        .nest(
            "skipped",
            "array",
            "servers that got no more requests after failures: no answer, too slow, or only \
             errors",
            |(_, symbols)| &symbols.report.skipped,
        )
        .detail();
    let mut failures = Columns::<&'a SearchFailure>::default();
    let meaning = "the folder or server, and the reason";
    failures.member("place", meaning, |failure| failure.location.as_str());
    failures.member("reason", meaning, |failure| failure.reason.as_str());
    columns.parts("failures", "places that could not be searched", failures, |(_, symbols)| {
        symbols.report.failures.iter().collect()
    });
    let refused =
        |(_, symbols): &ModuleSymbolsRow<'a>| symbols.report.refusals().collect::<Vec<_>>();
    columns
        .nest("refused", "array", "files that were found and not used, with the reason", refused)
        .detail();
    columns
        .add("search", "where its symbols were found, or why not", |(_, symbols)| search(symbols))
        .title("Symbols")
        .rows_only();
    columns
}

/// Returns a row for each module; JSON also has the places that were searched.
///
/// # Errors
/// None that a caller could do anything about.
pub fn symbols<'a>(answers: &'a [SymbolsAnswer<'_>]) -> io::Result<AnswerTable<'a>> {
    let rows = answers
        .iter()
        .flat_map(|answer| answer.list.iter().map(|module| (index(answer.index), module)));
    let file_rows = answers.iter().map(file_rows);
    let table = AnswerTable::new(symbol_columns(), rows.collect(), file_rows)?;
    Ok(table.within(symbol_document(), ()).with_spare(["Pdb"]))
}

/// Declares the columns of a place that has symbols.
fn place_columns<'a>() -> Columns<'a, &'a SymbolOrigin> {
    const PLACE: &str = "`\"folder\"`, `\"cache\"`, `\"server\"` or `\"symcache\"`, and the folder or \
                         address";
    let mut columns = Columns::<&SymbolOrigin>::default();
    columns.member("kind", PLACE, |origin| match origin {
        SymbolOrigin::Folder(_) => "folder",
        SymbolOrigin::Cache(_) => "cache",
        SymbolOrigin::Server(_) => "server",
        SymbolOrigin::Symcache => "symcache",
    });
    columns.member("place", PLACE, |origin| match origin {
        SymbolOrigin::Folder(folder) | SymbolOrigin::Cache(folder) => {
            Some(folder.to_string_lossy().into_owned())
        }
        SymbolOrigin::Server(address) => Some(address.clone()),
        SymbolOrigin::Symcache => None,
    });
    columns
}

/// Declares the columns of a server that lacks the symbols.
fn missing_columns<'a>() -> Columns<'a, &'a MissingAt> {
    const SERVER: &str = "the server, and whether this is known from an earlier request";
    let mut columns = Columns::<&MissingAt>::default();
    columns.member("server", SERVER, |missing| missing.server.as_str());
    columns.member("remembered", SERVER, |missing| missing.is_remembered);
    columns.member(
        "refused",
        "it sent a damaged file or one of another build minutes ago, and is asked again \
         later",
        |missing| missing.is_refused,
    );
    columns
}

fn file_rows(answer: &SymbolsAnswer<'_>) -> FileRows {
    let modules = &answer.list;
    let resolved = modules.iter().filter(|module| module.report.is_resolved()).count();
    let sum = |count: fn(&ModuleSymbols) -> usize| {
        HumanCount(modules.iter().map(|module| count(module) as u64).sum())
    };
    let (named, frames) = (sum(|module| module.named), sum(|module| module.frames));
    FileRows::new(answer.path, modules.len()).below(format!(
        "{}, {resolved} with symbols; {named} of {frames} frames have names",
        CountedNoun(modules.len() as u64, "module")
    ))
}

/// Returns the result of a search as a word and for people, and the file that supplies the names.
fn outcome(report: &ModuleReport) -> (&'static str, String, Option<&Path>) {
    let without = |status, text: &str| (status, text.to_owned(), None);
    match &report.outcome {
        SearchOutcome::Resolved { file, .. } => {
            ("pdb", report.origin.as_ref().map(ToString::to_string).unwrap_or_default(), Some(file))
        }
        SearchOutcome::ResolvedFromExports { file } => {
            ("exports", format!("no pdb, exports of {}", Untrusted(file)), Some(file))
        }
        SearchOutcome::NoPdbIdentity => without("no_pdb_identity", "the trace names no pdb"),
        SearchOutcome::UnusableName => {
            without("unusable_name", "the name of the pdb cannot be a file name")
        }
        SearchOutcome::NoSymbolPath => without("no_symbol_path", "no symbol path is set"),
        SearchOutcome::NotFound => without("not_found", "not found"),
    }
}

/// Describes where symbols were found or why not, and any failures before that.
fn search(symbols: &ModuleSymbols) -> String {
    let report = &symbols.report;
    let stored = symbols.is_stored().then(|| "names are stored in the extract".to_owned());
    let missing = report.missing.iter().map(|missing| match missing.is_remembered {
        true if missing.is_refused => {
            format!("{} sent an unusable file minutes ago and was not asked again", missing.server)
        }
        true => format!("{} did not have it when last asked", missing.server),
        false => format!("{} does not have it", missing.server),
    });
    let (_, found, _) = outcome(report);
    let parts = stored.into_iter().chain([found]).chain(missing).chain(report.troubles());
    parts.collect::<Vec<_>>().join("; ")
}

/// Declares the document of `.dump Symbols`.
pub fn symbol_document<'a>() -> Columns<'a, ()> {
    Columns::with_rows(
        "symbols",
        "one row per module that contains frames of the trace, most unnamed frames first",
    )
}
