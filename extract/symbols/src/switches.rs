//! Builds the symbol path from command line switches.

use std::fmt;
use std::path::{Path, PathBuf};

use handlescope_model::Untrusted;
use thiserror::Error;

use super::path::{SymbolPath, is_address, without_secrets};

pub const MICROSOFT: &str = "https://msdl.microsoft.com/download/symbols";
const GOOGLE: &str = "https://chromium-browser-symsrv.commondatastorage.googleapis.com";

/// Sources of symbols given by the switches `-symserver`, `-symcache` and `-symfolder`.
///
/// Without a server nothing is downloaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolSources {
    /// Servers in the order in which they are asked.
    pub servers: Vec<ServerChoice>,
    /// Folder for downloads; by default in the platform's cache folder.
    pub cache: Option<PathBuf>,
    /// Folders with PDBs, searched first.
    pub folders: Vec<PathBuf>,
}

/// A server chosen by `-symserver`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerChoice {
    /// `ms`: Windows, .NET, Office.
    Microsoft,
    /// `google`: Chrome.
    Google,
    /// `ntsymbolpath`: what `_NT_SYMBOL_PATH` says.
    Environment,
    /// The address of a server.
    Url(String),
    /// A piece of symbol path, such as `srv*C:\symbols*https://symbols.example`.
    Path(String),
}

/// Reasons why switches do not make a symbol path.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymbolSourcesError {
    /// A word that names no server.
    #[error(
        "'{}' is not a symbol server: use ms, google, ntsymbolpath, an address (https://...) \
         or a symbol path (srv*folder*https://...)",
        Untrusted(without_secrets(.0))
    )]
    UnknownServer(String),
    /// `ntsymbolpath`, but the variable is not set.
    #[error("the environment variable _NT_SYMBOL_PATH is not set")]
    NoEnvironment,
    /// A folder that a symbol path cannot express.
    #[error(
        "'{}' cannot be a folder of a symbol path: it is empty, an address, or has ; or * or outer \
         spaces",
        Untrusted(.0)
    )]
    UnusableFolder(PathBuf),
}

impl ServerChoice {
    /// Parses the value of `-symserver`: words, addresses and pieces of a symbol path, separated by semicolons.
    ///
    /// # Errors
    ///
    /// If a word is none of these. A folder of a single word has to be written `./folder`.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, SymbolSourcesError> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let choices: Vec<Self> = parts.map(Self::parse).collect::<Result<_, _>>()?;
        if choices.is_empty() {
            return Err(SymbolSourcesError::UnknownServer(text.to_owned()));
        }
        Ok(choices)
    }

    fn parse(word: &str) -> Result<Self, SymbolSourcesError> {
        match word.to_ascii_lowercase().as_str() {
            "ms" => Ok(Self::Microsoft),
            "google" => Ok(Self::Google),
            "ntsymbolpath" => Ok(Self::Environment),
            _ if word.contains('*') => Ok(Self::Path(word.to_owned())),
            _ if is_address(word) => Ok(Self::Url(word.to_owned())),
            _ if word.contains("://") => Err(SymbolSourcesError::UnknownServer(word.to_owned())),
            _ if word.contains(['/', '\\']) => Ok(Self::Path(word.to_owned())),
            _ => Err(SymbolSourcesError::UnknownServer(word.to_owned())),
        }
    }
}

impl fmt::Display for ServerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Microsoft => "ms",
            Self::Google => "google",
            Self::Environment => "ntsymbolpath",
            Self::Url(text) | Self::Path(text) => return f.write_str(&without_secrets(text)),
        })
    }
}

impl SymbolPath {
    /// Returns this path with Microsoft's server appended.
    pub fn with_microsoft(&self) -> Self {
        let entries = [self.text(), &server_entry(MICROSOFT, None)];
        Self::parse(
            &entries
                .map(str::trim)
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join(";"),
        )
    }
}

impl SymbolSources {
    /// Builds the symbol path: folders, the cache, the servers.
    ///
    /// # Errors
    ///
    /// If a folder cannot be written in a symbol path, or the environment variable is requested but not set.
    pub fn symbol_path(&self) -> Result<SymbolPath, SymbolSourcesError> {
        self.symbol_path_in(|| SymbolPath::from_environment().map(|path| path.text().to_owned()))
    }

    fn symbol_path_in(
        &self,
        environment: impl Fn() -> Option<String>,
    ) -> Result<SymbolPath, SymbolSourcesError> {
        let mut entries: Vec<String> = Vec::new();
        for folder in &self.folders {
            entries.push(folder_text(folder)?);
        }
        let cache = self.cache.as_deref().map(folder_text).transpose()?;
        let cache = cache.as_deref();
        // Before the servers, so that it also serves those of a literal path.
        entries.extend(cache.map(|cache| format!("cache*{cache}")));
        for server in &self.servers {
            entries.push(match server {
                ServerChoice::Microsoft => server_entry(MICROSOFT, cache),
                ServerChoice::Google => server_entry(GOOGLE, cache),
                ServerChoice::Url(url) => server_entry(url, cache),
                ServerChoice::Path(path) => path.clone(),
                ServerChoice::Environment => {
                    environment().ok_or(SymbolSourcesError::NoEnvironment)?
                }
            });
        }
        Ok(SymbolPath::parse(&entries.join(";")))
    }
}

