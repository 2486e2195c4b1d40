//! The binary: reads the command line, chooses where commands come from, and decides the exit status.

#![deny(clippy::disallowed_methods, clippy::disallowed_macros)]

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use clap::FromArgMatches;
use handlescope_commands::console::Console;
use handlescope_commands::registry::REGISTRY;
use handlescope_commands::script::{self, ScriptOutcome};
use handlescope_commands::{CommandError, Flow};
use handlescope_console::cli::{Action, Cli};
use handlescope_console::one_shot::{self, LineRefusal, OneShot};
use handlescope_console::{live, maintenance, recording, repl, shell};
use handlescope_extract::SpillingAllocator;
use handlescope_mcp as mcp;
use handlescope_model::{Reason, survive_lost_pages};
use handlescope_query::start_engine;
use handlescope_session::cancel::{self, Cancelled, ScriptInput};
use handlescope_session::environment;
#[cfg(unix)]
use handlescope_session::environment::most_addresses;
use handlescope_session::grammar::ParseError;
use handlescope_session::settings::{ConfigFile, SettingChoices, Settings, settled};
use handlescope_session::terminal::{
    ColorChoice, Messages, Screen, print_usage, report_panics, standard,
};
use handlescope_session::trace::LoadArgs;

/// Exit status of an invalid command line.
const BAD_USAGE: u8 = 2;

/// Exit status of a comparison that could not be made, or decides nothing. As with `diff` and `cmp`, 1 means that
/// something got worse.
const TROUBLE: u8 = 2;

/// A function that runs before `main`; see [`standard::look_before_main`].
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[allow(unsafe_code, reason = "only an entry of this section runs that early")]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[used]
static BEFORE_MAIN: extern "C" fn() = standard::look_before_main;

/// Limits the number of `malloc` arenas. glibc reserves 64 MiB of address space per arena, for a moment twice that, and
/// has up to eight arenas per processor. So a limit on address space would be reached with little memory in use. If
/// there is such a limit, all threads share one arena.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "only this call says it, while there are no other threads")]
fn limit_arenas() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let arenas = if most_addresses().is_some() { 1 } else { processors + 2 };
    let arenas = libc::c_int::try_from(arenas).unwrap_or(libc::c_int::MAX);
    // SAFETY: the call takes two numbers; it does not matter whether it succeeds.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) };
}

/// Makes polars read only a few row groups of a Parquet file ahead if address space is limited. It starts a thread for
/// each column of each row group, and the stacks of these threads take up addresses.
#[cfg(unix)]
#[allow(
    unsafe_code,
    reason = "the environment is the only place for it, and has no other reader yet"
)]
fn limit_reads() {
    const ROW_GROUPS: &str = "POLARS_ROW_GROUP_PREFETCH_SIZE";
    if most_addresses().is_some() && env::var_os(ROW_GROUPS).is_none() {
        // SAFETY: there are no other threads.
        unsafe { env::set_var(ROW_GROUPS, "4") };
    }
}

/// Keeps an extraction within its memory limit, whatever the trace contains.
#[global_allocator]
static ALLOCATOR: SpillingAllocator = SpillingAllocator;

