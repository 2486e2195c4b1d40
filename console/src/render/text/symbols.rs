//! `.dump Symbols` as text.

use std::io::{self, Write};

use handlescope_extract::symbols::{ModuleReport, Outcome};
use indicatif::HumanCount;

use super::tables::{known, write_header};
use crate::query::{ModuleSymbols, SymbolsAnswer};
use crate::settings::Display;
use crate::terminal::Clean;
use crate::terminal::table;

pub(in crate::render) fn symbols(
    answers: &[SymbolsAnswer<'_>],
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let screen = display.screen;
    for answer in answers {
        write_header(answer.path, screen, out)?;
        let mut table = table::table(screen, &["Name", "Frames", "Named", "Pdb", "Symbols"]);
        table::align_right(&mut table, &[1, 2]);
        let (mut frames, mut named, mut resolved) = (0, 0, 0);
        for module in &answer.modules {
            table.add_row(cells(module));
            frames += module.frames;
            named += module.named;
            resolved += usize::from(module.report.is_resolved());
        }
        write!(out, "{}", table::text(&table))?;
        let modules = answer.modules.len();
        writeln!(
            out,
            "{modules} modules, {resolved} with symbols; {} of {} frames have names",
            count(named),
            count(frames)
        )?;
    }
    Ok(())
}

fn cells(module: &ModuleSymbols) -> [String; 5] {
    let ModuleSymbols { frames, named, report } = module;
    let pdb = report
        .module
        .pdb
        .as_ref()
        .map(|pdb| format!("{} {} {}", Clean(pdb.file_name()), pdb.guid, pdb.age));
    [
        Clean(&report.module.name).to_string(),
        count(*frames),
        count(*named),
        known(pdb),
        Clean(&if module.is_stored() {
            format!("names are stored in the extract; {}", found(report))
        } else {
            found(report)
        })
        .to_string(),
    ]
}

fn count(frames: usize) -> String {
    HumanCount(frames as u64).to_string()
}

/// Where symbols were found, or why not; and what went wrong on the way.
fn found(report: &ModuleReport) -> String {
    let origin = report.origin.as_ref().map(ToString::to_string).unwrap_or_default();
    let outcome = match &report.outcome {
        Outcome::Resolved { .. } => origin,
        Outcome::ResolvedFromExports { file } => format!("no pdb, exports of {}", file.display()),
        Outcome::NoPdbIdentity => "the trace names no pdb".to_owned(),
        Outcome::UnusableName => "the name of the pdb can be no file name".to_owned(),
        Outcome::NoSymbolPath => "no symbol path is set".to_owned(),
        Outcome::NotFound => "not found".to_owned(),
    };
    let missing = report.missing.iter().map(|missing| match missing.is_remembered {
        true => format!("{} did not have it lately", missing.place),
        false => format!("{} does not have it", missing.place),
    });
    let told = std::iter::once(outcome).chain(missing).chain(report.troubles());
    told.collect::<Vec<_>>().join("; ")
}
