//! `.config`

use std::path::{Path, absolute};

use handlescope_model::Untrusted;

use super::settings::USUAL;
use super::shared::groups;
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_session::grammar::{
    Arguments, Example, ParseError, Token, definition, parse, split,
};
use handlescope_session::settings::{
    ConfigEntry, SettingChoices, SettingKey, SettingSource, Settings, settled,
};
use handlescope_session::terminal::{Screen, table, wrapped};

/// A change to a setting in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum SettingChange {
    /// No change: the setting is only shown.
    #[default]
    None,
    /// Removes the setting.
    Usual,
    To(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigArgs {
    /// The setting to show or change; `None` for all.
    key: Option<SettingKey>,
    /// The new value in the configuration file.
    value: SettingChange,
}

pub struct Config;

impl Command for Config {
    type Args = ConfigArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".config"],
        group: groups::SESSION,
        usage: "[SETTING [VALUE]]",
        arguments: Arguments::Setting,
        summary: "show settings and where they come from, or change one in the configuration file",
        details: "The file is handlescope.toml in the platform's configuration folder, or the one \
             that --config names. VALUE takes effect at once and in later sessions; usual removes \
             the setting from the file. Comments in the file are kept. Relative folders in it are \
             relative to the file. Aliases are kept there, too: .help .alias.",
        examples: &Example::lines([
            ".config",
            ".config time-format s",
            ".config symbol-path srv*C:\\Symbols*https://msdl.microsoft.com/download/symbols",
            ".config time-format usual",
        ]),
    };

    fn parse(entered: &EnteredLine<'_>) -> Result<ConfigArgs, ParseError> {
        parse::check_quotes(entered.tokens)?;
        let Some(first) = entered.tokens.first() else { return Ok(ConfigArgs::default()) };
        let text = entered.line.get(first.span.start..).unwrap_or_default();
        let (name, text) =
            definition(text).or_else(|| text.split_once(char::is_whitespace)).unwrap_or((text, ""));
        let token = |text: &str| Token { text: text.to_owned(), ..first.clone() };
        let key = entered.value(&token(name), SettingKey::named)?;
        let text = match split(text).as_slice() {
            [] => String::new(),
            [word] => word.text.clone(),
            _ => text.trim().to_owned(),
        };
        let value = match text.as_str() {
            "" => SettingChange::None,
            word if word.eq_ignore_ascii_case(USUAL) => SettingChange::Usual,
            text => {
                entered
                    .value(&token(text), |text| SettingChoices::default().set(key, Some(text)))?;
                SettingChange::To(text.to_owned())
            }
        };
        Ok(ConfigArgs { key: Some(key), value })
    }

    fn run(args: ConfigArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let settings = &context.session.settings;
        match (args.key, args.value) {
            (None, _) => {
                let location = location(settings.file.path());
                writeln!(context.out, "{}", wrapped(&location, context.screen.width))?;
                Ok(write!(
                    context.out,
                    "{}",
                    list_settings(settings, SettingKey::ALL, context.screen)
                )?)
            }
            (Some(key), SettingChange::None) => {
                Ok(write!(context.out, "{}", list_settings(settings, &[key], context.screen))?)
            }
            (Some(key), SettingChange::Usual) => change(key, None, context),
            (Some(key), SettingChange::To(value)) => change(key, Some(&value), context),
        }
    }
}

