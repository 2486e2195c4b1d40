//! Command lines that run one query: `handlescope dump …`, and command lines as for ETWAnalyzer.

use std::path::Path;

use clap::{CommandFactory, Parser};
use thiserror::Error;

use crate::cli::Cli;
use handlescope_commands::dump::DumpWords;
use handlescope_commands::help::help_in_shell;
use handlescope_commands::load::Load;
use handlescope_commands::registry::{explained, registry};
use handlescope_commands::shared::gate::FAIL;
use handlescope_commands::shared::options;
use handlescope_commands::shared::symbols::program_options;
use handlescope_commands::sql::SqlWords;
use handlescope_commands::{Command, Invocation, Registry};
use handlescope_fleet::dataset::Dataset;
use handlescope_session::grammar::{self, ParseError, Token, join, parse};
use handlescope_session::paths::{
    ExpandError, TRACE_EXTENSIONS, expand, has_extension, is_extract, with_home,
};
use handlescope_session::suggest;
use handlescope_session::terminal::ColorChoice;
use handlescope_session::trace::LoadArgs;

/// A command line in ETWAnalyzer's style: options have one dash and ignore case.
pub struct OneShot {
    /// The options that every command line may have.
    pub globals: Cli,
    /// The traces to load first.
    pub load: Option<LoadArgs>,
    /// The command to run then; `None` opens the prompt.
    pub command: Option<Invocation>,
    /// The notes to print first.
    pub notes: Vec<&'static str>,
    /// Whether it is a gate, like a comparison. Then exit status 1 means that the gate fails, and 2 that the command
    /// failed.
    pub is_gate: bool,
}

/// Why a command line was rejected.
#[derive(Debug)]
pub enum LineRefusal {
    /// An error in the options that every command line may have.
    Globals(clap::Error),
    /// An error in the options of the command.
    Command(ParseError),
}

/// An ETWAnalyzer command that does not exist here, and why.
#[derive(Debug, Error)]
#[error("{command}: {reason}")]
struct NotHere {
    command: String,
    reason: &'static str,
}

/// A prompt command used as a subcommand.
#[derive(Debug, Error)]
#[error("{command} is a command of the prompt; write handlescope FILE -c '{usage}'")]
struct OnlyAtPrompt {
    command: &'static str,
    usage: String,
}

impl From<ParseError> for LineRefusal {
    fn from(error: ParseError) -> LineRefusal {
        LineRefusal::Command(error)
    }
}

/// The kind of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandForm {
    Dump,
    Extract,
    Redact,
    ConvertTime,
    Symbolize,
    Why,
    Diff,
    Report,
    Sql,
    Plot,
    Flame,
    Schema,
    Help,
    Console,
    /// An ETWAnalyzer command that does not exist here, and the reason.
    Refused(&'static str),
}

/// ETWAnalyzer's commands, which may be anywhere on the line, with their effects.
pub const SWITCHES: &[(&str, CommandForm, &str)] = &[
    ("-dump", CommandForm::Dump, "print tables of traces"),
    ("-extract", CommandForm::Extract, "extract traces"),
    ("-converttime", CommandForm::ConvertTime, "convert a time"),
    ("-loadsymbol", CommandForm::Symbolize, "store names of functions in extracts"),
    ("-console", CommandForm::Console, "load files and open the prompt"),
];

/// The console's commands, each with the subcommands that do the same.
const COMMANDS: &[(CommandForm, &str, &[&str])] = &[
    (CommandForm::Dump, ".dump", &["dump"]),
    (CommandForm::Extract, ".extract", &["extract"]),
    (CommandForm::Redact, ".redact", &["redact"]),
    (CommandForm::ConvertTime, ".converttime", &["convert-time", "converttime"]),
    (CommandForm::Symbolize, ".symbolize", &[]),
    (CommandForm::Why, ".why", &["why"]),
    (CommandForm::Diff, ".diff", &["diff"]),
    (CommandForm::Report, ".report", &["report"]),
    (CommandForm::Sql, ".sql", &["sql"]),
    (CommandForm::Plot, ".plot", &["plot"]),
    (CommandForm::Flame, ".flame", &["flame"]),
    (CommandForm::Schema, ".schema", &["schema"]),
    (CommandForm::Help, ".help", &["help"]),
];

