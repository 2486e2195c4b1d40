//! The terminal: width and colours, messages, progress, tables, and text that cannot disturb it.

/// Forwards trait methods to the first field, which implements the trait as well.
#[macro_export]
macro_rules! delegate {
    ($(fn $name:ident(&mut $self:ident $(, $arg:ident: $type:ty)* $(,)?) $(-> $result:ty)?;)+) => {
        $(fn $name(&mut $self $(, $arg: $type)*) $(-> $result)? { $self.0.$name($($arg),*) })+
    };
    ($(fn $name:ident(&$self:ident $(, $arg:ident: $type:ty)* $(,)?) $(-> $result:ty)?;)+) => {
        $(fn $name(&$self $(, $arg: $type)*) $(-> $result)? { $self.0.$name($($arg),*) })+
    };
}

pub mod clip;
mod command_output;
mod full_screen;
mod margin;
mod messages;
mod neutral;
mod pager;
mod piped;
mod progress;
pub mod standard;
pub mod table;
pub mod theme;
mod wrap;

use std::io::{IsTerminal, Write};
use std::{env, fmt, io};

use terminal_size::{Width, terminal_size_of};

pub use self::command_output::CommandOutput;
pub use self::full_screen::{FullScreen, KeyPress};
pub use self::messages::{Messages, print_usage, report_panics};
pub use self::neutral::{Neutral, neutral, same_length};
pub use self::pager::{PagedOutput, refuses_pager};
pub use self::piped::PipedOutput;
pub use self::progress::{Activity, Progress, Spinner};
pub use self::theme::Role;
pub use self::wrap::{phrases, wrapped, wrapped_name};

/// `--color`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// Colours on a terminal, unless the environment variable NO_COLOR is set or TERM is dumb.
    #[default]
    Auto,
    /// Colours everywhere.
    Always,
    /// No colours.
    Never,
}

/// The properties of an output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Columns of the terminal; `None` in a pipe or file, where lines have no limit.
    pub width: Option<usize>,
    /// Whether to write colours.
    pub color: bool,
}

impl Screen {
    /// A pipe or file.
    pub const PLAIN: Screen = Screen { width: None, color: false };

    /// Standard output as it is now; the width changes with the window.
    pub fn stdout(color: ColorChoice) -> Screen {
        let width = terminal_size_of(standard::out());
        Screen::new(standard::out().is_terminal(), width.map(|(Width(columns), _)| columns), color)
    }

    /// Standard error as it is now.
    pub fn stderr(color: ColorChoice) -> Screen {
        let width = terminal_size_of(standard::error());
        Screen::new(
            standard::error().is_terminal(),
            width.map(|(Width(columns), _)| columns),
            color,
        )
    }

    fn new(is_terminal: bool, columns: Option<u16>, color: ColorChoice) -> Screen {
        /// Assumed width of a terminal that reports none.
        const COLUMNS: u16 = 80;
        Screen {
            width: is_terminal.then(|| columns.filter(|c| *c > 0).unwrap_or(COLUMNS).into()),
            color: match color {
                ColorChoice::Auto => is_terminal && !refuses_color() && !is_dumb(),
                ColorChoice::Always => true,
                ColorChoice::Never => false,
            },
        }
    }

    /// Whether this is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.width.is_some()
    }

    /// Clears standard output including its scrollback, if it is a terminal.
    ///
    /// # Errors
    /// If writing fails.
    pub fn clear(&self) -> io::Result<()> {
        self.clear_on(&mut standard::out())
    }

    fn clear_on(&self, out: &mut dyn Write) -> io::Result<()> {
        /// Cursor home, erase the screen, erase the scrollback.
        const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";
        if !self.is_terminal() {
            return Ok(());
        }
        out.write_all(CLEAR.as_bytes())?;
        out.flush()
    }

    /// Wraps a value in the style of its role; unchanged without colours.
    pub fn paint<T: fmt::Display>(&self, role: Role, value: T) -> StyledValue<T> {
        StyledValue { role: if self.color { role } else { Role::Plain }, value }
    }
}

/// Whether the environment asks for no colours: NO_COLOR is set and not empty (<https://no-color.org>).
pub fn refuses_color() -> bool {
    env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Whether the terminal understands only text, like an editor's window: no colours, no pager, and nothing that draws
/// progress.
pub fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// A value with the style of a role around it. Format widths apply to the value, not to the invisible codes.
#[derive(Debug, Clone, Copy)]
pub struct StyledValue<T> {
    role: Role,
    value: T,
}

impl<T> StyledValue<T> {
    fn write(
        &self,
        formatter: &mut fmt::Formatter<'_>,
        value: impl FnOnce(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let style = self.role.style();
        if style.is_plain() {
            return value(&self.value, formatter);
        }
        write!(formatter, "{}", style.prefix())?;
        value(&self.value, formatter)?;
        write!(formatter, "{}", style.suffix())
    }
}

impl<T: fmt::Display> fmt::Display for StyledValue<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(formatter, T::fmt)
    }
}

impl<T: fmt::UpperHex> fmt::UpperHex for StyledValue<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(formatter, T::fmt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_for_terminals_unless_asked_for() {
        let colored = |terminal, choice| Screen::new(terminal, Some(100), choice).color;
        assert!(!colored(false, ColorChoice::Auto));
        assert!(colored(false, ColorChoice::Always));
        assert!(!colored(true, ColorChoice::Never));
    }

    #[test]
    fn a_pipe_has_no_width_and_a_terminal_that_reports_none_eighty_columns() {
        let width = |terminal, columns| Screen::new(terminal, columns, ColorChoice::Never).width;
        assert_eq!(width(false, Some(100)), None);
        assert_eq!(width(true, Some(100)), Some(100));
        assert_eq!(width(true, None), Some(80));
        assert_eq!(width(true, Some(0)), Some(80));
    }

    #[test]
    fn only_a_terminal_is_cleared() {
        let cleared = |screen: Screen| {
            let mut out = Vec::new();
            screen.clear_on(&mut out).expect("written");
            !out.is_empty()
        };
        assert!(cleared(Screen { width: Some(80), color: false }));
        assert!(!cleared(Screen::PLAIN));
    }

    #[test]
    fn padding_is_inside_the_color() {
        let screen = Screen { width: None, color: true };
        assert_eq!(
            format!("{:<5}|", screen.paint(Role::Opened, "ab")),
            "\u{1b}[38;5;29mab   \u{1b}[0m|"
        );
        assert_eq!(format!("{:>5}|", Screen::PLAIN.paint(Role::Opened, 7)), "    7|");
    }
}
