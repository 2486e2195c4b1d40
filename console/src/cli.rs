//! The command line of the program.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{Args, Command, CommandFactory, Parser, Subcommand};

use crate::maintenance::DatasetAction;
use crate::recording::{LiveArgs, RecordArgs, WprpArgs};
use handlescope_commands::help::{shell_examples, shell_usage};
use handlescope_commands::registry::REGISTRY;
use handlescope_commands::shared::symbols::{self, SymbolArgs, SymbolLimitArgs, path};
use handlescope_mcp::McpArgs;
use handlescope_session::terminal::ColorChoice;
use handlescope_session::terminal::theme::usage_styles;

const EXAMPLES: &str = "\
Examples:
  handlescope trace.etl                             load a trace and query it
  handlescope trace.etl -c '.dump ObjectRef -Leak -ShowStack'
  handlescope trace.etl < questions.txt > answers.txt
  handlescope trace.etl --symserver ms              names from Microsoft
  handlescope trace.etl --symbol-path 'symbols;srv*cache*https://server/symbols'
  handlescope dump ObjectRef -fd trace.etl -Leak    run one query
  handlescope sql trace.etl 'SELECT * FROM leaks'
  handlescope extract *.etl -o extracts             only extract, for later
  handlescope help ObjectRef -Leak                  explain a command, kind, option or word

A kind of dump may go without dump: handlescope stats trace.etl. .help lists the commands of the prompt: handlescope \
-c .help

Command lines of ETWAnalyzer work, too: -dump, -extract, -console and -converttime.

Exit status: 0 when everything worked, or a reader left early (| head); 1 when something failed; 2 when this \
command line is wrong. For diff: 0 when nothing got worse, 1 when something did, 2 for trouble, even \
if a reader left early.";

const MCP_EXAMPLES: &str = "\
Examples:
  handlescope mcp                                   files in the current folder
  handlescope mcp --root examples --symbol-path examples/symbols
  handlescope mcp --root examples --allow-write     keep extracts and symbols

Agents start the server themselves: put one of these lines into their configuration, as command and args.";

const RECORD_EXAMPLES: &str = "\
Examples:
  handlescope record leak.etl                           record until Ctrl-C
  handlescope record leak.etl --ring --duration 600     keep the newest events
  handlescope record --type \"Event;File\" --dry-run      print the configuration
  handlescope record leak.etl --stop-when \"pn leaky.exe handles > 5000\"

On Windows, in an administrator's prompt, it records until Ctrl-C, --duration or --stop-when. Elsewhere, without \
--dry-run, it fails and prints the command lines of wpr and xperf that record the same.";

const LIVE_EXAMPLES: &str = "\
Examples:
  handlescope live --type \"Event;File\"                  two types, on Windows
  handlescope live --stop-when \"pn leaky.exe handles > 5000\"
  handlescope live --replay examples/leaky.etl --symbol-path examples/symbols
  handlescope live --replay examples/leaky.etl --speed 20

Keys: q quits, s saves what is shown as an extract, w shows .why of it, o sorts by open handles, g by growth, \
p by process, t by type. When standard output is not a terminal, the table is printed once, at the end.";

const WPRP_EXAMPLES: &str = "\
Examples:
  handlescope wprp                                      print the profile
  handlescope wprp handlescope.wprp --mappings          with views of files
  handlescope wprp heaps.wprp --heap-pids 4711,815      heaps of two processes

On Windows, in an administrator's prompt:
  wpr -start handlescope.wprp!Handle -filemode
  rem reproduce the leak, then
  wpr -stop leak.etl";

const DATASET_EXAMPLES: &str = "\
Examples:
  handlescope dataset add fleet *.etl --symbol-path symbols    then ask it: handlescope why fleet
  handlescope dataset list fleet
  handlescope dataset check fleet

docs/fleet.md describes datasets.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  handlescope completions bash >> ~/.bash_completion
  handlescope completions zsh > ~/.zfunc/_handlescope
  handlescope completions fish > ~/.config/fish/completions/handlescope.fish
  handlescope completions powershell >> $PROFILE

zsh needs the line fpath+=(~/.zfunc) in ~/.zshrc, before compinit. Then start a new shell.";

const MAN_EXAMPLES: &str = "\
Examples:
  handlescope man | man -l -                            read it on Linux
  handlescope man | mandoc -a                           read it on macOS
  handlescope man > ~/.local/share/man/man1/handlescope.1";

/// Heading of options about commands that are not typed at the prompt.
const SCRIPTS: &str = "Commands and scripts";

/// Display position of options that apply everywhere: after those of a subcommand.
const BEHIND_OTHERS: usize = 100;

/// Version and commit.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("HANDLESCOPE_COMMIT"), ")");

