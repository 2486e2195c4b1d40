//! Sources of symbols, from a command line or from `.sympath`.

use crate::shared::Has;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, FromArgMatches};
use handlescope_render::capitalized;
use handlescope_symbols::{
    DownloadBudget, ServerChoice, SymbolPath, SymbolSources, SymbolSourcesError, SymbolizerOptions,
    default_store,
};

use handlescope_session::grammar::value::{FOLDER, SYMBOL_SERVERS, TEXT, ValueKind};
use handlescope_session::grammar::{Opt, to};
use handlescope_session::paths::with_home;
use handlescope_session::settings::{FILE_NAME, SettingKey, Settings};
use handlescope_session::values::{ValueError, bytes};

/// Servers that `-symServer` knows by name, with their meanings.
pub const SERVERS: &[(&str, &str)] = &[
    ("ms", "Microsoft: Windows, .NET, Office"),
    ("google", "Google: Chrome"),
    ("ntsymbolpath", "the servers and folders of _NT_SYMBOL_PATH"),
];

/// Heading of these options in the program's help; all subcommands have them.
pub const HEADING: &str = "Symbols";

/// Symbol servers in the order they are asked.
pub type Servers = Vec<ServerChoice>;

/// Options that say where symbols come from; without any, _NT_SYMBOL_PATH or the configuration file decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolArgs {
    pub path: Option<String>,
    pub servers: Option<Servers>,
    pub cache: Option<PathBuf>,
    pub folder: Option<PathBuf>,
}

impl Has<SymbolArgs> for SymbolArgs {
    fn part(&mut self) -> &mut SymbolArgs {
        self
    }
}

/// Limits of time and size for symbol servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct SymbolLimitArgs {
    /// Seconds to wait for a symbol server to answer, or to send more [default: 20].
    #[arg(
        long = "symbol-timeout",
        value_name = "SECONDS",
        value_parser = seconds,
        help_heading = HEADING, global = true
    )]
    pub timeout: Option<u64>,
    /// Largest symbol file to download or unpack, such as 4GiB [default: 2GiB]. All downloads together may take twice
    /// that, but at least 4 GiB.
    #[arg(long = "symbol-max-size", value_name = "SIZE", value_parser = bytes, help_heading = HEADING, global = true)]
    pub max_size: Option<u64>,
}

impl SymbolLimitArgs {
    /// Returns the options of a search within these limits.
    pub fn options(&self) -> SymbolizerOptions {
        let defaults = SymbolizerOptions::default();
        let max_file_bytes = self.max_size.unwrap_or(defaults.max_file_bytes);
        SymbolizerOptions {
            download_timeout: self.timeout.map_or(defaults.download_timeout, Duration::from_secs),
            max_file_bytes,
            download_budget: DownloadBudget::for_files_of(max_file_bytes),
            // Uses what earlier sessions downloaded, whatever their symbol path was.
            usual_caches: default_store().into_iter().chain(defaults.usual_caches).collect(),
            ..defaults
        }
    }
}

/// Maximum timeout of a server in seconds.
const MAX_SECONDS: u64 = 3600;

fn seconds(text: &str) -> Result<u64, ValueError> {
    let seconds = text.parse().ok().filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
    seconds.ok_or_else(|| ValueError::NoUnit {
        value: text.to_owned(),
        expected: "a whole number of seconds from 1 to 3600",
    })
}

pub fn path(name: &str) -> Result<PathBuf, Infallible> {
    Ok(with_home(name))
}

impl SymbolArgs {
    /// Returns the requested symbol path; `None` without any option.
    ///
    /// A cache alone does not supply symbols, so it is combined with the path from the environment or the configuration
    /// file.
    ///
    /// # Errors
    /// If a folder cannot be expressed in a symbol path, or the environment has none.
    pub fn symbol_path(
        &self,
        settings: &Settings,
    ) -> Result<Option<SymbolPath>, SymbolSourcesError> {
        if *self == SymbolArgs::default() {
            return Ok(None);
        }
        let mut servers = self.servers.clone().unwrap_or_default();
        servers.extend(self.path.clone().map(ServerChoice::Path));
        if servers.is_empty() && self.folder.is_none() {
            let path = settings.configured_symbol_path().map(|path| path.text().to_owned());
            servers.extend(path.map(ServerChoice::Path));
        }
        let folders = self.folder.iter().cloned().collect();
        SymbolSources { servers, cache: self.cache.clone(), folders }.symbol_path().map(Some)
    }
}

