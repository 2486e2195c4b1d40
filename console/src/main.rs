//! The binary: reads the command line, chooses how commands come in, and decides the exit status.

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches};
use handlescope_console::{
    cancel::{self, Cancel, Cancelled},
    cli::{Action, Cli},
    command::LoadArgs,
    console::Console,
    error::CommandError,
    extraction::extract_files,
    messages::Messages,
    repl,
    script::{self, Outcome},
    shell,
};

/// Version and commit, for `--version`.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("HANDLESCOPE_COMMIT"), ")");

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are such errors too, with status 0; bad usage has 2.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        }
    };
    let mut stderr = io::stderr();
    let mut messages = Messages::to_stderr(&mut stderr, cli.color);
    match run(cli, &mut messages) {
        Ok(Outcome::Worked) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Ok(Outcome::Cancelled) => ExitCode::from(cancel::STATUS),
        Err(CommandError::Cancelled) => {
            messages.note(Cancelled);
            ExitCode::from(cancel::STATUS)
        }
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            messages.error(error);
            ExitCode::FAILURE
        }
    }
}

fn parse() -> Result<Cli, clap::Error> {
    let mut matches = Cli::command().version(VERSION).try_get_matches()?;
    let cli = Cli::from_arg_matches_mut(&mut matches)?;
    cli.check().map(|()| cli)
}

fn run(cli: Cli, messages: &mut Messages<'_>) -> Result<Outcome, CommandError> {
    let cancel = Cancel::on_ctrl_c().unwrap_or_else(|error| {
        messages.note(format_args!("Ctrl-C ends the program, not the command: {error}"));
        Cancel::default()
    });
    let mut out = BufWriter::new(io::stdout());
    match cli.action {
        Some(Action::Extract { files, outdir }) => {
            let worked = extract_files(&files, outdir.as_deref(), &cancel, &mut out, messages)?;
            return Ok(if worked { Outcome::Worked } else { Outcome::Failed });
        }
        Some(Action::Completions { shell }) => {
            write!(out, "{}", shell::script(shell))?;
            return out.flush().map(|()| Outcome::Worked).map_err(Into::into);
        }
        Some(Action::Complete { words }) => {
            for candidate in shell::candidates(&words) {
                writeln!(out, "{}\t{}", candidate.value, candidate.description)?;
            }
            return out.flush().map(|()| Outcome::Worked).map_err(Into::into);
        }
        Some(Action::Man) => {
            shell::man(&mut out)?;
            return out.flush().map(|()| Outcome::Worked).map_err(Into::into);
        }
        None => {}
    }
    let mut console = Console::new(cli.symbol_path, cli.color, cancel);
    let mut loaded = Outcome::Worked;
    if !cli.files.is_empty()
        && let Err(error) = console.load(&LoadArgs::replacing(cli.files), messages)
    {
        if !cli.keep_going || matches!(error, CommandError::Cancelled) {
            return Err(error);
        }
        messages.error(error);
        loaded = Outcome::Failed;
    }
    let outcome = if !cli.commands.is_empty() {
        let steps = script::commands(&cli.commands);
        script::run(&mut console, steps, cli.keep_going, &mut out, messages)
    } else if io::stdin().is_terminal() {
        repl::run(&mut console, cli.color, &mut out, messages)?;
        Outcome::Worked
    } else {
        let steps = script::lines(io::stdin().lock());
        script::run(&mut console, steps, cli.keep_going, &mut out, messages)
    };
    Ok(if loaded == Outcome::Failed { loaded } else { outcome })
}