/// ETWAnalyzer commands that do not exist here, with the reasons.
const REFUSED: &[(&str, &str)] = &[
    ("-mcp", "start the MCP server with handlescope mcp --root FOLDER"),
    ("-convert", "other formats come from dump: -csv FILE, and -json for scripts"),
];

impl CommandForm {
    /// Returns the form of an ETWAnalyzer command.
    fn from_switch(word: &str) -> Option<CommandForm> {
        let known = SWITCHES.iter().map(|(name, form, _)| (name, *form));
        let refused = REFUSED.iter().map(|(name, reason)| (name, CommandForm::Refused(reason)));
        known.chain(refused).find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, form)| form)
    }

    /// Returns the form of a subcommand.
    fn from_subcommand(word: &str) -> Option<CommandForm> {
        COMMANDS.iter().find(|(.., words)| words.contains(&word)).map(|(form, ..)| *form)
    }

    /// Returns the console command that does it.
    fn command(self) -> &'static str {
        COMMANDS.iter().find(|(form, ..)| *form == self).map_or(".load", |(_, command, _)| command)
    }
}

/// Returns the words of a command line; options that the program and its commands have get plain dashes.
pub fn with_plain_dashes(words: Vec<String>) -> Vec<String> {
    let mut is_plain = false;
    let is_known = |name: &str| {
        CommandForm::from_switch(name).is_some()
            || names_files(name)
            || FURTHER.iter().any(|option| option.eq_ignore_ascii_case(name))
            || about_symbols(name).is_some()
            || Cli::has_option(name)
            || [false, true].iter().any(|over_dataset| registry(*over_dataset).has_option(name))
    };
    let words = words.into_iter().map(|word| {
        is_plain |= word == "--";
        let plain = if is_plain { None } else { grammar::with_plain_dashes(&word, is_known) };
        plain.unwrap_or(word)
    });
    words.collect()
}

/// Options on ETWAnalyzer's command lines that no command has.
const FURTHER: [&str; 7] = ["-recursive", "-nocolor", "-debug", "-help", "--help", "-h", "-?"];

/// Reads the words after the program's name; `None` if they are a command line for [`Cli`] instead.
///
/// # Errors
/// If the command line is of this kind, but invalid.
pub fn parse(arguments: &[String]) -> Option<Result<OneShot, LineRefusal>> {
    let Split { mut globals, symbols, words, is_etwanalyzers } = split(arguments);
    if let Some(error) = mistyped(&words) {
        return Some(Err(error.into()));
    }
    let (form, name, mut words) = form(&words).or_else(|| plain_console(words, is_etwanalyzers))?;
    if form == CommandForm::Extract { &mut words } else { &mut globals }.extend(symbols);
    Some(read(form, name, globals, words))
}

/// Returns the console command line that these words begin, for completion; `None` if they are for [`Cli`].
pub fn console_line(arguments: &[String]) -> Option<Vec<String>> {
    let (form, _, words) = form(&split(arguments).words)?;
    Some(std::iter::once(form.command().to_owned()).chain(words).collect())
}

/// The options that every command line may have, and the others.
struct Split {
    globals: Vec<String>,
    /// Symbol options with two dashes, each followed by its value. They belong to an extraction, or else to the
    /// session.
    symbols: Vec<String>,
    words: Vec<String>,
    /// Whether a symbol option is in ETWAnalyzer's spelling.
    is_etwanalyzers: bool,
}

/// Returns the symbol option that a word names. The flag says whether it is in ETWAnalyzer's spelling with one dash
/// rather than [`Cli`]'s with two.
fn about_symbols(word: &str) -> Option<(&'static str, bool)> {
    let find = |name: &str| {
        program_options().map(|(option, _)| option).find(|option| option.eq_ignore_ascii_case(name))
    };
    match word.strip_prefix("--") {
        Some(name) => Some((find(name)?, false)),
        None => Some((find(word.strip_prefix('-')?)?, true)),
    }
}

