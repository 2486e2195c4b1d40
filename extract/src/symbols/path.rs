//! The symbol path: where PDBs are looked for, in the syntax of `_NT_SYMBOL_PATH`.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use symsrv::{CachePath, NtSymbolPathEntry, parse_nt_symbol_path};

/// A parsed symbol path: entries `srv*cache*url`, `cache*folder` and plain folders, divided by
/// semicolons and searched in order.
///
/// `Display` gives back the text it was parsed from. Every text is a symbol path; what is no
/// server and no cache is a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolPath {
    text: String,
    entries: Vec<NtSymbolPathEntry>,
}

impl SymbolPath {
    /// Parses the text. Empty entries, which would mean the working directory, are ignored.
    pub fn parse(text: &str) -> Self {
        let parts: Vec<&str> =
            text.split(';').map(str::trim).filter(|part| !part.is_empty()).collect();
        let entries = parse_nt_symbol_path(&parts.join(";"));
        Self {
            text: text.to_owned(),
            entries: entries.into_iter().filter_map(without_empty).collect(),
        }
    }

    /// The symbol path of the environment variable `_NT_SYMBOL_PATH`, if it is set.
    pub fn from_environment() -> Option<Self> {
        symsrv::get_symbol_path_from_environment().map(|text| Self::parse(&text))
    }

    /// Whether there is no place to look for symbols.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries as symsrv wants them, without the servers in `given_up`.
    pub(super) fn entries_without(&self, given_up: &[String]) -> Vec<NtSymbolPathEntry> {
        let mut entries = self.entries.clone();
        for entry in &mut entries {
            if let NtSymbolPathEntry::Chain { urls, .. } = entry {
                urls.retain(|url| !given_up.contains(url));
            }
        }
        entries
    }

    /// Addresses of all servers, in search order.
    pub(super) fn servers(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .flat_map(|entry| match entry {
                NtSymbolPathEntry::Chain { urls, .. } => urls.as_slice(),
                _ => &[],
            })
            .map(String::as_str)
    }

    /// All folders that may hold PDBs, in search order, each once; `true` for the plain ones.
    pub(super) fn folders(&self) -> Vec<(PathBuf, bool)> {
        let mut folders: Vec<(PathBuf, bool)> = Vec::new();
        let mut add = |folder: Option<&Path>, is_plain: bool| match folder {
            Some(folder) if !folders.iter().any(|(known, _)| known == folder) => {
                folders.push((folder.to_owned(), is_plain));
            }
            _ => {}
        };
        for entry in &self.entries {
            match entry {
                NtSymbolPathEntry::Cache(folder) => add(Some(folder), false),
                NtSymbolPathEntry::LocalOrShare(folder) => add(Some(folder), true),
                NtSymbolPathEntry::Chain { cache_paths, urls, .. } => {
                    let default = default_store();
                    for cache in cache_paths {
                        add(cache_folder(cache).or(default.as_deref()), false);
                    }
                    if cache_paths.is_empty() && !urls.is_empty() {
                        add(default.as_deref(), false);
                    }
                }
            }
        }
        folders
    }

    /// The first folder that the path declares to be a cache, which is therefore ours to write.
    ///
    /// The last folder of a chain without a server is a store (`srv*cache*\\machine\symbols`).
    pub(super) fn first_cache(&self) -> Option<PathBuf> {
        self.entries.iter().find_map(|entry| match entry {
            NtSymbolPathEntry::Cache(folder) => Some(folder.clone()),
            NtSymbolPathEntry::LocalOrShare(_) => None,
            NtSymbolPathEntry::Chain { cache_paths, urls, .. } => {
                let stores = usize::from(urls.is_empty());
                let caches = cache_paths.len().saturating_sub(stores);
                cache_paths.iter().take(caches).find_map(cache_folder).map(Path::to_owned)
            }
        })
    }
}

impl fmt::Display for SymbolPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for SymbolPath {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::parse(text))
    }
}

