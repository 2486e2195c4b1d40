//! `.dump Process`, `.dump Module`, `.dump Stack` and `.dump Stats` as entered.

use super::display::StackDisplayArgs;
use super::object_ref::JsonMode;
use super::values::{SecondsRange, TopN};
use crate::filter::{Filter, ProcessFilter};

/// What was typed behind `.dump Process`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessArgs {
    /// `-ProcessName`: the processes to list.
    pub process: Option<ProcessFilter>,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// `-json` and `-json-pretty`.
    pub json: JsonMode,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}

/// What was typed behind `.dump Module`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModuleArgs {
    /// `-ProcessName`: only modules that these processes loaded, and only those loads.
    pub process: Option<ProcessFilter>,
    /// `-Dll`: names of modules.
    pub name: Option<Filter>,
    /// `.dump Version`: only where each module lies and its version.
    pub versions: bool,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// `-json` and `-json-pretty`.
    pub json: JsonMode,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}

/// What was typed behind `.dump Stack`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StackArgs {
    /// `-ProcessName`: stacks of these processes.
    pub process: Option<ProcessFilter>,
    /// `-StackFilter`: stacks with a matching frame.
    pub stack_filter: Option<Filter>,
    /// `-MinMaxTime`: stacks of events in this time since session start.
    pub time: Option<SecondsRange>,
    /// `-TopN`: only the most frequent stacks.
    pub top: Option<TopN>,
    /// Whether and how the frames are printed.
    pub stacks: StackDisplayArgs,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// `-json` and `-json-pretty`.
    pub json: JsonMode,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}

/// What was typed behind `.dump Symbols`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SymbolsArgs {
    /// `-Dll`: modules with such a file name.
    pub name: Option<Filter>,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// `-json` and `-json-pretty`.
    pub json: JsonMode,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}

/// What was typed behind `.dump Stats`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatsArgs {
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// `-json` and `-json-pretty`.
    pub json: JsonMode,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}
