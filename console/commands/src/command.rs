//! Commands, and the registry that lists them and parses lines.
//!
//! A command is one type with its signature, its options, its parser and what it does. A kind of `.dump` is a command
//! that answers with a table. [`AnyCommand`] is a command without the type of its arguments.

use std::borrow::Cow;
use std::fmt::Debug;
use std::path::Path;

use super::context::{Context, DumpContext, Invocation, SharedArgs};
use super::error::CommandError;
use super::pipe::Pipe;
use super::shared::groups;
use super::syntax::Syntax;
use super::topics::TopicSpec;
use handlescope_render::OutputOptions;
use handlescope_session::grammar::{
    Arguments, Example, GroupView, OptionGroup, OptionSpec, ParseError, Quotes, Redirect, Target,
    Token, definition_start, join, parse, split, starts_comment, with_one_dash, with_plain_dashes,
    without_comments,
};
use handlescope_session::paths::{EXTRACT_EXTENSION, TRACE_EXTENSIONS, has_extension};
use handlescope_session::settings::Aliases;
use handlescope_session::suggest;
use handlescope_session::values::{ValueError, joined, listed};

/// The description of a command, or of a kind of `.dump`.
#[derive(Clone, Copy)]
pub struct Signature {
    /// Names; the first one is shown.
    pub names: &'static [&'static str],
    /// Heading in the list of commands.
    pub group: &'static str,
    /// Arguments, as written in the help.
    pub usage: &'static str,
    /// Arguments, for completion and highlighting.
    pub arguments: Arguments,
    /// One-line summary.
    pub summary: &'static str,
    /// Full description.
    pub details: &'static str,
    /// Command lines that work on `examples/leaky.etl`; examples of a kind have goals.
    pub examples: &'static [Example],
}

impl Signature {
    /// The signature of a kind of `.dump`, except its name and description.
    pub const KIND: Signature = Signature {
        names: &[],
        group: groups::QUERIES,
        usage: "[OPTION…]",
        arguments: Arguments::Options,
        summary: "",
        details: "",
        examples: &[],
    };
}

/// The table that a kind of `.dump` answers with.
#[derive(Clone, Copy)]
pub struct Tabular {
    /// Columns that `-SortBy` can name.
    pub columns: fn() -> Vec<String>,
    /// Columns that `-Columns` can name.
    pub choices: fn() -> Vec<String>,
}

impl Tabular {
    /// Describes a table whose columns can all be named.
    pub const fn new(columns: fn() -> Vec<String>) -> Tabular {
        Tabular { columns, choices: columns }
    }
}

/// The arguments of a command, and those that every table has.
pub type ParsedArgs<A> = Result<(A, SharedArgs), ParseError>;

/// A command while a dataset is loaded. It has the same arguments, but other options set them.
pub struct OverDataset<A: 'static> {
    pub signature: &'static Signature,
    pub options: &'static [OptionGroup<A>],
    /// The table that it answers with; `None` for a command without a table.
    pub table: Option<Tabular>,
    /// Parses the arguments and those that every table has.
    pub parse: fn(&OverDataset<A>, &EnteredLine<'_>) -> ParsedArgs<A>,
    /// Answers about the loaded dataset.
    pub answer: fn(&A, &mut DumpContext<'_, '_>) -> Result<(), CommandError>,
}