fn split(arguments: &[String]) -> Split {
    let (globals, symbols, words) = Default::default();
    let mut split = Split { globals, symbols, words, is_etwanalyzers: false };
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        match name {
            "--" => {
                split.words.push(word.clone());
                split.words.extend(arguments.by_ref().cloned());
            }
            "--keep-going" | "--echo" | "--pipes" | "--force" => split.globals.push(word.clone()),
            "--color" | "--config" | "-c" | "--symbol-timeout" | "--symbol-max-size" => {
                split.globals.push(word.clone());
                if name == word {
                    split.globals.extend(arguments.next().cloned());
                }
            }
            _ => match about_symbols(name) {
                Some((option, is_etwanalyzers)) => {
                    split.is_etwanalyzers |= is_etwanalyzers;
                    split.symbols.push(format!("--{option}"));
                    // The command that gets the option reports a missing value.
                    split.symbols.extend(value.or_else(|| arguments.next().cloned()));
                }
                None => split.words.push(word.clone()),
            },
        }
    }
    split
}

/// Whether a first word is a kind of dump, and not a file or a differently capitalized subcommand.
fn is_kind(word: &str) -> bool {
    let is_kind = [false, true].iter().any(|dataset| registry(*dataset).kind(word).is_some());
    // `version` asks for the version of the program rather than of modules.
    let is_of_program =
        word == "version" || CommandForm::from_subcommand(&word.to_lowercase()).is_some();
    is_kind && !is_of_program && !is_there(word)
}

/// Whether a word names files: a pattern, an existing file, or the name of a trace.
fn is_there(word: &str) -> bool {
    let path = with_home(word);
    let is_named = has_extension(&path, TRACE_EXTENSIONS) || is_extract(&path);
    is_named || word.contains(['*', '?']) || path.exists()
}

/// Returns the error about a first word that resembles a subcommand but is neither one nor a file.
fn mistyped(words: &[String]) -> Option<ParseError> {
    let name = words.first().filter(|word| {
        let mut letters = word.bytes();
        !word.starts_with('-')
            && letters.all(|letter| letter.is_ascii_alphabetic() || letter == b'-')
    })?;
    if CommandForm::from_subcommand(name).is_some() || Cli::is_subcommand(name) || is_kind(name) {
        return None;
    }
    let has_other_case = Cli::is_subcommand(&name.to_lowercase());
    let at_prompt = registry(false).command(&format!(".{name}"));
    let at_prompt = at_prompt.filter(|_| !has_other_case && !is_there(name));
    if let Some(command) = at_prompt {
        let (command, usage) = (command.name(), command.usage());
        return Some(ParseError::refused(OnlyAtPrompt { command, usage }));
    }
    let program = Cli::command();
    let subcommands = program.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    let names = subcommands.map(clap::Command::get_name).chain(["--help", "--version"]);
    let nearest = suggest::nearest(name, names)?;
    let mut problems = Vec::new();
    expand(name, false, &mut problems);
    let is_missing = matches!(problems[..], [ExpandError::Missing { .. }]);
    let (name, hint) = (name.clone(), suggest::did_you_mean(nearest));
    is_missing.then_some(ParseError::UnknownCommand { name, hint })
}

/// Returns the form of a command line, the word that names it, and the other words.
fn form(words: &[String]) -> Option<(CommandForm, String, Vec<String>)> {
    let first = words.first()?;
    let (index, form) = match CommandForm::from_subcommand(first) {
        Some(form) => (0, form),
        None if Cli::is_subcommand(first) => return None,
        None if is_kind(first) => {
            return Some((CommandForm::Dump, "dump".to_owned(), words.to_vec()));
        }
        None => {
            let until = words.iter().position(|word| word == "--").unwrap_or(words.len());
            let switches = words.iter().take(until).enumerate();
            // The last one counts, as in ETWAnalyzer.
            switches
                .filter_map(|(index, word)| Some((index, CommandForm::from_switch(word)?)))
                .next_back()?
        }
    };
    let (before, rest) = words.split_at(index);
    let (name, behind) = rest.split_first()?;
    // The words after the command belong to it, not to an option before it.
    let count = behind.iter().take_while(|word| !word.starts_with('-')).count();
    let (arguments, behind) = behind.split_at(count);
    Some((form, name.clone(), [arguments, before, behind].concat()))
}

