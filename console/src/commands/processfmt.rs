//! `.processfmt`

use super::{Command, CommandError, Context, Entered, Signature, shared::groups};
use crate::{
    grammar::{Arguments, ParseError},
    settings::Setting,
    values::{ProcessFormat, process_format, process_words},
};

pub(crate) struct ProcessFmt;

impl Command for ProcessFmt {
    type Args = Option<ProcessFormat>;
    const SIGNATURE: Signature = Signature {
        names: &[".processfmt"],
        group: groups::PRINTING,
        usage: "[FORMAT]",
        arguments: Arguments::Word(|| process_words().collect()),
        summary: "what stands behind the name of a process",
        details: "FORMAT is that of -ProcessFmt: start, end and duration in a time format, or None. \
                  Without an argument there are + and - again.",
        examples: &[".processfmt s", ".processfmt None", ".processfmt"],
    };

    fn parse(entered: &Entered<'_>) -> Result<Self::Args, ParseError> {
        let [format] = entered.at_most("one format")?;
        format.map(|format| entered.value(format, process_format)).transpose()
    }

    fn run(format: Self::Args, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        context.messages.note(context.session.settings.set(Setting::ProcessFormat(format)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        registry::tests::{args, error},
        values::TimeFormat,
    };

    #[test]
    fn a_format_can_be_chosen_and_given_back() {
        let times = ProcessFormat::Times(TimeFormat::Seconds);
        for (line, expected) in [
            (".processfmt second", Some(times)),
            (".processfmt none", Some(ProcessFormat::None)),
            (".processfmt", None),
        ] {
            assert_eq!(args::<Option<ProcessFormat>>(line), expected, "{line}");
        }
        assert!(error(".processfmt x").contains("'x' is not one of None, s, Local"));
    }
}
