//! The symbol path: where to look for PDBs, in the syntax of `_NT_SYMBOL_PATH`. Also the folders in which Windows
//! programs keep downloaded symbols.

mod problem;

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{env, fmt};

use rustc_hash::FxHashSet;
use symsrv::{CachePath, NtSymbolPathEntry, parse_nt_symbol_path};

pub use self::problem::SymbolPathProblem;
use super::pointer::share_host;

/// A parsed symbol path: entries `srv*cache*url`, `cache*folder`, bare server addresses and plain folders, separated by
/// semicolons and searched in order.
///
/// `Display` prints the text it was parsed from, without secrets. Every text is a symbol path; a part that is neither a
/// server nor a cache is a folder. Likely mistakes are listed by [`problems`](Self::problems).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolPath {
    text: String,
    entries: Vec<NtSymbolPathEntry>,
}

impl SymbolPath {
    /// Parses the text. Ignores empty entries, which would mean the working directory, and folders of another system,
    /// which would be created here under their whole name.
    pub fn parse(text: &str) -> Self {
        let entries: Vec<String> = text.split(';').map(normal).collect();
        let entries = parse_nt_symbol_path(&entries.join(";"));
        Self {
            text: text.to_owned(),
            entries: entries.into_iter().filter_map(without_empty).collect(),
        }
    }

    /// Returns the text it was parsed from, including server passwords: for parsing again, not for showing.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the symbol path from the environment variable `_NT_SYMBOL_PATH`, if it is set.
    pub fn from_environment() -> Option<Self> {
        symsrv::get_symbol_path_from_environment().map(|text| Self::parse(&text))
    }

    /// Resolves relative folders of the path against `folder`, so that it keeps its meaning when
    /// the working directory changes.
    pub fn based_on(&self, folder: &Path) -> Self {
        let entries: Vec<String> =
            self.text.split(';').map(|entry| entry_based_on(entry, folder)).collect();
        Self::parse(&entries.join(";"))
    }

    /// Whether there is a server to ask.
    pub fn has_servers(&self) -> bool {
        !self.servers().is_empty()
    }

    /// Returns the path with its folders and caches, but without servers.
    pub fn without_servers(&self) -> Self {
        let local = |entry: &str| {
            let pieces: Vec<&str> = pieces(entry).collect();
            let folders: Vec<&str> =
                pieces.iter().copied().filter(|piece| !is_address(piece)).collect();
            // `srv*https://…` leaves `srv`, which would be taken for a folder.
            let is_entry =
                folders.len() == pieces.len() || folders.iter().skip(1).any(|f| !f.is_empty());
            is_entry.then(|| folders.join("*"))
        };
        Self::parse(&self.text.split(';').filter_map(local).collect::<Vec<_>>().join(";"))
    }

    /// Whether the path has no place to look for symbols.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns all servers in search order, each once, with the folders that cache their files.
    pub fn servers(&self) -> Vec<Server> {
        let mut servers: Vec<Server> = Vec::new();
        // `cache*` applies to all entries after it.
        let mut caches_before: Vec<PathBuf> = Vec::new();
        for entry in &self.entries {
            match entry {
                NtSymbolPathEntry::Cache(folder) => caches_before.push(folder.clone()),
                NtSymbolPathEntry::LocalOrShare(_) => {}
                NtSymbolPathEntry::Chain { cache_paths, urls, .. } => {
                    let default = default_store();
                    let chain =
                        cache_paths.iter().map(|cache| cache_folder(cache).or(default.as_deref()));
                    let mut caches = caches_before.clone();
                    caches.extend(chain.flatten().map(Path::to_owned));
                    if caches.is_empty() {
                        caches.extend(default.clone());
                    }
                    let mut seen = FxHashSet::default();
                    caches.retain(|cache| seen.insert(cache.clone()));
                    for url in urls {
                        if !servers.iter().any(|known| known.url == *url) {
                            servers.push(Server { url: url.clone(), caches: caches.clone() });
                        }
                    }
                }
            }
        }
        servers
    }

    /// Returns the machines that the path names, in lower case: servers and network shares.
    pub fn hosts(&self) -> Vec<String> {
        let servers = self.servers();
        let of_urls = servers.iter().filter_map(|server| {
            let url = reqwest::Url::parse(&server.url).ok()?;
            url.host_str().map(str::to_ascii_lowercase)
        });
        let of_shares = self.text.split(';').flat_map(pieces).filter_map(share_host);
        of_urls.chain(of_shares).collect()
    }

