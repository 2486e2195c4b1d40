//! Shell completions and a manual page, generated from the registry of commands.

mod candidates;
mod man;

pub use candidates::{WordCandidate, candidates};
pub use man::man;

use crate::cli::CompletionShell;

/// Returns the script that the shell runs when it starts; it asks the program itself for candidates.
///
/// `handlescope complete -- WORDS` prints a line for each candidate of the last word: its value, a tab, and its
/// description. If it prints nothing, the shell offers files. Scripts by clap_complete are self-contained, but they
/// only know options with two dashes, and no values from a trace.
pub fn script(shell: CompletionShell) -> &'static str {
    match shell {
        CompletionShell::Bash => include_str!("scripts/handlescope.bash"),
        CompletionShell::Zsh => include_str!("scripts/handlescope.zsh"),
        CompletionShell::Fish => include_str!("scripts/handlescope.fish"),
        CompletionShell::PowerShell => include_str!("scripts/handlescope.ps1"),
    }
}
