//! Commands, kinds of `.dump`, and the type of the registry that lists them.
//!
//! A command is one type with its signature, its options, how it is parsed and how it runs; so is a
//! kind. [`AnyCommand`] and [`AnyKind`] are the same without the type of their arguments.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::{self, Debug};

use super::context::{
    Context, DumpContext, Invocation, Redirected, SharedArgs, answer, answer_over_dataset,
};
use super::error::CommandError;
use super::help::Syntax;
use super::shared::options::{SHARED, check_output};
use super::topics::TopicSpec;
use handlescope_render::OutputOptions;
use handlescope_render::output::COLUMNS;
use handlescope_session::grammar::{
    Arguments, Example, GroupView, OptionGroup, OptionSpec, ParseError, Quotes, Redirect, Token,
    definition_start, join, parse, split, starts_comment, with_plain_dashes, without_comments,
};
use handlescope_session::settings::Aliases;
use handlescope_session::suggest;
use handlescope_session::values::{ColumnChoice, ValueError, joined, listed};

/// Description of a command.
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
    /// Command lines that work on `examples/leaky.etl`.
    pub examples: &'static [&'static str],
}

/// A command of the console.
pub trait Command: Sync + 'static {
    type Args: Default + Debug + 'static;
    const SIGNATURE: Signature;
    const OPTIONS: &'static [OptionGroup<Self::Args>] = &[];

    /// Options under their headings.
    fn groups() -> Vec<GroupView> {
        GroupView::all(Self::OPTIONS)
    }

    /// Reads the arguments. By default, these are options only, or nothing.
    ///
    /// # Errors
    /// Names what is wrong and what to type instead.
    fn parse(entered: &Entered<'_>) -> Result<Self::Args, ParseError> {
        if Self::OPTIONS.is_empty() {
            entered.takes_nothing()?;
        }
        parse::options(&entered.help(), entered.tokens, Self::OPTIONS)
    }

    /// # Errors
    /// When it cannot be done, or was cancelled.
    fn run(args: Self::Args, context: &mut Context<'_, '_>) -> Result<(), CommandError>;

    /// The arguments that it has in common with every kind of `.dump`, if it has them.
    fn shared(_: &Self::Args) -> Option<&SharedArgs> {
        None
    }
}

/// Description of a kind of `.dump`.
pub struct KindSignature {
    pub name: &'static str,
    /// One-line summary.
    pub summary: &'static str,
    /// Full description of the output.
    pub details: &'static str,
    /// Command lines that work on `examples/leaky.etl`.
    pub examples: &'static [Example],
}

/// A kind of `.dump`. The options that every kind has are in [`SharedArgs`].
pub trait Kind: Sync + 'static {
    type Args: Default + Debug + 'static;
    const SIGNATURE: KindSignature;
    const OPTIONS: &'static [OptionGroup<Self::Args>];

    /// Whether it is about the loaded dataset, and not about traces.
    const OVER_DATASET: bool = false;

    /// Columns that `-SortBy` can name.
    fn columns() -> Vec<String>;

    /// Columns that `-Columns` can name.
    fn column_choices() -> Vec<String> {
        Self::columns()
    }

    /// Adds what options of the kind say about the output, instead of options that every kind has.
    fn add_output(_: &Self::Args, _: &mut OutputOptions) {}

    /// Refuses options that contradict each other.
    ///
    /// # Errors
    /// Names both options.
    fn check(_: &Self::Args, _: &SharedArgs) -> Result<(), ParseError> {
        Ok(())
    }

    /// # Errors
    /// When a trace cannot be read, the output cannot be written, or it was cancelled.
    fn answer(args: &Self::Args, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError>;
}

/// A line whose first word is a command.
#[derive(Clone, Copy)]
pub struct Entered<'a> {
    /// The whole line.
    pub line: &'a str,
    /// The command as typed.
    pub name: &'a str,
    /// The rest of the line; for a kind of `.dump`, without the kind.
    pub tokens: &'a [Token],
    /// All commands and kinds.
    pub registry: &'static Registry,
    /// The aliases of the session.
    pub aliases: &'a Aliases,
    /// Place where the line was typed.
    pub syntax: Syntax,
}

/// A [`Command`] of any type.
pub trait AnyCommand: Sync {
    fn signature(&self) -> &'static Signature;
    /// Options of the command; those of `.dump` belong to the kinds.
    fn groups(&self) -> Vec<GroupView>;
    /// # Errors
    /// The errors of [`Command::parse`].
    fn parse(&self, entered: &Entered<'_>) -> Result<Box<dyn Invocation>, ParseError>;

    /// The name that is shown.
    fn name(&self) -> &'static str {
        self.signature().names.first().copied().unwrap_or_default()
    }