/// Finds leaked Windows kernel handles in ETW traces.
#[derive(Debug, Parser)]
#[command(
    name = "handlescope",
    version = VERSION,
    after_help = EXAMPLES,
    styles = usage_styles(),
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Traces to load: extracts (.json7z, also ETWAnalyzer's, and its .json) or .etl files (also in
    /// .zip, .7z, .cab or .diagsession), which are extracted first; * and ? are wildcards.
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,

    /// Run this command and exit; may be given several times.
    #[arg(short, value_name = "COMMAND", allow_hyphen_values = true, help_heading = SCRIPTS)]
    pub commands: Vec<String>,

    /// Where symbols come from.
    #[command(flatten)]
    pub symbols: SymbolArgs,

    /// Limits for symbol servers.
    #[command(flatten)]
    pub symbol_limits: SymbolLimitArgs,

    /// Continue after a failed command (exit status is still 1).
    #[arg(long, help_heading = SCRIPTS)]
    pub keep_going: bool,

    /// Print each command as a comment on standard error before it runs.
    #[arg(long, help_heading = SCRIPTS)]
    pub echo: bool,

    /// Let commands of a script pipe answers into programs, as at the prompt: .why | grep heap.
    #[arg(long, help_heading = SCRIPTS)]
    pub pipes: bool,

    /// Replace files that handlescope did not write; loaded files are never replaced.
    #[arg(long)]
    pub force: bool,

    /// When to use colours; otherwise NO_COLOR, then color of handlescope.toml [default: auto].
    #[arg(long, value_enum, global = true, display_order = BEHIND_OTHERS)]
    pub color: Option<ColorChoice>,

    /// Configuration file, instead of handlescope.toml in the platform's configuration folder.
    #[arg(long, value_name = "FILE", value_parser = path, global = true, display_order = BEHIND_OTHERS)]
    pub config: Option<PathBuf>,

    /// Action instead of running commands.
    #[command(subcommand)]
    pub action: Option<Action>,
}

impl Cli {
    /// Rejects options that would be ignored next to another action, and an action that comes after its files.
    ///
    /// # Errors
    /// If there are any.
    pub fn check(&self) -> Result<(), clap::Error> {
        match self.action {
            Some(Action::Completions { .. } | Action::Man) if self.names_symbols() => {
                Err(Cli::refusal("symbol options"))
            }
            Some(Action::Completions { .. } | Action::Complete { .. } | Action::Man)
                if self.config.is_some() =>
            {
                Err(Cli::refusal("--config"))
            }
            Some(Action::Wprp(_) | Action::Record(_)) => self.check_beside(false, false, true),
            Some(_) => self.check_beside(false, false, false),
            None => self.check_files(),
        }
    }

    /// Rejects a file that does not exist and is named like an action: actions come first.
    fn check_files(&self) -> Result<(), clap::Error> {
        let action = |file: &str| file.strip_prefix('.').unwrap_or(file).to_owned();
        let is_misplaced =
            |file: &&String| Self::is_subcommand(&action(file)) && !Path::new(file).exists();
        let Some(misplaced) = self.files.iter().find(is_misplaced) else { return Ok(()) };
        let files: Vec<&str> =
            self.files.iter().filter(|file| *file != misplaced).map(String::as_str).collect();
        let line = format!("handlescope {} {}", action(misplaced), files.join(" "));
        let text = format!("'{misplaced}' is not a file; write {}", line.trim_end());
        Err(Cli::command().error(ErrorKind::ArgumentConflict, text))
    }

    /// Rejects options that would be ignored next to an action that runs no other `commands`, `loads` no traces, or
    /// `writes` no files.
    ///
    /// # Errors
    /// If there are any.
    pub fn check_beside(
        &self,
        commands: bool,
        loads: bool,
        writes: bool,
    ) -> Result<(), clap::Error> {
        let given = [
            ("-c", !self.commands.is_empty(), commands),
            ("--echo", self.echo, commands),
            ("--pipes", self.pipes, commands),
            ("--keep-going", self.keep_going, loads),
            ("--force", self.force, writes),
        ];
        match given.into_iter().find(|(_, is_given, is_used)| *is_given && !is_used) {
            None => Ok(()),
            Some((name, ..)) => Err(Cli::refusal(name)),
        }
    }

    /// Returns the error about options that would be ignored.
    pub fn refusal(options: &str) -> clap::Error {
        let text = format!("{options} cannot be used here");
        Cli::command().error(ErrorKind::ArgumentConflict, text)
    }

    /// Whether any option says where symbols come from.
    pub fn names_symbols(&self) -> bool {
        self.symbols != SymbolArgs::default() || self.symbol_limits != SymbolLimitArgs::default()
    }

