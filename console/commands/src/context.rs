//! The context in which commands and kinds of `.dump` run, and parsed command lines. `> FILE`, `>> FILE` or `| PROGRAM`
//! after any command sends its results to a file or a program.

use std::any::Any;
use std::fmt::Debug;
use std::io::{self, Write};
use std::process::ExitStatus;

use super::error::CommandError;
use super::shared::names::WatchedSymbols;
use super::shared::output_file::check_text_file;
use super::shared::write_no_match;
use handlescope_query::{FrameNames, ListAnswer, Source};
use handlescope_render::output::{self, COLUMNS};
use handlescope_render::{AnswerTable, OutputError, OutputOptions};
use handlescope_session::cancel::{Cancel, Cancelled};
use handlescope_session::filter::Filter;
use handlescope_session::grammar::{ParseError, Target};
use handlescope_session::paths::{Overwrite, append_whole, is_null_device, with_home, write_whole};
use handlescope_session::settings::{Display, DisplayArgs, StackDisplayArgs};
use handlescope_session::terminal::{CommandOutput, Messages, Neutral, PipedOutput, Screen};
use handlescope_session::trace::{LoadedTrace, NoFile, Session};
use handlescope_session::values::{ColumnChoice, CsvText, Format, TopN};

/// What happens after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The next command.
    Continue,
    /// The next command, but the exit status is 1: a comparison found that something got worse.
    Worse,
    /// The next command, but the exit status is 2: lost events may explain the result of a comparison.
    Undecided,
    /// The end of the session.
    Quit,
}

/// The state that a command works on.
pub struct Context<'a, 'm> {
    pub session: &'a mut Session,
    pub cancel: &'a Cancel,
    /// Width and colours of standard output.
    pub screen: Screen,
    /// Destination of results, and of nothing else.
    pub out: &'a mut dyn Write,
    pub messages: &'a mut Messages<'m>,
    /// What happens after the command.
    pub flow: Flow,
}

/// The options that every kind of `.dump` has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SharedArgs {
    /// `-fd`: only loaded files with matching paths; all filters must match.
    pub files: Vec<Filter>,
    /// Format and destination of the answer.
    pub output: OutputOptions,
    /// Options that were accepted without effect, each with the reason.
    pub notes: Vec<&'static str>,
    /// The command line as typed, without spaces at the ends.
    pub text: String,
}

/// The state that a kind of `.dump` works on.
pub struct DumpContext<'a, 'm> {
    /// The loaded traces to query.
    pub sources: &'a [Source<'a>],
    pub shared: &'a SharedArgs,
    /// Source of function names.
    pub names: &'a dyn FrameNames,
    pub cancel: &'a Cancel,
    pub session: &'a Session,
    pub screen: Screen,
    pub out: &'a mut dyn Write,
    pub messages: &'a mut Messages<'m>,
    /// What happens after the answer.
    pub flow: Flow,
}

impl DumpContext<'_, '_> {
    /// Returns the display settings for an answer without its own display options.
    pub fn display(&self) -> Display {
        self.display_as(&DisplayArgs::default())
    }

    /// Returns the display settings for an answer with these options.
    pub fn display_as(&self, args: &DisplayArgs) -> Display {
        self.shared.output.display(self.session.settings.display(args, self.screen))
    }

    /// Returns which files the answer may replace.
    pub fn overwrite(&self) -> Overwrite {
        self.session.overwrite(self.shared.output.force)
    }

    /// Lets `content` write to a file instead, and reports the file.
    ///
    /// # Errors
    /// If the file cannot be written or may not be replaced.
    pub fn write_file(
        &mut self,
        target: output::Target<'_>,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CommandError> {
        let overwrite = self.overwrite();
        Ok(target.write(&overwrite, self.cancel, self.out, content)?)
    }

    /// Notes that text with selected columns does not show stacks below rows.
    pub fn note_stacks_beside_columns(&mut self, stacks: StackDisplayArgs) {
        let output = &self.shared.output;
        let are_named = matches!(output.columns, ColumnChoice::Named(_));
        if stacks.show && are_named && output.format() == Format::Text {
            self.messages.note(format_args!("note: -ShowStack has no effect with {COLUMNS}"));
        }
    }