/// A command of the console, or a kind of `.dump`.
pub trait Command: Sync + 'static {
    type Args: Default + Debug + 'static;
    const SIGNATURE: Signature;
    const OPTIONS: &'static [OptionGroup<Self::Args>] = &[];

    /// The table that it answers with. A command with a table also takes the options in [`SharedArgs`].
    const TABLE: Option<Tabular> = None;

    /// The command while a dataset is loaded; `None` if it does not depend on what is loaded, or needs traces.
    const FOR_DATASET: Option<&'static OverDataset<Self::Args>> = None;

    /// Returns its own options under their headings.
    fn groups() -> Vec<GroupView> {
        GroupView::all(Self::OPTIONS)
    }

    /// Parses the arguments of a command without a table. By default, these are only options, or nothing.
    ///
    /// # Errors
    /// Says what is wrong and what to type instead.
    fn parse(entered: &EnteredLine<'_>) -> Result<Self::Args, ParseError> {
        if Self::OPTIONS.is_empty() {
            entered.takes_nothing()?;
        }
        entered.options(Self::OPTIONS)
    }

    /// Carries out a command without a table.
    ///
    /// # Errors
    /// If it cannot be done, or was cancelled.
    fn run(_: Self::Args, _: &mut Context<'_, '_>) -> Result<(), CommandError> {
        Ok(())
    }

    /// Returns the arguments that a command without a table shares with those that have one, if there are any.
    fn shared(_: &Self::Args) -> Option<&SharedArgs> {
        None
    }

    /// Adds the output settings of its own options, which replace options that every table has.
    fn add_output(_: &Self::Args, _: &mut OutputOptions) {}

    /// Rejects options that contradict each other.
    ///
    /// # Errors
    /// Names both options.
    fn check(_: &Self::Args, _: &SharedArgs) -> Result<(), ParseError> {
        Ok(())
    }

    /// Answers with the table.
    ///
    /// # Errors
    /// If a trace cannot be read, the output cannot be written, or it was cancelled.
    fn answer(_: &Self::Args, _: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        Ok(())
    }
}

/// A line that starts with a command.
#[derive(Clone, Copy)]
pub struct EnteredLine<'a> {
    /// The whole line.
    pub line: &'a str,
    /// The command as typed.
    pub name: &'a str,
    /// The rest of the line; for a kind of `.dump`, without the kind.
    pub tokens: &'a [Token],
    /// All commands and kinds.
    pub registry: Registry,
    /// The aliases of the session.
    pub aliases: &'a Aliases,
    /// Where the line was typed.
    pub syntax: Syntax,
    /// `> FILE` or `>> FILE` at the end of the line.
    pub file: Option<&'a Target>,
}

/// A [`Command`] with its type erased.
pub trait AnyCommand: Sync {
    fn signature(&self) -> &'static Signature;
    /// Parses the arguments.
    ///
    /// # Errors
    /// Says what is wrong and what to type instead.
    fn parse(&self, entered: &EnteredLine<'_>) -> Result<Invocation, ParseError>;

    /// Returns all options under their headings; those of `.dump` belong to the kinds.
    fn groups(&self) -> Vec<GroupView> {
        Vec::new()
    }

    /// Returns the table that it answers with.
    fn table(&self) -> Option<Tabular> {
        None
    }

    /// Returns the kinds below it, in the order of the help.
    fn kinds(&self) -> &'static [&'static dyn AnyCommand] {
        &[]
    }

    /// Returns the same command for a loaded dataset, if it has a form of its own for that.
    fn over_dataset(&self) -> Option<&'static dyn AnyCommand> {
        None
    }

    /// Returns the displayed name.
    fn name(&self) -> &'static str {
        self.signature().names.first().copied().unwrap_or_default()
    }

    /// Returns name and arguments.
    fn usage(&self) -> String {
        [self.name(), self.signature().usage].join(" ").trim_end().to_owned()
    }

    /// Whether this is one of its names, ignoring case.
    fn is_named(&self, name: &str) -> bool {
        self.signature().names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn options(&self) -> Vec<&'static dyn OptionSpec> {
        self.groups().into_iter().flat_map(|group| group.options).collect()
    }

    /// Finds an option by name, ignoring case.
    fn option(&self, name: &str) -> Option<&'static dyn OptionSpec> {
        self.options().into_iter().find(|option| option.is_named(name))
    }
}

/// Maximum number of commands and kinds that an error names for an option.
const MAX_PLACES: usize = 3;

/// Word that asks for the help page of the command before it.
const HELP: &str = "-help";

/// What must be loaded for a command to be available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Anything,
    /// Traces, or nothing.
    Traces,
}

/// The commands available with traces, or with a dataset, and the other help topics.
#[derive(Clone, Copy)]
pub struct Registry {
    /// All commands, in the order of the help.
    pub list: &'static [(Scope, &'static dyn AnyCommand)],
    /// Whether a dataset is loaded.
    pub over_dataset: bool,
    pub topics: &'static [TopicSpec],
}

