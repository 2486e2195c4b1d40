//! The settings: their names in the configuration file, and what one source says about each.

use std::path::PathBuf;

use clap::ValueEnum;
use handlescope_symbols::SymbolPath;
use strum::{Display, IntoStaticStr, VariantArray};

use super::display::DisplayArgs;
use crate::filter::SystemModules;
use crate::terminal::ColorChoice;
use crate::values::{
    TimeDigits, ValueError, no_choice, on_or_off, process_format, process_words, time_format,
    time_words,
};

/// Name of the configuration file in the platform's configuration folder.
pub const FILE_NAME: &str = "handlescope.toml";

/// A setting that can be kept in the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Key {
    SymbolPath,
    SymbolDownload,
    TimeFormat,
    TimeDigits,
    ProcessFormat,
    FullFileNames,
    Clip,
    Pager,
    Color,
    SystemModules,
    SqlViews,
}

/// What to do if symbols are missing and no server is named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum SymbolDownload {
    /// Offer at the prompt to download them from Microsoft.
    #[default]
    Ask,
    /// Download them from Microsoft.
    Always,
    /// Download and offer nothing.
    Never,
}

impl SymbolDownload {
    const fn meaning(self) -> &'static str {
        match self {
            Self::Ask => "the prompt asks once a session",
            Self::Always => "from Microsoft, unless a server is named",
            Self::Never => "only from named servers",
        }
    }

    fn parse(word: &str) -> Result<Self, ValueError> {
        let words = || Key::SymbolDownload.words().into_iter().map(|(word, _)| word);
        let known = Self::VARIANTS.iter().zip(words());
        let mut named = known.filter(|(_, known)| known.eq_ignore_ascii_case(word));
        named.next().map(|(choice, _)| *choice).ok_or_else(|| no_choice(word, words))
    }
}

/// Words for on and off.
const SWITCH: [(&str, &str); 2] = [("true", "on"), ("false", "off")];

/// Words for the use of colours.
const COLORS: [(&str, &str); 3] =
    [("auto", "on a terminal"), ("always", "everywhere"), ("never", "nowhere")];

impl Key {
    /// All settings, in the order of the help.
    pub const ALL: &[Key] = Key::VARIANTS;

    /// Returns the setting of this name.
    ///
    /// # Errors
    /// If there is none; lists the names.
    pub fn named(name: &str) -> Result<Key, ValueError> {
        let named = Key::ALL.iter().find(|key| key.name().eq_ignore_ascii_case(name));
        named.copied().ok_or_else(|| no_choice(name, || Key::ALL.iter().map(|key| key.name())))
    }

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Options, commands and variables that take precedence over the configuration file, highest first.
    pub fn before_file(self) -> &'static [&'static str] {
        self.texts().0
    }

    /// Default value, in words.
    pub fn usual(self) -> &'static str {
        self.texts().1
    }

    /// What takes precedence over the configuration file, and the default value.
    fn texts(self) -> (&'static [&'static str], &'static str) {
        match self {
            Key::SymbolPath => (&[".sympath", "--symbol-path", "_NT_SYMBOL_PATH"], "(not set)"),
            Key::SymbolDownload => (&[], "ask"),
            Key::TimeFormat => (&["-TimeFmt", ".timefmt"], "Local"),
            Key::TimeDigits => (&["-TimeDigits", ".timedigits"], "6"),
            Key::ProcessFormat => (&["-ProcessFmt", ".processfmt"], "+ and -"),
            Key::FullFileNames => (&["-ShowFullFileName", ".sffn"], "false"),
            Key::Clip => (&["-Clip", ".clip"], "true"),
            Key::Pager => (&[".pager", "an empty PAGER"], "true"),
            Key::Color => (&["--color", "NO_COLOR"], "auto"),
            Key::SystemModules => (&[".sys"], "the kernel, ntdll, KernelBase, kernel32 and wow64"),
            Key::SqlViews => (&[], "(not set)"),
        }
    }

    /// Describes where the value comes from, highest precedence first.
    pub fn sources(self) -> String {
        let before: String = self.before_file().iter().map(|name| format!("{name}, ")).collect();
        format!("{before}{self} of {FILE_NAME}, else {}", self.usual())
    }

    /// Describes, in a sentence, where the value set by an option or command with one of these names comes from.
    pub fn sources_of(names: &[&str]) -> Option<String> {
        let mut keys = Key::ALL.iter();
        let key = keys.find(|key| key.before_file().iter().any(|name| names.contains(name)))?;
        Some(format!("Comes from {}.", key.sources()))
    }

    /// The words it accepts and their meanings; empty if it accepts other values, too.
    pub fn words(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Key::SymbolDownload => {
                SymbolDownload::VARIANTS.iter().map(|it| (it.into(), it.meaning())).collect()
            }
            Key::TimeFormat => time_words().collect(),
            Key::ProcessFormat => process_words().collect(),
            Key::FullFileNames | Key::Clip | Key::Pager => SWITCH.into(),
            Key::Color => COLORS.into(),
            Key::SymbolPath | Key::TimeDigits | Key::SystemModules | Key::SqlViews => Vec::new(),
        }
    }
}