/// The folder of an entry; `None` for the default store, which the platform decides.
fn cache_folder(cache: &CachePath) -> Option<&Path> {
    match cache {
        CachePath::Path(folder) => Some(folder),
        CachePath::DefaultDownstreamStore => None,
    }
}

/// An empty folder would mean the working directory. `cache*` without a folder means the default
/// store, as an empty part of `srv**url` does; an empty entry means nothing.
fn without_empty(entry: NtSymbolPathEntry) -> Option<NtSymbolPathEntry> {
    match entry {
        NtSymbolPathEntry::Cache(folder) if folder.as_os_str().is_empty() => {
            default_store().map(NtSymbolPathEntry::Cache)
        }
        NtSymbolPathEntry::LocalOrShare(folder) if folder.as_os_str().is_empty() => None,
        entry => Some(entry),
    }
}

/// Where downloads go that the symbol path names no folder for.
pub(super) fn default_store() -> Option<PathBuf> {
    platform_cache().map(|cache| cache.join("sym"))
}

/// The folder for our own cached files: `handlescope` in the cache folder of the platform.
pub(super) fn platform_cache() -> Option<PathBuf> {
    let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        env::var_os("LOCALAPPDATA").and_then(absolute)
    } else if cfg!(target_os = "macos") {
        env::home_dir().map(|home| home.join("Library/Caches"))
    } else {
        // XDG Base Directory Specification: a relative XDG_CACHE_HOME is ignored.
        let named = env::var_os("XDG_CACHE_HOME").and_then(absolute);
        named.or_else(|| env::home_dir().map(|home| home.join(".cache")))
    };
    base.filter(|base| base.is_absolute()).map(|base| base.join("handlescope"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "https://symbols.example/download";

    fn plain(path: &SymbolPath) -> Vec<PathBuf> {
        path.folders().into_iter().filter(|(_, plain)| *plain).map(|(path, _)| path).collect()
    }

    #[test]
    fn the_text_is_given_back_as_it_was_typed() {
        let text = " /sym ;;srv*/cache*https://symbols.example/download; ";
        assert_eq!(SymbolPath::parse(text).to_string(), text);
    }

    #[test]
    fn servers_caches_and_folders_are_told_apart() {
        let path = SymbolPath::parse(&format!("cache*/c;/plain;SRV*/down*{SERVER}"));
        assert_eq!(path.servers().collect::<Vec<_>>(), [SERVER]);
        assert_eq!(path.first_cache(), Some("/c".into()));
        assert_eq!(plain(&path), [PathBuf::from("/plain")]);
        let all: Vec<_> = path.folders().into_iter().map(|(folder, _)| folder).collect();
        assert_eq!(all, [Path::new("/c"), Path::new("/plain"), Path::new("/down")]);
    }

    #[test]
    fn empty_entries_do_not_mean_the_working_directory() {
        for text in ["", ";", " ; ;", "\t"] {
            assert!(SymbolPath::parse(text).is_empty(), "{text:?}");
        }
        assert_eq!(plain(&SymbolPath::parse(";/a; ;/b;")).len(), 2);
    }

    #[test]
    fn a_plain_folder_or_store_is_never_a_cache_to_write_to() {
        assert_eq!(SymbolPath::parse("/symbols").first_cache(), None);
        assert_eq!(SymbolPath::parse("srv*/store").first_cache(), None);
        assert_eq!(SymbolPath::parse("srv*/cache*/store").first_cache(), Some("/cache".into()));
    }

    #[test]
    fn a_server_that_was_given_up_leaves_its_cache_folder_on_the_path() {
        let path = SymbolPath::parse(&format!("srv*/c*{SERVER}"));
        let entries = path.entries_without(&[SERVER.to_owned()]);
        let [NtSymbolPathEntry::Chain { cache_paths, urls, .. }] = entries.as_slice() else {
            panic!("one chain expected, found {entries:?}");
        };
        assert!(urls.is_empty());
        assert_eq!(cache_paths, &[CachePath::Path("/c".into())]);
    }
}