    /// Reports in which traces nothing passes the filters, and why.
    pub fn note_no_match<T>(&mut self, answers: &[ListAnswer<'_, T>]) {
        for answer in answers {
            write_no_match(answer.path, answer.no_match.as_ref(), self.messages);
        }
    }

    /// Returns the limit on the rows that a query makes, and the output options for them. Unless a column orders the
    /// rows, expensive values are only computed for the rows shown.
    pub fn rows_first(&self) -> (Option<TopN>, OutputOptions) {
        let output = self.shared.output.clone();
        match output.sort_by {
            None => (output.top, OutputOptions { top: None, ..output }),
            Some(_) => (None, output),
        }
    }

    /// Writes an answer as the options say.
    ///
    /// # Errors
    /// If the output or file cannot be written, or a column does not exist.
    pub fn write(&mut self, table: AnswerTable<'_>) -> Result<(), CommandError> {
        Ok(self.write_as(table, &self.shared.output, &self.display())?)
    }

    /// Writes an answer with other options than the given ones.
    ///
    /// # Errors
    /// The errors of [`DumpContext::write`].
    pub fn write_as(
        &mut self,
        table: AnswerTable<'_>,
        output: &OutputOptions,
        display: &Display,
    ) -> Result<(), OutputError> {
        table.write(output, display, &self.overwrite(), self.cancel, self.out).map(drop)
    }
}

/// Prints notes about options without effect, without duplicates.
pub fn write_notes(notes: &[&str], messages: &mut Messages<'_>) {
    for (index, note) in notes.iter().enumerate() {
        if !notes.iter().take(index).any(|earlier| earlier == note) {
            messages.note(format_args!("note: {note}"));
        }
    }
}

/// Queries the traces that `-fd` selects, or the loaded dataset, then reports what is missing for function names.
///
/// # Errors
/// If nothing is loaded or selected, or `ask` fails.
pub fn answer(
    over_dataset: bool,
    shared: &SharedArgs,
    context: &mut Context<'_, '_>,
    ask: impl FnOnce(&mut DumpContext<'_, '_>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let Context { session, cancel, screen, out, messages, flow } = context;
    let selected = match (over_dataset, &session.dataset) {
        (true, None) => return Err(NoFile::NothingLoaded.into()),
        (true, Some(_)) if !shared.files.is_empty() => {
            return Err(NoFile::FilterOverDataset.into());
        }
        (true, Some(_)) => Vec::new(),
        (false, _) => session.choose(&shared.files, messages)?,
    };
    write_notes(&shared.notes, messages);
    shared.output.check_file(&session.overwrite(shared.output.force))?;
    if shared.output.csv_text == CsvText::Raw && !matches!(shared.output.format(), Format::Csv(_)) {
        messages.note(format_args!("note: -csvraw has no effect without -csv"));
    }
    let system = session.settings.system_modules();
    let mut sources = Vec::new();
    for (index, LoadedTrace { path, trace, frames, .. }) in selected {
        sources.push(Source { path, index, trace, frames, system });
    }
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
    let result = ask(&mut dump);
    *flow = dump.flow;
    result?;
    // The answer is complete here, so that the warning does not disturb a pager.
    out.flush()?;
    session.warn_of_missing_symbols(messages);
    Ok(())
}

/// Parsed arguments.
pub trait PreparedCommand: Debug {
    /// # Errors
    /// If it cannot be done, or was cancelled.
    fn run(self: Box<Self>, context: &mut Context<'_, '_>) -> Result<(), CommandError>;

    /// Returns the arguments of the command or of the kind of `.dump`.
    fn args(&self) -> &dyn Any;

    /// Answers with a table; a command without one does nothing.
    ///
    /// # Errors
    /// If a trace cannot be read, the output cannot be written, or it was cancelled.
    fn answer(&self, _: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        Ok(())
    }

    /// Returns the arguments that every table has; `None` for most commands.
    fn shared(&self) -> Option<&SharedArgs> {
        None
    }
}

/// A command with its arguments, ready to run, and the destination of its results.
#[derive(Debug)]
pub struct Invocation {
    pub call: Box<dyn PreparedCommand>,
    destination: Destination,
}

/// The destination of a command's results.
#[derive(Debug)]
enum Destination {
    /// The usual output.
    Usual,
    File(Target),
    /// A program and its arguments, for the system's shell.
    Program(String),
}

impl Invocation {
    /// Creates a command with the usual output.
    pub fn new(call: impl PreparedCommand + 'static) -> Invocation {
        Invocation { call: Box::new(call), destination: Destination::Usual }
    }

    /// Sends the results to a file.
    ///
    /// # Errors
    /// If the results are text, but the file has the extension of another format.
    pub fn into_file(self, file: Option<Target>) -> Result<Invocation, ParseError> {
        let Some(mut file) = file else { return Ok(self) };
        match self.call.shared() {
            Some(shared) => file.force |= shared.output.force,
            None => check_text_file(&file)?,
        }
        Ok(Invocation { destination: Destination::File(file), ..self })
    }

    /// Sends the results to a program, unless they go into a file.
    ///
    /// # Errors
    /// If they go into a file, or the program is missing.
    pub fn into_program(self, program: Option<&str>) -> Result<Invocation, ParseError> {
        let Some(program) = program else { return Ok(self) };
        let option = match (&self.destination, self.call.shared()) {
            (Destination::File(_), _) => Some("> FILE"),
            (_, shared) => shared.and_then(|shared| shared.output.file_option()),
        };
        if let Some(option) = option {
            return Err(ParseError::Conflict { option, other: "| PROGRAM", reason: "choose one" });
        }
        if program.is_empty() {
            let (command, argument) = ("|".to_owned(), "a program, as in | sort");
            return Err(ParseError::MissingArgument { command, argument });
        }
        Ok(Invocation { destination: Destination::Program(program.to_owned()), ..self })
    }

    /// Runs the command. A file changes only when the results are complete.
    ///
    /// # Errors
    /// If it cannot be done, or was cancelled.
    pub fn run(self, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Invocation { call, destination } = self;
        let Target { file, append, force } = match destination {
            Destination::Usual => return call.run(context),
            Destination::Program(program) => return run_into(&program, call, context),
            Destination::File(target) => target,
        };
        let file = with_home(&file);
        let append = append || is_null_device(&file);
        let overwrite = context.session.overwrite(force);
        let output =
            if append { overwrite.appending(&file)? } else { overwrite.replacing(&file)? };
        let (write, option): (fn(&_, &_, _) -> _, _) =
            if append { (append_whole, ">>") } else { (write_whole, ">") };
        let mut result = Ok(());
        let written = write(&output, context.cancel, |out: &mut dyn io::Write| {
            let mut inner = Context {
                session: &mut *context.session,
                cancel: context.cancel,
                screen: Screen::PLAIN,
                out,
                messages: &mut *context.messages,
                flow: context.flow,
            };
            result = call.run(&mut inner);
            context.flow = inner.flow;
            result.as_ref().map(drop).map_err(|_| io::Error::other("the command failed"))
        });
        match result {
            // This error is about the file itself, which is reported below.
            Err(CommandError::Output { .. })
                if written.is_err() && context.cancel.check().is_ok() => {}
            result => result?,
        }
        let failed = |source| context.cancel.or(OutputError::File { path: file, option, source });
        Ok(written.map_err(failed)?)
    }
}

/// Runs a command with its results piped into a program. It is not a failure if the program stops reading early.
fn run_into(
    program: &str,
    call: Box<dyn PreparedCommand>,
    context: &mut Context<'_, '_>,
) -> Result<(), CommandError> {
    let name = || program.to_owned();
    if !context.session.runs_programs {
        return Err(CommandError::NoPrograms { program: name() });
    }
    // Earlier output must come before the output of the program.
    context.out.flush()?;
    let started = PipedOutput::start(program);
    let mut piped = started.map_err(|source| CommandError::NoShell { program: name(), source })?;
    // The program's output goes to the terminal.
    let mut shown = Neutral::terminal(&mut piped, context.screen.is_terminal());
    let spinner = context.messages.spinner();
    let mut inner = Context {
        session: &mut *context.session,
        cancel: context.cancel,
        screen: Screen::PLAIN,
        out: &mut CommandOutput::new(&mut shown, context.cancel, spinner.clone()),
        messages: &mut *context.messages,
        flow: context.flow,
    };
    let result = call.run(&mut inner);
    context.flow = inner.flow;
    spinner.stop();
    drop(shown);
    let was_cancelled = context.cancel.is_cancelled();
    // While the program still runs, another Ctrl-C is only for the program.
    context.cancel.reset();
    let status = piped.finish()?;
    if was_cancelled || was_interrupted(status) {
        // Also skips what was typed after this command.
        context.cancel.cancel();
        return Err(Cancelled.into());
    }
    match result {
        Err(error) if !error.is_broken_pipe() => Err(error),
        _ if status.success() => Ok(()),
        _ => Err(CommandError::Program { program: name(), status }),
    }
}

/// Whether Ctrl-C ended a program.
#[cfg(unix)]
fn was_interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const INTERRUPT: i32 = 2;
    status.signal() == Some(INTERRUPT) || status.code() == Some(128 + INTERRUPT)
}

#[cfg(not(unix))]
fn was_interrupted(status: ExitStatus) -> bool {
    const INTERRUPT: u32 = 0xC000_013A;
    status.code().map(|code| code as u32) == Some(INTERRUPT)
}
