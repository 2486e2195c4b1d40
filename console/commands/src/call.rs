//! Keeps the typed arguments of a command until it runs, and turns kinds of `.dump` into separate commands.

use std::any::Any;
use std::fmt::{self, Debug};

use super::command::{
    AnyCommand, Command, EnteredLine, OverDataset, ParsedArgs, Signature, Tabular,
};
use super::context::{Context, DumpContext, Invocation, PreparedCommand, SharedArgs, answer};
use super::error::CommandError;
use super::shared::options::SHARED;
use super::shared::output_file::complete_output;
use handlescope_render::OutputOptions;
use handlescope_render::output::COLUMNS;
use handlescope_session::grammar::{GroupView, OptionGroup, ParseError, Quotes, Token, parse};
use handlescope_session::terminal::Messages;
use handlescope_session::values::ColumnChoice;

impl<C: Command> AnyCommand for C {
    fn signature(&self) -> &'static Signature {
        &C::SIGNATURE
    }

    fn parse(&self, entered: &EnteredLine<'_>) -> Result<Invocation, ParseError> {
        if C::TABLE.is_none() {
            return C::parse(entered).map(invocation::<C>);
        }
        let (args, mut shared) = parsed(AnyCommand::name(self), entered, C::OPTIONS)?;
        C::add_output(&args, &mut shared.output);
        complete_output(&mut shared.output, entered.file)?;
        C::check(&args, &shared)?;
        Ok(Invocation::new(CommandCall::<C> { args, shared }))
    }

    fn groups(&self) -> Vec<GroupView> {
        groups(C::groups(), C::TABLE)
    }

    fn table(&self) -> Option<Tabular> {
        C::TABLE
    }

    fn over_dataset(&self) -> Option<&'static dyn AnyCommand> {
        C::FOR_DATASET.map(|command| command as _)
    }
}

/// Parses the options of a command with a table, and those that every table has.
fn parsed<A: Default>(
    name: &str,
    entered: &EnteredLine<'_>,
    options: &'static [OptionGroup<A>],
) -> ParsedArgs<A> {
    let help = entered.syntax.page(entered.name, Some(name));
    let (args, mut shared): (A, SharedArgs) =
        parse::options(&help, entered.tokens, options, SHARED)?;
    shared.text = entered.line.to_owned();
    Ok((args, shared))
}

/// Returns the options of a command under their headings, with those that every table has.
fn groups(own: Vec<GroupView>, table: Option<Tabular>) -> Vec<GroupView> {
    match table {
        Some(_) => GroupView::with_shared(own, GroupView::all(SHARED)),
        None => own,
    }
}

/// Returns a command with its arguments, ready to run.
pub fn invocation<C: Command>(args: C::Args) -> Invocation {
    Invocation::new(CommandCall::<C> { args, shared: SharedArgs::default() })
}

struct CommandCall<C: Command> {
    args: C::Args,
    /// The options that every table has, if the command answers with one.
    shared: SharedArgs,
}

impl<C: Command> Debug for CommandCall<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match C::TABLE {
            Some(_) => (&self.args, &self.shared).fmt(f),
            None => self.args.fmt(f),
        }
    }
}

impl<C: Command> PreparedCommand for CommandCall<C> {
    fn run(self: Box<Self>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        match C::TABLE {
            Some(_) => answer(false, &self.shared, context, |dump| self.answer(dump)),
            None => C::run(self.args, context),
        }
    }

    fn args(&self) -> &dyn Any {
        &self.args
    }

    fn answer(&self, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        note_idle(&self.shared.output, dump.messages);
        C::answer(&self.args, dump)
    }

    fn shared(&self) -> Option<&SharedArgs> {
        match C::TABLE {
            Some(_) => Some(&self.shared),
            None => C::shared(&self.args),
        }
    }
}