fn server_entry(url: &str, cache: Option<&str>) -> String {
    format!("srv*{}*{url}", cache.unwrap_or_default())
}

fn folder_text(folder: &Path) -> Result<String, SymbolSourcesError> {
    let text = folder.to_str().filter(|text| {
        !text.is_empty() && text.trim() == *text && !text.contains([';', '*']) && !is_address(text)
    });
    let text = text.ok_or_else(|| SymbolSourcesError::UnusableFolder(folder.to_owned()))?;
    // Words with a special meaning in a symbol path.
    let is_keyword = ["srv", "symsrv", "cache"].iter().any(|word| text.eq_ignore_ascii_case(word));
    Ok(if is_keyword { format!("./{text}") } else { text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(sources: &SymbolSources) -> String {
        let path = sources.symbol_path_in(|| Some("srv*/env*https://env.example".to_owned()));
        path.expect("a symbol path").to_string()
    }

    #[test]
    fn words_stand_for_servers() {
        let choices = ServerChoice::parse_list("MS; google;ntsymbolpath;https://x/y;srv*/a*/b;/c");
        assert_eq!(
            choices,
            Ok(vec![
                ServerChoice::Microsoft,
                ServerChoice::Google,
                ServerChoice::Environment,
                ServerChoice::Url("https://x/y".into()),
                ServerChoice::Path("srv*/a*/b".into()),
                ServerChoice::Path("/c".into()),
            ])
        );
    }

    #[test]
    fn an_unknown_word_is_an_error_that_lists_the_known_words() {
        for word in ["mozilla", "m s", "ftp://x", "", ";"] {
            let error = ServerChoice::parse_list(word).expect_err(word).to_string();
            for known in ["ms", "google", "ntsymbolpath", "https://"] {
                assert!(error.contains(known), "{error}");
            }
        }
    }

    #[test]
    fn all_switches_become_a_single_path() {
        let sources = SymbolSources {
            servers: ServerChoice::parse_list("ms;ntsymbolpath").expect("known words"),
            cache: Some("/c".into()),
            folders: vec!["/a".into(), "/b".into()],
        };
        assert_eq!(
            path(&sources),
            "/a;/b;cache*/c;srv*/c*https://msdl.microsoft.com/download/symbols;\
             srv*/env*https://env.example"
        );
    }

    #[test]
    fn without_a_server_nothing_is_requested_and_without_a_cache_the_default_serves() {
        let folders = vec!["/a".into()];
        let offline = SymbolSources { folders, cache: Some("/c".into()), ..Default::default() };
        assert!(offline.symbol_path().is_ok_and(|path| path.servers().is_empty()));

        let servers = vec![ServerChoice::Google];
        let online = SymbolSources { servers, ..SymbolSources::default() };
        let servers = SymbolPath::parse(&path(&online)).servers();
        assert_eq!(servers.len(), 1);
        assert_eq!(servers[0].url, GOOGLE);
        assert_eq!(servers[0].caches, Vec::from_iter(crate::path::default_store()));
    }

    #[test]
    fn the_server_of_microsoft_comes_behind_a_path() {
        for (text, expected) in [
            ("", "srv**https://msdl.microsoft.com/download/symbols"),
            ("/a;cache*/c ", "/a;cache*/c;srv**https://msdl.microsoft.com/download/symbols"),
        ] {
            let path = SymbolPath::parse(text).with_microsoft();
            assert_eq!((path.text(), path.servers().len()), (expected, 1));
        }
    }

    #[test]
    fn a_folder_with_the_name_of_a_keyword_is_a_folder() {
        for name in ["srv", "symsrv", "cache", "SRV"] {
            let folders = vec![name.into()];
            let sources = SymbolSources { folders, ..SymbolSources::default() };
            let folder = Path::new(".").join(name);
            assert_eq!(SymbolPath::parse(&path(&sources)).folders(), [(folder, true)]);
        }
    }

    #[test]
    fn switches_that_make_no_path_are_an_error() {
        let servers = vec![ServerChoice::Environment];
        let sources = SymbolSources { servers, ..SymbolSources::default() };
        assert_eq!(sources.symbol_path_in(|| None), Err(SymbolSourcesError::NoEnvironment));
        for folder in ["", "a;b", "a*b", " a", "https://x"] {
            let sources = SymbolSources { folders: vec![folder.into()], ..Default::default() };
            let unusable = SymbolSourcesError::UnusableFolder(folder.into());
            assert_eq!(sources.symbol_path(), Err(unusable));
        }
    }
}
