//! A command line that was understood.

use std::{any::Any, fmt::Debug};

use super::{
    context::{Context, DumpContext, SharedArgs},
    error::CommandError,
};

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