/// Recognizes a command line that opens the console without saying so: `-nocolor` or a symbol option shows that it is
/// in ETWAnalyzer's style.
fn plain_console(
    words: Vec<String>,
    is_etwanalyzers: bool,
) -> Option<(CommandForm, String, Vec<String>)> {
    let is_ours = !words.first().is_some_and(|first| Cli::is_subcommand(first));
    let mut options = words.iter().take_while(|word| word.as_str() != "--");
    (is_ours && (is_etwanalyzers || options.any(|word| word.eq_ignore_ascii_case("-nocolor"))))
        .then(|| (CommandForm::Console, "-console".to_owned(), words))
}

fn read(
    form: CommandForm,
    name: String,
    globals: Vec<String>,
    mut words: Vec<String>,
) -> Result<OneShot, LineRefusal> {
    if let CommandForm::Refused(reason) = form {
        return Err(ParseError::refused(NotHere { command: name, reason }).into());
    }
    let program = std::iter::once("handlescope".to_owned());
    let globals = Cli::try_parse_from(program.chain(globals)).map_err(LineRefusal::Globals)?;
    let asks_gate = |word: &String| FAIL.iter().any(|name| word.eq_ignore_ascii_case(name));
    let is_gate =
        form == CommandForm::Diff || (form == CommandForm::Why && words.iter().any(asks_gate));
    let mut shot = OneShot { globals, load: None, command: None, notes: Vec::new(), is_gate };
    let over_dataset = names_dataset(&words);
    let commands = registry(over_dataset);
    let mut take = |names: &[&str]| {
        let before = words.len();
        words.retain(|word| !names.iter().any(|name| word.eq_ignore_ascii_case(name)));
        words.len() < before
    };
    if take(&["-nocolor"]) {
        shot.globals.color = Some(ColorChoice::Never);
    }
    if take(&["-debug"]) {
        shot.notes.push(options::DEBUG);
    }
    let asks_help = take(&["-help", "--help", "-h", "-?"]);
    if asks_help || form == CommandForm::Help {
        shot.command = Some(match form {
            CommandForm::Help if !asks_help => help_on(&words, commands)?,
            _ => help(form, &words, commands)?,
        });
        return Ok(shot);
    }
    let loads = !matches!(form, CommandForm::Extract | CommandForm::Redact | CommandForm::Schema);
    shot.globals
        .check_beside(form == CommandForm::Console, loads, true)
        .map_err(LineRefusal::Globals)?;
    if form == CommandForm::Schema && shot.globals.names_symbols() {
        return Err(LineRefusal::Globals(Cli::refusal("symbol options")));
    }
    match form {
        CommandForm::Dump | CommandForm::ConvertTime | CommandForm::Symbolize => {
            let recursive = take(&["-recursive"]);
            let mut queries = queries(&mut words)?;
            if form == CommandForm::Dump {
                queries.extend(files(form, &mut words, commands));
            }
            shot.load = Some(to_load(queries, recursive));
            shot.command = command(form, &words, commands)?;
        }
        CommandForm::Why
        | CommandForm::Diff
        | CommandForm::Report
        | CommandForm::Sql
        | CommandForm::Plot
        | CommandForm::Flame => {
            let recursive = take(&["-recursive"]);
            let mut files = files(form, &mut words, commands);
            if form == CommandForm::Why && !over_dataset {
                let has_files = words.iter().any(|word| names_files(word));
                words.extend(suspects(&mut files, has_files));
            }
            if let Some((extensions, argument)) = picture(form) {
                let file = files.pop_if(|file| has_extension(Path::new(file), extensions));
                let is_missing = file.is_none() && argument.is_some();
                let example = extensions.first().map(|extension| format!("NAME.{extension}"));
                let file = file.or(example.filter(|_| is_missing));
                words.splice(..0, file);
                if let Some(argument) = argument.filter(|_| is_missing) {
                    // The error about a mistyped option explains more than the missing argument.
                    command(form, &words, commands)?;
                    let command = format!("handlescope {name}");
                    return Err(ParseError::MissingArgument { command, argument }.into());
                }
            }
            let queries = if files.is_empty() { queries(&mut words)? } else { files };
            let as_named = form == CommandForm::Diff && !over_dataset;
            if as_named {
                check_two(&name, &queries)?;
            }
            shot.load = Some(LoadArgs { as_named, ..to_load(queries, recursive) });
            shot.command = command(form, &words, commands)?;
        }
        CommandForm::Extract | CommandForm::Redact | CommandForm::Schema => {
            shot.command = command(form, &words, commands)?;
        }
        CommandForm::Console | CommandForm::Help | CommandForm::Refused(_) => {
            if words.iter().any(|word| !names_files(word)) {
                shot.load = Some(load_args(&words)?);
            }
        }
    }
    Ok(shot)
}