impl Registry {
    /// Returns the available commands, in the order of the help.
    pub fn commands(&self) -> impl Iterator<Item = &'static dyn AnyCommand> + use<> {
        let over_dataset = self.over_dataset;
        self.list.iter().filter(move |(scope, _)| !over_dataset || *scope == Scope::Anything).map(
            move |(_, command)| command.over_dataset().filter(|_| over_dataset).unwrap_or(*command),
        )
    }

    /// Returns the kinds of `.dump`, in the order of the help.
    pub fn kinds(&self) -> impl Iterator<Item = &'static dyn AnyCommand> + use<> {
        let over_dataset = self.over_dataset;
        let kinds = self.list.iter().flat_map(|(_, command)| command.kinds());
        kinds.filter_map(move |kind| if over_dataset { kind.over_dataset() } else { Some(*kind) })
    }

    /// Finds a command by name, ignoring case.
    pub fn command(&self, name: &str) -> Option<&'static dyn AnyCommand> {
        self.commands().find(|command| command.is_named(name))
    }

    /// Finds the command at the start of a line, ignoring case; the dot may be missing.
    pub fn command_of_line(&self, name: &str) -> Option<&'static dyn AnyCommand> {
        self.command(name).or_else(|| self.command(&format!(".{name}")))
    }

    /// Finds a kind of `.dump` by name, ignoring case.
    pub fn kind(&self, name: &str) -> Option<&'static dyn AnyCommand> {
        self.kinds().find(|kind| kind.is_named(name))
    }

    /// Finds another help topic by name, ignoring case.
    pub fn topic(&self, name: &str) -> Option<&'static TopicSpec> {
        self.topics.iter().find(|topic| topic.name.eq_ignore_ascii_case(name))
    }

    /// Parses one line without aliases.
    ///
    /// # Errors
    /// The errors of [`Registry::parse_with`].
    pub fn parse(self, line: &str) -> Result<Option<Invocation>, ParseError> {
        self.parse_with(line, Aliases::NONE)
    }

    /// Parses one line. An empty line and a comment (`#` at the start) are not commands.
    ///
    /// # Errors
    /// Says what is wrong and what to type instead.
    pub fn parse_with(
        self,
        line: &str,
        aliases: &Aliases,
    ) -> Result<Option<Invocation>, ParseError> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let line = aliases.expand(line).map_err(ParseError::refused)?;
        let line = self.without_comments(&line);
        self.parse_tokens(&line, &split(&line), aliases, Syntax::Prompt)
    }

    /// Removes comments before a query from a line, because quotes in comments mean nothing.
    fn without_comments<'l>(&self, line: &'l str) -> Cow<'l, str> {
        let Some((name, rest)) = line.trim_start().split_once(char::is_whitespace) else {
            return line.into();
        };
        let command = self.command_of_line(name).map(|command| command.signature().arguments);
        if starts_comment(rest.trim_start()) && matches!(command, Some(Arguments::Sql)) {
            format!("{name} {}", without_comments(rest)).into()
        } else {
            line.into()
        }
    }

    /// Parses words that a shell has split; they may contain spaces and quotes.
    ///
    /// # Errors
    /// The errors of [`Registry::parse`].
    pub fn parse_words(self, words: &[String]) -> Result<Option<Invocation>, ParseError> {
        let (line, tokens) = join(words);
        self.parse_tokens(&line, &tokens, Aliases::NONE, Syntax::Shell)
    }

    fn parse_tokens(
        self,
        line: &str,
        tokens: &[Token],
        aliases: &Aliases,
        syntax: Syntax,
    ) -> Result<Option<Invocation>, ParseError> {
        let plain = self.with_plain_dashes(tokens);
        let tokens = plain.as_deref().unwrap_or(tokens);
        let Some((first, rest)) = tokens.split_first() else { return Ok(None) };
        let Some(command) = self.command_of_line(&first.text) else {
            // A trace on its own is loaded.
            let path = Path::new(&first.text);
            let is_trace =
                has_extension(path, TRACE_EXTENSIONS) || has_extension(path, &[EXTRACT_EXTENSION]);
            if syntax == Syntax::Prompt && is_trace {
                let line = format!(".load {line}");
                return self.parse_tokens(&line, &split(&line), aliases, syntax);
            }
            return Err(self.unknown_command(&first.text, aliases));
        };
        let takes = command.signature().arguments;
        let Pipe { line, tokens: rest, program, .. } = match syntax {
            Syntax::Prompt => Pipe::from_command(takes, line, rest),
            // The shell has already handled pipes.
            Syntax::Shell => Pipe::none(line, rest),
        };
        let defines = matches!(takes, Arguments::Alias) && definition_start(line, rest).is_some();
        if !defines && let Some(page) = self.help_of(command, first, rest) {
            return page?.into_program(program).map(Some);
        }
        let Redirect { line, tokens, file } = Redirect::from_command(takes, line, rest);
        if let Some(arrow) = Redirect::without_file(tokens) {
            let command = arrow.to_owned();
            return Err(ParseError::MissingArgument { command, argument: "a file name" });
        }
        let (name, target) = (first.text.as_str(), file.as_ref());
        let entered =
            EnteredLine { line, name, tokens, registry: self, aliases, syntax, file: target };
        let invocation =
            command.parse(&entered).map_err(|error| self.with_places(error, command, &entered))?;
        invocation.into_file(file)?.into_program(program).map(Some)
    }

    /// Replaces typographic and double dashes of options by plain ones; `None` if there are none.
    fn with_plain_dashes(&self, tokens: &[Token]) -> Option<Vec<Token>> {
        let is_known = |name: &str| self.has_option(name);
        let plain = |token: &Token| {
            let text = Some(token).filter(|token| token.quotes == Quotes::No)?;
            with_plain_dashes(&text.text, is_known).or_else(|| with_one_dash(&text.text, is_known))
        };
        let is_to_change = |token: &Token| {
            token.has_typographic_dash()
                || (token.quotes == Quotes::No && token.text.starts_with("--"))
        };
        if !tokens.iter().any(is_to_change) {
            return None;
        }
        let tokens = tokens.iter().map(|token| {
            let text = plain(token).unwrap_or_else(|| token.text.clone());
            Token { text, ..token.clone() }
        });
        Some(tokens.collect())
    }

    /// Returns the options of all kinds of `.dump`, then those of all commands; a name may occur several times.
    pub fn options(&self) -> impl Iterator<Item = &'static dyn OptionSpec> + use<> {
        self.kinds().chain(self.commands()).flat_map(|command| command.options())
    }

    /// Whether any command or kind of `.dump` has an option with this name.
    pub fn has_option(&self, name: &str) -> bool {
        let mut options = self.options();
        name.eq_ignore_ascii_case(HELP) || options.any(|option| option.is_named(name))
    }

    /// Adds to an error the commands and kinds that have the option.
    fn with_places(
        &self,
        error: ParseError,
        command: &dyn AnyCommand,
        entered: &EnteredLine<'_>,
    ) -> ParseError {
        let ParseError::UnknownOption { name, .. } = &error else { return error };
        let has_option = |options: &[&'static dyn OptionSpec]| {
            options.iter().any(|option| option.is_named(name) && option.has_effect())
        };
        let is_command = |kind: &str| self.command(&format!(".{kind}")).is_some();
        let dump = |kind: &str| format!("{} {kind}", entered.syntax.command(".dump"));
        let kinds = self
            .kinds()
            .filter(|kind| !is_command(kind.name()))
            .filter(|kind| has_option(&kind.options()));
        let commands = self.commands().filter(|command| has_option(&command.options()));
        let places: Vec<String> = kinds
            .map(|kind| dump(kind.name()))
            .chain(commands.map(|command| entered.syntax.command(command.name())))
            .collect();
        if places.is_empty() {
            return error;
        }
        let kind = entered.tokens.iter().find_map(|token| self.kind(&token.text));
        let command = match (command.signature().arguments, kind) {
            (Arguments::Kind, Some(kind)) => dump(kind.name()),
            _ => entered.command(),
        };
        // Naming one more takes no more room than saying "1 more".
        let places = if places.len() <= MAX_PLACES + 1 {
            joined(&places)
        } else {
            listed(&places, MAX_PLACES)
        };
        ParseError::OptionElsewhere { name: name.clone(), command, places }
    }

    /// Returns the help page of a command, or of its kind of `.dump`, if `-help` follows it.
    fn help_of(
        self,
        command: &dyn AnyCommand,
        first: &Token,
        rest: &[Token],
    ) -> Option<Result<Invocation, ParseError>> {
        rest.iter()
            .find(|token| token.quotes == Quotes::No && token.text.eq_ignore_ascii_case(HELP))?;
        let help = self.command(".help").filter(|help| help.name() != command.name())?;
        let kind = rest.first().filter(|token| self.kind(&token.text).is_some());
        let topic: Vec<Token> = [first].into_iter().chain(kind).cloned().collect();
        let line = topic.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ");
        Some(help.parse(&self.entered(help.name(), &line, &topic)))
    }

    /// Creates a line with this command name and without aliases; the command gets these tokens.
    pub fn entered<'a>(self, name: &'a str, line: &'a str, tokens: &'a [Token]) -> EnteredLine<'a> {
        let (aliases, syntax) = (Aliases::NONE, Syntax::Prompt);
        EnteredLine { line, name, tokens, registry: self, aliases, syntax, file: None }
    }

    pub fn unknown_command(&self, name: &str, aliases: &Aliases) -> ParseError {
        let names = self.commands().flat_map(|command| command.signature().names).copied();
        let aliases: Vec<String> = aliases.dotted().map(|(name, _)| name).collect();
        let names = names.chain(aliases.iter().map(String::as_str));
        let hint = match suggest::nearest(name, names) {
            Some(nearest) => suggest::did_you_mean(nearest),
            None if self.kind(name).is_some() => format!(", did you mean .dump {name}?"),
            None if ["SELECT", "WITH"].iter().any(|word| word.eq_ignore_ascii_case(name)) => {
                format!(", did you mean .sql {name}?")
            }
            None => "; .help lists them".to_owned(),
        };
        ParseError::UnknownCommand { name: name.to_owned(), hint }
    }
}

