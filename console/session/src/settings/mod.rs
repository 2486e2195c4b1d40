//! Settings from the session, the command line, the environment and the configuration file, and which of them wins.

mod aliases;
mod display;
mod file;
mod ignore;
mod key;

use std::env;
use std::path::Path;

pub use self::aliases::{AliasError, AliasExpansion, Aliases};
pub use self::display::{Display, DisplayArgs, StackDisplayArgs};
use self::file::ConfigContents;
pub use self::file::{ConfigEntry, ConfigError, ConfigFile};
pub use self::ignore::{IgnoreEntry, IgnoreList, IgnoreProblem, Ignoring};
pub use self::key::{FILE_NAME, SettingChoices, SettingKey, SymbolDownload};
use crate::filter::SystemModules;
use crate::terminal::{ColorChoice, Screen, refuses_color, refuses_pager};
use handlescope_symbols::SymbolPath;

/// Where the value of a setting comes from; the first source that has one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingSource {
    Session,
    CommandLine,
    Environment,
    File,
    Usual,
}

/// Settings from each source, and the aliases.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Chosen by commands.
    pub session: SettingChoices,
    pub command_line: SettingChoices,
    pub environment: SettingChoices,
    /// The configuration file.
    pub file: ConfigFile,
    /// Settings from the file as read, with changes made since.
    pub in_file: SettingChoices,
    pub aliases: Aliases,
    /// Known leaks from the file.
    pub ignored: IgnoreList,
}

impl Settings {
    /// Reads the environment and the configuration file. A name for which `is_command` holds cannot be an alias.
    ///
    /// # Errors
    /// If the file cannot be read or has an invalid entry.
    pub fn read(
        file: ConfigFile,
        is_command: impl Fn(&str) -> bool,
    ) -> Result<Settings, ConfigError> {
        let ConfigContents { choices: in_file, aliases, ignored } = file.read(is_command)?;
        let environment = SettingChoices {
            symbol_path: SymbolPath::from_environment().map(|path| settled(&path)),
            display: DisplayArgs {
                pager: refuses_pager().then_some(false),
                ..DisplayArgs::default()
            },
            color: refuses_color().then_some(ColorChoice::Never),
            ..SettingChoices::default()
        };
        Ok(Settings { environment, file, in_file, aliases, ignored, ..Settings::default() })
    }

    /// Default settings, without colours.
    pub fn colorless() -> Settings {
        let command_line =
            SettingChoices { color: Some(ColorChoice::Never), ..SettingChoices::default() };
        Settings { command_line, ..Settings::default() }
    }

    fn layers(&self) -> [(SettingSource, &SettingChoices); 4] {
        [
            (SettingSource::Session, &self.session),
            (SettingSource::CommandLine, &self.command_line),
            (SettingSource::Environment, &self.environment),
            (SettingSource::File, &self.in_file),
        ]
    }

    /// Returns the choice of the first source that made one.
    fn first<'a, T>(&'a self, choice: impl Fn(&'a SettingChoices) -> Option<T>) -> Option<T> {
        self.layers().into_iter().find_map(|(_, choices)| choice(choices))
    }

    /// Returns the value of a setting as text, without secrets, and where it comes from.
    pub fn value(&self, key: SettingKey) -> (String, SettingSource) {
        let value = self
            .layers()
            .into_iter()
            .find_map(|(source, choices)| Some((choices.text(key)?, source)));
        value.unwrap_or_else(|| (key.usual().to_owned(), SettingSource::Usual))
    }

    /// Where to look for symbols.
    pub fn symbol_path(&self) -> SymbolPath {
        let path = self.first(|choices| choices.symbol_path.clone()).unwrap_or_default();
        match self.symbol_download() {
            SymbolDownload::Always if !path.has_servers() => path.with_microsoft(),
            _ => path,
        }
    }

    /// What to do if symbols are missing and no server is named.
    pub fn symbol_download(&self) -> SymbolDownload {
        self.first(|choices| choices.symbol_download).unwrap_or_default()
    }

    /// Where to look for symbols unless the session or the command line says so.
    pub fn configured_symbol_path(&self) -> Option<&SymbolPath> {
        self.environment.symbol_path.as_ref().or(self.in_file.symbol_path.as_ref())
    }

