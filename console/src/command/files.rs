//! Commands about files as entered.

use std::path::PathBuf;

use crate::filter::Filter;

/// What was typed behind `.load` or `.load+`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadArgs {
    /// Files, folders and patterns.
    pub queries: Vec<String>,
    /// `.load+`: keep what is loaded.
    pub append: bool,
    /// `-r`: look into folders below folders.
    pub recursive: bool,
    /// `-all`: read all tables at once.
    pub all: bool,
}

/// What was typed behind `.dir`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirArgs {
    /// A folder or pattern; `None` for the current folder.
    pub query: Option<String>,
    /// `-r`: look into folders below.
    pub recursive: bool,
    /// `-od`: sort by time.
    pub by_time: bool,
}

/// What was typed behind `.converttime`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConvertTimeArgs {
    /// `-time`: a point in time, or seconds since session start.
    pub time: Option<String>,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
}

/// What was typed behind `.extract`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractArgs {
    /// Files, folders and patterns.
    pub queries: Vec<String>,
    /// What to extract that nobody here can.
    pub unknown_extractors: Vec<String>,
    /// `-recursive`: look into folders below folders.
    pub recursive: bool,
    /// `-outdir`: the folder for the extracts, instead of `Extract` beside each trace.
    pub outdir: Option<PathBuf>,
    /// `-NoOverwrite`: leave traces alone that have an extract.
    pub no_overwrite: bool,
    /// `-DryRun`: only list the traces.
    pub dry_run: bool,
    /// `-symServer`: a server by its short name, or a symbol path.
    pub symbol_server: Option<String>,
    /// `-symFolder`: a folder with symbols.
    pub symbol_folder: Option<PathBuf>,
    /// `-symCache`: a folder for downloaded symbols.
    pub symbol_cache: Option<PathBuf>,
    /// Options that were accepted without effect, each with the reason.
    pub notes: Vec<&'static str>,
}

impl ExtractArgs {
    /// The symbol path that was asked for; `None` when it is that of the environment, or nothing was
    /// said about symbols.
    pub fn symbol_path(&self) -> Option<String> {
        const SERVERS: [(&str, &str); 2] = [
            ("MS", "https://msdl.microsoft.com/download/symbols"),
            ("Google", "https://chromium-browser-symsrv.commondatastorage.googleapis.com"),
        ];
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let folder = self.symbol_folder.as_ref().map(text);
        let cache = self.symbol_cache.as_ref().map(text);
        let server = self.symbol_server.as_deref();
        let server = server.filter(|name| !name.eq_ignore_ascii_case("NtSymbolPath"));
        let known = |name: &str| SERVERS.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        let from_server = server.map(|name| match (known(name), &cache) {
            (Some((_, url)), Some(cache)) => format!("srv*{cache}*{url}"),
            (Some((_, url)), None) => format!("srv*{url}"),
            (None, Some(cache)) => format!("cache*{cache};{name}"),
            (None, None) => name.to_owned(),
        });
        let parts: Vec<String> = folder.into_iter().chain(from_server).collect();
        (!parts.is_empty()).then(|| parts.join(";"))
    }
}

impl LoadArgs {
    /// Files, folders and patterns in place of what is loaded.
    pub fn replacing(queries: Vec<String>) -> LoadArgs {
        LoadArgs { queries, ..LoadArgs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_about_symbols_become_a_symbol_path() {
        let path = |server: Option<&str>, folder: Option<&str>, cache: Option<&str>| {
            let args = ExtractArgs {
                symbol_server: server.map(str::to_owned),
                symbol_folder: folder.map(PathBuf::from),
                symbol_cache: cache.map(PathBuf::from),
                ..ExtractArgs::default()
            };
            args.symbol_path().unwrap_or_default()
        };
        let microsoft = "https://msdl.microsoft.com/download/symbols";
        assert_eq!(path(Some("ms"), None, Some("c")), format!("srv*c*{microsoft}"));
        assert_eq!(path(Some("MS"), Some("f"), None), format!("f;srv*{microsoft}"));
        assert_eq!(path(Some("srv*x*y"), None, None), "srv*x*y");
        assert_eq!(path(Some("NTSymbolPath"), None, Some("c")), "");
        assert_eq!(path(None, None, Some("c")), "");
    }
}
