//! Carrying out commands, whatever way they came in.

use std::io::{self, Write};

use handlescope_extract::symbols::SymbolPath;

use crate::{
    cancel::Cancel,
    commands::{CommandError, Context, Flow, Invocation, load::load},
    registry::REGISTRY,
    terminal::{ColorChoice, CommandOutput, Messages, Screen},
    trace::{LoadArgs, Session},
};

/// A session that takes commands.
pub struct Console {
    session: Session,
    color: ColorChoice,
    cancel: Cancel,
}

impl Console {
    /// A console without traces, whose commands end when `cancel` asks them to.
    pub fn new(symbol_path: Option<SymbolPath>, color: ColorChoice, cancel: Cancel) -> Console {
        Console { session: Session::new(symbol_path), color, cancel }
    }

    /// What is loaded.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What asks commands to end.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Carries out one line. Results go to `out` (standard output, for its width and colours),
    /// everything else to `messages`.
    ///
    /// # Errors
    /// When the line means nothing, what it means cannot be done, or it was cancelled.
    pub fn run(
        &mut self,
        line: &str,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<Flow, CommandError> {
        match REGISTRY.parse(line)? {
            Some(command) => self.carry_out(command, out, messages),
            None => Ok(Flow::Continue),
        }
    }

    /// Loads traces, as `.load` does.
    ///
    /// # Errors
    /// Names every file that could not be loaded; or it was cancelled.
    pub fn load(
        &mut self,
        args: &LoadArgs,
        messages: &mut Messages<'_>,
    ) -> Result<(), CommandError> {
        self.with_context(&mut io::sink(), messages, |context| load(args, context)).map(drop)
    }

    /// Carries out a command that was parsed, as [`Console::run`] does.
    ///
    /// # Errors
    /// When it cannot be done, was cancelled, or panicked.
    pub fn carry_out(
        &mut self,
        command: Box<dyn Invocation>,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<Flow, CommandError> {
        self.with_context(out, messages, |context| {
            command.run(context)?;
            context.out.flush()?;
            Ok(())
        })
    }

    /// Does something with the session as commands do it: with a spinner, until it is cancelled.
    ///
    /// # Errors
    /// When `work` fails, was cancelled, or panicked.
    pub fn with_context(
        &mut self,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
        work: impl FnOnce(&mut Context<'_, '_>) -> Result<(), CommandError>,
    ) -> Result<Flow, CommandError> {
        let cancel = self.cancel.clone();
        let spinner = messages.spinner();
        let mut context = Context {
            session: &mut self.session,
            cancel: &cancel,
            screen: Screen::stdout(self.color),
            out: &mut CommandOutput::new(out, &cancel, spinner.clone()),
            messages,
            flow: Flow::Continue,
        };
        let result = work(&mut context);
        let flow = context.flow;
        spinner.stop();
        match result {
            Err(CommandError::Output { .. }) if cancel.is_cancelled() => {
                Err(CommandError::Cancelled)
            }
            result => result.map(|()| flow),
        }
    }
}