/// Returns the extensions of the page or picture that a command writes, and how to ask for one if it is required.
fn picture(form: CommandForm) -> Option<(&'static [&'static str], Option<&'static str>)> {
    match form {
        CommandForm::Report => {
            Some((&["html", "htm"], Some("NAME.html, the file to write, after the traces")))
        }
        CommandForm::Flame => Some((
            &["svg", "json", "gz"],
            Some(
                "NAME.svg, NAME.speedscope.json or NAME.pb.gz, the file to write, after the traces",
            ),
        )),
        CommandForm::Plot => Some((&["svg"], None)),
        _ => None,
    }
}

/// Removes words that name a suspect or a process, as at the prompt, and turns them into options. A single word is a
/// trace, unless there are other traces.
fn suspects(files: &mut Vec<String>, has_others: bool) -> Vec<String> {
    if !has_others && !files.iter().any(|file| is_there(file)) {
        return Vec::new();
    }
    let suspects = files.extract_if(.., |file| !is_there(file));
    suspects.flat_map(|suspect| ["-Which".to_owned(), suspect]).collect()
}

/// Rejects a comparison of anything but two traces.
fn check_two(name: &str, queries: &[String]) -> Result<(), ParseError> {
    let (command, argument) = (format!("handlescope {name}"), "two traces, BEFORE and AFTER");
    match queries {
        [_, _] => Ok(()),
        [_, _, word, ..] => {
            Err(ParseError::TooManyArguments { command, takes: argument, word: word.clone() })
        }
        _ => Err(ParseError::MissingArgument { command, argument }),
    }
}

/// Returns the console command.
fn command(
    form: CommandForm,
    words: &[String],
    commands: Registry,
) -> Result<Option<Invocation>, ParseError> {
    let name = std::iter::once(form.command().to_owned());
    let words: Vec<String> = name.chain(words.iter().cloned()).collect();
    commands.parse_words(&words).map_err(|error| {
        if commands.over_dataset {
            explained(error, &join(&words).1)
        } else {
            with_program_options(error)
        }
    })
}

/// Whether one of the words is a dataset, so that the command works on a dataset.
fn names_dataset(words: &[String]) -> bool {
    words.iter().any(|word| !word.starts_with('-') && Dataset::is_at(&with_home(word)))
}

/// Adds a hint to the error about an unknown option, if it resembles an option of the program.
fn with_program_options(error: ParseError) -> ParseError {
    let ParseError::UnknownOption { name, hint, help } = error else { return error };
    let program = Cli::command();
    let options = program.get_arguments().filter_map(|option| option.get_long());
    let options: Vec<String> = options.map(|option| format!("--{option}")).collect();
    let nearest = suggest::nearest(&name, options.iter().map(String::as_str));
    let hint = nearest.filter(|_| help.is_empty()).map_or(hint, suggest::did_you_mean);
    ParseError::UnknownOption { name, hint, help }
}

/// Returns the arguments for the load before the first prompt.
fn load_args(words: &[String]) -> Result<LoadArgs, ParseError> {
    let (line, tokens) = join(words);
    Load::parse(&registry(false).entered(".load", &line, &tokens))
}

/// Returns help on the kind of dump if there is one, or else on the command.
fn help(form: CommandForm, words: &[String], commands: Registry) -> Result<Invocation, ParseError> {
    let kind =
        words.iter().find_map(|word| commands.kind(word)).filter(|_| form == CommandForm::Dump);
    let topic = kind.map_or(form.command(), |kind| kind.name()).to_owned();
    help_in_shell(&[topic], commands)
}

