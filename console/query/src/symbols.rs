//! `.dump Symbols`: how the search for the symbols of each module went.

use handlescope_model::Trace;
use handlescope_model::tables::{Symbol, Symbols};
use handlescope_session::trace::FrameNameCache;
use std::cmp::Reverse;
use std::collections::HashMap;

use handlescope_symbols::{ModuleIdentity, ModuleReport, SearchOutcome};

use super::context::Source;
use super::error::QueryError;
use super::frame_names::{FrameNames, Frames};
use super::list_answer::ListAnswer;
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::{Filter, SystemModules};

/// The modules of one trace that contain frames and passed; those with the most missing names come first.
pub type SymbolsAnswer<'a> = ListAnswer<'a, Vec<ModuleSymbols>>;

pub struct ModuleSymbols {
    /// Distinct frames of the trace in the module.
    pub frames: usize,
    /// Frames with a name.
    pub named: usize,
    /// The module and how the search for its symbols went.
    pub report: ModuleReport,
}

impl ModuleSymbols {
    /// Whether its only names are those stored in the extract.
    pub fn is_stored(&self) -> bool {
        self.named > 0 && !self.report.is_resolved()
    }
}

/// Answers `.dump Symbols`, one answer for each trace; looks for the names of all frames.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn symbols<'a>(
    sources: &[Source<'a>],
    filter: Option<&Filter>,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<Vec<SymbolsAnswer<'a>>, QueryError> {
    sources
        .iter()
        .map(|source| {
            let frames = Frames::load(source.trace, names, source.frames, source.system, cancel)?;
            let counted = frames.resolve_modules(|module| {
                filter.is_none_or(|filter| filter.matches(&module.name))
            })?;
            let reports: HashMap<ModuleIdentity, ModuleReport> =
                names.reports().into_iter().map(|report| (report.module.clone(), report)).collect();
            let mut modules: Vec<ModuleSymbols> = counted
                .into_iter()
                .filter_map(|(module, (frames_in, named))| {
                    let module = frames.identity(module)?;
                    let report = reports.get(module).cloned().unwrap_or_else(|| {
                        ModuleReport::new(module.clone(), SearchOutcome::NoSymbolPath)
                    });
                    Some(ModuleSymbols { frames: frames_in, named, report })
                })
                .collect();
            modules.sort_by_cached_key(|ModuleSymbols { frames, named, report }| {
                let ModuleIdentity { name, path, .. } = &report.module;
                (Reverse(frames - named), name.to_lowercase(), path.clone())
            });
            ListAnswer::new(source, modules)
        })
        .collect()
}

/// The names of all frames of a trace, and how many were found.
pub struct AllNames {
    /// Frames that get their names from symbols.
    pub frames: usize,
    /// Frames with a name.
    pub named: usize,
    pub table: Symbols,
}

/// Finds the names of all frames of a trace. A name already in the extract stays, unless a symbol file has one.
///
/// # Errors
/// If the archive is damaged or `cancel` asks to stop.
pub fn all_names(
    trace: &Trace,
    memory: &FrameNameCache,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<AllNames, QueryError> {
    let frames = Frames::load(trace, names, memory, SystemModules::usual(), cancel)?;
    let modules = frames.resolve_modules(|_| true)?;
    let mut table = Symbols::default();
    for (frame, chain) in frames.named().all() {
        for (depth, named) in (0_u32..).zip(chain.iter().rev()) {
            table.push(Symbol {
                frame,
                depth,
                function: named.function.to_string(),
                offset: frames.location(frame).map(|_| named.offset),
                file: named.file.as_deref().map(str::to_owned),
                line: named.line,
                source: named.source.as_deref().map(str::to_owned),
            });
        }
    }
    let frames = modules.values().map(|(frames, _)| frames).sum();
    let named = modules.values().map(|(_, named)| named).sum();
    Ok(AllNames { frames, named, table })
}
