//! `.sffn`

use super::{Command, CommandError, Context, Signature, shared::groups};
use crate::{grammar::Arguments, settings::Setting};

pub(crate) struct Sffn;

impl Command for Sffn {
    type Args = ();
    const SIGNATURE: Signature = Signature {
        names: &[".sffn"],
        group: groups::PRINTING,
        usage: "",
        arguments: Arguments::None,
        summary: "print whole paths of files, or names again",
        details: "Each use turns it over. -ShowFullFileName is for one query.",
        examples: &[".sffn"],
    };

    fn run((): (), context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        context.messages.note(context.session.settings.set(Setting::OtherFileNames));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::error;

    #[test]
    fn it_takes_no_argument() {
        assert!(error(".sffn 1").contains("'1' is too much"));
    }
}
