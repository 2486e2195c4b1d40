//! Sources of symbols, in the words of a command line or of `.sympath`.

use crate::shared::Has;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use handlescope_symbols::{
    DownloadBudget, ServerChoice, SymbolPath, SymbolSources, SymbolSourcesError, SymbolizerOptions,
};

use handlescope_session::grammar::value::{FOLDER, SYMBOL_SERVERS, TEXT, Value};
use handlescope_session::grammar::{Opt, to};
use handlescope_session::paths::with_home;
use handlescope_session::settings::Settings;
use handlescope_session::values::{ValueError, bytes};

/// Servers that `-symServer` knows by name, each with its meaning.
pub const SERVERS: &[(&str, &str)] = &[
    ("ms", "Microsoft: Windows, .NET, Office"),
    ("google", "Google: Chrome"),
    ("ntsymbolpath", "the servers and folders of _NT_SYMBOL_PATH"),
];

/// Heading of these options in the help of the program, whose subcommands have them all.
pub const HEADING: &str = "Symbols";

/// Symbol servers in the order they are asked.
pub type Servers = Vec<ServerChoice>;

/// Options that say where symbols come from; without any, _NT_SYMBOL_PATH or the configuration file does.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct SymbolArgs {
    /// Symbol path, as in _NT_SYMBOL_PATH [env: _NT_SYMBOL_PATH; then symbol-path of handlescope.toml].
    #[arg(long = "symbol-path", value_name = "PATH", help_heading = HEADING, global = true)]
    pub path: Option<String>,
    /// Symbol servers: ms, google, ntsymbolpath, or https://…, joined by semicolons.
    #[arg(
        long = "symserver",
        value_name = "SERVER",
        value_parser = ServerChoice::parse_list,
        help_heading = HEADING, global = true
    )]
    pub servers: Option<Servers>,
    /// Folder for downloaded symbols, instead of the platform's cache folder.
    #[arg(long = "symcache", value_name = "FOLDER", value_parser = path, help_heading = HEADING, global = true)]
    pub cache: Option<PathBuf>,
    /// Folder with symbols, searched before servers.
    #[arg(long = "symfolder", value_name = "FOLDER", value_parser = path, help_heading = HEADING, global = true)]
    pub folder: Option<PathBuf>,
}

/// Limits of time and size for symbol servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct SymbolLimitArgs {
    /// Seconds that a symbol server may take to answer, or stay silent [default: 20].
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
    /// The options of a search within these limits.
    pub fn options(&self) -> SymbolizerOptions {
        let defaults = SymbolizerOptions::default();
        let max_file_bytes = self.max_size.unwrap_or(defaults.max_file_bytes);
        SymbolizerOptions {
            download_timeout: self.timeout.map_or(defaults.download_timeout, Duration::from_secs),
            max_file_bytes,
            download_budget: DownloadBudget::for_files_of(max_file_bytes),
            ..defaults
        }
    }
}

/// Longest time that a server may take, seconds.
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
    /// The requested symbol path; `None` without any option.
    ///
    /// A cache alone is no source of symbols, so the path of the environment or of the configuration
    /// file is added to it.
    ///
    /// # Errors
    /// When a folder cannot be written in a symbol path, or the environment has none.
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

pub const fn symbol_path_option<A: Has<SymbolArgs>>() -> Opt<A> {
    Opt {
        names: &["--symbol-path"],
        help: "symbol path, as in _NT_SYMBOL_PATH",
        details: "Folders, cache*FOLDER and srv*CACHE*SERVER, joined by semicolons. Default: the \
             environment variable _NT_SYMBOL_PATH.",
        example: "--symbol-path examples/symbols -fd examples/leaky.etl",
        take: to(&(Value { placeholder: "PATH", ..TEXT }, |args, text| {
            args.part().path = Some(text);
        })),
    }
}

/// `-symServer`, `-symCache` and `-symFolder`.
pub const fn symbol_options<A: Has<SymbolArgs>>() -> [Opt<A>; 3] {
    [
        Opt {
            names: &["-symServer", "--symserver"],
            help: "symbol servers: ms, google, ntsymbolpath, or https://…, joined by ;",
            details: "Parts of a symbol path like srv*FOLDER*https://… work, too. Nothing is \
                 downloaded unless a server is named.",
            example: "-symServer ms -fd examples/leaky.etl",
            take: to(&(SYMBOL_SERVERS, |args, servers| args.part().servers = Some(servers))),
        },
        Opt {
            names: &["-symCache", "--symcache"],
            help: "a folder for downloaded symbols",
            details: "Default: the platform's cache folder. This names no servers: those of \
                 _NT_SYMBOL_PATH or the configuration file are used.",
            example: "-symCache cache -fd examples/leaky.etl",
            take: to(&(FOLDER, |args, folder| args.part().cache = Some(folder))),
        },
        Opt {
            names: &["-symFolder", "--symfolder"],
            help: "a folder with symbols",
            details: "Searched before servers.",
            example: "-symFolder examples/symbols -fd examples/leaky.etl",
            take: to(&(FOLDER, |args, folder| args.part().folder = Some(folder))),
        },
    ]
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
