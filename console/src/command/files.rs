//! Commands about files as entered.

use std::path::PathBuf;

use handlescope_extract::StackChoice;

use super::SymbolArgs;
use crate::filter::Filter;

/// What was typed behind `.load` or `.load+`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadArgs {
    /// Files, folders and patterns.
    pub queries: Vec<String>,
    /// `.load+`: keep what is loaded.
    pub append: bool,
    /// `-r`: look into folders below folders.
    pub recursive: bool,
    /// `-all`: read all tables at once.
    pub all: bool,
    /// `-MaxSize`: largest member of an archive that is read, bytes.
    pub max_size: Option<u64>,
}

/// What was typed behind `.dir`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirArgs {
    /// A folder or pattern; `None` for the current folder.
    pub query: Option<String>,
    /// `-r`: look into folders below.
    pub recursive: bool,
    /// `-od`: sort by time.
    pub by_time: bool,
}

/// What was typed behind `.converttime`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConvertTimeArgs {
    /// `-time`: a point in time, or seconds since session start.
    pub time: Option<String>,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
}

/// What was typed behind `.extract`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractArgs {
    /// Files, folders and patterns.
    pub queries: Vec<String>,
    /// What to extract that nobody here can.
    pub unknown_extractors: Vec<String>,
    /// `-recursive`: look into folders below folders.
    pub recursive: bool,
    /// `-outdir`: the folder for the extracts, instead of `Extract` beside each trace.
    pub outdir: Option<PathBuf>,
    /// `-stacks`: which stacks to keep; those of handle events unless it is given.
    pub stacks: Option<StackChoice>,
    /// `-NoOverwrite`: leave traces alone that have an extract.
    pub no_overwrite: bool,
    /// `-MaxSize`: largest trace in an archive that is unpacked, bytes.
    pub max_size: Option<u64>,
    /// `-DryRun`: only list the traces.
    pub dry_run: bool,
    /// `-symbols`: store the names of all frames.
    pub store_names: bool,
    /// `-etwanalyzer`: write what ETWAnalyzer reads, too.
    pub etwanalyzer: bool,
    /// Where symbols come from when stacks are shown.
    pub symbols: SymbolArgs,
    /// Options that were accepted without effect, each with the reason.
    pub notes: Vec<&'static str>,
}

/// What was typed behind `.save`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SaveArgs {
    /// The archive.
    pub file: PathBuf,
    /// `-etwanalyzer`: write what ETWAnalyzer reads, too.
    pub etwanalyzer: bool,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
}

impl LoadArgs {
    /// Files, folders and patterns in place of what is loaded.
    pub fn replacing(queries: Vec<String>) -> LoadArgs {
        LoadArgs { queries, ..LoadArgs::default() }
    }
}
