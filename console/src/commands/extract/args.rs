//! `.extract` as entered.

use std::path::PathBuf;

use handlescope_extract::StackChoice;

use crate::commands::shared::{
    notes::TakesNotes,
    symbols::{SymbolArgs, TakesSymbols},
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExtractArgs {
    /// Files, folders and patterns.
    pub(crate) queries: Vec<String>,
    /// What ETWAnalyzer extracts and this program does not.
    pub(crate) unknown_extractors: Vec<String>,
    /// `-recursive`: look into folders below folders.
    pub(crate) recursive: bool,
    /// `-outdir`: the folder for the extracts, instead of `Extract` beside each trace.
    pub(crate) outdir: Option<PathBuf>,
    /// `-stacks`: which stacks to keep; those of handle events unless it is given.
    pub(crate) stacks: Option<StackChoice>,
    /// `-events`: providers whose single events to keep.
    pub(crate) events: Option<String>,
    /// `-resource`: events that acquire and release, in words or as the name of a file.
    pub(crate) resource: Option<String>,
    /// `-NoOverwrite`: leave traces alone that have an extract.
    pub(crate) no_overwrite: bool,
    /// `-Force`: replace a file that is no extract.
    pub(crate) force: bool,
    /// `-MaxSize`: largest trace in an archive that is unpacked, bytes.
    pub(crate) max_size: Option<u64>,
    /// `-DryRun`: only list the traces.
    pub(crate) dry_run: bool,
    /// `-symbols`: store the names of all frames.
    pub(crate) store_names: bool,
    /// `-etwanalyzer`: write what ETWAnalyzer reads, too.
    pub(crate) etwanalyzer: bool,
    /// Where symbols come from when stacks are shown.
    pub(crate) symbols: SymbolArgs,
    /// Options that were accepted without effect, each with the reason.
    pub(crate) notes: Vec<&'static str>,
}

impl TakesSymbols for ExtractArgs {
    fn symbols(&mut self) -> &mut SymbolArgs {
        &mut self.symbols
    }
}

impl TakesNotes for ExtractArgs {
    fn notes(&mut self) -> &mut Vec<&'static str> {
        &mut self.notes
    }
}
