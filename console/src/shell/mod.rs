//! Shell completions and a manual page, generated from the registry of commands.

mod candidates;
mod man;

pub use candidates::{Candidate, candidates};
pub use man::man;

use crate::cli::Shell;

/// The script that the shell runs when it starts; it asks the program itself for candidates.
///
/// `handlescope complete -- WORDS` prints a line for each candidate of the last word: the value, a
/// tab and what it is. Where it prints nothing, the shell offers files. clap_complete writes scripts that
/// know everything themselves, but it knows only options with two dashes, and nothing of the values in a trace.
pub fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("scripts/handlescope.bash"),
        Shell::Zsh => include_str!("scripts/handlescope.zsh"),
        Shell::Fish => include_str!("scripts/handlescope.fish"),
        Shell::PowerShell => include_str!("scripts/handlescope.ps1"),
    }
}
