//! How a session prints, and what one command makes of it.

use crate::{
    terminal::{Screen, clip::BREAK},
    values::{ProcessFormat, TimeDigits, TimeFormat},
};

/// What was chosen about the output, by the options of a command or for the session. An option after a
/// `.dump` wins over the session; what neither chose is as usual.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DisplayArgs {
    /// `-TimeFmt`: how points in time are written.
    pub time_format: Option<TimeFormat>,
    /// `-TimeDigits`: digits after the second.
    pub time_digits: Option<TimeDigits>,
    /// `-ProcessFmt`: what follows the name of a process that started or ended in the trace.
    pub process_format: Option<ProcessFormat>,
    /// `-NoDigitSep`: no separators between thousands.
    pub no_digit_separator: bool,
    /// `-Clip` and `-NoClip`: cut lines at the width of the terminal, or do not.
    pub clip: Option<bool>,
    /// `.pager`: show answers that are longer than the screen page by page.
    pub pager: Option<bool>,
    /// `-ShowFullFileName`: the whole path above the objects of a file.
    pub full_file_name: bool,
    /// `-PlainProcessNames`: names of executables, also where a service has a better name.
    pub plain_process_names: bool,
}

/// How the stacks of a query are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackDisplayArgs {
    /// `-ShowStack`: print stacks instead of their numbers.
    pub show: bool,
    /// `-ShowAddress`: print offset and address of each frame.
    pub address: bool,
    /// `-ShowLine`: print file and line of each frame.
    pub line: bool,
}

impl StackDisplayArgs {
    /// An option about frames where no stacks are printed.
    pub(crate) fn option_without_stacks(self) -> Option<&'static str> {
        let options = [(self.address, "-ShowAddress"), (self.line, "-ShowLine")];
        let given = options.into_iter().find(|(is_given, _)| *is_given && !self.show);
        given.map(|(_, option)| option)
    }
}

/// What one command chooses for the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// `.timefmt`: how points in time are written, and with how many digits unless those stay as
    /// they are.
    TimeFormat(Change<(TimeFormat, Option<TimeDigits>)>),
    /// `.timedigits`: digits after the second.
    TimeDigits(Change<TimeDigits>),
    /// `.processfmt`: what follows the names of processes.
    ProcessFormat(Change<ProcessFormat>),
    /// `.sffn`: whole paths above objects, or names only.
    FullFileNames(Change<bool>),
    /// `.clip`: whether lines are cut at the width of the terminal.
    Clip(Change<bool>),
    /// `.pager`: whether long answers are shown page by page.
    Pager(Change<bool>),
}

/// What becomes of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<T> {
    /// Nothing: without an argument a command only says how it is.
    None,
    /// What is usual again.
    Usual,
    /// This.
    To(T),
}

impl<T> Change<T> {
    fn apply(self, setting: &mut Option<T>) {
        match self {
            Change::None => {}
            Change::Usual => *setting = None,
            Change::To(value) => *setting = Some(value),
        }
    }
}

/// How one command prints: its options, else the session's settings, else what is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Display {
    /// Where it goes.
    pub screen: Screen,
    /// How points in time are written.
    pub time_format: TimeFormat,
    /// Digits after the second.
    pub time_digits: TimeDigits,
    /// What follows the name of a process that started or ended in the trace.
    pub process_format: ProcessFormat,
    /// Whether thousands are separated.
    pub digit_separator: bool,
    /// Whether lines are cut at the width of the terminal.
    pub clip: bool,
    /// Whether files are shown with their whole path.
    pub full_file_name: bool,
    /// Whether processes go by the names of their executables.
    pub plain_process_names: bool,
}

impl Display {
    /// What lines below others are indented by, so many levels deep: little on a screen, a tab in a pipe.
    pub(crate) fn indent(&self, levels: usize) -> String {
        if self.clip { "  " } else { "\t" }.repeat(levels)
    }

    /// A text of which nothing is cut on a narrow screen.
    pub(crate) fn whole(&self, text: &str) -> String {
        text.replace(' ', &format!(" {}", self.line_break()))
    }

    /// Where a line may go on in the next one if the screen is too narrow for it.
    pub(crate) fn line_break(&self) -> &'static str {
        if self.clip { BREAK } else { "" }
    }
}

/// As usual, where there is no terminal.
impl Default for Display {
    fn default() -> Display {
        DisplayArgs::default().display(&DisplayArgs::default(), Screen::PLAIN)
    }
}

impl DisplayArgs {
    /// Changes something, and says what counts from now on.
    pub fn set(&mut self, setting: Setting) -> String {
        match setting {
            Setting::TimeFormat(change) => {
                match change {
                    Change::None => {}
                    Change::Usual => (self.time_format, self.time_digits) = (None, None),
                    Change::To((format, digits)) => {
                        self.time_format = Some(format);
                        self.time_digits = digits.or(self.time_digits);
                    }
                }
                self.times()
            }
            Setting::TimeDigits(change) => {
                change.apply(&mut self.time_digits);
                self.times()
            }
            Setting::ProcessFormat(change) => {
                change.apply(&mut self.process_format);
                format!("process format: {}", self.process_format.unwrap_or_default())
            }
            Setting::FullFileNames(change) => {
                let mut full = Some(self.full_file_name);
                change.apply(&mut full);
                self.full_file_name = full.unwrap_or_default();
                let shown = if self.full_file_name { "whole path" } else { "name" };
                format!("files are shown by their {shown}")
            }
            Setting::Clip(change) => {
                change.apply(&mut self.clip);
                match self.clip.unwrap_or(true) {
                    true => "Clipping is on; .clip 0 turns it off".to_owned(),
                    false => "Clipping is off; .clip 1 turns it on".to_owned(),
                }
            }
            Setting::Pager(change) => {
                change.apply(&mut self.pager);
                let shown =
                    if self.pager.unwrap_or(true) { "page by page" } else { "as they come" };
                format!("long answers are shown {shown}")
            }
        }
    }

