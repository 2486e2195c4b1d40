//! `.timefmt`, `.timedigits`, `.processfmt`, `.sffn`, `.clip`, `.pager` and `.sys`: set how the session prints.

use std::any::Any;

use super::context::PreparedCommand;
use super::shared::groups;
use super::{AnyCommand, CommandError, Context, EnteredLine, Invocation, Signature};
use handlescope_session::grammar::{Arguments, Example, ParseError, parse};
use handlescope_session::settings::{SettingChoices, SettingKey, Settings};
use handlescope_session::values::{process_words, time_words};

/// The word for the default, used if neither the session nor the configuration file sets a value.
pub const USUAL: &str = "usual";

/// A command that changes settings of the session, and the message about the new values.
pub struct SettingCommand {
    signature: &'static Signature,
    /// The settings that its words set, in order.
    keys: &'static [SettingKey],
    takes: &'static str,
    message: fn(&Settings) -> String,
}

impl AnyCommand for SettingCommand {
    fn signature(&self) -> &'static Signature {
        self.signature
    }

    fn parse(&self, entered: &EnteredLine<'_>) -> Result<Invocation, ParseError> {
        parse::check_quotes(entered.tokens)?;
        if let Some(word) = entered.tokens.get(self.keys.len()) {
            return Err(entered.too_many(self.takes, word));
        }
        let mut changes = Vec::new();
        let mut is_usual = false;
        for (&key, word) in self.keys.iter().zip(entered.tokens) {
            if changes.is_empty() && word.text.eq_ignore_ascii_case(USUAL) {
                is_usual = true;
            } else {
                entered.value(word, |text| SettingChoices::default().set(key, Some(text)))?;
            }
            changes.push((key, Some(word.text.clone())));
        }
        if is_usual {
            changes = self.keys.iter().map(|&key| (key, None)).collect();
        }
        let to_results = self.keys == [SettingKey::Clip];
        Ok(Invocation::new(SettingChanges { changes, message: self.message, to_results }))
    }
}

/// The settings that a line changes for the session.
#[derive(Debug, Clone)]
struct SettingChanges {
    /// The settings with their new values; `None` resets a setting.
    changes: Vec<(SettingKey, Option<String>)>,
    message: fn(&Settings) -> String,
    /// Whether the answer goes to standard output, where ETWAnalyzer also writes that of `.clip`.
    to_results: bool,
}

impl SettingChanges {
    fn apply(&self, settings: &mut Settings) -> Result<String, ParseError> {
        for (key, value) in &self.changes {
            settings.session.set(*key, value.as_deref()).map_err(ParseError::refused)?;
        }
        Ok((self.message)(settings))
    }
}

impl PreparedCommand for SettingChanges {
    fn run(self: Box<Self>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let message = self.apply(&mut context.session.settings)?;
        if self.to_results {
            writeln!(context.out, "{message}")?;
        } else {
            context.messages.note(message);
        }
        Ok(())
    }

    fn args(&self) -> &dyn Any {
        self
    }
}

fn times(settings: &Settings) -> String {
    let display = settings.display_args();
    let format = display.time_format.unwrap_or_default();
    let digits = display.time_digits.unwrap_or_default().get();
    format!("time format: {format}, digits: {digits}")
}

pub static TIME_FORMAT: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".timefmt"],
        group: groups::PRINTING,
        usage: "[FORMAT [DIGITS]]",
        arguments: Arguments::Word(|| time_words().collect()),
        summary: "set the time format",
        details: "FORMAT and DIGITS are those of -TimeFmt and -TimeDigits, which take precedence. \
             With one argument the digits do not change; usual restores the configuration file's \
             value, or Local with 6 digits; without arguments the setting is printed.",
        examples: &Example::lines([
            ".timefmt s",
            ".timefmt LocalTime 3",
            ".timefmt usual",
            ".timefmt",
        ]),
    },
    keys: &[SettingKey::TimeFormat, SettingKey::TimeDigits],
    takes: "a format and a number of digits",
    message: times,
};

pub static TIME_DIGITS: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".timedigits"],
        group: groups::PRINTING,
        usage: "[DIGITS]",
        arguments: Arguments::Word(Vec::new),
        summary: "set the decimal places of seconds, 0 to 6",
        details: "For times and lifetimes. usual restores the configuration file's value, or 6. \
             Without an argument the setting is printed.",
        examples: &Example::lines([".timedigits 3", ".timedigits usual", ".timedigits"]),
    },
    keys: &[SettingKey::TimeDigits],
    takes: "one number of digits",
    message: times,
};

pub static PROCESS_FORMAT: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".processfmt"],
        group: groups::PRINTING,
        usage: "[FORMAT]",
        arguments: Arguments::Word(|| process_words().collect()),
        summary: "set what follows a process name",
        details: "FORMAT is that of -ProcessFmt: start, end and duration in a time format, or \
             None. usual restores the configuration file's value, or + and -. Without an argument \
             the setting is printed.",
        examples: &Example::lines([
            ".processfmt s",
            ".processfmt None",
            ".processfmt usual",
            ".processfmt",
        ]),
    },
    keys: &[SettingKey::ProcessFormat],
    takes: "one format",
    message: |settings| {
        format!("process format: {}", settings.display_args().process_format.unwrap_or_default())
    },
};

