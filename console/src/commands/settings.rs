//! `.timefmt`, `.timedigits`, `.processfmt`, `.sffn`, `.clip`, `.pager` and `.sys`: how the session prints.

use std::any::Any;

use super::{
    AnyCommand, Command, CommandError, Context, Entered, Invocation, Signature, shared::groups,
};
use crate::{
    filter::SystemModules,
    grammar::{Arguments, GroupView, ParseError, Token},
    settings::{Change, Setting, modules},
    values::{
        TimeDigits, ValueError, on_or_off, process_format, process_words, time_format, time_words,
    },
};

/// A command that changes one setting of the session and says what counts from now on.
pub(crate) struct SettingCommand {
    signature: &'static Signature,
    parse: fn(&Entered<'_>) -> Result<Setting, ParseError>,
}

impl AnyCommand for SettingCommand {
    fn signature(&self) -> &'static Signature {
        self.signature
    }

    fn groups(&self) -> Vec<GroupView> {
        Vec::new()
    }

    fn parse(&self, entered: &Entered<'_>) -> Result<Box<dyn Invocation>, ParseError> {
        Ok(Box::new((self.parse)(entered)?))
    }
}

impl Invocation for Setting {
    fn run(self: Box<Self>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let said = context.session.settings.set(*self);
        match *self {
            // ETWAnalyzer writes this to standard output, too.
            Setting::Clip(_) => writeln!(context.out, "{said}")?,
            _ => context.messages.note(said),
        }
        Ok(())
    }

    fn args(&self) -> &dyn Any {
        self
    }
}

pub(crate) static TIME_FORMAT: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".timefmt"],
        group: groups::PRINTING,
        usage: "[FORMAT [DIGITS]]",
        arguments: Arguments::Word(|| time_words().collect()),
        summary: "how points in time are written",
        details: "FORMAT and DIGITS are those of -TimeFmt and -TimeDigits, which take \
                  precedence. One argument leaves the digits as they are; usual goes back to \
                  what the configuration file says, or Local with 6 digits; without an argument it prints the \
                  setting.",
        examples: &[".timefmt s", ".timefmt LocalTime 3", ".timefmt usual", ".timefmt"],
    },
    parse: |entered| {
        let [format, digits] = entered.at_most("a format and a number of digits")?;
        let format = change(entered, format, time_format)?;
        let digits = digits.map(|digits| entered.value(digits, TimeDigits::parse)).transpose()?;
        Ok(Setting::TimeFormat(match format {
            Change::None => Change::None,
            Change::Usual => Change::Usual,
            Change::To(format) => Change::To((format, digits)),
        }))
    },
};

pub(crate) static TIME_DIGITS: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".timedigits"],
        group: groups::PRINTING,
        usage: "[DIGITS]",
        arguments: Arguments::Word(Vec::new),
        summary: "decimal places of seconds, 0 to 6",
        details: "For times and lifetimes; usual is what the configuration file says, or 6. Without an \
                  argument it prints the setting.",
        examples: &[".timedigits 3", ".timedigits usual", ".timedigits"],
    },
    parse: |entered| {
        one(entered, "one number of digits", TimeDigits::parse).map(Setting::TimeDigits)
    },
};

pub(crate) static PROCESS_FORMAT: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".processfmt"],
        group: groups::PRINTING,
        usage: "[FORMAT]",
        arguments: Arguments::Word(|| process_words().collect()),
        summary: "what follows the name of a process",
        details: "FORMAT is that of -ProcessFmt: start, end and duration in a time format, or None. \
                  usual is what the configuration file says, or + and -. Without an argument it prints \
                  the setting.",
        examples: &[".processfmt s", ".processfmt None", ".processfmt usual", ".processfmt"],
    },
    parse: |entered| one(entered, "one format", process_format).map(Setting::ProcessFormat),
};

pub(crate) static FILE_NAMES: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".sffn"],
        group: groups::PRINTING,
        usage: "[0|1]",
        arguments: Arguments::Word(|| vec![("1", "whole paths"), ("0", "names")]),
        summary: "print whole paths of files, or names",
        details: "Names unless it is switched on. Without an argument it prints the setting. \
                  -ShowFullFileName is for one query.",
        examples: &[".sffn 1", ".sffn 0", ".sffn"],
    },
    parse: |entered| one(entered, "0 or 1", on_or_off).map(Setting::FullFileNames),
};

pub(crate) static CLIP: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".clip"],
        group: groups::PRINTING,
        usage: "[0|1]",
        arguments: Arguments::Word(|| vec![("1", "on"), ("0", "off")]),
        summary: "fit lines to the width of the terminal, or do not",
        details: "Facts that do not fit go on in the next line, names of objects and frames are cut, \
                  unless it is switched off; a pipe or file always gets whole lines. \
                  Without an argument it prints the setting. -Clip and -NoClip are for one query.",
        examples: &[".clip 0", ".clip"],
    },
    parse: |entered| one(entered, "0 or 1", on_or_off).map(Setting::Clip),
};

pub(crate) static PAGER: SettingCommand = SettingCommand {
    signature: &Signature {
        names: &[".pager"],
        group: groups::PRINTING,
        usage: "[0|1]",
        arguments: Arguments::Word(|| vec![("1", "on"), ("0", "off")]),
        summary: "show long answers page by page, or do not",
        details: "On a terminal, an answer that is longer than the screen goes through the pager that the \
                  environment variable PAGER names, or less; an empty PAGER is none. Without an argument it \
                  prints the setting.",
        examples: &[".pager 0", ".pager"],
    },
    parse: |entered| one(entered, "0 or 1", on_or_off).map(Setting::Pager),
};

