//! What commands and kinds of `.dump` run with, and a command line that was understood.

use std::{
    any::Any,
    fmt::Debug,
    io::{self, Write},
};

use super::{
    error::CommandError,
    shared::{names::WatchedSymbols, options::write_notes},
};
use crate::{
    cancel::Cancel,
    filter::Filter,
    paths::Overwrite,
    query::{Source, SymbolReports},
    render::{
        OutputOptions, Table,
        output::{COLUMNS, Target},
    },
    settings::{Display, DisplayArgs, StackDisplayArgs},
    terminal::{Messages, Screen},
    trace::{LoadedTrace, Session, choose},
    values::{ColumnChoice, CsvText, Format},
};

/// What follows a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The next command.
    Continue,
    /// The next command, but the exit status is 1: a comparison says that something got worse.
    Worse,
    /// The next command, but the exit status is 2: lost events may explain what a comparison says.
    Undecided,
    /// The end.
    Quit,
}

/// What a command works on.
pub struct Context<'a, 'm> {
    pub session: &'a mut Session,
    pub cancel: &'a Cancel,
    /// Width and colours of standard output.
    pub screen: Screen,
    /// Results, and nothing else.
    pub out: &'a mut dyn Write,
    pub messages: &'a mut Messages<'m>,
    /// What follows the command.
    pub flow: Flow,
}

/// The options that every kind of `.dump` has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SharedArgs {
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
    /// How the answer is written, and where.
    pub output: OutputOptions,
    /// Options that were accepted without effect, each with the reason.
    pub notes: Vec<&'static str>,
    /// The command line as typed, without spaces at its ends.
    pub text: String,
}

/// What a kind of `.dump` works on.
pub struct DumpContext<'a, 'm> {
    /// The loaded traces that are asked.
    pub sources: &'a [Source<'a>],
    pub shared: &'a SharedArgs,
    /// Where names of functions come from.
    pub names: &'a dyn SymbolReports,
    pub cancel: &'a Cancel,
    pub session: &'a Session,
    pub screen: Screen,
    pub out: &'a mut dyn Write,
    pub messages: &'a mut Messages<'m>,
    /// What follows the answer.
    pub flow: Flow,
}

impl DumpContext<'_, '_> {
    /// How an answer is printed that has no display options of its own.
    pub(super) fn display(&self) -> Display {
        self.display_as(&DisplayArgs::default())
    }

    /// How an answer with these options is printed.
    pub(super) fn display_as(&self, args: &DisplayArgs) -> Display {
        self.shared.output.display(self.session.settings.display(args, self.screen))
    }

    /// Which file the answer may replace.
    pub(super) fn overwrite(&self) -> Overwrite {
        self.session.overwrite(self.shared.output.force)
    }

    /// Lets `content` write into a file instead, and says so.
    ///
    /// # Errors
    /// When the file cannot be written or may not be replaced.
    pub(super) fn write_file(
        &mut self,
        target: Target<'_>,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CommandError> {
        let overwrite = self.overwrite();
        Ok(target.write(&overwrite, self.cancel, self.out, content)?)
    }

    /// Says that rows are not followed by their stacks where text has chosen columns.
    pub(super) fn note_stacks_beside_columns(&mut self, stacks: StackDisplayArgs) {
        let output = &self.shared.output;
        let are_chosen = matches!(output.columns, ColumnChoice::Named(_));
        if stacks.show && are_chosen && output.format() == Format::Text {
            self.messages.note(format_args!("note: -ShowStack has no effect beside {COLUMNS}"));
        }
    }

    /// Writes an answer as the options say.
    ///
    /// # Errors
    /// When the output or file cannot be written, or a column is not there.
    pub(super) fn write(&mut self, table: Table<'_>) -> Result<(), CommandError> {
        let (output, display) = (&self.shared.output, self.display());
        table.write(output, &display, &self.overwrite(), self.cancel, self.out)?;
        Ok(())
    }
}

/// Asks the traces that `-fd` chooses, then says what is missing for names of functions.
///
/// # Errors
/// When nothing is loaded or left, or `ask` fails.
pub(crate) fn answer(
    shared: &SharedArgs,
    context: &mut Context<'_, '_>,
    ask: impl FnOnce(&mut DumpContext<'_, '_>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let Context { session, cancel, screen, out, messages, flow } = context;
    let wanted = choose(&session.files, &shared.files, messages)?;
    write_notes(&shared.notes, messages);
    shared.output.check_file(&session.overwrite(shared.output.force))?;
    if shared.output.csv_text == CsvText::Raw && !matches!(shared.output.format(), Format::Csv(_)) {
        messages.note(format_args!("note: -csvraw has no effect without -csv"));
    }
    let source = |(index, file)| {
        let LoadedTrace { path, trace, frames, .. }: &LoadedTrace = file;
        Source { path, index, trace, frames, system: session.settings.system_modules() }
    };
    let sources: Vec<Source<'_>> = wanted.into_iter().map(source).collect();
    messages.wait("searching");
    let names = WatchedSymbols::new(session.symbolizer(), messages.spinner(), cancel);
    let mut dump = DumpContext {
        sources: &sources,
        shared,
        names: &names,
        cancel,
        session,
        screen: *screen,
        out: &mut **out,
        messages,
        flow: *flow,
    };
    let asked = ask(&mut dump);
    *flow = dump.flow;
    asked?;
    // The end of the answer: a warning would disturb a pager.
    out.flush()?;
    session.warn_of_missing_symbols(messages);
    Ok(())
}

/// Arguments that were understood, ready to run.
pub trait Invocation: Debug {
    /// # Errors
    /// When it cannot be done, or was cancelled.
    fn run(self: Box<Self>, context: &mut Context<'_, '_>) -> Result<(), CommandError>;

    /// The arguments: those of a command or of a kind of `.dump`.
    fn args(&self) -> &dyn Any;

    /// Answers a `.dump`; a command has nothing to answer.
    ///
    /// # Errors
    /// When a trace cannot be read, the output cannot be written, or it was cancelled.
    fn answer(&self, _: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        Ok(())
    }

    /// The arguments that every kind of `.dump` has; `None` for most commands.
    fn shared(&self) -> Option<&SharedArgs> {
        None
    }
}
