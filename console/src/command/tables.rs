//! `.dump Process`, `.dump Module` and `.dump Stats` as entered.

use super::object_ref::JsonMode;
use crate::filter::ProcessFilter;

/// What was typed behind `.dump Process`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessArgs {
    /// `-ProcessName`: the processes to list.
    pub process: Option<ProcessFilter>,
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
    /// `-json` and `-json-pretty`.
    pub json: JsonMode,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}

/// What was typed behind `.dump Stats`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatsArgs {
    /// `-json` and `-json-pretty`.
    pub json: JsonMode,
    /// The command line as typed, without blanks at its ends.
    pub text: String,
}
