//! `.clip`

use super::{Command, CommandError, Context, Entered, Signature, shared::groups};
use crate::{
    grammar::{Arguments, ParseError},
    settings::Setting,
    values::{ValueError, no_choice},
};

/// Words for on and off.
const SWITCH: [(&str, bool); 4] = [("1", true), ("0", false), ("true", true), ("false", false)];

pub(crate) struct Clip;

impl Command for Clip {
    /// `None` asks how it is.
    type Args = Option<bool>;
    const SIGNATURE: Signature = Signature {
        names: &[".clip"],
        group: groups::PRINTING,
        usage: "[0|1]",
        arguments: Arguments::Word(|| vec![("1", "on"), ("0", "off")]),
        summary: "cut lines at the width of the terminal, or do not",
        details: "Lines are cut unless it is switched off; a pipe or file always gets whole lines. \
                  Without an argument it says how it is. -Clip and -NoClip are for one query.",
        examples: &[".clip 0", ".clip"],
    };

    fn parse(entered: &Entered<'_>) -> Result<Self::Args, ParseError> {
        let [switch] = entered.at_most("0 or 1")?;
        switch.map(|switch| entered.value(switch, on_or_off)).transpose()
    }

    fn run(switch: Self::Args, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let said = context.session.settings.set(Setting::Clip(switch));
        // ETWAnalyzer writes this to standard output, too.
        Ok(writeln!(context.out, "{said}")?)
    }
}

fn on_or_off(word: &str) -> Result<bool, ValueError> {
    let found = SWITCH.iter().find(|(own, _)| own.eq_ignore_ascii_case(word));
    let words = || SWITCH.iter().map(|(word, _)| *word);
    found.map(|&(_, on)| on).ok_or_else(|| no_choice(word, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::{args, error};

    #[test]
    fn it_can_be_switched_and_asked() {
        for (word, on) in SWITCH {
            assert_eq!(args::<Option<bool>>(&format!(".clip {word}")), Some(on));
        }
        assert_eq!(args::<Option<bool>>(".clip"), None);
        assert!(error(".clip maybe").contains("'maybe' is not one of 1, 0, true, false"));
    }
}
