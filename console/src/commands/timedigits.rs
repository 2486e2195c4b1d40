//! `.timedigits`

use super::{Command, CommandError, Context, Entered, Signature, shared::groups};
use crate::{
    grammar::{Arguments, ParseError},
    settings::Setting,
    values::TimeDigits,
};

pub(crate) struct Digits;

impl Command for Digits {
    type Args = Option<TimeDigits>;
    const SIGNATURE: Signature = Signature {
        names: &[".timedigits"],
        group: groups::PRINTING,
        usage: "[DIGITS]",
        arguments: Arguments::Word(Vec::new),
        summary: "digits behind the second, 0 to 6",
        details: "For times and lifetimes. Without an argument there are 6 again.",
        examples: &[".timedigits 3", ".timedigits"],
    };

    fn parse(entered: &Entered<'_>) -> Result<Self::Args, ParseError> {
        let [digits] = entered.at_most("one number of digits")?;
        digits.map(|digits| entered.value(digits, TimeDigits::parse)).transpose()
    }

    fn run(digits: Self::Args, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        context.messages.note(context.session.settings.set(Setting::TimeDigits(digits)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::{args, error};

    #[test]
    fn digits_can_be_chosen_and_given_back() {
        let none = Some(TimeDigits::NONE);
        assert_eq!(args::<Option<TimeDigits>>(".timedigits 0"), none);
        assert_eq!(args::<Option<TimeDigits>>(".timedigits"), None);
        assert!(error(".timedigits x").contains("'x' is not a number of digits from 0 to 6"));
        assert!(error(".timedigits 3 4").contains("'4' is too much"));
    }
}
