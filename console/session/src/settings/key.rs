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
pub enum SettingKey {
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
        let words = || SettingKey::SymbolDownload.words().into_iter().map(|(word, _)| word);
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

impl SettingKey {
    /// All settings, in the order of the help.
    pub const ALL: &[SettingKey] = SettingKey::VARIANTS;

    /// Returns the setting of this name.
    ///
    /// # Errors
    /// If there is none; lists the names.
    pub fn named(name: &str) -> Result<SettingKey, ValueError> {
        let named = SettingKey::ALL.iter().find(|key| key.name().eq_ignore_ascii_case(name));
        named
            .copied()
            .ok_or_else(|| no_choice(name, || SettingKey::ALL.iter().map(|key| key.name())))
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
            SettingKey::SymbolPath => {
                (&[".sympath", "--symbol-path", "_NT_SYMBOL_PATH"], "(not set)")
            }
            SettingKey::SymbolDownload => (&[], "ask"),
            SettingKey::TimeFormat => (&["-TimeFmt", ".timefmt"], "Local"),
            SettingKey::TimeDigits => (&["-TimeDigits", ".timedigits"], "6"),
            SettingKey::ProcessFormat => (&["-ProcessFmt", ".processfmt"], "+ and -"),
            SettingKey::FullFileNames => (&["-ShowFullFileName", ".sffn"], "false"),
            SettingKey::Clip => (&["-Clip", ".clip"], "true"),
            SettingKey::Pager => (&[".pager", "an empty PAGER"], "true"),
            SettingKey::Color => (&["--color", "NO_COLOR"], "auto"),
            SettingKey::SystemModules => {
                (&[".sys"], "the kernel, ntdll, KernelBase, kernel32 and wow64")
            }
            SettingKey::SqlViews => (&[], "(not set)"),
        }
    }

    /// Describes where the value comes from, highest precedence first.
    pub fn sources(self) -> String {
        let before: String = self.before_file().iter().map(|name| format!("{name}, ")).collect();
        format!("{before}{self} of {FILE_NAME}, else {}", self.usual())
    }

    /// Describes, in a sentence, where the value set by an option or command with one of these names comes from.
    pub fn sources_of(names: &[&str]) -> Option<String> {
        let key = SettingKey::ALL
            .iter()
            .find(|key| key.before_file().iter().any(|name| names.contains(name)))?;
        Some(format!("Comes from {}.", key.sources()))
    }

    /// The words it accepts and their meanings; empty if it accepts other values, too.
    pub fn words(self) -> Vec<(&'static str, &'static str)> {
        match self {
            SettingKey::SymbolDownload => {
                SymbolDownload::VARIANTS.iter().map(|it| (it.into(), it.meaning())).collect()
            }
            SettingKey::TimeFormat => time_words().collect(),
            SettingKey::ProcessFormat => process_words().collect(),
            SettingKey::FullFileNames | SettingKey::Clip | SettingKey::Pager => SWITCH.into(),
            SettingKey::Color => COLORS.into(),
            SettingKey::SymbolPath
            | SettingKey::TimeDigits
            | SettingKey::SystemModules
            | SettingKey::SqlViews => Vec::new(),
        }
    }
}

/// Settings from one source; open ones are left to the next source.
#[derive(Debug, Clone, Default)]
pub struct SettingChoices {
    pub symbol_path: Option<SymbolPath>,
    pub symbol_download: Option<SymbolDownload>,
    pub display: DisplayArgs,
    pub color: Option<ColorChoice>,
    pub system_modules: Option<SystemModules>,
    /// The folder of the user's own views.
    pub sql_views: Option<PathBuf>,
}