    /// Returns the definition with the help of each subcommand as shown. Subcommands that need no symbols do not list
    /// the options about symbols.
    pub fn program() -> Command {
        let mut program = Cli::command();
        // Adds the global options to the subcommands.
        program.build();
        for action in ["schema", "completions", "man"] {
            program = program.mut_subcommand(action, |action| {
                action.mut_args(|option| {
                    let is_about_symbols = option.get_help_heading() == Some(symbols::HEADING);
                    option.hide(is_about_symbols)
                })
            });
        }
        program
    }

    /// Whether the program, or one of its actions, has an option with this name, including its dashes.
    pub fn has_option(name: &str) -> bool {
        fn has(command: &clap::Command, name: &str) -> bool {
            let mut options = command.get_arguments();
            options.any(|option| {
                let is_long =
                    option.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
                let letter = option.get_short().map(|short| format!("-{short}"));
                is_long || letter.as_deref() == Some(name)
            }) || command.get_subcommands().any(|action| has(action, name))
        }
        has(&Cli::command(), name)
    }

    /// Whether a word is the name of one of the actions.
    pub fn is_subcommand(word: &str) -> bool {
        static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
            let program = Cli::command();
            program.get_subcommands().map(|action| action.get_name().to_owned()).collect()
        });
        NAMES.iter().any(|name| name == word)
    }
}

/// A shell that can complete command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CompletionShell {
    /// GNU Bash 3.2 and later.
    Bash,
    /// Z shell.
    Zsh,
    /// fish 3.0 and later.
    Fish,
    /// PowerShell 5.1 and later.
    #[value(name = "powershell")]
    PowerShell,
}

/// Action instead of running commands.
///
/// Variants with [`CommandWords`] are read by [`one_shot`](crate::one_shot), because their options have one dash;
/// here they are for the help.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run one query: handlescope dump ObjectRef -fd trace.etl -Leak -ShowStack
    ///
    /// Takes the options of .dump; -fd QUERY names the files to load.
    #[command(disable_help_flag = true, override_usage = usage(".dump"), after_help = examples(".dump"))]
    Dump(CommandWords),

    /// List what leaks, how fast and why: handlescope why trace.etl --symbol-path DIR
    ///
    /// Takes the options of .why.
    #[command(disable_help_flag = true, override_usage = usage(".why"), after_help = examples(".why"))]
    Why(CommandWords),

    /// List what got worse between two traces: handlescope diff before.etl after.etl
    ///
    /// Takes the options of .diff. Exit status 0: nothing got worse; 1: something did, with a warning on standard
    /// error; 2: it failed, with an error, or lost events may explain the difference. A reader that leaves early
    /// (| head) does not change it.
    #[command(disable_help_flag = true, override_usage = usage(".diff"), after_help = examples(".diff"))]
    Diff(CommandWords),

    /// Write a web page about all leaks: handlescope report trace.etl leaks.html
    ///
    /// Takes the options of .report; name the page last, after the traces.
    #[command(disable_help_flag = true, override_usage = usage(".report"), after_help = examples(".report"))]
    Report(CommandWords),

    /// Query the tables of traces with SQL: handlescope sql trace.etl 'SELECT * FROM leaks'
    ///
    /// Takes the options of .sql; the query may be in a FILE.sql.
    #[command(disable_help_flag = true, override_usage = usage(".sql"), after_help = examples(".sql"))]
    Sql(CommandWords),

    /// Draw open handles over time: handlescope plot trace.etl handles.svg
    ///
    /// Takes the options of .plot; name the picture last, after the traces.
    #[command(disable_help_flag = true, override_usage = usage(".plot"), after_help = examples(".plot"))]
    Plot(CommandWords),

    /// Draw the stacks of leaked handles: handlescope flame trace.etl leaks.svg
    ///
    /// Takes the options of .flame; name the picture last, after the traces.
    #[command(disable_help_flag = true, override_usage = usage(".flame"), after_help = examples(".flame"))]
    Flame(CommandWords),

    /// Extract traces, so that they load at once.
    ///
    /// Writes Extract/NAME.json7z beside each trace, and a line about it to standard output. Takes the options of
    /// .extract.
    #[command(disable_help_flag = true, override_usage = usage(".extract"), after_help = examples(".extract"))]
    Extract(CommandWords),

    /// Copy a trace without names, for a bug report.
    ///
    /// Writes NAME.redacted.etl beside the trace, or the file that -o names. Takes the options of .redact.
    #[command(disable_help_flag = true, override_usage = usage(".redact"), after_help = examples(".redact"))]
    Redact(CommandWords),

    /// Convert a time to seconds since session start, or back.
    ///
    /// Takes the options of .converttime; -fd QUERY names the files to load.
    #[command(
        disable_help_flag = true,
        override_usage = usage(".converttime"),
        after_help = examples(".converttime")
    )]
    ConvertTime(CommandWords),

    /// Run a Model Context Protocol (MCP) server for agents, on standard input and output.
    ///
    /// Reads only files below the roots, and writes nothing unless --allow-write is given.
    #[command(after_help = MCP_EXAMPLES)]
    Mcp(McpArgs),

    /// Record a handle trace (Windows).
    ///
    /// Elsewhere it prints the session's configuration, or command lines of wpr and xperf.
    #[command(after_help = RECORD_EXAMPLES)]
    Record(RecordArgs),

    /// Watch open handles grow, live (Windows) or replayed from a trace.
    #[command(after_help = LIVE_EXAMPLES)]
    Live(LiveArgs),

    /// Print a profile that records handles with WPR.
    #[command(after_help = WPRP_EXAMPLES)]
    Wprp(WprpArgs),

    /// Collect the answers about many traces in a dataset of Parquet files, for DuckDB, Spark and this program.
    #[command(after_help = DATASET_EXAMPLES)]
    Dataset {
        /// Action.
        #[command(subcommand)]
        action: DatasetAction,
    },

    /// Describe the tables of an extract: columns, types, units and meanings.
    ///
    /// Takes the options of .schema.
    #[command(disable_help_flag = true, override_usage = usage(".schema"), after_help = examples(".schema"))]
    Schema(CommandWords),

    /// Explain a command, a kind of dump, an option, or a word that why prints: handlescope help ObjectRef -Leak
    ///
    /// Takes the topics of .help.
    #[command(disable_help_flag = true, override_usage = usage(".help"), after_help = examples(".help"))]
    Help(CommandWords),

    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Shell to write the script for.
        shell: CompletionShell,
    },

    /// Print candidates for the last of some words; for the scripts of `completions`.
    #[command(hide = true)]
    Complete {
        /// The words after the program's name.
        #[arg(last = true)]
        words: Vec<String>,
    },

    /// Print the manual page, in roff.
    #[command(after_help = MAN_EXAMPLES)]
    Man,
}

