//! `.dump Symbols -json`.

use std::io::{self, Write};

use handlescope_extract::symbols::{ModuleReport, Origin, Outcome};
use serde::Serialize;

use crate::query::{ModuleSymbols, SymbolsAnswer};
use crate::render::table::Part;
use crate::values::JsonMode;

pub(in crate::render) fn symbols(
    answers: &[SymbolsAnswer<'_>],
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = || {
        super::rows(answers, parts).filter_map(|(answer, row)| {
            Some(ModuleJson::new(answer.index, answer.modules.get(row)?))
        })
    };
    super::write_list("symbols", rows, mode, out)
}

#[derive(Serialize)]
struct ModuleJson<'a> {
    file: usize,
    module: &'a str,
    path: &'a str,
    pdb_name: Option<&'a str>,
    pdb_guid: Option<String>,
    pdb_age: Option<u32>,
    frames: usize,
    frames_named: usize,
    status: &'static str,
    symbol_file: Option<String>,
    found_in: Option<PlaceJson>,
    missing_at: Vec<MissingJson<'a>>,
    skipped: &'a [String],
    failures: Vec<FailureJson<'a>>,
    refused: Vec<String>,
}

#[derive(Serialize)]
struct PlaceJson {
    kind: &'static str,
    place: Option<String>,
}

#[derive(Serialize)]
struct MissingJson<'a> {
    server: &'a str,
    remembered: bool,
    refused: bool,
}

#[derive(Serialize)]
struct FailureJson<'a> {
    place: &'a str,
    reason: &'a str,
}

impl<'a> ModuleJson<'a> {
    fn new(file: usize, symbols: &'a ModuleSymbols) -> Self {
        let ModuleSymbols { frames, named, report } = symbols;
        let pdb = report.module.pdb.as_ref();
        let (status, symbol_file) = symbol_status(symbols);
        let missing = report.missing.iter();
        let failures = report.failures.iter();
        Self {
            file,
            module: &report.module.name,
            path: &report.module.path,
            pdb_name: pdb.map(|pdb| pdb.name.as_str()),
            pdb_guid: pdb.map(|pdb| pdb.guid.to_string()),
            pdb_age: pdb.map(|pdb| pdb.age),
            frames: *frames,
            frames_named: *named,
            status,
            symbol_file,
            found_in: report.origin.as_ref().map(place),
            missing_at: missing
                .map(|missing| MissingJson {
                    server: &missing.place,
                    remembered: missing.is_remembered,
                    refused: missing.is_refused,
                })
                .collect(),
            skipped: &report.skipped,
            failures: failures
                .map(|failure| FailureJson { place: &failure.place, reason: &failure.reason })
                .collect(),
            refused: report.refusals().collect(),
        }
    }
}

/// What the search ended in, and the file that names come from.
pub(in crate::render) fn symbol_status(symbols: &ModuleSymbols) -> (&'static str, Option<String>) {
    let (status, file) = status(&symbols.report);
    (if symbols.is_stored() { "stored" } else { status }, file)
}

fn status(report: &ModuleReport) -> (&'static str, Option<String>) {
    let text = |file: &std::path::Path| Some(file.to_string_lossy().into_owned());
    match &report.outcome {
        Outcome::Resolved { file, .. } => ("pdb", text(file)),
        Outcome::ResolvedFromExports { file } => ("exports", text(file)),
        Outcome::NoPdbIdentity => ("no_pdb_identity", None),
        Outcome::UnusableName => ("unusable_name", None),
        Outcome::NoSymbolPath => ("no_symbol_path", None),
        Outcome::NotFound => ("not_found", None),
    }
}

fn place(origin: &Origin) -> PlaceJson {
    let (kind, place) = match origin {
        Origin::Folder(folder) => ("folder", Some(folder.to_string_lossy().into_owned())),
        Origin::Cache(folder) => ("cache", Some(folder.to_string_lossy().into_owned())),
        Origin::Server(address) => ("server", Some(address.clone())),
        Origin::Symcache => ("symcache", None),
    };
    PlaceJson { kind, place }
}
