//! Proves on Windows that handlescope reads recordings the way the recorded program wrote them down; packs what does
//! not match.
//!
//! `windows-acceptance run`, as an administrator, records `leaky-program` in every way that handlescope documents and
//! compares each recording with the program's truth. `windows-acceptance compare` compares one recording, on any
//! system.

mod package;
mod recording;
mod ways;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use clap::{Parser, Subcommand};
use leaky_program::truth::parse;

use handlescope_tests::acceptance::{Check, Expectation, compare, observe};

/// Proves that recordings of leaky-program are read as it says they were.
#[derive(Debug, Parser)]
#[command(name = "windows-acceptance")]
struct AcceptanceCli {
    #[command(subcommand)]
    action: AcceptanceCommand,

    /// The program handlescope; by default the one beside this program.
    #[arg(long, global = true)]
    program: Option<PathBuf>,

    /// Where to look for the PDB of leaky-program; by default beside it.
    #[arg(long, global = true)]
    symbol_path: Option<String>,
}

#[derive(Debug, Subcommand)]
enum AcceptanceCommand {
    /// Compare a recording with a truth.
    Compare { truth: PathBuf, trace: PathBuf },

    /// Record leaky-program in every way and compare each recording (Windows, as an administrator).
    Run {
        /// Folder for recordings, truths and the zip of what failed.
        #[arg(long, default_value = "acceptance")]
        folder: PathBuf,

        /// Seconds that leaky-program runs in each recording.
        #[arg(long, default_value_t = 10)]
        seconds: u64,

        /// Only ways to record whose names contain this.
        #[arg(long)]
        only: Option<String>,
    },
}

fn main() -> ExitCode {
    let cli = AcceptanceCli::parse();
    match run(&cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("windows-acceptance: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether nothing failed.
fn run(cli: &AcceptanceCli) -> Result<bool, String> {
    let programs = ProgramPaths {
        handlescope: cli.program.clone().map_or_else(|| beside("handlescope"), Ok)?,
        leaky: beside("leaky-program")?,
        symbols: cli.symbol_path.clone().or_else(|| {
            let folder = beside("leaky-program").ok()?.parent()?.to_path_buf();
            Some(folder.to_string_lossy().into_owned())
        }),
    };
    match &cli.action {
        AcceptanceCommand::Compare { truth, trace } => {
            let checks = programs.checks(truth, trace)?;
            checks.iter().for_each(|check| println!("{check}"));
            Ok(!checks.iter().any(Check::has_failed))
        }
        AcceptanceCommand::Run { folder, seconds, only } => {
            if !cfg!(windows) {
                return Err("recording needs Windows; use compare elsewhere".to_owned());
            }
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let report = recording::run_all(&programs, folder, *seconds, only.as_deref());
            let zip = folder.join("acceptance.zip");
            if report.has_failed() {
                package::pack(&programs, &report, &zip)?;
                println!("what failed is in {}; attach it to an issue", zip.display());
            }
            Ok(!report.has_failed())
        }
    }
}

/// Returns the path of a program in this program's folder.
fn beside(name: &str) -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    Ok(this.with_file_name(format!("{name}{}", env::consts::EXE_SUFFIX)))
}

/// The programs to run.
pub struct ProgramPaths {
    pub handlescope: PathBuf,
    pub leaky: PathBuf,
    /// Where to look for the PDB of leaky-program.
    pub symbols: Option<String>,
}

impl ProgramPaths {
    /// Compares a recording with a truth.
    ///
    /// # Errors
    /// If the truth cannot be read, or handlescope cannot read the recording.
    pub fn checks(&self, truth: &Path, trace: &Path) -> Result<Vec<Check>, String> {
        let text = fs::read_to_string(truth);
        let text = text.map_err(|error| format!("{}: {error}", truth.display()))?;
        let lines = parse(&text)
            .map_err(|(line, error)| format!("{}: line {line}: {error}", truth.display()))?;
        let observed = observe(&self.handlescope, trace, self.symbols.as_deref())?;
        Ok(compare(&Expectation::new(&lines), &observed))
    }
}