/// Notes options of a table that do nothing here.
fn note_idle(output: &OutputOptions, messages: &mut Messages<'_>) {
    if output.force && !output.names_file() {
        messages.note("note: -Force has no effect without a file");
    }
    if output.is_document() && output.columns != ColumnChoice::Fitting {
        let document = output.format_option().unwrap_or_default();
        messages.note(format_args!("note: {COLUMNS} has no effect with {document}"));
    }
}

impl<A: Default + Debug + 'static> OverDataset<A> {
    /// Parses the options of a command with a table.
    ///
    /// # Errors
    /// Says what is wrong and what to type instead.
    pub fn table_options(&self, entered: &EnteredLine<'_>) -> ParsedArgs<A> {
        let name = self.signature.names.first().copied().unwrap_or_default();
        let (args, mut shared) = parsed(name, entered, self.options)?;
        complete_output(&mut shared.output, entered.file)?;
        Ok((args, shared))
    }
}

impl<A: Default + Debug + 'static> AnyCommand for OverDataset<A> {
    fn signature(&self) -> &'static Signature {
        self.signature
    }

    fn parse(&self, entered: &EnteredLine<'_>) -> Result<Invocation, ParseError> {
        let (args, shared) = (self.parse)(self, entered)?;
        let (has_table, answer) = (self.table.is_some(), self.answer);
        Ok(Invocation::new(DatasetCall { args, shared, has_table, answer }))
    }

    fn groups(&self) -> Vec<GroupView> {
        groups(GroupView::all(self.options), self.table)
    }

    fn table(&self) -> Option<Tabular> {
        self.table
    }
}

struct DatasetCall<A> {
    args: A,
    shared: SharedArgs,
    has_table: bool,
    answer: fn(&A, &mut DumpContext<'_, '_>) -> Result<(), CommandError>,
}

impl<A: Debug> Debug for DatasetCall<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (&self.args, &self.shared).fmt(f)
    }
}

impl<A: Debug + 'static> PreparedCommand for DatasetCall<A> {
    fn run(self: Box<Self>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        answer(true, &self.shared, context, |dump| self.answer(dump))
    }

    fn args(&self) -> &dyn Any {
        &self.args
    }

    fn answer(&self, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        if self.has_table {
            note_idle(&self.shared.output, dump.messages);
        }
        (self.answer)(&self.args, dump)
    }

    fn shared(&self) -> Option<&SharedArgs> {
        self.has_table.then_some(&self.shared)
    }
}

/// A kind of `.dump` that is also a separate command, with the same options and answers.
pub struct KindCommand {
    pub signature: &'static Signature,
    pub kind: &'static dyn AnyCommand,
    /// The options that take the words between other options as values, and a description of these words.
    pub words: (&'static [&'static str], &'static str),
    /// The command while a dataset is loaded, if it works then.
    pub over_dataset: Option<&'static KindCommand>,
}

impl AnyCommand for KindCommand {
    fn signature(&self) -> &'static Signature {
        self.signature
    }

    fn parse(&self, entered: &EnteredLine<'_>) -> Result<Invocation, ParseError> {
        let (names, takes) = self.words;
        if names.is_empty() {
            return self.kind.parse(entered);
        }
        let words = parse::words(&self.options(), entered.tokens);
        if let Some(word) = words.get(names.len()) {
            return Err(entered.too_many(takes, word));
        }
        let mut tokens = entered.tokens.to_vec();
        tokens.retain(|token| words.iter().all(|word| word.span != token.span));
        let named = names.iter().zip(&words).flat_map(|(name, word)| {
            let (text, span) = ((*name).to_owned(), word.span.clone());
            [Token { text, span, quotes: Quotes::No }, (*word).clone()]
        });
        tokens.extend(named);
        self.kind.parse(&EnteredLine { tokens: &tokens, ..*entered })
    }

    fn groups(&self) -> Vec<GroupView> {
        self.kind.groups()
    }

    fn table(&self) -> Option<Tabular> {
        self.kind.table()
    }

    fn over_dataset(&self) -> Option<&'static dyn AnyCommand> {
        self.over_dataset.map(|command| command as _)
    }
}