    /// Name and arguments.
    fn usage(&self) -> String {
        [self.name(), self.signature().usage].join(" ").trim_end().to_owned()
    }

    /// Whether it goes by this name, in any case.
    fn is_named(&self, name: &str) -> bool {
        self.signature().names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn options(&self) -> Vec<&'static dyn OptionSpec> {
        self.groups().into_iter().flat_map(|group| group.options).collect()
    }

    /// The option of this name, in any case.
    fn option(&self, name: &str) -> Option<&'static dyn OptionSpec> {
        self.options().into_iter().find(|option| option.is_named(name))
    }
}

impl<C: Command> AnyCommand for C {
    fn signature(&self) -> &'static Signature {
        &C::SIGNATURE
    }

    fn groups(&self) -> Vec<GroupView> {
        C::groups()
    }

    fn parse(&self, entered: &Entered<'_>) -> Result<Box<dyn Invocation>, ParseError> {
        C::parse(entered).map(invocation::<C>)
    }
}

/// A command with its arguments, ready to run.
pub fn invocation<C: Command>(args: C::Args) -> Box<dyn Invocation> {
    Box::new(Called::<C>(args))
}

struct Called<C: Command>(C::Args);

impl<C: Command> Debug for Called<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<C: Command> Invocation for Called<C> {
    fn run(self: Box<Self>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        C::run(self.0, context)
    }

    fn args(&self) -> &dyn Any {
        &self.0
    }

    fn shared(&self) -> Option<&SharedArgs> {
        C::shared(&self.0)
    }
}

/// A [`Kind`] of any type.
pub trait AnyKind: Sync {
    fn signature(&self) -> &'static KindSignature;
    /// Options of the kind, and those that every kind has.
    fn groups(&self) -> Vec<GroupView>;
    /// Columns that `-SortBy` can name.
    fn columns(&self) -> Vec<String>;
    /// Columns that `-Columns` can name.
    fn column_choices(&self) -> Vec<String>;
    /// # Errors
    /// Names what is wrong and what to type instead.
    fn parse(&self, entered: &Entered<'_>) -> Result<Box<dyn Invocation>, ParseError>;

    fn name(&self) -> &'static str {
        self.signature().name
    }

    fn options(&self) -> Vec<&'static dyn OptionSpec> {
        self.groups().into_iter().flat_map(|group| group.options).collect()
    }

    /// The option of this name, in any case.
    fn option(&self, name: &str) -> Option<&'static dyn OptionSpec> {
        self.options().into_iter().find(|option| option.is_named(name))
    }
}

/// A kind of `.dump` that is a command of its own, too, with its options and answers.
pub struct KindCommand<K> {
    pub signature: &'static Signature,
    pub kind: K,
}

impl<K: Kind> AnyCommand for KindCommand<K> {
    fn signature(&self) -> &'static Signature {
        self.signature
    }

    fn groups(&self) -> Vec<GroupView> {
        AnyKind::groups(&self.kind)
    }

    fn parse(&self, entered: &Entered<'_>) -> Result<Box<dyn Invocation>, ParseError> {
        AnyKind::parse(&self.kind, entered)
    }
}

impl<K: Kind> AnyKind for K {
    fn signature(&self) -> &'static KindSignature {
        &K::SIGNATURE
    }

    fn groups(&self) -> Vec<GroupView> {
        GroupView::with_shared(GroupView::all(K::OPTIONS), GroupView::all(SHARED))
    }

    fn columns(&self) -> Vec<String> {
        K::columns()
    }

    fn column_choices(&self) -> Vec<String> {
        K::column_choices()
    }

    fn parse(&self, entered: &Entered<'_>) -> Result<Box<dyn Invocation>, ParseError> {
        let help = entered.syntax.page(entered.name, Some(K::SIGNATURE.name));
        let (args, mut shared) =
            parse::options_and_shared(&help, entered.tokens, K::OPTIONS, SHARED)?;
        shared.text = entered.line.to_owned();
        K::add_output(&args, &mut shared.output);
        check_output(&shared.output)?;
        K::check(&args, &shared)?;
        Ok(Box::new(TableInvocation::<K> { args, shared }))
    }
}

struct TableInvocation<K: Kind> {
    args: K::Args,
    shared: SharedArgs,
}

impl<K: Kind> Debug for TableInvocation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(K::SIGNATURE.name).field(&self.args).field(&self.shared).finish()
    }
}

impl<K: Kind> Invocation for TableInvocation<K> {
    fn run(self: Box<Self>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        match K::OVER_DATASET {
            true => answer_over_dataset(&self.shared, context, |dump| self.answer(dump)),
            false => answer(&self.shared, context, |dump| self.answer(dump)),
        }
    }

    fn args(&self) -> &dyn Any {
        &self.args
    }