/// Writes a setting to the file, and applies it to this session.
fn change(
    key: SettingKey,
    value: Option<&str>,
    context: &mut Context<'_, '_>,
) -> Result<(), CommandError> {
    let Context { session, messages, .. } = context;
    let settings = &mut session.settings;
    let mut in_file = settings.in_file.clone();
    in_file.set(key, value).map_err(ParseError::refused)?;
    if key == SettingKey::SymbolPath {
        in_file.symbol_path = in_file.symbol_path.map(|path| settled(&path));
    }
    in_file.sql_views = in_file.sql_views.map(|path| absolute(&path).unwrap_or(path));
    let path = settings.file.write(ConfigEntry::Setting(key, in_file.written(key).as_deref()))?;
    messages.note(match in_file.text(key) {
        Some(value) => format!("{}: {key} is {}", Untrusted(path), Untrusted(value)),
        None => format!("{}: {key} is not set", Untrusted(path)),
    });
    settings.in_file = in_file;
    settings.session.set(key, None).map_err(ParseError::refused)?;
    if let (now, source @ (SettingSource::CommandLine | SettingSource::Environment)) =
        settings.value(key)
    {
        let source = name(key, source);
        messages.note(format_args!(
            "note: {key} stays {} here, because {source} sets it",
            Untrusted(now)
        ));
    }
    match key {
        SettingKey::SymbolPath | SettingKey::SymbolDownload => session.forget_symbols(),
        SettingKey::Color => messages.set_color(session.settings.color()),
        _ => {}
    }
    Ok(())
}

fn location(path: Option<&Path>) -> String {
    match path {
        Some(path) if path.exists() => format!("Configuration file: {}", Untrusted(path)),
        Some(path) => format!("Configuration file: {} (does not exist yet)", Untrusted(path)),
        None => "Configuration file: none; --config FILE names one".to_owned(),
    }
}

fn list_settings(settings: &Settings, keys: &[SettingKey], screen: Screen) -> String {
    let mut table = table::table(screen, &["Setting", "Value", "Comes from"]);
    for &key in keys {
        let (value, source) = settings.value(key);
        table.add_row([
            key.name().to_owned(),
            Untrusted(value).to_string(),
            name(key, source).to_owned(),
        ]);
    }
    table::text(table)
}

/// Describes a source.
fn name(key: SettingKey, source: SettingSource) -> &'static str {
    match source {
        SettingSource::Session => "this session",
        SettingSource::CommandLine => "the command line",
        SettingSource::Environment => key.before_file().last().copied().unwrap_or_default(),
        SettingSource::File => "the configuration file",
        SettingSource::Usual => "default",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::{args, error};

    #[test]
    fn a_setting_is_shown_or_gets_the_rest_of_the_line() {
        let path = "srv*c*https://x/y;my symbols";
        let to = |value: &str| SettingChange::To(value.to_owned());
        for (line, key, value) in [
            (".config", None, SettingChange::None),
            (".config Time-Format", Some(SettingKey::TimeFormat), SettingChange::None),
            (".config time-format s", Some(SettingKey::TimeFormat), to("s")),
            (".config time-format = s", Some(SettingKey::TimeFormat), to("s")),
            (".config time-format=s > a.txt", Some(SettingKey::TimeFormat), to("s")),
            (".config clip Usual", Some(SettingKey::Clip), SettingChange::Usual),
            (
                ".config system-modules \"a b.dll;c\"",
                Some(SettingKey::SystemModules),
                to("a b.dll;c"),
            ),
            (
                ".config symbol-path https://x?a=b",
                Some(SettingKey::SymbolPath),
                to("https://x?a=b"),
            ),
            (&format!(".config symbol-path {path}"), Some(SettingKey::SymbolPath), to(path)),
        ] {
            assert_eq!(args::<ConfigArgs>(line), ConfigArgs { key, value }, "{line}");
        }
    }

    #[test]
    fn a_bad_name_or_value_is_an_error_that_says_what_there_is() {
        for (line, expected) in [
            (".config colour", "'colour' is not one of symbol-path, symbol-download, "),
            (".config colour", ", did you mean color?"),
            (".config color red", "'red' is not one of auto, always, never"),
            (".config time-digits 7", "'7' is not a number of digits from 0 to 6"),
            (".config time-format s 3", "'s 3' is not one of s, Local"),
            (".config symbol-path \"a", "never closed"),
        ] {
            let error = error(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