impl<'a> EnteredLine<'a> {
    /// Returns the line that lists its options.
    pub fn help(&self) -> String {
        self.syntax.page(self.name, None)
    }

    /// Returns the command as typed at the prompt, or in a shell.
    pub fn command(&self) -> String {
        self.syntax.command(self.name)
    }

    pub fn texts(&self) -> Vec<String> {
        self.tokens.iter().map(|token| token.text.clone()).collect()
    }

    /// Parses options into arguments.
    pub fn options<A: Default + 'static>(
        &self,
        options: &'static [OptionGroup<A>],
    ) -> Result<A, ParseError> {
        parse::options(&self.help(), self.tokens, options, &[]).map(|(args, ())| args)
    }

    /// Parses options into arguments, and returns the words between the options.
    pub fn options_and_words<A: Default + 'static>(
        &self,
        options: &'static [OptionGroup<A>],
    ) -> Result<(A, Vec<&'a Token>), ParseError> {
        let read = parse::options_and_words(&self.help(), self.tokens, options, &[]);
        read.map(|(args, (), words)| (args, words))
    }

    /// # Errors
    /// If there is any argument.
    fn takes_nothing(&self) -> Result<(), ParseError> {
        self.at_most("no argument").map(|[]| ())
    }

    /// Returns the arguments, at most `N`.
    pub fn at_most<const N: usize>(
        &self,
        takes: &'static str,
    ) -> Result<[Option<&'a Token>; N], ParseError> {
        parse::check_quotes(self.tokens)?;
        match self.tokens.get(N) {
            Some(word) => Err(self.too_many(takes, word)),
            None => Ok(std::array::from_fn(|index| self.tokens.get(index))),
        }
    }

    /// Returns the only word between the options, if there is one.
    pub fn at_most_one(
        &self,
        words: &[&Token],
        takes: &'static str,
    ) -> Result<Option<String>, ParseError> {
        match words {
            [] => Ok(None),
            [word] => Ok(Some(word.text.clone())),
            [_, second, ..] => Err(self.too_many(takes, second)),
        }
    }

    pub fn missing(&self, argument: &'static str) -> ParseError {
        ParseError::MissingArgument { command: self.command(), argument }
    }

    pub fn too_many(&self, takes: &'static str, word: &Token) -> ParseError {
        let (command, word) = (self.command(), word.text.clone());
        ParseError::TooManyArguments { command, takes, word }
    }

    /// Parses an argument.
    pub fn value<T>(
        &self,
        argument: &Token,
        parse: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Result<T, ParseError> {
        let help = |command: &dyn AnyCommand| {
            format!("{}  {}", command.usage(), command.signature().summary)
        };
        parse(&argument.text).map_err(|source| ParseError::BadValue {
            option: self.name.to_owned(),
            help: self.registry.command(self.name).map_or_else(String::new, help),
            source,
        })
    }
}
