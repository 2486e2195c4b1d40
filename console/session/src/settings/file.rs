//! The configuration file.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf, absolute};

use handlescope_model::output::folder_of;
use handlescope_model::{Reason, Untrusted, open_file, remedy};
use thiserror::Error;
use toml_edit::{Document, Item, Table, TomlError, Value};

use super::aliases::{AliasError, Aliases};
use super::ignore::{IGNORE, IgnoreList, IgnoreProblem};
use super::key::{FILE_NAME, SettingChoices, SettingKey};
use crate::cancel::Cancel;
use crate::paths::{Overwrite, OverwriteError, exclusive_lock, write_whole};
use crate::suggest::followed_by;
use crate::values::ValueError;

/// Name of the table of aliases.
const ALIASES: &str = "aliases";

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A configuration file that cannot be read or written.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error(
        "{}: the {} cannot be read: {}; name another file with {}",
        Untrusted(.path), .role.noun, Reason(.source), .role.option
    )]
    Unread { path: PathBuf, role: FileRole, source: io::Error },
    #[error(
        "{}: larger than {MAX_BYTES} bytes, so not a {}; name another file with {}",
        Untrusted(.path), .role.noun, .role.option
    )]
    TooLong { path: PathBuf, role: FileRole },
    #[error(
        "{}: is not UTF-8; save it as UTF-8, or name another file with {}",
        Untrusted(.path), .role.option
    )]
    NotText { path: PathBuf, role: FileRole },
    #[error("{}: line {line}: {problem}", Untrusted(.path))]
    Content { path: PathBuf, line: usize, problem: Box<ConfigProblem> },
    #[error("no configuration folder on this system; name a file with --config")]
    NoPlace,
    #[error(
        "{}: the configuration cannot be written: {}; {}name another file with --config",
        Untrusted(.path), Reason(.source), remedy(.source)
    )]
    Unwritten { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Overwrite(#[from] OverwriteError),
}

/// What a file is read as, and the option that names another file.
#[derive(Debug, Clone, Copy)]
pub struct FileRole {
    noun: &'static str,
    option: &'static str,
}

const CONFIGURATION: FileRole = FileRole { noun: "configuration", option: "--config" };
const KNOWN_LEAKS: FileRole = FileRole { noun: "list of known leaks", option: "-Ignore" };

/// An error in a line of the configuration file.
#[derive(Debug, Error)]
pub enum ConfigProblem {
    #[error("{0}")]
    Syntax(String),
    #[error("{}", followed_by(.0, &format!("aliases go below [{ALIASES}]")))]
    Name(ValueError),
    #[error("{}: {source}", Untrusted(.name))]
    Value { name: String, source: ValueError },
    #[error("{}: is neither text, nor a number, nor true or false", Untrusted(.name))]
    Type { name: String },
    #[error("{ALIASES}: is not a table; write [{ALIASES}], and below it NAME = \".COMMAND …\"")]
    Aliases,
    #[error(transparent)]
    Alias(#[from] AliasError),
    #[error(transparent)]
    Ignore(#[from] IgnoreProblem),
    #[error("'{}' does not belong here; a list of known leaks has only tables [[{IGNORE}]]", Untrusted(.0))]
    NoLeak(String),
}

/// Where the configuration file is.
#[derive(Debug, Clone, Default)]
pub struct ConfigFile {
    path: Option<PathBuf>,
    /// Whether it was named on the command line, and so must exist.
    is_named: bool,
}

/// Contents of the file.
#[derive(Debug, Default)]
pub struct ConfigContents {
    pub choices: SettingChoices,
    pub aliases: Aliases,
    /// Known leaks.
    pub ignored: IgnoreList,
}

/// A change to the file: a new value, or `None` to remove the entry.
#[derive(Debug, Clone, Copy)]
pub enum ConfigEntry<'a> {
    Setting(SettingKey, Option<&'a str>),
    Alias(&'a str, Option<&'a str>),
}

impl ConfigFile {
    /// The file in the platform's configuration folder; it need not exist.
    pub fn usual() -> ConfigFile {
        let folder = dirs::config_dir();
        let path = folder.map(|folder| folder.join("handlescope").join(FILE_NAME));
        ConfigFile { path, is_named: false }
    }

    pub fn named(path: &Path) -> ConfigFile {
        // The current folder may change later.
        let path = absolute(path).unwrap_or_else(|_| path.to_path_buf());
        ConfigFile { path: Some(path), is_named: true }
    }

    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub fn read(&self, is_command: impl Fn(&str) -> bool) -> Result<ConfigContents, ConfigError> {
        match &self.path {
            Some(path) => contents(path, &self.text(path)?, is_command),
            None => Ok(ConfigContents::default()),
        }
    }

    fn text(&self, path: &Path) -> Result<String, ConfigError> {
        match text_of(path, CONFIGURATION) {
            Err(ConfigError::Unread { source, .. })
                if source.kind() == ErrorKind::NotFound && !self.is_named =>
            {
                Ok(String::new())
            }
            text => text,
        }
    }

    /// Writes an entry into the file, and keeps comments.
    ///
    /// # Errors
    /// If the file cannot be read or written. Then it stays as it was.
    pub fn write(&self, entry: ConfigEntry<'_>) -> Result<&Path, ConfigError> {
        let path = self.path.as_deref().ok_or(ConfigError::NoPlace)?;
        // Another process may write the file at the same time.
        let _lock = exclusive_lock("configuration.lock");
        let text = self.text(path)?;
        let document =
            Document::parse(text.as_str()).map_err(|error| syntax(path, &text, &error))?;
        let edited = match entry {
            ConfigEntry::Setting(key, Some(value)) => {
                let mut document = document.into_mut();
                put(document.as_table_mut(), key.name(), setting(key, value));
                document.to_string()
            }
            ConfigEntry::Alias(name, Some(line)) => {
                let mut document = document.into_mut();
                let aliases = document.entry(ALIASES).or_insert_with(toml_edit::table);
                if let Some(aliases) = aliases.as_table_mut() {
                    put(aliases, name, line.into());
                }
                document.to_string()
            }
            ConfigEntry::Setting(key, None) => {
                without(&text, document.as_table(), key.name()).unwrap_or_else(|| text.clone())
            }
            ConfigEntry::Alias(name, None) => {
                let aliases = document.get(ALIASES).and_then(Item::as_table);
                let edited = aliases.and_then(|aliases| without(&text, aliases, name));
                edited.unwrap_or_else(|| text.clone())
            }
        };
        // toml_edit writes LF.
        let edited = if text.contains("\r\n") {
            edited.replace("\r\n", "\n").replace('\n', "\r\n")
        } else {
            edited
        };
        let unwritten = |source| ConfigError::Unwritten { path: path.to_path_buf(), source };
        fs::create_dir_all(folder_of(path)).map_err(unwritten)?;
        let output = Overwrite::new(true).replacing(path)?;
        write_whole(&output, &Cancel::default(), |out| out.write_all(edited.as_bytes()))
            .map_err(unwritten)?;
        Ok(path)
    }
}

impl IgnoreList {
    /// Reads a file of known leaks.
    ///
    /// # Errors
    /// If it cannot be read, or has anything but `[[ignore]]` tables of known leaks.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        let text = text_of(path, KNOWN_LEAKS)?;
        let document =
            Document::parse(text.as_str()).map_err(|error| syntax(path, &text, &error))?;
        let mut list = Self::default();
        for (name, item) in document.iter() {
            let line = line_at(&text, document.as_table(), name);
            if name != IGNORE {
                return Err(wrong(path, line, ConfigProblem::NoLeak(name.to_owned())));
            }
            let read = Self::read(item, line, &text, path);
            list = read.map_err(|(line, problem)| wrong(path, line, problem.into()))?;
        }
        Ok(list)
    }
}

/// Reads the text of a file.
fn text_of(path: &Path, role: FileRole) -> Result<String, ConfigError> {
    let path_of_error = || path.to_path_buf();
    let unread = |source| ConfigError::Unread { path: path_of_error(), role, source };
    let mut bytes = Vec::new();
    let file = open_file(path).map_err(unread)?;
    let length = file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unread)?;
    if length as u64 > MAX_BYTES {
        return Err(ConfigError::TooLong { path: path_of_error(), role });
    }
    String::from_utf8(bytes).map_err(|_| ConfigError::NotText { path: path_of_error(), role })
}

/// Converts a value to the type of its setting.
fn setting(key: SettingKey, text: &str) -> Value {
    match key {
        SettingKey::TimeDigits => text.parse::<i64>().map_or_else(|_| text.into(), Value::from),
        SettingKey::FullFileNames | SettingKey::Clip | SettingKey::Pager => {
            text.parse::<bool>().map_or_else(|_| text.into(), Value::from)
        }
        SettingKey::SymbolPath
        | SettingKey::SymbolDownload
        | SettingKey::TimeFormat
        | SettingKey::ProcessFormat
        | SettingKey::Color
        | SettingKey::SystemModules
        | SettingKey::SqlViews => text.into(),
    }
}

/// Returns a name as the table spells it, ignoring case.
fn known(table: &Table, name: &str) -> Option<String> {
    table
        .iter()
        .map(|(known, _)| known)
        .find(|known| known.eq_ignore_ascii_case(name))
        .map(str::to_owned)
}

/// Replaces a value in place, or adds it.
fn put(table: &mut Table, name: &str, mut value: Value) {
    let name = known(table, name).unwrap_or_else(|| name.to_owned());
    match table.get_mut(&name).and_then(Item::as_value_mut) {
        Some(old) => {
            value.decor_mut().clone_from(old.decor());
            *old = value;
        }
        None => drop(table.insert(&name, Item::Value(value))),
    }
}

/// Removes the lines of a value from the text; `None` if it has no such value. Comments above stay, because they may
/// also be about the values below.
fn without(text: &str, table: &Table, name: &str) -> Option<String> {
    let (key, item) = table.get_key_value(&known(table, name)?)?;
    let (before, _) = text.split_at_checked(key.span()?.start)?;
    let (_, behind) = text.split_at_checked(item.span()?.end)?;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let behind = behind.split_once('\n').map_or("", |(_, behind)| behind);
    Some([text.get(..start)?, behind].concat())
}

fn contents(
    path: &Path,
    text: &str,
    is_command: impl Fn(&str) -> bool,
) -> Result<ConfigContents, ConfigError> {
    let document = Document::parse(text).map_err(|error| syntax(path, text, &error))?;
    let mut contents = ConfigContents::default();
    for (name, item) in document.iter() {
        let line_at = |table: &Table, name: &str| line_at(text, table, name);
        let wrong = |line: usize, problem: ConfigProblem| wrong(path, line, problem);
        let line = line_at(document.as_table(), name);
        if name == IGNORE {
            let read = IgnoreList::read(item, line, text, path);
            contents.ignored = read.map_err(|(line, problem)| wrong(line, problem.into()))?;
            continue;
        }
        if name == ALIASES {
            let table = item.as_table().ok_or_else(|| wrong(line, ConfigProblem::Aliases))?;
            for (name, item) in table.iter() {
                let wrong = |problem| wrong(line_at(table, name), problem);
                let line = item.as_str().unwrap_or_default();
                let defined = contents.aliases.define(name, line, &is_command);
                defined.map_err(|error| wrong(error.into()))?;
            }
            continue;
        }
        let key =
            SettingKey::named(name).map_err(|error| wrong(line, ConfigProblem::Name(error)))?;
        let name = name.to_owned();
        let Some(value) = value(item) else {
            return Err(wrong(line, ConfigProblem::Type { name }));
        };
        let set = contents.choices.set(key, Some(&value));
        set.map_err(|source| wrong(line, ConfigProblem::Value { name, source }))?;
    }
    let symbol_path = contents.choices.symbol_path.take();
    contents.choices.symbol_path = symbol_path.map(|symbols| symbols.based_on(folder_of(path)));
    let views = contents.choices.sql_views.take();
    contents.choices.sql_views = views.map(|views| folder_of(path).join(views));
    Ok(contents)
}

/// Returns the text of a value; `None` if it is a table, a list or a time.
fn value(item: &Item) -> Option<String> {
    match item.as_value()? {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Boolean(on) => Some(on.value().to_string()),
        _ => None,
    }
}

fn syntax(path: &Path, text: &str, error: &TomlError) -> ConfigError {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    wrong(path, line, ConfigProblem::Syntax(error.message().replace('\n', ", ")))
}

fn wrong(path: &Path, line: usize, problem: ConfigProblem) -> ConfigError {
    ConfigError::Content { path: path.to_path_buf(), line, problem: Box::new(problem) }
}

/// Returns the line of a key in a table.
fn line_at(text: &str, table: &Table, name: &str) -> usize {
    let key = table.key(name).and_then(toml_edit::Key::span);
    line_of(text, key.map_or(0, |span| span.start))
}

pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder_with(text: &str) -> (TempDir, ConfigFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE_NAME);
        fs::write(&path, text).expect("a file");
        (folder, ConfigFile::named(&path))
    }

    fn text_of(file: &ConfigFile) -> String {
        fs::read_to_string(file.path().expect("a path")).expect("a file")
    }

    #[test]
    fn errors_in_the_file_name_the_line() {
        for (text, expected) in [
            ("clip = true\ncolour = 'auto'", "line 2: 'colour' is not one of symbol-path, "),
            ("colour = 'auto'", "did you mean color? Aliases go below [aliases]"),
            ("\n\ntime-format = 'x'", "line 3: time-format: 'x' is not one of s, Local"),
            ("clip = [true]", "line 1: clip: is neither text, nor a number, nor true or false"),
            ("clip = true\r\nclip = true", "line 2: duplicate key"),
            ("clip", "line 1: "),
            ("aliases = 7", "line 1: aliases: is not a table; write [aliases]"),
            ("aliases = {}", "line 1: aliases: is not a table; write [aliases]"),
            ("[aliases]\na = 7", "line 2: the alias a must be one line that starts with a command"),
            ("[aliases]\n'a b' = '.list'", "line 2: 'a b' is not a valid alias name"),
            ("[aliases]\nlist = '.dump'", "line 2: .list is a command"),
            ("[aliases]\na = '.b'\nb = '.a'", "line 3: the alias .b refers to itself"),
            (
                "[ignore]\ntype = 'Event'",
                "line 1: ignore: is not a list of tables; write [[ignore]]",
            ),
            (
                "[[ignore]]\ntypes = 'Event'",
                "line 2: ignore: 'types' is not one of program, type, ",
            ),
            ("\n[[ignore]]\ntype = 'Event'", "line 2: gives no reason; add reason = "),
            ("[[ignore]]\nreason = 'x'", "line 1: would ignore everything; add program, type, "),
            ("[[ignore]]\ntype = 7", "line 2: type: is not text; write it in quotes"),
            (
                "[[ignore]]\ntype = 'Event'\nreason = 'x'\n\n[[ignore]]\ntype = 'Key'\nuntil = 'May'",
                "line 7: until: 'May' is not a day like 2026-12-31",
            ),
        ] {
            let (_folder, file) = folder_with(text);
            let error = file.read(|word| word == ".list").expect_err(text).to_string();
            assert!(error.contains(FILE_NAME) && error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn known_leaks_are_read_with_their_lines() {
        let text = "clip = true\n\n[[ignore]]\nprogram = 'app'\nreason = 'by design'\n\n# later\n\
                    [[ignore]]\ntype = 'Event'\nreason = ' fixed '\nuntil = 2026-02-03\n";
        let (_folder, file) = folder_with(text);
        let ignored = file.read(|_| false).expect("a configuration").ignored;
        let [first, second] = ignored.entries() else { panic!("{ignored:?}") };
        assert!(first.to_string().ends_with(&format!("{FILE_NAME}: line 3")), "{first}");
        assert!(second.to_string().ends_with(&format!("{FILE_NAME}: line 8")), "{second}");
        assert_eq!((first.reason(), second.reason()), ("by design", "fixed"));
        assert_eq!(second.expired().expect("a day").to_string(), "2026-02-03");
        assert_eq!(ignored.active().count(), 1);
        // The setting is written above the tables.
        file.write(ConfigEntry::Setting(SettingKey::TimeDigits, Some("3"))).expect("written");
        assert_eq!(file.read(|_| false).expect("a configuration").ignored.entries().len(), 2);
    }

    #[test]
    fn a_list_of_known_leaks_has_nothing_else() {
        let (_folder, file) = folder_with("[[ignore]]\ntype = 'Event'\nreason = 'x'\n");
        let path = file.path().expect("a path");
        assert_eq!(IgnoreList::open(path).expect("a list").entries().len(), 1);
        let (_folder, file) = folder_with("\nclip = true\n");
        let error =
            IgnoreList::open(file.path().expect("a path")).expect_err("no list").to_string();
        let expected =
            "line 2: 'clip' does not belong here; a list of known leaks has only tables [[ignore]]";
        assert!(error.ends_with(expected), "{error}");
        let error = IgnoreList::open(Path::new("missing.toml")).expect_err("no file").to_string();
        assert!(
            error.starts_with("missing.toml: the list of known leaks cannot be read: "),
            "{error}"
        );
        assert!(error.ends_with("; name another file with -Ignore"), "{error}");
    }

    #[test]
    fn values_have_the_types_of_toml_or_are_text() {
        let (folder, file) = folder_with(
            "\u{feff}time-digits = 3\nclip = false\npager = \"0\"\ncolor = 'Never'\nsymbol-path = 'a;/b'\n",
        );
        let ConfigContents { choices, aliases, .. } =
            file.read(|_| false).expect("a configuration");
        let symbols = format!("{};/b", folder.path().join("a").display());
        for (key, expected) in [
            (SettingKey::TimeDigits, Some("3")),
            (SettingKey::Clip, Some("false")),
            (SettingKey::Pager, Some("false")),
            (SettingKey::Color, Some("never")),
            (SettingKey::TimeFormat, None),
            (SettingKey::SymbolPath, Some(symbols.as_str())),
        ] {
            assert_eq!(choices.text(key).as_deref(), expected, "{key}");
        }
        assert_eq!(aliases, Aliases::default());
    }

    #[test]
    fn entries_are_written_in_their_places_and_comments_stay() {
        let (_folder, file) = folder_with("# mine\nclip = true # why\n\n[aliases]\na = '.list'\n");
        for entry in [
            ConfigEntry::Setting(SettingKey::Clip, Some("false")),
            ConfigEntry::Setting(SettingKey::TimeDigits, Some("3")),
            ConfigEntry::Setting(SettingKey::TimeFormat, Some("s")),
            ConfigEntry::Alias("B", Some(r".load C:\x")),
            ConfigEntry::Alias("A", Some(".dump Stats")),
        ] {
            file.write(entry).expect("written");
        }
        let expected = "# mine\nclip = false # why\ntime-digits = 3\ntime-format = \"s\"\n\n[aliases]\n\
                     a = \".dump Stats\"\nB = '.load C:\\x'\n";
        assert_eq!(text_of(&file), expected);
        file.write(ConfigEntry::Setting(SettingKey::TimeDigits, None)).expect("written");
        file.write(ConfigEntry::Alias("b", None)).expect("written");
        file.write(ConfigEntry::Setting(SettingKey::Clip, None)).expect("written");
        file.write(ConfigEntry::Setting(SettingKey::Color, None)).expect("nothing to write");
        let rest = "# mine\ntime-format = \"s\"\n\n[aliases]\na = \".dump Stats\"\n";
        assert_eq!(text_of(&file), rest);
    }

    #[test]
    fn lines_end_as_before() {
        let (_folder, file) = folder_with("# mine\r\nclip = true\r\npager = true\r\n");
        file.write(ConfigEntry::Setting(SettingKey::Clip, Some("false"))).expect("written");
        file.write(ConfigEntry::Setting(SettingKey::Pager, None)).expect("written");
        file.write(ConfigEntry::Setting(SettingKey::Color, Some("auto"))).expect("written");
        assert_eq!(text_of(&file), "# mine\r\nclip = false\r\ncolor = \"auto\"\r\n");
    }

    #[test]
    fn a_broken_file_is_not_written_and_a_missing_one_is_made() {
        let (folder, broken) = folder_with("clip = ");
        assert!(broken.write(ConfigEntry::Setting(SettingKey::Clip, Some("true"))).is_err());
        assert_eq!(text_of(&broken), "clip = ");
        let path = folder.path().join("new").join(FILE_NAME);
        let missing = ConfigFile { path: Some(path), is_named: false };
        missing.write(ConfigEntry::Setting(SettingKey::Clip, Some("true"))).expect("written");
        assert_eq!(text_of(&missing), "clip = true\n");
        let nowhere =
            ConfigFile::default().write(ConfigEntry::Alias("a", None)).expect_err("no place");
        assert_eq!(
            nowhere.to_string(),
            "no configuration folder on this system; name a file with --config"
        );
    }
}
