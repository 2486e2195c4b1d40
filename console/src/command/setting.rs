//! Commands that choose how the session prints.

use super::{
    Command, Entered, Token,
    display::{ProcessFormat, TimeDigits, TimeFormat},
    error::ParseError,
    values::ValueError,
};
use crate::registry;

/// What is chosen. `None` goes back to what is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// `.timefmt`: how points in time are written, and with how many digits unless those stay as
    /// they are.
    TimeFormat(Option<(TimeFormat, Option<TimeDigits>)>),
    /// `.timedigits`: digits behind the second.
    TimeDigits(Option<TimeDigits>),
    /// `.processfmt`: what stands behind the names of processes.
    ProcessFormat(Option<ProcessFormat>),
    /// `.sffn`: whole paths above objects, or names only, whatever was not the case before.
    OtherFileNames,
    /// `.clip`: whether lines are cut at the width of the terminal; `None` asks.
    Clip(Option<bool>),
}

impl Setting {
    /// Words for on and off, as `.clip` takes them.
    pub(crate) const SWITCH: [(&'static str, bool); 4] =
        [("1", true), ("0", false), ("true", true), ("false", false)];
}

/// `.timefmt`
pub(crate) fn time_format(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let chosen = match entered.at_most::<2>("a format and a number of digits")? {
        [None, _] => None,
        [Some(format), digits] => Some((
            entered.value(format, registry::time_format)?,
            digits.map(|digits| entered.value(digits, TimeDigits::parse)).transpose()?,
        )),
    };
    Ok(Command::Set(Setting::TimeFormat(chosen)))
}

/// `.timedigits`
pub(crate) fn time_digits(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let [digits] = entered.at_most("one number of digits")?;
    let digits = digits.map(|digits| entered.value(digits, TimeDigits::parse)).transpose()?;
    Ok(Command::Set(Setting::TimeDigits(digits)))
}

/// `.processfmt`
pub(crate) fn process_format(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let [format] = entered.at_most("one format")?;
    let format =
        format.map(|format| entered.value(format, registry::process_format)).transpose()?;
    Ok(Command::Set(Setting::ProcessFormat(format)))
}

/// `.sffn`
pub(crate) fn file_names(entered: &Entered<'_>) -> Result<Command, ParseError> {
    entered.takes_nothing().map(|()| Command::Set(Setting::OtherFileNames))
}

/// `.clip`
pub(crate) fn clip(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let [switch] = entered.at_most("0 or 1")?;
    let switch = switch.map(|switch| entered.value(switch, on_or_off)).transpose()?;
    Ok(Command::Set(Setting::Clip(switch)))
}

/// `.cls`
pub(crate) fn clear_screen(entered: &Entered<'_>) -> Result<Command, ParseError> {
    entered.takes_nothing().map(|()| Command::ClearScreen)
}

fn on_or_off(word: &str) -> Result<bool, ValueError> {
    let found = Setting::SWITCH.iter().find(|(own, _)| own.eq_ignore_ascii_case(word));
    found.map(|&(_, on)| on).ok_or_else(|| ValueError::NoChoice {
        value: word.to_owned(),
        choices: Setting::SWITCH.map(|(word, _)| word).join(", "),
        hint: String::new(),
    })
}

impl Entered<'_> {
    /// The arguments, of which there are `N` at most.
    fn at_most<const N: usize>(
        &self,
        takes: &'static str,
    ) -> Result<[Option<&Token>; N], ParseError> {
        match self.tokens.get(N) {
            Some(word) => Err(self.too_many(takes, word)),
            None => Ok(std::array::from_fn(|index| self.tokens.get(index))),
        }
    }

    /// What an argument stands for.
    fn value<T>(
        &self,
        argument: &Token,
        parse: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Result<T, ParseError> {
        parse(&argument.text).map_err(|source| ParseError::BadValue {
            option: self.name.to_owned(),
            help: registry::command(self.name).map_or_else(String::new, |spec| spec.help_line()),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(line: &str) -> Setting {
        match Command::parse(line) {
            Ok(Some(Command::Set(setting))) => setting,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn digits(text: &str) -> Option<TimeDigits> {
        Some(TimeDigits::parse(text).expect("digits"))
    }

    #[test]
    fn one_argument_of_timefmt_chooses_the_format_and_leaves_the_digits() {
        assert_eq!(setting(".timefmt utc"), Setting::TimeFormat(Some((TimeFormat::Utc, None))));
        assert_eq!(
            setting(".timefmt s 3"),
            Setting::TimeFormat(Some((TimeFormat::Seconds, digits("3"))))
        );
        assert_eq!(setting(".timefmt"), Setting::TimeFormat(None));
    }

    #[test]
    fn every_setting_can_be_chosen_and_given_back() {
        assert_eq!(setting(".timedigits 0"), Setting::TimeDigits(digits("0")));
        assert_eq!(setting(".timedigits"), Setting::TimeDigits(None));
        let times = ProcessFormat::Times(TimeFormat::Seconds);
        assert_eq!(setting(".processfmt second"), Setting::ProcessFormat(Some(times)));
        assert_eq!(setting(".processfmt none"), Setting::ProcessFormat(Some(ProcessFormat::None)));
        assert_eq!(setting(".processfmt"), Setting::ProcessFormat(None));
        assert_eq!(setting(".sffn"), Setting::OtherFileNames);
        for (word, on) in Setting::SWITCH {
            assert_eq!(setting(&format!(".clip {word}")), Setting::Clip(Some(on)));
        }
        assert_eq!(setting(".clip"), Setting::Clip(None));
        assert_eq!(Command::parse(".cls"), Ok(Some(Command::ClearScreen)));
    }

    #[test]
    fn a_bad_value_is_an_error_at_once_and_says_what_there_is() {
        for (line, expected) in [
            (".timefmt lokal", "did you mean Local?"),
            (".timefmt None", "'None' is not one of s, Local, LocalTime, UTC"),
            (".timefmt s 7", "'7' is not a number of digits from 0 to 6"),
            (".timedigits x", "'x' is not a number of digits from 0 to 6"),
            (".processfmt x", "'x' is not one of None, s, Local"),
            (".clip maybe", "'maybe' is not one of 1, 0, true, false"),
            (".timefmt s 3 4", "'4' is too much"),
            (".timedigits 3 4", "'4' is too much"),
            (".sffn 1", "'1' is too much"),
        ] {
            let error = Command::parse(line).expect_err(line).to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
        let error = Command::parse(".TimeFmt x").expect_err("no format").to_string();
        assert!(error.ends_with("\n  .timefmt [FORMAT [DIGITS]]  how points in time are written"));
    }
}
