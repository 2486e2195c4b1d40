//! `.dump Process`, `.dump Module`, `.dump Stack` and `.dump Stats` as entered.

use super::display::StackDisplayArgs;
use super::values::{SecondsRange, TopN};
use crate::filter::{Filter, ProcessFilter};
use crate::render::{Format, OutputOptions};

/// What was typed behind `.dump Process`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessArgs {
    /// `-ProcessName`: the processes to list.
    pub process: Option<ProcessFilter>,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// How the answer is written, and where.
    pub output: OutputOptions,
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
    /// How the answer is written, and where.
    pub output: OutputOptions,
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
    /// Whether and how the frames are printed.
    pub stacks: StackDisplayArgs,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// How the answer is written, and where.
    pub output: OutputOptions,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}

impl StackArgs {
    /// The most frequent stacks that are wanted; all of them when another order counts.
    pub(crate) fn most_frequent(&self) -> Option<TopN> {
        self.output.top.filter(|_| self.output.sort_by.is_none())
    }

    /// Whether the frames are wanted and not only the innermost ones.
    pub(crate) fn wants_frames(&self) -> bool {
        self.stacks.show || self.output.format() != Format::Text
    }
}

/// What was typed behind `.dump Symbols`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SymbolsArgs {
    /// `-Dll`: modules with such a file name.
    pub name: Option<Filter>,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// How the answer is written, and where.
    pub output: OutputOptions,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}

/// What was typed behind `.dump Stats`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatsArgs {
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// How the answer is written, and where.
    pub output: OutputOptions,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}