    fn times(&self) -> String {
        let format = self.time_format.unwrap_or_default();
        let digits = self.time_digits.unwrap_or_default().get();
        format!("time format: {format}, digits: {digits}")
    }

    /// How a command with these options prints.
    pub fn display(&self, args: &DisplayArgs, screen: Screen) -> Display {
        Display {
            screen,
            time_format: args.time_format.or(self.time_format).unwrap_or_default(),
            time_digits: args.time_digits.or(self.time_digits).unwrap_or_default(),
            process_format: args.process_format.or(self.process_format).unwrap_or_default(),
            digit_separator: !args.no_digit_separator && !self.no_digit_separator,
            clip: screen.is_terminal() && args.clip.or(self.clip).unwrap_or(true),
            full_file_name: args.full_file_name || self.full_file_name,
            plain_process_names: args.plain_process_names || self.plain_process_names,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_wins_over_the_session_which_wins_over_the_usual() {
        let settings = DisplayArgs { time_format: Some(TimeFormat::Utc), ..DisplayArgs::default() };
        let shown = |args: &DisplayArgs| settings.display(args, Screen::PLAIN).time_format;
        assert_eq!(shown(&DisplayArgs::default()), TimeFormat::Utc);
        let args = DisplayArgs { time_format: Some(TimeFormat::Seconds), ..Default::default() };
        assert_eq!(shown(&args), TimeFormat::Seconds);
        let usual = DisplayArgs::default().display(&DisplayArgs::default(), Screen::PLAIN);
        assert_eq!(usual.time_format, TimeFormat::Local);
        assert_eq!(usual.time_digits.get(), 6);
    }

    #[test]
    fn a_format_alone_keeps_the_digits_and_the_usual_one_clears_both() {
        let mut settings = DisplayArgs::default();
        let digits = TimeDigits::parse("3").expect("digits");
        let seconds = TimeFormat::Seconds;
        let said = settings.set(Setting::TimeFormat(Change::To((seconds, Some(digits)))));
        assert_eq!(said, "time format: s, digits: 3");
        let said = settings.set(Setting::TimeFormat(Change::To((TimeFormat::Utc, None))));
        assert_eq!(said, "time format: UTC, digits: 3");
        assert_eq!(settings.set(Setting::TimeFormat(Change::None)), "time format: UTC, digits: 3");
        let said = settings.set(Setting::TimeFormat(Change::Usual));
        assert_eq!(said, "time format: Local, digits: 6");
        assert_eq!(settings, DisplayArgs::default());
    }

    #[test]
    fn every_setting_says_what_counts_now() {
        let mut settings = DisplayArgs::default();
        let times = ProcessFormat::Times(TimeFormat::Seconds);
        for (setting, said) in [
            (Setting::TimeDigits(Change::To(TimeDigits::NONE)), "time format: Local, digits: 0"),
            (Setting::TimeDigits(Change::None), "time format: Local, digits: 0"),
            (Setting::TimeDigits(Change::Usual), "time format: Local, digits: 6"),
            (Setting::ProcessFormat(Change::To(times)), "process format: s"),
            (Setting::ProcessFormat(Change::None), "process format: s"),
            (Setting::ProcessFormat(Change::Usual), "process format: +-"),
            (Setting::FullFileNames(Change::To(true)), "files are shown by their whole path"),
            (Setting::FullFileNames(Change::None), "files are shown by their whole path"),
            (Setting::FullFileNames(Change::Usual), "files are shown by their name"),
            (Setting::Pager(Change::None), "long answers are shown page by page"),
            (Setting::Pager(Change::To(false)), "long answers are shown as they come"),
            (Setting::Pager(Change::Usual), "long answers are shown page by page"),
            (Setting::Clip(Change::To(false)), "Clipping is off; .clip 1 turns it on"),
            (Setting::Clip(Change::None), "Clipping is off; .clip 1 turns it on"),
            (Setting::Clip(Change::To(true)), "Clipping is on; .clip 0 turns it off"),
        ] {
            assert_eq!(settings.set(setting), said);
        }
    }

    #[test]
    fn lines_are_cut_on_a_terminal_unless_asked_otherwise_and_never_in_a_pipe() {
        let terminal = Screen { width: Some(80), color: false };
        let clips = |settings: DisplayArgs, clip, screen| {
            settings.display(&DisplayArgs { clip, ..Default::default() }, screen).clip
        };
        let off = DisplayArgs { clip: Some(false), ..DisplayArgs::default() };
        assert!(clips(DisplayArgs::default(), None, terminal));
        assert!(!clips(off, None, terminal));
        assert!(clips(off, Some(true), terminal));
        assert!(!clips(DisplayArgs::default(), Some(true), Screen::PLAIN));
    }
}
