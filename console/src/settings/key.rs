//! The settings by their names in the configuration file.

use std::fmt;

use crate::values::{ValueError, no_choice, process_words, time_words};

/// The name of the configuration file in the platform's folder for configurations.
pub(super) const FILE_NAME: &str = "handlescope.toml";

/// A setting that can be kept in the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    SymbolPath,
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

/// Words for on and off.
const SWITCH: [(&str, &str); 2] = [("true", "on"), ("false", "off")];

/// Words for the use of colours.
const COLORS: [(&str, &str); 3] =
    [("auto", "on a terminal"), ("always", "everywhere"), ("never", "nowhere")];

impl Key {
    /// In the order of the help.
    pub const ALL: [Key; 10] = [
        Key::SymbolPath,
        Key::TimeFormat,
        Key::TimeDigits,
        Key::ProcessFormat,
        Key::FullFileNames,
        Key::Clip,
        Key::Pager,
        Key::Color,
        Key::SystemModules,
        Key::SqlViews,
    ];

    /// The setting of this name.
    ///
    /// # Errors
    /// When there is none; lists them.
    pub(crate) fn named(name: &str) -> Result<Key, ValueError> {
        let mut all = Key::ALL.into_iter();
        let named = all.find(|key| key.name().eq_ignore_ascii_case(name));
        named.ok_or_else(|| no_choice(name, || Key::ALL.into_iter().map(Key::name)))
    }

    pub fn name(self) -> &'static str {
        match self {
            Key::SymbolPath => "symbol-path",
            Key::TimeFormat => "time-format",
            Key::TimeDigits => "time-digits",
            Key::ProcessFormat => "process-format",
            Key::FullFileNames => "full-file-names",
            Key::Clip => "clip",
            Key::Pager => "pager",
            Key::Color => "color",
            Key::SystemModules => "system-modules",
            Key::SqlViews => "sql-views",
        }
    }

    /// The options, commands and variables that count before the configuration file, the first one first.
    pub(crate) fn before_file(self) -> &'static [&'static str] {
        match self {
            Key::SymbolPath => &[".sympath", "--symbol-path", "_NT_SYMBOL_PATH"],
            Key::TimeFormat => &["-TimeFmt", ".timefmt"],
            Key::TimeDigits => &["-TimeDigits", ".timedigits"],
            Key::ProcessFormat => &["-ProcessFmt", ".processfmt"],
            Key::FullFileNames => &["-ShowFullFileName", ".sffn"],
            Key::Clip => &["-Clip", ".clip"],
            Key::Pager => &[".pager", "an empty PAGER"],
            Key::Color => &["--color", "NO_COLOR"],
            Key::SystemModules => &[".sys"],
            Key::SqlViews => &[],
        }
    }

    /// What counts where nothing is said, in words.
    pub(super) fn usual(self) -> &'static str {
        match self {
            Key::SymbolPath | Key::SqlViews => "nowhere",
            Key::TimeFormat => "Local",
            Key::TimeDigits => "6",
            Key::ProcessFormat => "+ and -",
            Key::FullFileNames => "false",
            Key::Clip | Key::Pager => "true",
            Key::Color => "auto",
            Key::SystemModules => "the kernel, ntdll, KernelBase, kernel32 and wow64",
        }
    }

    /// Where its value comes from, the first source first.
    pub(crate) fn sources(self) -> String {
        let before: String = self.before_file().iter().map(|name| format!("{name}, ")).collect();
        format!("{before}{self} of {FILE_NAME}, else {}", self.usual())
    }

    /// Where the value comes from that an option or command of these names decides, in a sentence.
    pub(crate) fn sources_of(names: &[&str]) -> Option<String> {
        let is_decided = |key: &Key| key.before_file().iter().any(|name| names.contains(name));
        let key = Key::ALL.into_iter().find(is_decided)?;
        Some(format!("Comes from {}.", key.sources()))
    }

    /// The words it takes, each with its meaning; none when it takes other values, too.
    pub(crate) fn words(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Key::TimeFormat => time_words().collect(),
            Key::ProcessFormat => process_words().collect(),
            Key::FullFileNames | Key::Clip | Key::Pager => SWITCH.into(),
            Key::Color => COLORS.into(),
            Key::SymbolPath | Key::TimeDigits | Key::SystemModules | Key::SqlViews => Vec::new(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