pub static FILE_NAMES: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".sffn"],
        group: groups::PRINTING,
        usage: "[0|1]",
        arguments: Arguments::Word(|| vec![("1", "whole paths"), ("0", "names")]),
        summary: "print full paths of files, or only names",
        details: "Off by default. Without an argument the setting is printed. -ShowFullFileName \
             is for one query.",
        examples: &Example::lines([".sffn 1", ".sffn 0", ".sffn"]),
    },
    keys: &[SettingKey::FullFileNames],
    takes: "0 or 1",
    message: |settings| {
        let is_full = settings.display_args().full_file_name.unwrap_or_default();
        let shown = if is_full { "whole path" } else { "name" };
        format!("files are shown by their {shown}")
    },
};

pub static CLIP: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".clip"],
        group: groups::PRINTING,
        usage: "[0|1]",
        arguments: Arguments::Word(|| vec![("1", "on"), ("0", "off")]),
        summary: "fit lines to the terminal width, or not",
        details: "Long lines are wrapped, and names of objects and groups, paths and command lines \
             are cut in the middle, unless it is off; a pipe or file always gets whole lines. Without an argument the setting is \
             printed. -Clip and -NoClip are for one query.",
        examples: &Example::lines([".clip 0", ".clip"]),
    },
    keys: &[SettingKey::Clip],
    takes: "0 or 1",
    message: |settings| {
        if settings.display_args().clip.unwrap_or(true) {
            "Clipping is on; .clip 0 turns it off".to_owned()
        } else {
            "Clipping is off; .clip 1 turns it on".to_owned()
        }
    },
};

pub static PAGER: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".pager"],
        group: groups::PRINTING,
        usage: "[0|1]",
        arguments: Arguments::Word(|| vec![("1", "on"), ("0", "off")]),
        summary: "show long answers in a pager, or not",
        details: "On a terminal, an answer longer than the screen goes through the program in the \
             environment variable PAGER, or less; an empty PAGER means none. Commands of -c and of a \
             pipe are never paged. Without an argument the setting is printed.",
        examples: &Example::lines([".pager 0", ".pager"]),
    },
    keys: &[SettingKey::Pager],
    takes: "0 or 1",
    message: |settings| {
        let shown = if settings.pager() { "page by page" } else { "as they come" };
        format!("long answers are shown {shown}")
    },
};

