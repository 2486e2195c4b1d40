//! Runs commands, wherever they come from.

use std::io::{self, Write};

use handlescope_model::guard::{CaughtPanic, quietly};
use handlescope_model::take_loss;

use crate::load::load;
use crate::registry::{explained, registry};
use crate::{CommandError, Context, Flow, Invocation};
use handlescope_session::cancel::{Cancel, Cancelled};
use handlescope_session::grammar::split;
use handlescope_session::settings::Settings;
use handlescope_session::terminal::{CommandOutput, Messages, Neutral, PagedOutput, Screen};
use handlescope_session::trace::{LoadArgs, Session};

/// A session that takes commands.
pub struct Console {
    /// The loaded traces and the settings.
    pub session: Session,
    /// Whether a person reads the answers; long ones then go through a pager.
    pub is_interactive: bool,
    /// The flag that asks commands to stop.
    pub cancel: Cancel,
}

impl Console {
    /// Creates a console without traces; its commands stop when `cancel` asks them to.
    pub fn new(settings: Settings, cancel: Cancel) -> Console {
        Console { session: Session::new(settings), is_interactive: false, cancel }
    }

    /// Runs one line. Results go to `out` (standard output, for its width and colours), everything else to `messages`.
    ///
    /// # Errors
    /// If the line is invalid, cannot be carried out, or was cancelled.
    pub fn run(
        &mut self,
        line: &str,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<Flow, CommandError> {
        let over_dataset = self.session.dataset.is_some();
        let aliases = &self.session.settings.aliases;
        let parsed = registry(over_dataset)
            .parse_with(line, aliases)
            .map_err(|error| if over_dataset { explained(error, &split(line)) } else { error });
        match parsed? {
            Some(command) => self.execute(command, out, messages),
            None => Ok(Flow::Continue),
        }
    }

    /// Loads traces, as `.load` does.
    ///
    /// # Errors
    /// Names every file that could not be loaded; also fails if it was cancelled.
    pub fn load(
        &mut self,
        args: &LoadArgs,
        messages: &mut Messages<'_>,
    ) -> Result<(), CommandError> {
        self.with_context(&mut io::sink(), messages, |context| load(args, context)).map(drop)
    }

    /// Runs a parsed command, as [`Console::run`] does.
    ///
    /// # Errors
    /// If it cannot be done, was cancelled, or panicked.
    pub fn execute(
        &mut self,
        command: Invocation,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<Flow, CommandError> {
        self.with_context(out, messages, |context| {
            command.run(context)?;
            context.out.flush()?;
            Ok(())
        })
    }

    /// Runs `work` on the session as commands do: with a spinner, until it is cancelled.
    ///
    /// # Errors
    /// If `work` fails, was cancelled, or panicked.
    pub fn with_context(
        &mut self,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
        work: impl FnOnce(&mut Context<'_, '_>) -> Result<(), CommandError>,
    ) -> Result<Flow, CommandError> {
        let cancel = self.cancel.clone();
        let spinner = messages.spinner();
        let is_paged = self.is_interactive && self.session.settings.pager();
        let screen = Screen::stdout(self.session.settings.color());
        let mut out = PagedOutput::new(out, is_paged);
        let mut shown = Neutral::terminal(&mut out, screen.is_terminal());
        let mut context = Context {
            session: &mut self.session,
            cancel: &cancel,
            screen,
            out: &mut CommandOutput::new(&mut shown, &cancel, spinner.clone()),
            messages,
            flow: Flow::Continue,
        };
        let result =
            quietly(|| work(&mut context)).unwrap_or_else(|CaughtPanic { message, location }| {
                Err(CommandError::Panicked { message, location })
            });
        let flow = context.flow;
        spinner.stop();
        let result = if take_loss() { result.and(Err(CommandError::FileChanged)) } else { result };
        match result {
            // If the reader leaves early, that does not change the result of a comparison.
            Err(error) if error.is_broken_pipe() && (out.was_left() || flow != Flow::Continue) => {
                Ok(flow)
            }
            Err(CommandError::Output { .. }) if cancel.is_cancelled() => Err(Cancelled.into()),
            result => result.map(|()| flow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_panics_is_reported_as_a_bug_and_the_session_goes_on() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::new(Settings::colorless(), Cancel::default());
        let mut messages = Messages::new(&mut err, Screen::PLAIN);
        let panicking = console.with_context(&mut out, &mut messages, |context| {
            context.messages.wait("searching");
            panic!("row {}", 7)
        });
        let error = panicking.expect_err("a panic").to_string();
        assert!(error.starts_with("this is a bug in handlescope (console"), "{error}");
        assert!(error.contains(": row 7); please report it"), "{error}");
        let flow = console.run(".list", &mut out, &mut messages).expect("the session goes on");
        assert_eq!((flow, out.as_slice()), (Flow::Continue, &b"No traces are loaded.\n"[..]));
        assert!(err.is_empty(), "{}", String::from_utf8_lossy(&err));
    }
}
