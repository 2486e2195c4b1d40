//! The style of answers, as far as it is not the same for all of them.

use handlescope_query::ObjectCriteria;

/// The style of the answer to `.dump ObjectRef`.
#[derive(Clone, Copy)]
pub struct ObjectRefStyle<'a> {
    pub criteria: &'a ObjectCriteria,
    /// The command line as typed.
    pub text: &'a str,
    /// `-NoCSVSeparator`: no `sep = ;` line in front.
    pub no_csv_separator: bool,
    /// `-NoCmdLine`: an empty command line column in the CSV file.
    pub no_command_line: bool,
}