/// Settings from one source; open ones are left to the next source.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    pub symbol_path: Option<SymbolPath>,
    pub symbol_download: Option<SymbolDownload>,
    pub display: DisplayArgs,
    pub color: Option<ColorChoice>,
    pub system_modules: Option<SystemModules>,
    /// The folder of the user's own views.
    pub sql_views: Option<PathBuf>,
}

impl Choices {
    /// Sets a value as the configuration file and the console's commands write it; `None` leaves the setting open.
    ///
    /// # Errors
    /// If the setting does not accept it. Then nothing has changed.
    pub fn set(&mut self, key: Key, text: Option<&str>) -> Result<(), ValueError> {
        let Choices { symbol_path, symbol_download, display, color, system_modules, sql_views } =
            self;
        match key {
            Key::SymbolPath => *symbol_path = text.map(SymbolPath::parse),
            Key::SymbolDownload => {
                *symbol_download = text.map(SymbolDownload::parse).transpose()?;
            }
            Key::TimeFormat => display.time_format = text.map(time_format).transpose()?,
            Key::TimeDigits => display.time_digits = text.map(TimeDigits::parse).transpose()?,
            Key::ProcessFormat => display.process_format = text.map(process_format).transpose()?,
            Key::FullFileNames => display.full_file_name = text.map(on_or_off).transpose()?,
            Key::Clip => display.clip = text.map(on_or_off).transpose()?,
            Key::Pager => display.pager = text.map(on_or_off).transpose()?,
            Key::Color => *color = text.map(color_choice).transpose()?,
            Key::SystemModules => *system_modules = text.map(modules).transpose()?,
            Key::SqlViews => *sql_views = text.map(PathBuf::from),
        }
        Ok(())
    }

    /// Returns the value as shown, without secrets; `None` if the setting is open.
    pub fn text(&self, key: Key) -> Option<String> {
        let Choices { symbol_path, symbol_download, display, color, system_modules, sql_views } =
            self;
        match key {
            Key::SymbolPath => symbol_path.as_ref().map(SymbolPath::to_string),
            Key::SymbolDownload => symbol_download.map(|choice| choice.to_string()),
            Key::TimeFormat => display.time_format.map(|format| format.to_string()),
            Key::TimeDigits => display.time_digits.map(|digits| digits.get().to_string()),
            Key::ProcessFormat => display.process_format.map(|format| format.to_string()),
            Key::FullFileNames => display.full_file_name.map(|on| on.to_string()),
            Key::Clip => display.clip.map(|on| on.to_string()),
            Key::Pager => display.pager.map(|on| on.to_string()),
            Key::Color => Some(color.as_ref()?.to_possible_value()?.get_name().to_owned()),
            Key::SystemModules => system_modules.as_ref().map(|modules| modules.text().to_owned()),
            Key::SqlViews => Some(sql_views.as_ref()?.to_string_lossy().into_owned()),
        }
    }

    /// Returns the value as written to the file, including secrets.
    pub fn written(&self, key: Key) -> Option<String> {
        match (key, &self.symbol_path) {
            (Key::SymbolPath, Some(path)) => Some(path.text().to_owned()),
            _ => self.text(key),
        }
    }
}

fn color_choice(word: &str) -> Result<ColorChoice, ValueError> {
    let words = || Key::Color.words().into_iter().map(|(word, _)| word);
    ColorChoice::from_str(word, true).map_err(|_| no_choice(word, words))
}

/// Reads a list of system modules.
fn modules(text: &str) -> Result<SystemModules, ValueError> {
    SystemModules::new(text).map_err(|error| ValueError::Filter { reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A non-default value of each setting.
    const VALUES: [(Key, &str); 11] = [
        (Key::SymbolPath, "srv*c*https://x"),
        (Key::SymbolDownload, "always"),
        (Key::TimeFormat, "s"),
        (Key::TimeDigits, "3"),
        (Key::ProcessFormat, "None"),
        (Key::FullFileNames, "true"),
        (Key::Clip, "false"),
        (Key::Pager, "false"),
        (Key::Color, "never"),
        (Key::SystemModules, "a.dll;b*.dll"),
        (Key::SqlViews, "views"),
    ];

    #[test]
    fn each_setting_is_read_shown_and_left_open_again() {
        assert_eq!(VALUES.map(|(key, _)| key), Key::ALL);
        let mut choices = Choices::default();
        for (key, value) in VALUES {
            assert_eq!(choices.text(key), None, "{key}");
            choices.set(key, Some(value)).expect(value);
            assert_eq!(choices.text(key).as_deref(), Some(value), "{key}");
        }
        for (key, _) in VALUES {
            choices.set(key, None).expect("nothing to read");
            assert_eq!(choices.text(key), None, "{key}");
        }
    }

    #[test]
    fn each_word_that_is_offered_is_taken_and_others_are_refused() {
        for &key in Key::ALL {
            for (word, _) in key.words() {
                Choices::default().set(key, Some(word)).expect(word);
            }
            if let [(first, _), ..] = key.words()[..] {
                let error = Choices::default().set(key, Some("nonsense")).expect_err(first);
                assert!(error.to_string().starts_with("'nonsense' is not one of "), "{error}");
            }
        }
    }
}
