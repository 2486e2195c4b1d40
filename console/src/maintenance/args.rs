//! The command line of `handlescope dataset`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const ADD_EXAMPLES: &str = "\
Examples:
  handlescope dataset add fleet *.etl --symbol-path srv*cache*https://server/symbols
  handlescope dataset add fleet a.etl --build 4.2.1     the build under test
  find traces -name '*.etl' -print0 | xargs -0 -n 1 -P 8 handlescope dataset add fleet

A trace that the dataset has is not added again, even under another name or as its extract. Several \
processes may add traces at once. Traces that cannot be added are reported, and the others are added.";

const REMOVE_EXAMPLES: &str = "\
Examples:
  handlescope dataset remove fleet 3fa92c               an id may be shortened
  handlescope dataset list fleet --json | jq -r '.traces[] | select(.date < \"2026-06-01\") | .trace' \\
    | xargs handlescope dataset remove fleet            prune old traces";

const SYMBOLIZE_EXAMPLES: &str = "\
Examples:
  handlescope dataset symbolize fleet --symbol-path symbols
  handlescope dataset symbolize fleet --symserver ms";

const LIST_EXAMPLES: &str = "\
Examples:
  handlescope dataset list fleet
  handlescope dataset list fleet --json | jq '.traces | length'";

const CHECK_EXAMPLES: &str = "\
Examples:
  handlescope dataset check fleet
  handlescope dataset check fleet && rsync -a fleet/ backup/fleet/";

const COMPACT_EXAMPLES: &str = "\
Examples:
  handlescope dataset compact fleet
  handlescope dataset add fleet *.etl && handlescope dataset compact fleet

Merges days before today (UTC) into one file per table. It may run while traces are added or \
queried. Other engines find the merged days in DIR/merged.";

/// Actions on a dataset.
#[derive(Debug, Subcommand)]
pub enum DatasetAction {
    /// Add traces to a dataset, and create it if it does not exist.
    #[command(after_help = ADD_EXAMPLES)]
    Add(AddArgs),

    /// List the traces of a dataset.
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),

    /// Remove traces from a dataset, with their extracts.
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(RemoveArgs),

    /// Check rows, hashes and versions of a dataset; exit status 1 if anything is wrong.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),

    /// Merge the small files of past days; answers stay the same.
    #[command(after_help = COMPACT_EXAMPLES)]
    Compact(CompactArgs),

    /// Describe the tables of a dataset: columns, types and meanings, in Markdown.
    Schema,

    /// Look up function names again, for traces that have stacks without symbols.
    #[command(after_help = SYMBOLIZE_EXAMPLES)]
    Symbolize(SymbolizeArgs),
}

/// Arguments of `dataset add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Folder of the dataset.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Traces (.etl), extracts (.json7z, also ETWAnalyzer's), folders or patterns.
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<String>,

    /// Build of the programs; by default the file version of each executable.
    #[arg(long, value_name = "BUILD")]
    pub build: Option<String>,

    /// Machine that recorded the traces; by default the one named in each trace.
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,

    /// Search subfolders, too.
    #[arg(short, long)]
    pub recursive: bool,

    /// Do not store extracts, which are needed to open single traces and for dataset symbolize.
    #[arg(long)]
    pub no_extracts: bool,
}

/// Arguments of `dataset list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Folder of the dataset.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `dataset remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Folder of the dataset.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Ids of traces, or their first digits.
    #[arg(value_name = "ID", required = true)]
    pub traces: Vec<String>,
}

/// Arguments of `dataset check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Folder of the dataset.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Arguments of `dataset compact`.
#[derive(Debug, Args)]
pub struct CompactArgs {
    /// Folder of the dataset.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Arguments of `dataset symbolize`.
#[derive(Debug, Args)]
pub struct SymbolizeArgs {
    /// Folder of the dataset.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
