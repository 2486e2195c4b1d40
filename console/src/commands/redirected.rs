//! `> FILE` and `>> FILE`: any command, whose results go into a file.

use std::any::Any;
use std::io;
use std::path::PathBuf;

use super::{
    context::{Context, DumpContext, Invocation, SharedArgs},
    error::CommandError,
};
use crate::{
    grammar::{ParseError, Target},
    paths::{append_whole, is_null_device, with_home, write_whole},
    render::OutputError,
    terminal::Screen,
};

/// A command whose results go into a file, which changes only when they are complete.
#[derive(Debug)]
pub(super) struct Redirected {
    command: Box<dyn Invocation>,
    file: PathBuf,
    append: bool,
    force: bool,
}

impl Redirected {
    /// Sends the results of a command to a file, unless the command names one itself.
    ///
    /// # Errors
    /// When the command names another file.
    pub(super) fn boxed(
        command: Box<dyn Invocation>,
        Target { file, append, force }: Target<'_>,
    ) -> Result<Box<dyn Invocation>, ParseError> {
        if let Some(option) = command.shared().and_then(|shared| shared.output.file_option()) {
            let reason = "choose one";
            return Err(ParseError::Conflict { option, other: "> FILE", reason });
        }
        let force = force || command.shared().is_some_and(|shared| shared.output.force);
        Ok(Box::new(Redirected { command, file: with_home(file), append, force }))
    }
}

impl Invocation for Redirected {
    fn run(self: Box<Self>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Redirected { command, file, append, force } = *self;
        let append = append || is_null_device(&file);
        let overwrite = context.session.overwrite(force);
        let output = match append {
            true => overwrite.appending(&file)?,
            false => overwrite.replacing(&file)?,
        };
        let (write, option): (fn(&_, &_, _) -> _, _) =
            if append { (append_whole, ">>") } else { (write_whole, ">") };
        let mut ran = Ok(());
        let written = write(&output, context.cancel, |out: &mut dyn io::Write| {
            let mut inner = Context {
                session: &mut *context.session,
                cancel: context.cancel,
                screen: Screen::PLAIN,
                out,
                messages: &mut *context.messages,
                flow: context.flow,
            };
            ran = command.run(&mut inner);
            context.flow = inner.flow;
            ran.as_ref().map(drop).map_err(|_| io::Error::other("the command failed"))
        });
        match ran {
            // The file is the output that could not be written.
            Err(CommandError::Output { .. })
                if written.is_err() && context.cancel.check().is_ok() => {}
            ran => ran?,
        }
        let failed = |source| context.cancel.or(OutputError::File { path: file, option, source });
        Ok(written.map_err(failed)?)
    }

    fn args(&self) -> &dyn Any {
        self.command.args()
    }

    fn answer(&self, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        self.command.answer(dump)
    }

    fn shared(&self) -> Option<&SharedArgs> {
        self.command.shared()
    }
}