    fn answer(&self, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        if self.shared.output.force && !self.shared.output.names_file() {
            dump.messages.note("note: -Force has no effect without a file");
        }
        let output = &self.shared.output;
        if output.is_document() && output.columns != ColumnChoice::Fitting {
            let document = output.format_option().unwrap_or_default();
            dump.messages.note(format_args!("note: {COLUMNS} has no effect beside {document}"));
        }
        K::answer(&self.args, dump)
    }

    fn shared(&self) -> Option<&SharedArgs> {
        Some(&self.shared)
    }
}

/// Commands and kinds that an error names for an option, at most.
const MAX_PLACES: usize = 3;

/// Word that asks for the page of the command it follows.
const HELP: &str = "-help";

/// The commands, the kinds of `.dump` and the further topics of the help.
pub struct Registry {
    /// All commands, in the order of the help.
    pub commands: &'static [&'static dyn AnyCommand],
    /// All kinds of `.dump`, in the order of the help.
    pub kinds: &'static [&'static dyn AnyKind],
    pub topics: &'static [TopicSpec],
}

impl Registry {
    /// The command of this name, in any case.
    pub fn command(&self, name: &str) -> Option<&'static dyn AnyCommand> {
        self.commands.iter().find(|command| command.is_named(name)).copied()
    }

    /// The kind of `.dump` of this name, in any case.
    pub fn kind(&self, name: &str) -> Option<&'static dyn AnyKind> {
        self.kinds.iter().find(|kind| kind.name().eq_ignore_ascii_case(name)).copied()
    }

    /// The further topic of this name, in any case.
    pub fn topic(&self, name: &str) -> Option<&'static TopicSpec> {
        self.topics.iter().find(|topic| topic.name.eq_ignore_ascii_case(name))
    }

    /// Reads one line without aliases.
    ///
    /// # Errors
    /// The errors of [`Registry::parse_with`].
    pub fn parse(&'static self, line: &str) -> Result<Option<Box<dyn Invocation>>, ParseError> {
        self.parse_with(line, Aliases::NONE)
    }

    /// Reads one line. An empty line and a comment (`#` in front) are not commands.
    ///
    /// # Errors
    /// Names what is wrong and what to type instead.
    pub fn parse_with(
        &'static self,
        line: &str,
        aliases: &Aliases,
    ) -> Result<Option<Box<dyn Invocation>>, ParseError> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let line = aliases.expand(line).map_err(ParseError::refused)?;
        let line = self.without_comments(&line);
        self.parse_tokens(&line, &split(&line), aliases, Syntax::Prompt)
    }

    /// A line without the comments in front of a query, in which quotes mean nothing.
    fn without_comments<'l>(&self, line: &'l str) -> Cow<'l, str> {
        let Some((name, rest)) = line.trim_start().split_once(char::is_whitespace) else {
            return line.into();
        };
        let command = self.command(name).map(|command| command.signature().arguments);
        match starts_comment(rest.trim_start()) && matches!(command, Some(Arguments::Sql)) {
            true => format!("{name} {}", without_comments(rest)).into(),
            false => line.into(),
        }
    }

    /// Reads words that a shell has cut: they may hold spaces and quotes.
    ///
    /// # Errors
    /// The errors of [`Registry::parse`].
    pub fn parse_words(
        &'static self,
        words: &[String],
    ) -> Result<Option<Box<dyn Invocation>>, ParseError> {
        let (line, tokens) = join(words);
        self.parse_tokens(&line, &tokens, Aliases::NONE, Syntax::Shell)
    }

    fn parse_tokens(
        &'static self,
        line: &str,
        tokens: &[Token],
        aliases: &Aliases,
        syntax: Syntax,
    ) -> Result<Option<Box<dyn Invocation>>, ParseError> {
        let plain = self.with_plain_dashes(tokens);
        let tokens = plain.as_deref().unwrap_or(tokens);
        let Some((first, rest)) = tokens.split_first() else { return Ok(None) };
        let Some(command) = self.command(&first.text) else {
            return Err(self.unknown_command(&first.text, aliases));
        };
        let takes = command.signature().arguments;
        let defines = matches!(takes, Arguments::Alias) && definition_start(line, rest).is_some();
        if !defines && let Some(page) = self.help_of(command, tokens) {
            return page.map(Some);
        }
        let Redirect { line, tokens, file } = Redirect::of_command(takes, line, rest);
        if let Some(arrow) = Redirect::without_file(tokens) {
            let command = arrow.to_owned();
            return Err(ParseError::MissingArgument { command, argument: "a file name" });
        }
        let entered = Entered { line, name: &first.text, tokens, registry: self, aliases, syntax };
        let command =
            command.parse(&entered).map_err(|error| self.with_places(error, command, &entered))?;
        match file {
            None => Ok(Some(command)),
            Some(file) => Redirected::boxed(command, file).map(Some),
        }
    }

    /// Tokens in which typographic dashes in front of options are plain ones; `None` if there are none.
    fn with_plain_dashes(&self, tokens: &[Token]) -> Option<Vec<Token>> {
        let is_known = |name: &str| self.has_option(name);
        let plain = |token: &Token| {
            let text = Some(token).filter(|token| token.quotes == Quotes::No)?;
            with_plain_dashes(&text.text, is_known)
        };
        if !tokens.iter().any(Token::has_typographic_dash) {
            return None;
        }
        let tokens = tokens.iter().map(|token| {
            let text = plain(token).unwrap_or_else(|| token.text.clone());
            Token { text, ..token.clone() }
        });
        Some(tokens.collect())
    }

    /// Whether any command or kind of `.dump` has an option of this name.
    pub fn has_option(&self, name: &str) -> bool {
        let commands = self.commands.iter().map(|command| command.options());
        let mut options = commands.chain(self.kinds.iter().map(|kind| kind.options())).flatten();
        name.eq_ignore_ascii_case(HELP) || options.any(|option| option.is_named(name))
    }

    /// The error, with the commands and kinds that have the option that it is about.
    fn with_places(
        &self,
        error: ParseError,
        command: &dyn AnyCommand,
        entered: &Entered<'_>,
    ) -> ParseError {
        let ParseError::UnknownOption { name, .. } = &error else { return error };
        let has_option = |options: &[&'static dyn OptionSpec]| {
            options.iter().any(|option| option.is_named(name) && option.has_effect())
        };
        let is_command = |kind: &str| self.command(&format!(".{kind}")).is_some();
        let dump = |kind: &str| format!("{} {kind}", entered.syntax.command(".dump"));
        let kinds = self.kinds.iter().filter(|kind| !is_command(kind.name()));
        let kinds = kinds.filter(|kind| has_option(&kind.options()));
        let commands = self.commands.iter().filter(|command| has_option(&command.options()));
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
        // One more takes no more room than its count.
        let places = match places.len() <= MAX_PLACES + 1 {
            true => joined(&places),
            false => listed(&places, MAX_PLACES),
        };
        ParseError::OptionElsewhere { name: name.clone(), command, places }
    }

    /// The page of a command, or of its kind of `.dump`, if `-help` follows it.
    fn help_of(
        &'static self,
        command: &dyn AnyCommand,
        tokens: &[Token],
    ) -> Option<Result<Box<dyn Invocation>, ParseError>> {
        let (first, rest) = tokens.split_first()?;
        rest.iter()
            .find(|token| token.quotes == Quotes::No && token.text.eq_ignore_ascii_case(HELP))?;
        let help = self.command(".help").filter(|help| help.name() != command.name())?;
        let kind = rest.first().filter(|token| self.kind(&token.text).is_some());
        let topic: Vec<Token> = [first].into_iter().chain(kind).cloned().collect();
        let line = topic.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ");
        Some(help.parse(&self.entered(help.name(), &line, &topic)))
    }

    /// A command line of this name without aliases, of which the command gets these tokens.
    pub fn entered<'a>(
        &'static self,
        name: &'a str,
        line: &'a str,
        tokens: &'a [Token],
    ) -> Entered<'a> {
        let (aliases, syntax) = (Aliases::NONE, Syntax::Prompt);
        Entered { line, name, tokens, registry: self, aliases, syntax }
    }

    pub fn unknown_command(&self, name: &str, aliases: &Aliases) -> ParseError {
        let names = self.commands.iter().flat_map(|command| command.signature().names).copied();
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

impl<'a> Entered<'a> {
    /// The line that lists its options.
    pub fn help(&self) -> String {
        self.syntax.page(self.name, None)
    }

    /// The command as it is typed at the prompt, or in a shell.
    pub fn command(&self) -> String {
        self.syntax.command(self.name)
    }

    pub fn texts(&self) -> Vec<String> {
        self.tokens.iter().map(|token| token.text.clone()).collect()
    }

    /// The arguments that the options fill, and the words between these.
    pub fn options_and_words<A: Default + 'static>(
        &self,
        options: &'static [OptionGroup<A>],
    ) -> Result<(A, Vec<&'a Token>), ParseError> {
        parse::options_and_words(&self.help(), self.tokens, options)
    }

    /// # Errors
    /// When there is any argument.
    pub fn takes_nothing(&self) -> Result<(), ParseError> {
        self.at_most("no argument").map(|[]| ())
    }

    /// The arguments, at most `N`.
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

    /// The one word between the options, if there is any.
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

    /// Value of an argument.
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