    /// Returns all folders that may hold PDBs, in search order, each once; `true` marks plain folders.
    pub fn folders(&self) -> Vec<(PathBuf, bool)> {
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

    /// Returns the first folder that the path declares to be a cache, which we may therefore write to.
    ///
    /// The last folder of a chain without a server is a store (`srv*cache*\\machine\symbols`).
    pub fn first_cache(&self) -> Option<PathBuf> {
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
        f.write_str(&without_secrets(&self.text))
    }
}

impl FromStr for SymbolPath {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::parse(text))
    }
}

/// A symbol server and the folders where its files are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// URL as written on the symbol path.
    pub url: String,
    /// Cache folders, nearest first; empty if the platform has none.
    pub caches: Vec<PathBuf>,
}

impl Server {
    /// Returns the address for messages, reports and cache files.
    pub fn shown(&self) -> String {
        without_secrets(&self.url)
    }

    /// Returns scheme, name and port: a host that is silent for one path is silent for all.
    pub fn host(&self) -> String {
        let url = reqwest::Url::parse(&self.url);
        url.map_or_else(|_| self.url.clone(), |url| url.origin().ascii_serialization())
    }
}

/// Replaces secrets in URLs by `…`: user and password, and the query, which may contain tokens and signatures.
pub fn without_secrets(text: &str) -> String {
    let hidden = |secret: &str, shown| if secret.is_empty() { "" } else { shown };
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(scheme_end) = rest.find("://") {
        let (before, address) = rest.split_at(scheme_end + 3);
        let (address, behind) = address.split_at(
            address.find(|c| matches!(c, '*' | ';') || c.is_whitespace()).unwrap_or(address.len()),
        );
        let (path, query) = address.split_at(address.find('?').unwrap_or(address.len()));
        let host_end = path.find(['/', '#']).unwrap_or(path.len());
        let user_end = path.get(..host_end).and_then(|host| host.rfind('@')).unwrap_or(0);
        let (user, path) = path.split_at(user_end);
        shown.extend([before, hidden(user, "…"), path, hidden(query, "?…")]);
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

/// Returns an entry as symsrv expects it: without blanks and quotes around its pieces, without folders of another
/// system, with schemes in lower case, and with a bare address as `srv*address`.
fn normal(entry: &str) -> String {
    if pieces(entry).next().is_some_and(is_of_another_system) {
        return String::new();
    }
    let pieces: Vec<String> =
        pieces(entry).filter(|piece| !is_of_another_system(piece)).map(with_plain_scheme).collect();
    match pieces.as_slice() {
        [address] if is_address(address) => format!("srv*{address}"),
        pieces => pieces.join("*"),
    }
}

/// Iterates over the pieces between the asterisks of an entry.
fn pieces(entry: &str) -> impl Iterator<Item = &str> {
    entry.split('*').map(bare)
}

/// Strips blanks and quotes from a piece. `set` on Windows keeps quotes.
fn bare(piece: &str) -> &str {
    piece.trim_matches(|c: char| c.is_whitespace() || c == '"')
}

/// Whether a piece is a Windows folder while this system is not Windows. Such a name would be a relative folder here.
fn is_of_another_system(piece: &str) -> bool {
    !cfg!(windows) && is_of_windows(piece)
}

fn is_of_windows(piece: &str) -> bool {
    let has_drive =
        piece.get(1..2) == Some(":") && piece.starts_with(|c: char| c.is_ascii_alphabetic());
    has_drive || piece.contains('\\')
}

fn with_plain_scheme(element: &str) -> String {
    match element.split_once("://") {
        Some((scheme, rest)) => format!("{}://{rest}", scheme.to_ascii_lowercase()),
        None => element.to_owned(),
    }
}

/// Resolves the relative folders of an entry against `base`.
fn entry_based_on(entry: &str, base: &Path) -> String {
    let pieces: Vec<&str> = entry.trim().split('*').collect();
    let is =
        |word: &str| pieces.first().is_some_and(|first| bare(first).eq_ignore_ascii_case(word));
    let first_folder = match pieces.len() {
        0 => 0,
        1 if is("srv") || is("cache") || is("symsrv") => 1,
        1 => 0,
        // It is followed by the library that debuggers ask.
        _ if is("symsrv") => 2,
        _ => 1,
    };
    let folder = |(at, piece): (usize, &&str)| {
        if at < first_folder { (*piece).to_owned() } else { folder_based_on(piece, base) }
    };
    pieces.iter().enumerate().map(folder).collect::<Vec<_>>().join("*")
}

/// Resolves a relative folder and keeps the blanks and quotes around it. Returns other pieces unchanged, and those
/// whose result could not be written in a symbol path.
fn folder_based_on(piece: &str, base: &Path) -> String {
    let bare = bare(piece);
    let is_relative = Path::new(bare).is_relative() && !is_of_windows(bare);
    if bare.is_empty() || is_address(bare) || !is_relative {
        return piece.to_owned();
    }
    match base.join(bare).to_str() {
        Some(folder) if !folder.contains(['*', ';']) => piece.replacen(bare, folder, 1),
        _ => piece.to_owned(),
    }
}

/// Whether a text is a server address.
pub fn is_address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

/// Returns the folder of an entry; `None` for the default store, which the platform decides.
fn cache_folder(cache: &CachePath) -> Option<&Path> {
    match cache {
        CachePath::Path(folder) => Some(folder),
        CachePath::DefaultDownstreamStore => None,
    }
}

/// Drops or replaces an empty folder, which would mean the working directory. `cache*` without a folder means the
/// default store, like an empty part in `srv**url`; an empty entry means nothing.
fn without_empty(entry: NtSymbolPathEntry) -> Option<NtSymbolPathEntry> {
    match entry {
        NtSymbolPathEntry::Cache(folder) if folder.as_os_str().is_empty() => {
            default_store().map(NtSymbolPathEntry::Cache)
        }
        NtSymbolPathEntry::LocalOrShare(folder) if folder.as_os_str().is_empty() => None,
        entry => Some(entry),
    }
}

/// Returns the folder for downloads if the symbol path names none.
pub fn default_store() -> Option<PathBuf> {
    platform_cache().map(|cache| cache.join("sym"))
}

/// Returns the folder for our own cached files: `handlescope` in the platform's cache folder.
pub fn platform_cache() -> Option<PathBuf> {
    let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        env::var_os("LOCALAPPDATA").and_then(absolute)
    } else if cfg!(target_os = "macos") {
        env::home_dir().map(|home| home.join("Library/Caches"))
    } else {
        // XDG Base Directory Specification: a relative `XDG_CACHE_HOME` is ignored.
        let named = env::var_os("XDG_CACHE_HOME").and_then(absolute);
        named.or_else(|| env::home_dir().map(|home| home.join(".cache")))
    };
    base.filter(|base| base.is_absolute()).map(|base| base.join("handlescope"))
}

#[cfg(test)]
mod tests;

/// Returns the caches of this machine's debuggers and profilers, which are searched after the symbol path's own folders
/// and before any server. Empty except on Windows.
pub fn usual_caches() -> Vec<PathBuf> {
    if cfg!(windows) { caches_of(|name| env::var_os(name)) } else { Vec::new() }
}

/// WinDbg's home (learn, `!homedir`: symbols are in its `sym`) is `DBGHELP_HOMEDIR`, else `%ProgramData%\Dbg`. WPA uses
/// `C:\Symbols`, Visual Studio `SymbolCache` in the folder for temporary files. These two and `%ProgramData%\Dbg` are
/// what the programs were seen to use; no document says so.
fn caches_of(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str, rest: &str| {
        let mut text = variable(name).filter(|value| !value.is_empty())?;
        text.push(rest);
        Some(PathBuf::from(text))
    };
    let folders = [
        folder("DBGHELP_HOMEDIR", r"\sym"),
        folder("ProgramData", r"\Dbg\sym"),
        folder("SystemDrive", r"\Symbols"),
        folder("LOCALAPPDATA", r"\Temp\SymbolCache"),
    ];
    folders.into_iter().flatten().collect()
}

#[cfg(test)]
mod usual_tests {
    use super::*;

    #[test]
    fn windbgs_caches_come_before_those_of_wpa_and_visual_studio() {
        let variable = |name: &str| match name {
            "ProgramData" => Some(r"C:\ProgramData".into()),
            "SystemDrive" => Some("C:".into()),
            "LOCALAPPDATA" => Some(r"C:\Users\me\AppData\Local".into()),
            "DBGHELP_HOMEDIR" => Some(r"D:\dbg".into()),
            _ => None,
        };
        let texts: Vec<String> =
            caches_of(variable).iter().map(|path| path.to_string_lossy().into_owned()).collect();
        assert_eq!(
            texts,
            [
                r"D:\dbg\sym",
                r"C:\ProgramData\Dbg\sym",
                r"C:\Symbols",
                r"C:\Users\me\AppData\Local\Temp\SymbolCache",
            ]
        );
        assert_eq!(
            caches_of(|name| (name == "SystemDrive").then(|| "E:".into())),
            [PathBuf::from(r"E:\Symbols")]
        );
        assert!(caches_of(|_| Some(OsString::new())).is_empty());
    }
}
