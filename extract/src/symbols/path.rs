//! The symbol path: where PDBs are looked for, in the syntax of `_NT_SYMBOL_PATH`.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustc_hash::FxHashSet;
use symsrv::{CachePath, NtSymbolPathEntry, parse_nt_symbol_path};

use super::pointer;

/// A parsed symbol path: entries `srv*cache*url`, `cache*folder`, bare addresses of servers and
/// plain folders, divided by semicolons and searched in order.
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
        let parts: Vec<String> =
            text.split(';').map(str::trim).filter(|part| !part.is_empty()).map(normal).collect();
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

    /// The same path with relative folders taken from `folder`, so that it means the same wherever
    /// the program goes.
    pub fn based_on(&self, folder: &Path) -> Self {
        let entries: Vec<String> =
            self.text.split(';').map(|entry| entry_based_on(entry, folder)).collect();
        Self::parse(&entries.join(";"))
    }

    /// Whether there is a server to ask.
    pub fn has_servers(&self) -> bool {
        !self.servers().is_empty()
    }

    /// The same folders and caches, but no server.
    pub fn without_servers(&self) -> Self {
        let local = |entry: &str| {
            let pieces: Vec<&str> = entry.trim().split('*').collect();
            let folders: Vec<&str> =
                pieces.iter().copied().filter(|piece| !is_address(piece)).collect();
            // What is left of `srv*https://…` would be a folder of that name.
            let is_one =
                folders.len() == pieces.len() || folders.iter().skip(1).any(|f| !f.is_empty());
            is_one.then(|| folders.join("*"))
        };
        Self::parse(&self.text.split(';').filter_map(local).collect::<Vec<_>>().join(";"))
    }

    /// Whether there is no place to look for symbols.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All servers in search order, each once, with the folders that keep what they deliver.
    pub(super) fn servers(&self) -> Vec<Server> {
        let mut servers: Vec<Server> = Vec::new();
        // `cache*` serves everything behind it.
        let mut caches_before: Vec<PathBuf> = Vec::new();
        for entry in &self.entries {
            match entry {
                NtSymbolPathEntry::Cache(folder) => caches_before.push(folder.clone()),
                NtSymbolPathEntry::LocalOrShare(_) => {}
                NtSymbolPathEntry::Chain { cache_paths, urls, .. } => {
                    let default = default_store();
                    let own =
                        cache_paths.iter().map(|cache| cache_folder(cache).or(default.as_deref()));
                    let mut caches = caches_before.clone();
                    caches.extend(own.flatten().map(Path::to_owned));
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

    /// Machines that the path names, in lower case: of servers and of network shares.
    pub(super) fn hosts(&self) -> Vec<String> {
        let servers = self.servers();
        let of_urls = servers.iter().filter_map(|server| {
            let url = reqwest::Url::parse(&server.url).ok()?;
            url.host_str().map(str::to_ascii_lowercase)
        });
        let folders = self.folders();
        let of_shares =
            folders.iter().filter_map(|(folder, _)| pointer::share_host(&folder.to_string_lossy()));
        of_urls.chain(of_shares).collect()
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

/// A symbol server, and where files from it are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// As on the symbol path.
    pub(super) url: String,
    /// The nearest first. Empty if the platform has no place for caches.
    pub(super) caches: Vec<PathBuf>,
}

/// An entry as symsrv wants it: schemes in lower case, and a bare address as `srv*address`.
fn normal(entry: &str) -> String {
    let parts: Vec<String> = entry.split('*').map(with_plain_scheme).collect();
    match parts.as_slice() {
        [address] if is_address(address) => format!("srv*{address}"),
        parts => parts.join("*"),
    }
}

fn with_plain_scheme(part: &str) -> String {
    match part.split_once("://") {
        Some((scheme, rest)) => format!("{}://{rest}", scheme.to_ascii_lowercase()),
        None => part.to_owned(),
    }
}

/// An entry with its relative folders taken from `base`.
fn entry_based_on(entry: &str, base: &Path) -> String {
    let pieces: Vec<&str> = entry.trim().split('*').collect();
    let is = |word: &str| pieces.first().is_some_and(|first| first.eq_ignore_ascii_case(word));
    let first_folder = match pieces.len() {
        0 => 0,
        1 if is("srv") || is("cache") || is("symsrv") => 1,
        1 => 0,
        // Behind it stands the library that debuggers ask.
        _ if is("symsrv") => 2,
        _ => 1,
    };
    let folder = |(at, piece): (usize, &&str)| match at < first_folder {
        true => (*piece).to_owned(),
        false => folder_based_on(piece, base),
    };
    pieces.iter().enumerate().map(folder).collect::<Vec<_>>().join("*")
}

/// What is not a relative folder, or cannot be written as a longer one, stays as it is.
fn folder_based_on(piece: &str, base: &Path) -> String {
    let is_windows = piece.starts_with('\\') || piece.get(1..2) == Some(":");
    let is_relative = Path::new(piece).is_relative() && !is_windows;
    if piece.is_empty() || is_address(piece) || !is_relative {
        return piece.to_owned();
    }
    match base.join(piece).to_str() {
        Some(folder) if !folder.contains(['*', ';']) => folder.to_owned(),
        _ => piece.to_owned(),
    }
}

/// Whether a text is the address of a server.
pub(super) fn is_address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    })
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
    fn servers_caches_and_folders_are_distinguished() {
        let path = SymbolPath::parse(&format!("cache*/c;/plain;SRV*/down*{SERVER}"));
        let servers: Vec<_> = path.servers().into_iter().map(|server| server.url).collect();
        assert_eq!(servers, [SERVER]);
        assert_eq!(path.first_cache(), Some("/c".into()));
        assert_eq!(plain(&path), [PathBuf::from("/plain")]);
        let all: Vec<_> = path.folders().into_iter().map(|(folder, _)| folder).collect();
        assert_eq!(all, [Path::new("/c"), Path::new("/plain"), Path::new("/down")]);
    }

    #[test]
    fn relative_folders_are_taken_from_a_folder() {
        let base = |text: &str| SymbolPath::parse(text).based_on(Path::new("/base")).to_string();
        let expected = "/base/a;/b;srv*/base/c*https://x/s;cache*/base/d;SYMSRV*symsrv.dll*/base/e";
        assert_eq!(base("a; /b;srv*c*https://x/s;cache*d;SYMSRV*symsrv.dll*e"), expected);
        let same = r"srv**https://x;https://y;\\server\share;C:\symbols;srv;;cache*";
        assert_eq!(base(same), same);
        let odd = SymbolPath::parse("a").based_on(Path::new("/odd;folder"));
        assert_eq!(odd.to_string(), "a");
    }

    #[test]
    fn without_its_servers_a_path_keeps_folders_and_caches() {
        let local = |text: &str| SymbolPath::parse(text).without_servers().to_string();
        let text =
            "/a;srv*/b*/c*HTTPS://x/s;srv*https://x;https://y;cache*/d;srv**https://z;srv*/e";
        assert_eq!(local(text), "/a;srv*/b*/c;cache*/d;srv*/e");
        assert!(SymbolPath::parse(text).has_servers());
        assert!(!SymbolPath::parse(&local(text)).has_servers());
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
    fn downloads_go_to_the_caches_before_the_server_and_in_its_chain() {
        let servers = |text: &str| SymbolPath::parse(text).servers();
        let server = |url: &str, caches: &[&str]| Server {
            url: url.to_owned(),
            caches: caches.iter().map(PathBuf::from).collect(),
        };
        assert_eq!(
            servers("cache*/a;srv*/b*/c*https://x/s*https://y;cache*/d;SRV*/a*https://z"),
            [
                server("https://x/s", &["/a", "/b", "/c"]),
                server("https://y", &["/a", "/b", "/c"]),
                server("https://z", &["/a", "/d"]),
            ]
        );
        assert_eq!(servers("srv*/a*https://x;srv*/b*https://x"), [server("https://x", &["/a"])]);
        assert_eq!(servers("/plain;srv*/store;cache*/c"), []);
    }

    #[test]
    fn a_bare_address_is_a_server_with_the_default_store() {
        for text in ["https://x/s", "srv*https://x/s", "srv**https://x/s", "HTTPS://x/s"] {
            let servers = SymbolPath::parse(text).servers();
            let [server] = servers.as_slice() else { panic!("one server in {text}") };
            assert_eq!(server.url, "https://x/s");
            assert_eq!(server.caches, Vec::from_iter(default_store()));
        }
    }

    #[test]
    fn hosts_are_those_of_servers_and_shares() {
        let path =
            SymbolPath::parse(r"srv*\\Files\cache*https://Sym.Example:8080/x;\\build\out;/a");
        assert_eq!(path.hosts(), ["sym.example", "files", "build"]);
    }

    /// The same property as the fuzz target `symbol_path`, for machines without a fuzzer.
    #[test]
    fn any_text_is_a_symbol_path() {
        const PIECES: [&str; 16] = [
            "srv",
            "symsrv",
            "cache",
            "*",
            ";",
            "**",
            "http://",
            "https://x",
            " ",
            "",
            "\\\\h\\s",
            "/f",
            "://",
            "ä",
            "\0",
            "SRV*",
        ];
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..=(random >> 60) {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7f);
                text.push_str(PIECES[(random >> 33) as usize % PIECES.len()]);
            }
            let path = SymbolPath::parse(&text);
            assert_eq!(path.to_string(), text);
            let settled = path.based_on(Path::new("/base"));
            assert_eq!(settled.based_on(Path::new("/other")), settled);
            assert_eq!(settled.is_empty(), path.is_empty());
            assert!(path.folders().iter().all(|(folder, _)| !folder.as_os_str().is_empty()));
            assert!(path.servers().iter().all(|server| is_address(&server.url)), "{text:?}");
            assert!(!path.is_empty() || path.servers().is_empty());
            let _ = path.hosts();
        }
    }
}