pub static SYSTEM_MODULES: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".sys"],
        group: groups::PRINTING,
        usage: "[FILTER]",
        arguments: Arguments::Word(|| {
            vec![(USUAL, "the kernel, ntdll, KernelBase, kernel32, wow64")]
        }),
        summary: "show or set the system modules",
        details: "FILTER is a list of file names joined by semicolons, with * and ?. The \
             innermost frame of .dump Stack is the first one outside these modules, and a \
             terminal shows their frames dim and all others bold. usual restores the \
             configuration file's value, or the kernel, ntdll, KernelBase, kernel32 and wow64. \
             Without an argument the setting is printed.",
        examples: &Example::lines([
            ".sys ntoskrnl.exe;ntdll.dll;kernel*.dll;win32*;user32.dll",
            ".sys usual",
            ".sys",
        ]),
    },
    keys: &[SettingKey::SystemModules],
    takes: "one list of modules, joined by semicolons",
    message: |settings| format!("system modules: {}", settings.system_modules().text()),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::{args, error};
    use handlescope_session::settings::DisplayArgs;
    use handlescope_session::values::{ProcessFormat, TimeDigits, TimeFormat};

    /// Applies a line, and returns its answer.
    fn applied(line: &str, settings: &mut Settings) -> String {
        args::<SettingChanges>(line).apply(settings).expect(line)
    }

    /// Returns the display options of the session after a line, given those before it.
    fn display(line: &str, before: DisplayArgs) -> DisplayArgs {
        let mut settings = Settings::default();
        settings.session.display = before;
        applied(line, &mut settings);
        settings.session.display
    }

    #[test]
    fn one_argument_chooses_the_format_and_leaves_the_digits() {
        let [two, three] = ["2", "3"].map(|digits| TimeDigits::parse(digits).expect("digits"));
        let times = |time_format, time_digits| DisplayArgs {
            time_format,
            time_digits,
            ..DisplayArgs::default()
        };
        let before = times(Some(TimeFormat::HereTime), Some(two));
        for (line, expected) in [
            (".timefmt utc", times(Some(TimeFormat::Utc), Some(two))),
            (".timefmt s 3", times(Some(TimeFormat::Seconds), Some(three))),
            (".timefmt usual", DisplayArgs::default()),
            (".timefmt Usual 3", DisplayArgs::default()),
            (".timefmt", before),
        ] {
            assert_eq!(display(line, before), expected, "{line}");
        }
    }

    #[test]
    fn a_bad_value_is_an_error_at_once_and_says_what_there_is() {
        for (line, expected) in [
            (".timefmt lokal", "did you mean Local?"),
            (".timefmt None", "'None' is not one of s, Local, LocalTime, UTC"),
            (".timefmt s 7", "'7' is not a number of digits from 0 to 6"),
            (".timefmt usual 7", "'7' is not a number of digits from 0 to 6"),
            (".timefmt s usual", "'usual' is not a number of digits from 0 to 6"),
            (".timefmt s 3 4", "unexpected '4'"),
        ] {
            let error = error(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
        let error = error(".TimeFmt x");
        assert!(error.ends_with("\n  .timefmt [FORMAT [DIGITS]]  set the time format"));
    }

    #[test]
    fn digits_can_be_chosen_and_given_back() {
        let digits = |line| display(line, DisplayArgs::default()).time_digits;
        assert_eq!(digits(".timedigits 0"), Some(TimeDigits::NONE));
        let none = DisplayArgs { time_digits: digits(".timedigits 0"), ..DisplayArgs::default() };
        assert_eq!(display(".timedigits Usual", none), DisplayArgs::default());
        assert_eq!(display(".timedigits", none), none);
        assert!(error(".timedigits x").contains("'x' is not a number of digits from 0 to 6"));
        assert!(error(".timedigits 3 4").contains("unexpected '4'"));
    }

    #[test]
    fn a_format_can_be_chosen_and_given_back() {
        let times = ProcessFormat::Times(TimeFormat::Seconds);
        let marks = ProcessFormat::Marks;
        let before = DisplayArgs { process_format: Some(marks), ..DisplayArgs::default() };
        for (line, expected) in [
            (".processfmt second", Some(times)),
            (".processfmt none", Some(ProcessFormat::None)),
            (".processfmt usual", None),
            (".processfmt", Some(marks)),
        ] {
            assert_eq!(display(line, before).process_format, expected, "{line}");
        }
        assert!(error(".processfmt x").contains("'x' is not one of None, s, Local"));
    }

    #[test]
    fn whole_paths_can_be_switched_and_asked() {
        let before = DisplayArgs { full_file_name: Some(false), ..DisplayArgs::default() };
        assert_eq!(display(".sffn 1", before).full_file_name, Some(true));
        assert_eq!(display(".sffn", before).full_file_name, Some(false));
        assert!(error(".sffn 1 0").contains("unexpected '0'"));
    }

    #[test]
    fn clipping_and_pager_can_be_switched_and_asked() {
        let none = DisplayArgs::default();
        for (word, on) in [("1", true), ("0", false), ("true", true), ("FALSE", false)] {
            assert_eq!(display(&format!(".clip {word}"), none).clip, Some(on));
            assert_eq!(display(&format!(".pager {word}"), none).pager, Some(on));
        }
        assert_eq!(display(".clip", none), none);
        assert!(error(".clip maybe").contains("'maybe' is not one of 1, 0, true, false"));
    }

    #[test]
    fn usual_of_the_session_goes_back_to_the_file() {
        let mut settings = Settings::default();
        settings.in_file.set(SettingKey::TimeFormat, Some("UTC")).expect("a format");
        assert_eq!(applied(".timefmt s", &mut settings), "time format: s, digits: 6");
        assert_eq!(applied(".timefmt usual", &mut settings), "time format: UTC, digits: 6");
    }

    #[test]
    fn a_format_alone_keeps_the_digits_and_the_usual_one_clears_both() {
        let mut settings = Settings::default();
        for (line, expected) in [
            (".timefmt s 3", "time format: s, digits: 3"),
            (".timefmt utc", "time format: UTC, digits: 3"),
            (".timefmt", "time format: UTC, digits: 3"),
            (".timefmt usual", "time format: Local, digits: 6"),
        ] {
            assert_eq!(applied(line, &mut settings), expected, "{line}");
        }
        assert_eq!(settings.session.display, DisplayArgs::default());
    }

    #[test]
    fn every_setting_says_what_counts_now() {
        let mut settings = Settings::default();
        for (line, expected) in [
            (".timedigits 0", "time format: Local, digits: 0"),
            (".timedigits", "time format: Local, digits: 0"),
            (".timedigits usual", "time format: Local, digits: 6"),
            (".processfmt s", "process format: s"),
            (".processfmt", "process format: s"),
            (".processfmt usual", "process format: +-"),
            (".sffn 1", "files are shown by their whole path"),
            (".sffn", "files are shown by their whole path"),
            (".sffn usual", "files are shown by their name"),
            (".pager", "long answers are shown page by page"),
            (".pager 0", "long answers are shown as they come"),
            (".pager usual", "long answers are shown page by page"),
            (".clip 0", "Clipping is off; .clip 1 turns it on"),
            (".clip", "Clipping is off; .clip 1 turns it on"),
            (".clip 1", "Clipping is on; .clip 0 turns it off"),
            (".sys a.dll", "system modules: a.dll"),
            (".sys", "system modules: a.dll"),
        ] {
            assert_eq!(applied(line, &mut settings), expected, "{line}");
        }
        assert_ne!(applied(".sys usual", &mut settings), "system modules: a.dll");
    }
}