/// Returns help on what the words name: an action, a topic of the console, or the program if there are no words.
fn help_on(words: &[String], commands: Registry) -> Result<Invocation, LineRefusal> {
    let of_form = words.first().and_then(|first| CommandForm::from_subcommand(first));
    let is_of_program = words.first().is_none_or(|first| Cli::is_subcommand(first));
    if is_of_program && of_form.is_none() {
        let words = words.iter().map(String::as_str);
        let line = ["handlescope"].into_iter().chain(words).chain(["--help"]);
        if let Err(help) = Cli::program().try_get_matches_from(line) {
            return Err(LineRefusal::Globals(help));
        }
    }
    let mut topic = words.to_vec();
    if let (Some(first), Some(form)) = (topic.first_mut(), of_form) {
        form.command().clone_into(first);
    }
    Ok(help_in_shell(&topic, commands)?)
}

/// Removes the files between the options of a command from the words, and returns them. The kind of a dump, known or
/// not, and a query are not files.
fn files(form: CommandForm, words: &mut Vec<String>, commands: Registry) -> Vec<String> {
    // An option with two dashes also takes its value.
    for word in words.iter_mut().take_while(|word| word.as_str() != "--") {
        if let Some(option) = grammar::with_one_dash(word, |name| commands.has_option(name)) {
            *word = option;
        }
    }
    let (line, tokens) = join(words);
    let options = match form {
        CommandForm::Dump => DumpWords::new(&tokens, commands).options(commands),
        _ => commands.command(form.command()).map(|command| command.options()).unwrap_or_default(),
    };
    let mut between = parse::words(&options, &tokens);
    match form {
        CommandForm::Dump => {
            let kind = between.iter().position(|word| commands.kind(&word.text).is_some());
            let kind = kind.or_else(|| between.iter().position(|word| !is_there(&word.text)));
            kind.map(|index| between.remove(index));
        }
        CommandForm::Sql => {
            let query = SqlWords::behind_files(&line, &tokens);
            between.retain(|word| query.iter().all(|part| part.span != word.span));
        }
        _ => {}
    }
    let (files, rest): (Vec<&Token>, Vec<&Token>) =
        tokens.iter().partition(|token| between.iter().any(|file| file.span == token.span));
    let texts = |tokens: Vec<&Token>| tokens.into_iter().map(|token| token.text.clone()).collect();
    *words = texts(rest);
    texts(files)
}

/// Whether a word is the option that names the files to load.
pub fn names_files(word: &str) -> bool {
    ["-fd", "-filedir"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns how to load the named files, or else the trace in the current folder; with `recursive`, all traces there.
fn to_load(queries: Vec<String>, recursive: bool) -> LoadArgs {
    if queries.is_empty() {
        let current_folder = LoadArgs::replacing(vec![".".to_owned()]);
        LoadArgs { recursive, single: !recursive, ..current_folder }
    } else {
        LoadArgs { recursive, ..LoadArgs::replacing(queries) }
    }
}

/// Removes the files after `-fd` from the words. A shell may have expanded a pattern to several files.
fn queries(words: &mut Vec<String>) -> Result<Vec<String>, ParseError> {
    let mut queries = Vec::new();
    let mut rest = std::mem::take(words).into_iter().peekable();
    while let Some(word) = rest.next() {
        if !names_files(&word) {
            words.push(word);
            continue;
        }
        match rest.next_if(|value| !value.starts_with('-')) {
            Some(query) => queries.push(query),
            None => return Err(missing_query(word)),
        }
        while let Some(file) = rest.next_if(|word| is_further_file(word)) {
            queries.push(file);
        }
    }
    Ok(queries)
}

fn is_further_file(word: &str) -> bool {
    !word.starts_with('-') && registry(false).kind(word).is_none() && Path::new(word).is_file()
}

fn missing_query(option: String) -> ParseError {
    ParseError::MissingValue {
        option,
        help: "-fd, -filedir QUERY  a file, a folder or a pattern to load".to_owned(),
    }
}

#[cfg(test)]
mod tests;