    /// When to use colours.
    pub fn color(&self) -> ColorChoice {
        self.first(|choices| choices.color).unwrap_or_default()
    }

    /// Modules whose frames say little about a program.
    pub fn system_modules(&self) -> &SystemModules {
        self.first(|choices| choices.system_modules.as_ref())
            .unwrap_or_else(|| SystemModules::usual())
    }

    /// The folder of the user's own views.
    pub fn sql_views(&self) -> Option<&Path> {
        self.first(|choices| choices.sql_views.as_deref())
    }

    /// Whether to page long answers.
    pub fn pager(&self) -> bool {
        self.display_args().pager.unwrap_or(true)
    }

    /// Returns the display settings of a command with these options.
    pub fn display(&self, args: &DisplayArgs, screen: Screen) -> Display {
        self.display_args().display(args, screen)
    }

    /// Returns the display settings of commands without options of their own.
    pub fn display_args(&self) -> DisplayArgs {
        self.layers()
            .map(|(_, choices)| choices.display)
            .into_iter()
            .reduce(DisplayArgs::or)
            .unwrap_or_default()
    }
}

/// Makes a path independent of the current folder.
pub fn settled(path: &SymbolPath) -> SymbolPath {
    env::current_dir().map_or_else(|_| path.clone(), |folder| path.based_on(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Choices of one setting.
    fn choices_of(key: SettingKey, value: &str) -> SettingChoices {
        let mut choices = SettingChoices::default();
        choices.set(key, Some(value)).expect(value);
        choices
    }

    #[test]
    fn the_session_counts_before_the_command_line_the_environment_and_the_file() {
        for (key, values) in [
            (SettingKey::TimeFormat, ["s", "UTC", "Here", "LocalTime"]),
            (SettingKey::Clip, ["false", "true", "false", "true"]),
            (SettingKey::Color, ["always", "never", "always", "never"]),
            (SettingKey::SymbolPath, ["/a", "/b", "/c", "/d"]),
            (SettingKey::SystemModules, ["a", "b", "c", "d"]),
        ] {
            let mut settings = Settings::default();
            assert_eq!(settings.value(key), (key.usual().to_owned(), SettingSource::Usual));
            let [session, command_line, environment, in_file] = values;
            settings.in_file = choices_of(key, in_file);
            assert_eq!(settings.value(key), (in_file.to_owned(), SettingSource::File));
            settings.environment = choices_of(key, environment);
            assert_eq!(settings.value(key), (environment.to_owned(), SettingSource::Environment));
            settings.command_line = choices_of(key, command_line);
            assert_eq!(settings.value(key), (command_line.to_owned(), SettingSource::CommandLine));
            settings.session = choices_of(key, session);
            assert_eq!(settings.value(key), (session.to_owned(), SettingSource::Session));
        }
    }

    #[test]
    fn shown_settings_are_those_in_effect() {
        let settings = Settings {
            in_file: SettingChoices {
                display: DisplayArgs { clip: Some(false), ..DisplayArgs::default() },
                color: Some(ColorChoice::Never),
                ..choices_of(SettingKey::SystemModules, "a.dll")
            },
            ..Settings::default()
        };
        let terminal = Screen { width: Some(80), color: false };
        assert!(!settings.display(&DisplayArgs::default(), terminal).clip);
        assert_eq!(settings.color(), ColorChoice::Never);
        assert!(settings.system_modules().has("a.dll") && !settings.system_modules().has("nt"));
        let usual = Settings::default().display(&DisplayArgs::default(), terminal);
        let shown = [
            (SettingKey::TimeFormat, usual.time_format.to_string()),
            (SettingKey::TimeDigits, usual.time_digits.get().to_string()),
            (SettingKey::FullFileNames, usual.full_file_name.to_string()),
            (SettingKey::Clip, usual.clip.to_string()),
            (SettingKey::Pager, Settings::default().pager().to_string()),
        ];
        for (key, value) in shown {
            assert_eq!(Settings::default().value(key).0, value, "{key}");
        }
        assert!(Settings::default().system_modules().has("nt"));
    }
}
