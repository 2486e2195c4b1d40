//! Display settings of a session, and how one command combines them with its options.

use crate::terminal::clip::BREAK;
use crate::terminal::{Screen, phrases};
use crate::values::{ProcessFormat, TimeDigits, TimeFormat};

/// Choices about the output, from the options of a command or from the session. An option of `.dump` wins over the
/// session; what neither chose has its default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DisplayArgs {
    /// `-TimeFmt`: how to write points in time.
    pub time_format: Option<TimeFormat>,
    /// `-TimeDigits`: digits after the second.
    pub time_digits: Option<TimeDigits>,
    /// `-ProcessFmt`: what to write after a process that started or ended in the trace.
    pub process_format: Option<ProcessFormat>,
    /// `-NoDigitSep`: no separators between thousands.
    pub no_digit_separator: bool,
    /// `-Clip` and `-NoClip`: whether to cut lines at the width of the terminal.
    pub clip: Option<bool>,
    /// `.pager`: whether to page answers that are longer than the screen.
    pub pager: Option<bool>,
    /// `-ShowFullFileName`: whether to show the full path above the objects of a file.
    pub full_file_name: Option<bool>,
    /// `-PlainProcessNames`: use names of executables even where a service has a better name.
    pub plain_process_names: bool,
}

/// Choices about printing the stacks of a query.
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
    /// Returns an option about frames that was given without `-ShowStack`.
    pub fn option_without_stacks(self) -> Option<&'static str> {
        let options = [(self.address, "-ShowAddress"), (self.line, "-ShowLine")];
        let given = options.into_iter().find(|(is_given, _)| *is_given && !self.show);
        given.map(|(_, option)| option)
    }
}

/// Display settings of one command: its options, then the session's settings, then the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Display {
    /// Where the output goes.
    pub screen: Screen,
    /// Format of points in time.
    pub time_format: TimeFormat,
    /// Digits after the second.
    pub time_digits: TimeDigits,
    /// Text after the name of a process that started or ended in the trace.
    pub process_format: ProcessFormat,
    /// Whether thousands are separated.
    pub digit_separator: bool,
    /// Whether lines are cut at the width of the terminal.
    pub clip: bool,
    /// Whether to show files with their full path.
    pub full_file_name: bool,
    /// Whether to use the names of executables for processes.
    pub plain_process_names: bool,
}

impl Display {
    /// Returns the indentation of nested lines: little on a screen, tabs in a pipe.
    pub fn indent(&self, levels: usize) -> String {
        if self.clip { "  " } else { "\t" }.repeat(levels)
    }

    /// Lets a text wrap on a narrow screen instead of being cut.
    pub fn whole(&self, text: &str) -> String {
        let may_break = self.line_break();
        if may_break.is_empty() {
            return text.to_owned();
        }
        phrases(text).fold(String::with_capacity(text.len()), |mut whole, phrase| {
            whole.push_str(phrase);
            if phrase.ends_with(' ') {
                whole.push_str(may_break);
            }
            whole
        })
    }

    /// Returns a mark after which a line may continue on the next one if the screen is too narrow.
    pub fn line_break(&self) -> &'static str {
        if self.clip { BREAK } else { "" }
    }
}

/// Default settings, for output without a terminal.
impl Default for Display {
    fn default() -> Display {
        DisplayArgs::default().display(&DisplayArgs::default(), Screen::PLAIN)
    }
}

impl DisplayArgs {
    /// Fills open choices from `fallback`.
    pub fn or(self, fallback: DisplayArgs) -> DisplayArgs {
        DisplayArgs {
            time_format: self.time_format.or(fallback.time_format),
            time_digits: self.time_digits.or(fallback.time_digits),
            process_format: self.process_format.or(fallback.process_format),
            no_digit_separator: self.no_digit_separator || fallback.no_digit_separator,
            clip: self.clip.or(fallback.clip),
            pager: self.pager.or(fallback.pager),
            full_file_name: self.full_file_name.or(fallback.full_file_name),
            plain_process_names: self.plain_process_names || fallback.plain_process_names,
        }
    }

    /// Returns the display settings of a command with these options.
    pub fn display(&self, args: &DisplayArgs, screen: Screen) -> Display {
        let merged = args.or(*self);
        Display {
            screen,
            time_format: merged.time_format.unwrap_or_default(),
            time_digits: merged.time_digits.unwrap_or_default(),
            process_format: merged.process_format.unwrap_or_default(),
            digit_separator: !merged.no_digit_separator,
            clip: screen.is_terminal() && merged.clip.unwrap_or(true),
            full_file_name: merged.full_file_name.unwrap_or_default(),
            plain_process_names: merged.plain_process_names,
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
