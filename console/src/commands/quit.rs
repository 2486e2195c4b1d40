//! `.quit`

use super::{Command, CommandError, Context, Flow, Signature, shared::groups};
use crate::grammar::Arguments;

pub(crate) struct Quit;

impl Command for Quit {
    type Args = ();
    const SIGNATURE: Signature = Signature {
        names: &[".quit", ".q", ".exit", "quit", "exit", "q"],
        group: groups::SESSION,
        usage: "",
        arguments: Arguments::None,
        summary: "leave",
        details: "So does Ctrl-D on an empty line, and the end of a script.",
        examples: &[".quit"],
    };

    fn run((): (), context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        context.flow = Flow::Quit;
        Ok(())
    }
}
