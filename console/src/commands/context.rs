//! What commands and kinds of `.dump` run with.

use std::io::Write;

use super::{error::CommandError, shared::watched_symbols::WatchedSymbols};
use crate::{
    cancel::Cancel,
    filter::Filter,
    query::{Source, SymbolReports},
    settings::{Display, DisplayArgs},
    terminal::{Messages, Screen},
    trace::{LoadedTrace, Session, choose},
    values::JsonMode,
};

/// What follows a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The next command.
    Continue,
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
    /// `-json` and `-json-pretty`.
    pub json: JsonMode,
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
}

impl DumpContext<'_, '_> {
    /// How an answer is printed that has no display options of its own.
    pub(super) fn display(&self) -> Display {
        self.session.settings.display(&DisplayArgs::default(), self.screen)
    }
}

/// Asks the traces that `-fd` chooses, then says what is missing for names of functions.
///
/// # Errors
/// When nothing is loaded or left, or `ask` fails.
pub(super) fn answer(
    shared: &SharedArgs,
    context: &mut Context<'_, '_>,
    ask: impl FnOnce(&mut DumpContext<'_, '_>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let Context { session, cancel, screen, out, messages, .. } = context;
    let wanted = choose(session.files(), &shared.files, messages)?;
    let source = |(index, file)| {
        let LoadedTrace { path, trace, frames, .. }: &LoadedTrace = file;
        Source { path, index, trace, frames }
    };
    let sources: Vec<Source<'_>> = wanted.into_iter().map(source).collect();
    messages.wait("searching");
    let names = WatchedSymbols::new(session.symbolizer(), messages.spinner(), cancel);
    ask(&mut DumpContext {
        sources: &sources,
        shared,
        names: &names,
        cancel,
        session,
        screen: *screen,
        out: &mut **out,
        messages,
    })?;
    session.warn_of_missing_symbols(messages);
    Ok(())
}