impl SettingChoices {
    /// Sets a value as the configuration file and the console's commands write it; `None` leaves the setting open.
    ///
    /// # Errors
    /// If the setting does not accept it. Then nothing has changed.
    pub fn set(&mut self, key: SettingKey, text: Option<&str>) -> Result<(), ValueError> {
        let SettingChoices {
            symbol_path,
            symbol_download,
            display,
            color,
            system_modules,
            sql_views,
        } = self;
        match key {
            SettingKey::SymbolPath => *symbol_path = text.map(SymbolPath::parse),
            SettingKey::SymbolDownload => {
                *symbol_download = text.map(SymbolDownload::parse).transpose()?;
            }
            SettingKey::TimeFormat => display.time_format = text.map(time_format).transpose()?,
            SettingKey::TimeDigits => {
                display.time_digits = text.map(TimeDigits::parse).transpose()?;
            }
            SettingKey::ProcessFormat => {
                display.process_format = text.map(process_format).transpose()?;
            }
            SettingKey::FullFileNames => {
                display.full_file_name = text.map(on_or_off).transpose()?;
            }
            SettingKey::Clip => display.clip = text.map(on_or_off).transpose()?,
            SettingKey::Pager => display.pager = text.map(on_or_off).transpose()?,
            SettingKey::Color => *color = text.map(color_choice).transpose()?,
            SettingKey::SystemModules => *system_modules = text.map(modules).transpose()?,
            SettingKey::SqlViews => *sql_views = text.map(PathBuf::from),
        }
        Ok(())
    }

    /// Returns the value as shown, without secrets; `None` if the setting is open.
    pub fn text(&self, key: SettingKey) -> Option<String> {
        let SettingChoices {
            symbol_path,
            symbol_download,
            display,
            color,
            system_modules,
            sql_views,
        } = self;
        match key {
            SettingKey::SymbolPath => symbol_path.as_ref().map(SymbolPath::to_string),
            SettingKey::SymbolDownload => symbol_download.map(|choice| choice.to_string()),
            SettingKey::TimeFormat => display.time_format.map(|format| format.to_string()),
            SettingKey::TimeDigits => display.time_digits.map(|digits| digits.get().to_string()),
            SettingKey::ProcessFormat => display.process_format.map(|format| format.to_string()),
            SettingKey::FullFileNames => display.full_file_name.map(|on| on.to_string()),
            SettingKey::Clip => display.clip.map(|on| on.to_string()),
            SettingKey::Pager => display.pager.map(|on| on.to_string()),
            SettingKey::Color => Some(color.as_ref()?.to_possible_value()?.get_name().to_owned()),
            SettingKey::SystemModules => {
                system_modules.as_ref().map(|modules| modules.text().to_owned())
            }
            SettingKey::SqlViews => Some(sql_views.as_ref()?.to_string_lossy().into_owned()),
        }
    }

    /// Returns the value as written to the file, including secrets.
    pub fn written(&self, key: SettingKey) -> Option<String> {
        match (key, &self.symbol_path) {
            (SettingKey::SymbolPath, Some(path)) => Some(path.text().to_owned()),
            _ => self.text(key),
        }
    }
}

fn color_choice(word: &str) -> Result<ColorChoice, ValueError> {
    let words = || SettingKey::Color.words().into_iter().map(|(word, _)| word);
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
    const VALUES: [(SettingKey, &str); 11] = [
        (SettingKey::SymbolPath, "srv*c*https://x"),
        (SettingKey::SymbolDownload, "always"),
        (SettingKey::TimeFormat, "s"),
        (SettingKey::TimeDigits, "3"),
        (SettingKey::ProcessFormat, "None"),
        (SettingKey::FullFileNames, "true"),
        (SettingKey::Clip, "false"),
        (SettingKey::Pager, "false"),
        (SettingKey::Color, "never"),
        (SettingKey::SystemModules, "a.dll;b*.dll"),
        (SettingKey::SqlViews, "views"),
    ];

    #[test]
    fn each_setting_is_read_shown_and_left_open_again() {
        assert_eq!(VALUES.map(|(key, _)| key), SettingKey::ALL);
        let mut choices = SettingChoices::default();
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
        for &key in SettingKey::ALL {
            for (word, _) in key.words() {
                SettingChoices::default().set(key, Some(word)).expect(word);
            }
            if let [(first, _), ..] = key.words()[..] {
                let error = SettingChoices::default().set(key, Some("nonsense")).expect_err(first);
                assert!(error.to_string().starts_with("'nonsense' is not one of "), "{error}");
            }
        }
    }
}
