//! The theme: the meaning of each colour. No other file names a colour.

use clap::builder::Styles;
use clap::builder::styling::Ansi256Color;
use comfy_table::Cell;
use nu_ansi_term::{Color, Style};
use ratatui::style::{Modifier, Style as DrawnStyle};

/// The role of a text; it determines the style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Plain,
    /// A title, a suspect, or a function of the program's own modules.
    Heading,
    /// Titles of drawn columns.
    Titles,
    /// Less important text: a system function, or the meaning of a key.
    Aside,
    /// A hint at what may be typed next, or at the meaning of a menu entry.
    Hint,
    /// A trace, a table, an example, or an entry of the help.
    Name,
    Process,
    /// What some rows have in common.
    Group,
    /// An event that opened a handle or created an object, a handle value, a type, or a change for the better.
    Opened,
    /// An event that closed a handle or deleted an object.
    Closed,
    /// Totals, or a handle that was duplicated or inherited.
    Notable,
    /// The cause of a leak.
    Cause,
    /// Doubt about counts, and the totals of several traces.
    Alarm,
    Warning,
    /// A failure; a change for the worse.
    Error,
    // Words of the line being typed:
    Command,
    Kind,
    Option,
    Value,
    /// A meaningless word.
    Wrong,
    /// The word at the cursor, which may still become valid.
    Unfinished,
    Comment,
}

/// Colours of a terminal's 256, which look the same everywhere, unlike the first 16. They lie between black and white
/// so that they can be read on both; see the test below.
const GREY: u8 = 243;
const GREEN: u8 = 29;
const BLUE: u8 = 63;
const PURPLE: u8 = 98;
const MAGENTA: u8 = 163;
const ORANGE: u8 = 130;
const RED: u8 = 131;

/// All colours of the theme.
pub const COLORS: [u8; 7] = [GREY, GREEN, BLUE, PURPLE, MAGENTA, ORANGE, RED];

impl Role {
    pub fn style(self) -> Style {
        let color = |number| Color::Fixed(number).normal();
        match self {
            Role::Plain | Role::Unfinished => Style::new(),
            Role::Heading => Style::new().bold(),
            Role::Titles => Style::new().underline(),
            Role::Aside | Role::Comment | Role::Hint => color(GREY),
            Role::Name | Role::Kind => color(BLUE),
            Role::Command => color(BLUE).bold(),
            Role::Option => color(PURPLE).bold(),
            Role::Process | Role::Group => color(MAGENTA),
            Role::Opened | Role::Value => color(GREEN),
            Role::Notable => color(PURPLE),
            Role::Cause => color(ORANGE),
            Role::Warning => color(ORANGE).bold(),
            Role::Closed | Role::Alarm => color(RED),
            Role::Error => color(RED).bold(),
            Role::Wrong => color(RED).underline(),
        }
    }
}

impl Role {
    /// Returns just the colour, for code without styles.
    pub fn color(self) -> Color {
        self.style().foreground.unwrap_or_default()
    }
}

impl From<Role> for DrawnStyle {
    /// Returns the style on a full screen, which has no colours.
    fn from(role: Role) -> DrawnStyle {
        let Style { is_bold, is_underline, foreground, .. } = role.style();
        let modifiers = [
            (is_bold, Modifier::BOLD),
            (foreground == Some(Color::Fixed(GREY)), Modifier::DIM),
            (is_underline, Modifier::UNDERLINED),
        ];
        let modifiers =
            modifiers.into_iter().filter_map(|(is_set, modifier)| is_set.then_some(modifier));
        DrawnStyle::new().add_modifier(modifiers.collect())
    }
}

/// Creates a table cell with a name.
pub fn name_cell(name: &str) -> Cell {
    Cell::new(name).fg(comfy_table::Color::AnsiValue(BLUE))
}

/// Returns the styles of the command line's help and errors.
pub fn usage_styles() -> Styles {
    let color =
        |number| clap::builder::styling::Style::new().fg_color(Some(Ansi256Color(number).into()));
    Styles::styled().error(color(RED).bold()).valid(color(GREEN)).invalid(color(ORANGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns red, green and blue of a colour, as in xterm and everything after it.
    fn rgb(color: u8) -> [u8; 3] {
        const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
        match color.checked_sub(232) {
            Some(step) => [8 + 10 * step; 3],
            None => [36, 6, 1].map(|place| LEVELS[usize::from((color - 16) / place % 6)]),
        }
    }

    /// Contrast as in WCAG 2.
    fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
        let luminance = |color: [u8; 3]| {
            let linear = |part: u8| match f64::from(part) / 255.0 {
                part if part <= 0.04045 => part / 12.92,
                part => ((part + 0.055) / 1.055).powf(2.4),
            };
            let [red, green, blue] = color.map(linear);
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        };
        let (one, other) = (luminance(one), luminance(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn every_color_is_read_on_white_and_on_black() {
        const WHITE: [u8; 3] = [0xFF; 3];
        // No colour reaches 4.5 both on white and on a background lighter than black. VS Code adjusts colours until
        // they do.
        const DARK: [([u8; 3], f64); 3] = [([0; 3], 4.4), ([0x0C; 3], 4.1), ([0x1E; 3], 3.5)];
        for color in COLORS {
            let on_white = contrast(rgb(color), WHITE);
            assert!(on_white >= 4.5, "{color}: {on_white}");
            for (background, least) in DARK {
                let on_dark = contrast(rgb(color), background);
                assert!(on_dark >= least, "{color} on {background:?}: {on_dark}");
            }
        }
    }

    #[test]
    fn roles_have_no_other_colors() {
        let roles = [
            Role::Plain,
            Role::Heading,
            Role::Titles,
            Role::Aside,
            Role::Hint,
            Role::Name,
            Role::Process,
            Role::Group,
            Role::Opened,
            Role::Closed,
            Role::Notable,
            Role::Cause,
            Role::Alarm,
            Role::Warning,
            Role::Error,
            Role::Command,
            Role::Kind,
            Role::Option,
            Role::Value,
            Role::Wrong,
            Role::Unfinished,
            Role::Comment,
        ];
        for role in roles {
            let Style { foreground, background, is_dimmed, .. } = role.style();
            let is_known =
                |color| matches!(color, Color::Fixed(number) if COLORS.contains(&number));
            assert!(foreground.is_none_or(is_known) && background.is_none() && !is_dimmed);
        }
        let causes = roles.into_iter().filter(|role| role.style() == Role::Cause.style());
        assert_eq!(causes.collect::<Vec<_>>(), [Role::Cause], "a cause has a style of its own");
    }
}
