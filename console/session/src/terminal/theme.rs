//! The theme: the meaning of each colour. No other file names a colour.

use comfy_table::Cell;
use nu_ansi_term::{Color, Style};
use ratatui::style::{Modifier, Style as DrawnStyle};

/// The role of a text, which determines its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Plain,
    /// A title, a suspect, a function of the program's own modules.
    Heading,
    /// Titles of columns that are drawn.
    Titles,
    /// Less important text: a function of the system, the meaning of a key.
    Aside,
    /// A hint at what may be typed next, and at the meaning of an entry of the menu.
    Hint,
    /// A trace, a table, a cause, an example, an entry of help.
    Name,
    Process,
    /// The common part of some rows.
    Group,
    /// An event that opened a handle or created an object, a value of a handle, a type; a change
    /// for the better.
    Opened,
    /// An event that closed a handle or deleted an object.
    Closed,
    /// A verdict, totals, a handle that was duplicated or inherited.
    Notable,
    /// Doubt about counts, and the totals of several traces.
    Alarm,
    Warning,
    /// A failure; a change for the worse.
    Error,
    // Words of a line that is being typed:
    Command,
    Kind,
    Option,
    Value,
    /// A meaningless word.
    Wrong,
    /// The word at the cursor, which may still become something.
    Unfinished,
    Comment,
}

impl Role {
    pub fn style(self) -> Style {
        match self {
            Role::Plain | Role::Unfinished => Style::new(),
            Role::Heading => Style::new().bold(),
            Role::Titles => Style::new().underline(),
            Role::Aside | Role::Comment => Style::new().dimmed(),
            Role::Hint => Color::DarkGray.normal(),
            Role::Name | Role::Kind => Color::Cyan.normal(),
            Role::Command => Color::Cyan.bold(),
            Role::Option => Color::Blue.bold(),
            Role::Process | Role::Group => Color::Magenta.normal(),
            Role::Opened | Role::Value => Color::Green.normal(),
            Role::Closed => Color::LightRed.normal(),
            Role::Notable => Color::Yellow.normal(),
            Role::Warning => Color::Yellow.bold(),
            Role::Alarm => Color::Red.normal(),
            Role::Error => Color::Red.bold(),
            Role::Wrong => Color::Red.underline(),
        }
    }
}

impl From<Role> for DrawnStyle {
    /// The style on a full screen, which has no colours.
    fn from(role: Role) -> DrawnStyle {
        let Style { is_bold, is_dimmed, is_underline, .. } = role.style();
        let modifiers = [
            (is_bold, Modifier::BOLD),
            (is_dimmed, Modifier::DIM),
            (is_underline, Modifier::UNDERLINED),
        ];
        let modifiers =
            modifiers.into_iter().filter_map(|(is_set, modifier)| is_set.then_some(modifier));
        DrawnStyle::new().add_modifier(modifiers.collect())
    }
}

/// A cell of a table with a name in it.
pub fn name_cell(name: &str) -> Cell {
    Cell::new(name).fg(comfy_table::Color::Cyan)
}