/// The word for what counts without a choice of the session or of the configuration file.
pub(crate) const USUAL: &str = "usual";

/// What the one argument changes, if there is one.
pub(super) fn one<T>(
    entered: &Entered<'_>,
    takes: &'static str,
    parse: fn(&str) -> Result<T, ValueError>,
) -> Result<Change<T>, ParseError> {
    let [word] = entered.at_most(takes)?;
    change(entered, word, parse)
}

fn change<T>(
    entered: &Entered<'_>,
    word: Option<&Token>,
    parse: fn(&str) -> Result<T, ValueError>,
) -> Result<Change<T>, ParseError> {
    match word {
        None => Ok(Change::None),
        Some(word) if word.text.eq_ignore_ascii_case(USUAL) => Ok(Change::Usual),
        Some(word) => entered.value(word, parse).map(Change::To),
    }
}

#[derive(Debug, Default)]
pub(crate) struct SysArgs {
    /// What becomes of the modules that count as those of the system.
    system: Change<SystemModules>,
}

pub(crate) struct Sys;

impl Command for Sys {
    type Args = SysArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".sys"],
        group: groups::PRINTING,
        usage: "[FILTER]",
        arguments: Arguments::Word(|| {
            vec![(USUAL, "the kernel, ntdll, KernelBase, kernel32, wow64")]
        }),
        summary: "show or set which modules are those of the system",
        details: "FILTER is a list of file names joined by semicolons, with * and ?. The innermost frame \
                  of .dump Stack is the first one outside of these modules, and a terminal shows their \
                  frames dim and all others bold. usual goes back to what the \
                  configuration file says, or the kernel, ntdll, KernelBase, kernel32 and wow64. Without \
                  an argument it prints the setting.",
        examples: &[
            ".sys ntoskrnl.exe;ntdll.dll;kernel*.dll;win32*;user32.dll",
            ".sys usual",
            ".sys",
        ],
    };

    fn parse(entered: &Entered<'_>) -> Result<SysArgs, ParseError> {
        let system = one(entered, "one list of modules, joined by semicolons", modules)?;
        Ok(SysArgs { system })
    }

    fn run(args: SysArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let settings = &mut context.session.settings;
        args.system.apply(&mut settings.session.system_modules);
        let modules = settings.system_modules();
        context.messages.note(format_args!("modules of the system: {}", modules.text()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        registry::tests::{args, error},
        values::{ProcessFormat, TimeFormat},
    };

    #[test]
    fn one_argument_chooses_the_format_and_leaves_the_digits() {
        let digits = TimeDigits::parse("3").expect("digits");
        for (line, expected) in [
            (".timefmt utc", Change::To((TimeFormat::Utc, None))),
            (".timefmt s 3", Change::To((TimeFormat::Seconds, Some(digits)))),
            (".timefmt usual", Change::Usual),
            (".timefmt", Change::None),
        ] {
            assert_eq!(args::<Setting>(line), Setting::TimeFormat(expected), "{line}");
        }
    }

    #[test]
    fn a_bad_value_is_an_error_at_once_and_says_what_there_is() {
        for (line, expected) in [
            (".timefmt lokal", "did you mean Local?"),
            (".timefmt None", "'None' is not one of s, Local, LocalTime, UTC"),
            (".timefmt s 7", "'7' is not a number of digits from 0 to 6"),
            (".timefmt s 3 4", "unexpected '4'"),
        ] {
            let error = error(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
        let error = error(".TimeFmt x");
        assert!(error.ends_with("\n  .timefmt [FORMAT [DIGITS]]  how points in time are written"));
    }

    #[test]
    fn digits_can_be_chosen_and_given_back() {
        let none = Change::To(TimeDigits::NONE);
        assert_eq!(args::<Setting>(".timedigits 0"), Setting::TimeDigits(none));
        assert_eq!(args::<Setting>(".timedigits Usual"), Setting::TimeDigits(Change::Usual));
        assert_eq!(args::<Setting>(".timedigits"), Setting::TimeDigits(Change::None));
        assert!(error(".timedigits x").contains("'x' is not a number of digits from 0 to 6"));
        assert!(error(".timedigits 3 4").contains("unexpected '4'"));
    }

    #[test]
    fn a_format_can_be_chosen_and_given_back() {
        let times = ProcessFormat::Times(TimeFormat::Seconds);
        for (line, expected) in [
            (".processfmt second", Change::To(times)),
            (".processfmt none", Change::To(ProcessFormat::None)),
            (".processfmt usual", Change::Usual),
            (".processfmt", Change::None),
        ] {
            assert_eq!(args::<Setting>(line), Setting::ProcessFormat(expected), "{line}");
        }
        assert!(error(".processfmt x").contains("'x' is not one of None, s, Local"));
    }

    #[test]
    fn whole_paths_can_be_switched_and_asked() {
        assert_eq!(args::<Setting>(".sffn 1"), Setting::FullFileNames(Change::To(true)));
        assert_eq!(args::<Setting>(".sffn"), Setting::FullFileNames(Change::None));
        assert!(error(".sffn 1 0").contains("unexpected '0'"));
    }

    #[test]
    fn clipping_and_pager_can_be_switched_and_asked() {
        for (word, on) in [("1", true), ("0", false), ("true", true), ("FALSE", false)] {
            assert_eq!(args::<Setting>(&format!(".clip {word}")), Setting::Clip(Change::To(on)));
            assert_eq!(args::<Setting>(&format!(".pager {word}")), Setting::Pager(Change::To(on)));
        }
        assert_eq!(args::<Setting>(".clip"), Setting::Clip(Change::None));
        assert!(error(".clip maybe").contains("'maybe' is not one of 1, 0, true, false"));
    }
}
