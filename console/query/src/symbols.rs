//! `.dump Symbols`: what became of the search for the symbols of each module.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use handlescope_symbols::{ModuleIdentity, ModuleReport, Outcome};

use super::error::QueryError;
use super::frame_names::{FrameNames, Frames};
use super::source::Source;
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;

/// The modules of one trace that frames lie in.
pub struct SymbolsAnswer<'a> {
    /// The file as it was named.
    pub path: &'a Path,
    /// Number of the trace in the session.
    pub index: usize,
    /// Modules that passed; those with the most missing names first.
    pub modules: Vec<ModuleSymbols>,
}

pub struct ModuleSymbols {
    /// Distinct frames of the trace in the module.
    pub frames: usize,
    /// Frames that have a name.
    pub named: usize,
    /// The module, and what became of the search for its symbols.
    pub report: ModuleReport,
}

impl ModuleSymbols {
    /// Whether its names are only those stored in the extract.
    pub fn is_stored(&self) -> bool {
        self.named > 0 && !self.report.is_resolved()
    }
}

/// Answers `.dump Symbols`, one answer for each trace: looks for the names of all frames.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn symbols<'a>(
    sources: &[Source<'a>],
    filter: Option<&Filter>,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<Vec<SymbolsAnswer<'a>>, QueryError> {
    let answers = sources.iter().map(|source| {
        let frames = Frames::load(source.trace, names, source.frames, cancel)?;
        let counted = frames
            .resolve_modules(|module| filter.is_none_or(|filter| filter.matches(&module.name)))?;
        let reports: HashMap<ModuleIdentity, ModuleReport> =
            names.reports().into_iter().map(|report| (report.module.clone(), report)).collect();
        let modules = counted.into_iter().map(|counted| ModuleSymbols {
            frames: counted.frames,
            named: counted.named,
            report: reports.get(counted.module).cloned().unwrap_or_else(|| {
                ModuleReport::new(counted.module.clone(), Outcome::NoSymbolPath)
            }),
        });
        let mut modules: Vec<ModuleSymbols> = modules.collect();
        modules.sort_by_cached_key(|ModuleSymbols { frames, named, report }| {
            let ModuleIdentity { name, path, .. } = &report.module;
            (Reverse(frames - named), name.to_lowercase(), path.clone())
        });
        Ok(SymbolsAnswer { path: source.path, index: source.index, modules })
    });
    answers.collect()
}