/// Returns the usage of the console command that does the same.
fn usage(command: &str) -> String {
    REGISTRY.command(command).map(shell_usage).unwrap_or_default()
}

/// Returns the examples of the console command that does the same.
fn examples(command: &str) -> String {
    REGISTRY.command(command).map(shell_examples).unwrap_or_default()
}

/// Words that are read elsewhere.
#[derive(Debug, Args)]
pub struct CommandWords {
    /// Options, files and values.
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub words: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use handlescope_session::settings::SettingKey;

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
            "--echo",
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
        assert_eq!(cli.symbols.path.as_deref(), Some("x"));
        assert!(cli.keep_going && cli.echo && cli.action.is_none());
        assert_eq!(cli.color, Some(ColorChoice::Never));
    }

    #[test]
    fn no_option_is_ignored_beside_another_action() {
        assert!(parsed(&["handlescope", "--color", "never", "man"]).check().is_ok());
        assert!(parsed(&["handlescope", "-c", ".list", "man"]).check().is_err());
        assert!(parsed(&["handlescope", "--keep-going", "completions", "bash"]).check().is_err());
    }

    #[test]
    fn the_help_says_what_counts_where_an_option_is_not_given() {
        let program = Cli::command();
        for key in SettingKey::ALL {
            let mut before = key.before_file().iter();
            let Some(name) = before.find_map(|name| name.strip_prefix("--")) else { continue };
            let option = program.get_arguments().find(|option| option.get_long() == Some(name));
            let help = option.and_then(clap::Arg::get_help).expect(name).to_string();
            assert!(help.contains(&format!("{key} of handlescope.toml")), "{name}: {help}");
            assert!(before.all(|variable| help.contains(variable)), "{name}: {help}");
        }
    }

    #[test]
    fn options_about_symbols_stand_before_and_behind_actions_that_use_them() {
        let refused = ["man", "completions bash"].map(|action| (action, false));
        for (action, is_used) in [("live", true), ("mcp", true)].into_iter().chain(refused) {
            let action: Vec<&str> = action.split(' ').collect();
            let option = ["--symbol-path", "x"];
            for line in [[&option[..], &action].concat(), [&action[..], &option].concat()] {
                let cli = parsed(&[&["handlescope"][..], &line].concat());
                assert_eq!(cli.symbols.path.as_deref(), Some("x"), "{line:?}");
                assert_eq!(cli.check().is_ok(), is_used, "{line:?}");
            }
        }
        assert!(Cli::is_subcommand("complete") && !Cli::is_subcommand("a.etl"));
    }

    #[test]
    fn an_action_behind_its_file_is_refused_with_the_right_order() {
        for (line, expected) in [
            (["handlescope", "a.etl", "why"], "handlescope why a.etl"),
            (["handlescope", "a.etl", ".why"], "handlescope why a.etl"),
        ] {
            let error = parsed(&line).check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(parsed(&["handlescope", "a.etl", "b.etl"]).check().is_ok());
    }
}