/// Removes environment variables that libraries cannot use; returns what was ignored, and why.
#[allow(unsafe_code, reason = "the environment is the only place, and has no other reader yet")]
fn drop_unusable() -> Vec<String> {
    let unusable = environment::unusable();
    for (name, _) in &unusable {
        // SAFETY: there are no other threads.
        unsafe { env::remove_var(name) };
    }
    unusable.into_iter().map(|(_, reason)| reason).collect()
}

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    limit_arenas();
    let ignored = drop_unusable();
    #[cfg(unix)]
    limit_reads();
    report_panics();
    survive_lost_pages();
    let start = match parse() {
        Ok(start) => start,
        Err(LineRefusal::Globals(error)) => {
            // Help and version are also such errors, with status 0; invalid usage has status 2.
            let screen = if error.use_stderr() {
                Screen::stderr(ColorChoice::Auto)
            } else {
                Screen::stdout(ColorChoice::Auto)
            };
            let status = match print_usage(&error, screen) {
                Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
                    let error = CommandError::Output { source };
                    Messages::to_stderr(&mut standard::error(), ColorChoice::Auto).error(error);
                    1
                }
                _ => error.exit_code(),
            };
            return ExitCode::from(u8::try_from(status).unwrap_or(1));
        }
        Err(LineRefusal::Command(error)) => {
            Messages::to_stderr(&mut standard::error(), ColorChoice::Auto).error(error);
            return ExitCode::from(BAD_USAGE);
        }
    };
    let threads = environment::try_threads();
    if threads.is_ok() {
        start_engine();
    }
    let settings = settings(&start.globals);
    let color = settings.as_ref().map(Settings::color).ok().or(start.globals.color);
    let mut stderr = standard::error();
    let mut messages = Messages::to_stderr(&mut stderr, color.unwrap_or_default());
    if let Err(error) = threads {
        messages.error(error);
        return ExitCode::FAILURE;
    }
    ignored.iter().for_each(|reason| messages.warning(reason));
    let failure = if start.is_gate { ExitCode::from(TROUBLE) } else { ExitCode::FAILURE };
    match settings.and_then(|settings| run(start, settings, &mut messages)) {
        Ok(ScriptOutcome::Worked) => ExitCode::SUCCESS,
        Ok(ScriptOutcome::Worse) => ExitCode::FAILURE,
        Ok(ScriptOutcome::Undecided) => ExitCode::from(TROUBLE),
        Ok(ScriptOutcome::Failed) => failure,
        Ok(ScriptOutcome::Cancelled) => ExitCode::from(cancel::status()),
        Err(error) if error.is_cancelled() => {
            messages.note(Cancelled);
            ExitCode::from(cancel::status())
        }
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            messages.error(error);
            failure
        }
    }
}

/// Reads the command line, first in ETWAnalyzer's style, then in the usual one.
fn parse() -> Result<OneShot, LineRefusal> {
    let words: Result<Vec<String>, _> = env::args_os().skip(1).map(OsString::into_string).collect();
    let words = words.map_err(|word| ParseError::NotText { word })?;
    let words = one_shot::with_plain_dashes(words);
    if let Some(start) = one_shot::parse(&words) {
        return start;
    }
    let cli = || -> Result<Cli, clap::Error> {
        let line = env::args_os().take(1).chain(words.iter().map(OsString::from));
        let mut matches = Cli::program().try_get_matches_from(line)?;
        let cli = Cli::from_arg_matches_mut(&mut matches)?;
        cli.check().map(|()| cli)
    };
    let mut globals = cli().map_err(LineRefusal::Globals)?;
    let files = std::mem::take(&mut globals.files);
    let load = (!files.is_empty()).then(|| LoadArgs::replacing(files));
    Ok(OneShot { globals, load, command: None, notes: Vec::new(), is_gate: false })
}

/// Returns the settings from the command line, the environment and the configuration file.
fn settings(cli: &Cli) -> Result<Settings, CommandError> {
    let file = match (&cli.config, &cli.action) {
        // These actions use no settings.
        (_, Some(Action::Completions { .. } | Action::Complete { .. } | Action::Man)) => {
            ConfigFile::default()
        }
        (Some(path), _) => ConfigFile::named(path),
        (None, _) => ConfigFile::usual(),
    };
    let mut settings = Settings::read(file, |word| REGISTRY.command(word).is_some())?;
    let symbol_path = cli.symbols.symbol_path(&settings)?.map(|path| settled(&path));
    settings.command_line =
        SettingChoices { symbol_path, color: cli.color, ..SettingChoices::default() };
    Ok(settings)
}

fn run(
    start: OneShot,
    settings: Settings,
    messages: &mut Messages<'_>,
) -> Result<ScriptOutcome, CommandError> {
    let OneShot { globals: mut cli, load, command, notes, .. } = start;
    let mut out = BufWriter::new(standard::results());
    let action = cli.action.take();
    if let Some(action) = &action
        && act(action, &cli, &settings, &mut out, messages)?
    {
        out.flush()?;
        return Ok(ScriptOutcome::Worked);
    }
    for note in notes {
        messages.note(format_args!("note: {note}"));
    }
    let cancel = cancel_on_signals(messages);
    let mut console = Console::new(settings, cancel);
    console.session.force = cli.force;
    console.session.symbol_options = cli.symbol_limits.options();
    if let Some(Action::Dataset { action }) = &action {
        console.with_context(&mut out, messages, |context| maintenance::run(action, context))?;
        return Ok(ScriptOutcome::Worked);
    }
    if let Some(Action::Mcp(args)) = action {
        return mcp::run(console, &args, messages);
    }
    if console.session.settings.command_line.symbol_path.is_some() {
        console.session.warn_of_symbol_path(messages);
    }
    console.is_interactive = io::stdin().is_terminal() && cli.commands.is_empty();
    console.session.runs_programs = console.is_interactive || cli.pipes;
    let loaded = match load {
        Some(load) => load_first(&mut console, &load, cli.keep_going, messages)?,
        None => ScriptOutcome::Worked,
    };
    let outcome = match command {
        Some(command) => match console.execute(command, &mut out, messages)? {
            Flow::Worse => ScriptOutcome::Worse,
            Flow::Undecided => ScriptOutcome::Undecided,
            Flow::Continue | Flow::Quit => ScriptOutcome::Worked,
        },
        None => converse(&mut console, &cli, &mut out, messages)?,
    };
    Ok(if loaded == ScriptOutcome::Failed { loaded } else { outcome })
}

