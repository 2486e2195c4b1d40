//! `.cls`

use super::{Command, CommandError, Context, Signature, shared::groups};
use crate::grammar::Arguments;

pub(crate) struct Cls;

impl Command for Cls {
    type Args = ();
    const SIGNATURE: Signature = Signature {
        names: &[".cls"],
        group: groups::SESSION,
        usage: "",
        arguments: Arguments::None,
        summary: "clear the screen",
        details: "Also what has scrolled away. Does nothing in a pipe or file.",
        examples: &[".cls"],
    };

    fn run((): (), context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        context.out.flush()?;
        Ok(context.screen.clear()?)
    }
}