/// `--symbol-path`, `-symServer`, `-symCache` and `-symFolder`.
pub const fn symbol_options<A: Has<SymbolArgs>>() -> [Opt<A>; 4] {
    [
        Opt {
            names: &["--symbol-path"],
            help: "symbol path, as in _NT_SYMBOL_PATH",
            details: "Folders, cache*FOLDER and srv*CACHE*SERVER, joined by semicolons. Default: the \
                 environment variable _NT_SYMBOL_PATH.",
            example: "--symbol-path examples/symbols -fd examples/leaky.etl",
            take: to(&(ValueKind { placeholder: "PATH", ..TEXT }, |args, text| {
                args.part().path = Some(text);
            })),
        },
        Opt {
            names: &["-symServer", "--symserver"],
            help: "symbol servers: ms, google, ntsymbolpath, or https://…, joined by semicolons",
            details: "Parts of a symbol path like srv*FOLDER*https://… work, too. Nothing is \
                 downloaded unless a server is named.",
            example: "-symServer ms -fd examples/leaky.etl",
            take: to(&(SYMBOL_SERVERS, |args, servers| args.part().servers = Some(servers))),
        },
        Opt {
            names: &["-symCache", "--symcache"],
            help: "folder for downloaded symbols, instead of the platform's cache folder",
            details: "This names no servers: those of _NT_SYMBOL_PATH or the configuration file \
                 are used.",
            example: "-symCache cache -fd examples/leaky.etl",
            take: to(&(FOLDER, |args, folder| args.part().cache = Some(folder))),
        },
        Opt {
            names: &["-symFolder", "--symfolder"],
            help: "folder with symbols, searched before servers",
            details: "It comes first in the symbol path.",
            example: "-symFolder examples/symbols -fd examples/leaky.etl",
            take: to(&(FOLDER, |args, folder| args.part().folder = Some(folder))),
        },
    ]
}

/// Returns the options that the program and its subcommands have, each with its name without the two dashes.
pub fn program_options() -> impl Iterator<Item = (&'static str, &'static Opt<SymbolArgs>)> {
    static OPTIONS: [Opt<SymbolArgs>; 4] = symbol_options();
    let long =
        |option: &Opt<SymbolArgs>| option.names.iter().find_map(|name| name.strip_prefix("--"));
    OPTIONS.iter().filter_map(move |option| Some((long(option)?, option)))
}

/// Returns the help of an option of the program, including the default.
fn program_help(name: &str, option: &Opt<SymbolArgs>) -> String {
    let help = capitalized(option.help);
    let key = SettingKey::ALL
        .iter()
        .find(|key| key.before_file().iter().any(|before| before.strip_prefix("--") == Some(name)));
    match key.and_then(|key| Some((key, key.before_file().last()?))) {
        Some((key, variable)) => format!("{help} [env: {variable}; then {key} of {FILE_NAME}]"),
        None => help,
    }
}

impl Args for SymbolArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(program_options().map(|(name, option)| {
            let read = |word: &str| {
                option.take.apply(&mut SymbolArgs::default(), &[word]).map(|()| word.to_owned())
            };
            Arg::new(name)
                .long(name)
                .value_name(option.take.value().placeholder)
                .help(program_help(name, option))
                .help_heading(HEADING)
                .global(true)
                .value_parser(read)
        }))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SymbolArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = SymbolArgs::default();
        args.update_from_arg_matches(matches).map(|()| args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (name, option) in program_options() {
            if let Some(word) = matches.get_one::<String>(name) {
                let applied = option.take.apply(self, &[word]);
                applied.map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, error))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_for_servers_is_a_number_of_seconds() {
        assert_eq!(seconds("20"), Ok(20));
        for text in ["x", "0", "3601", "1.5", ""] {
            let error = seconds(text).expect_err(text).to_string();
            assert_eq!(error, format!("'{text}' is not a whole number of seconds from 1 to 3600"));
        }
    }

    #[test]
    fn symbol_options_become_a_symbol_path() {
        let path = |server: Option<&str>, folder: Option<&str>, cache: Option<&str>| {
            let servers = server.map(|server| ServerChoice::parse_list(server).expect(server));
            let args = SymbolArgs {
                servers,
                folder: folder.map(PathBuf::from),
                cache: cache.map(PathBuf::from),
                ..SymbolArgs::default()
            };
            let path = args.symbol_path(&Settings::default()).expect("a path");
            path.map(|path| path.to_string()).unwrap_or_default()
        };
        let microsoft = "https://msdl.microsoft.com/download/symbols";
        assert_eq!(path(Some("ms"), None, Some("c")), format!("cache*c;srv*c*{microsoft}"));
        assert_eq!(path(Some("MS"), Some("f"), None), format!("f;srv**{microsoft}"));
        assert_eq!(path(Some("srv*x*y"), None, None), "srv*x*y");
        assert_eq!(path(None, Some("f"), Some("c")), "f;cache*c");
        assert_eq!(path(None, None, None), "");
    }
}