/// Carries out an action that does not need a console; returns `false` for any other.
fn act(
    action: &Action,
    cli: &Cli,
    settings: &Settings,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<bool, CommandError> {
    match action {
        Action::Completions { shell } => write!(out, "{}", shell::script(*shell))?,
        Action::Complete { words } => {
            for candidate in shell::candidates(words) {
                writeln!(out, "{}\t{}", candidate.value, candidate.description)?;
            }
        }
        Action::Record(args) => {
            let cancel = cancel_on_signals(messages);
            recording::record(args, cli.force, out, messages, &cancel)?;
        }
        Action::Live(args) if args.dry_run => recording::live_plan(args, out)?,
        Action::Live(args) => {
            let mut console = Console::new(settings.clone(), cancel_on_signals(messages));
            // Colour codes would be drawn as text.
            console.session.settings.command_line.color = Some(ColorChoice::Never);
            console.session.symbol_options = cli.symbol_limits.options();
            live::run(&mut console, args, settings.color(), out, messages)?;
        }
        Action::Wprp(args) => recording::wprp(args, cli.force, out)?,
        Action::Man => shell::man(out)?,
        // These need a console, or `one_shot` has already handled them.
        Action::Mcp(_)
        | Action::Dataset { .. }
        | Action::Dump(_)
        | Action::Why(_)
        | Action::Schema(_)
        | Action::Diff(_)
        | Action::Report(_)
        | Action::Sql(_)
        | Action::Plot(_)
        | Action::Flame(_)
        | Action::Help(_)
        | Action::Extract(_)
        | Action::Redact(_)
        | Action::ConvertTime(_) => return Ok(false),
    }
    Ok(true)
}

/// Loads what the command line names. A file that cannot be loaded ends the program if no other was loaded, or if two
/// traces were to be compared, unless the program is to continue after failures.
fn load_first(
    console: &mut Console,
    load: &LoadArgs,
    keep_going: bool,
    messages: &mut Messages<'_>,
) -> Result<ScriptOutcome, CommandError> {
    match console.load(load, messages) {
        Ok(()) => Ok(ScriptOutcome::Worked),
        Err(CommandError::Load { errors })
            if !load.as_named && !console.session.files.is_empty() =>
        {
            errors.iter().for_each(|error| messages.warning(error));
            Ok(ScriptOutcome::Failed)
        }
        Err(error) if !keep_going || error.is_cancelled() => Err(error),
        Err(error) => {
            messages.error(error);
            Ok(ScriptOutcome::Failed)
        }
    }
}

/// Runs the commands of the command line, or those typed at the prompt, or those from standard input.
fn converse(
    console: &mut Console,
    cli: &Cli,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<ScriptOutcome, CommandError> {
    let options = script::RunOptions { keep_going: cli.keep_going, echo: cli.echo };
    if !cli.commands.is_empty() {
        let steps = script::commands(&cli.commands);
        return Ok(script::run(console, steps, options, out, messages));
    }
    if io::stdin().is_terminal() {
        repl::run(console, out, messages)?;
        return Ok(ScriptOutcome::Worked);
    }
    let steps = script::steps(ScriptInput(io::stdin().lock()));
    Ok(script::run(console, steps, options, out, messages))
}

/// Returns the flag that Ctrl-C and other signals set from now on.
fn cancel_on_signals(messages: &mut Messages<'_>) -> cancel::Cancel {
    cancel::on_signals().unwrap_or_else(|error| {
        messages.note(format_args!(
            "Ctrl-C ends the program instead of the command: {}",
            Reason(&error)
        ));
        cancel::Cancel::default()
    })
}
