//! The command line of the program.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, error::ErrorKind};

use crate::{screen::ColorChoice, shell::Shell};

const EXAMPLES: &str = "\
Examples:
  handlescope trace.etl                               load a trace and ask questions
  handlescope trace.etl -c '.dump ObjectRef -Leak -ShowStack'
  handlescope trace.etl < questions.txt > answers.txt
  handlescope trace.etl --symbol-path 'symbols;srv*cache*https://server/symbols'
  handlescope extract *.etl -o extracts               only extract, for later

.help explains the commands: handlescope -c .help

Exit status: 0 when everything worked, 1 when something failed, 2 when this command line is wrong.";

/// Finds leaked Windows kernel handles in ETW traces.
#[derive(Debug, Parser)]
#[command(
    name = "handlescope",
    after_help = EXAMPLES,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Traces to load: extracts (.json7z), or .etl files (also in .zip or .7z), which are extracted
    /// first; * and ? stand for many files.
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,

    /// Run this command and exit; may be given several times.
    #[arg(short, value_name = "COMMAND", allow_hyphen_values = true)]
    pub commands: Vec<String>,

    /// Where to look for symbols, in the syntax of _NT_SYMBOL_PATH, which counts otherwise.
    #[arg(long, value_name = "PATH")]
    pub symbol_path: Option<String>,

    /// Run on after a command that fails; the exit status is 1 nevertheless.
    #[arg(long)]
    pub keep_going: bool,

    /// When to use colours.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub color: ColorChoice,

    /// What to do instead.
    #[command(subcommand)]
    pub action: Option<Action>,
}

impl Cli {
    /// Refuses options that would be ignored.
    ///
    /// # Errors
    /// When options for commands stand beside another action.
    pub fn check(&self) -> Result<(), clap::Error> {
        let is_for_commands =
            !self.commands.is_empty() || self.symbol_path.is_some() || self.keep_going;
        if self.action.is_some() && is_for_commands {
            let text = "-c, --symbol-path and --keep-going cannot be used with extract";
            return Err(Cli::command().error(ErrorKind::ArgumentConflict, text));
        }
        Ok(())
    }
}

/// What to do instead of running commands.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Extract traces, so that they load in no time.
    ///
    /// Writes Extract/NAME.json7z beside each trace, and a line about it to standard output.
    #[command(after_help = "Examples:\n  handlescope extract trace.etl\n  \
                            handlescope extract traces/*.etl more.zip -o extracts")]
    Extract {
        /// Traces: .etl files, or .zip and .7z files with one; * and ? stand for many files.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<String>,

        /// Folder for the extracts, instead of Extract beside each trace.
        #[arg(short, long, value_name = "DIR")]
        outdir: Option<PathBuf>,
    },

    /// Print a script that teaches a shell to complete handlescope's command lines.
    #[command(after_help = "Example:\n  source <(handlescope completions bash)")]
    Completions {
        /// The shell.
        shell: Shell,
    },

    /// Print candidates for the last of some words; for the scripts of `completions`.
    #[command(hide = true)]
    Complete {
        /// The words behind the program's name.
        #[arg(last = true)]
        words: Vec<String>,
    },

    /// Print the manual page, in roff.
    #[command(after_help = "Example:\n  handlescope man | man -l -")]
    Man,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Cli {
        Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn files_commands_and_options_mix() {
        let cli = parsed(&[
            "handlescope",
            "a.etl",
            "-c",
            ".list",
            "--keep-going",
            "b.json7z",
            "-c",
            ".quit",
            "--symbol-path",
            "x",
            "--color",
            "never",
        ]);
        assert_eq!(cli.files, ["a.etl", "b.json7z"]);
        assert_eq!(cli.commands, [".list", ".quit"]);
        assert_eq!(cli.symbol_path.as_deref(), Some("x"));
        assert!(cli.keep_going && cli.action.is_none());
        assert_eq!(cli.color, ColorChoice::Never);
    }

    #[test]
    fn extract_takes_many_files_and_one_folder() {
        let cli = parsed(&["handlescope", "extract", "a.etl", "*.zip", "-o", "out"]);
        let Some(Action::Extract { files, outdir }) = cli.action else { panic!("no action") };
        assert_eq!(files, ["a.etl", "*.zip"]);
        assert_eq!(outdir, Some("out".into()));
        assert!(Cli::try_parse_from(["handlescope", "extract"]).is_err());
    }

    #[test]
    fn options_stand_before_and_behind_extract_and_none_is_ignored() {
        assert!(parsed(&["handlescope", "--color", "never", "extract", "a.etl"]).check().is_ok());
        assert!(parsed(&["handlescope", "extract", "--color", "never", "a.etl"]).check().is_ok());
        assert!(parsed(&["handlescope", "-c", ".list", "extract", "a.etl"]).check().is_err());
        assert!(parsed(&["handlescope", "--keep-going", "extract", "a.etl"]).check().is_err());
    }
}
