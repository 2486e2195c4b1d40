//! `.timefmt`

use super::{Command, CommandError, Context, Entered, Signature, shared::groups};
use crate::{
    grammar::{Arguments, ParseError},
    settings::Setting,
    values::{TimeDigits, TimeFormat, time_format, time_words},
};

pub(crate) struct TimeFmt;

impl Command for TimeFmt {
    /// The format, and the digits unless those stay as they are; `None` for the default of both.
    type Args = Option<(TimeFormat, Option<TimeDigits>)>;
    const SIGNATURE: Signature = Signature {
        names: &[".timefmt"],
        group: groups::PRINTING,
        usage: "[FORMAT [DIGITS]]",
        arguments: Arguments::Word(|| time_words().collect()),
        summary: "how points in time are written",
        details: "FORMAT and DIGITS are those of -TimeFmt and -TimeDigits, which win where they are \
                  given. One argument leaves the digits as they are; none goes back to Local with \
                  6 digits.",
        examples: &[".timefmt s", ".timefmt LocalTime 3", ".timefmt"],
    };

    fn parse(entered: &Entered<'_>) -> Result<Self::Args, ParseError> {
        let [format, digits] = entered.at_most("a format and a number of digits")?;
        let Some(format) = format else { return Ok(None) };
        let format = entered.value(format, time_format)?;
        let digits = digits.map(|digits| entered.value(digits, TimeDigits::parse)).transpose()?;
        Ok(Some((format, digits)))
    }

    fn run(chosen: Self::Args, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        context.messages.note(context.session.settings.set(Setting::TimeFormat(chosen)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::{args, error};

    #[test]
    fn one_argument_chooses_the_format_and_leaves_the_digits() {
        type Args = <TimeFmt as Command>::Args;
        let digits = TimeDigits::parse("3").expect("digits");
        assert_eq!(args::<Args>(".timefmt utc"), Some((TimeFormat::Utc, None)));
        assert_eq!(args::<Args>(".timefmt s 3"), Some((TimeFormat::Seconds, Some(digits))));
        assert_eq!(args::<Args>(".timefmt"), None);
    }

    #[test]
    fn a_bad_value_is_an_error_at_once_and_says_what_there_is() {
        for (line, expected) in [
            (".timefmt lokal", "did you mean Local?"),
            (".timefmt None", "'None' is not one of s, Local, LocalTime, UTC"),
            (".timefmt s 7", "'7' is not a number of digits from 0 to 6"),
            (".timefmt s 3 4", "'4' is too much"),
        ] {
            let error = error(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
        let error = error(".TimeFmt x");
        assert!(error.ends_with("\n  .timefmt [FORMAT [DIGITS]]  how points in time are written"));
    }
}
