//! `.quit`

use super::{Command, CommandError, Context, Entered, Flow, Signature, shared::groups};
use crate::grammar::{Arguments, ParseError};

pub(crate) struct Quit;

impl Command for Quit {
    type Args = ();
    const SIGNATURE: Signature = Signature {
        names: &[".quit", ".q", ".exit", "q"],
        group: groups::SESSION,
        usage: "",
        arguments: Arguments::None,
        summary: "leave",
        details: "So does Ctrl-D on an empty line, and the end of a script.",
        examples: &[".quit"],
    };

    fn parse(entered: &Entered<'_>) -> Result<(), ParseError> {
        entered.takes_nothing()
    }

    fn run((): (), context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        context.flow = Flow::Quit;
        Ok(())
    }
}
