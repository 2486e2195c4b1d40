//! Likely mistakes in a symbol path, and what to do about them.

use std::path::{Path, PathBuf};

use handlescope_model::Untrusted;
use symsrv::NtSymbolPathEntry;
use thiserror::Error;

use super::{SymbolPath, bare, default_store, is_of_another_system, pieces, without_secrets};
use crate::switches::MICROSOFT;

/// A part of a symbol path that has no effect, or not the intended one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SymbolPathProblem {
    /// A plain folder or a store that does not exist. Cache folders are created when needed.
    #[error("no folder {}; create it or change the symbol path", Untrusted(.0))]
    NoFolder(PathBuf),
    /// A folder of another system.
    #[error(
        "{} is a Windows folder, which is not used here; name a folder of this system{}",
        Untrusted(.0), instead()
    )]
    OtherSystem(String),
    /// `srv*` or `cache*` without any server in the whole path.
    #[error(
        "{} names no server, so nothing is downloaded; write srv*{MICROSOFT}, or give --symserver ms",
        Untrusted(without_secrets(.0))
    )]
    NoServer(String),
    /// `"srv*…"`
    #[error(
        "quotes in the symbol path are ignored, but debuggers take them as part of it; leave \
         them out, also in `set _NT_SYMBOL_PATH=…`"
    )]
    Quotes,
    /// `srv* https://…`
    #[error(
        "a blank beside * in the symbol path is ignored, but debuggers take it as part of the name; leave it out"
    )]
    Blank,
}

/// Says where downloads go instead of a folder of another system.
fn instead() -> String {
    let store = default_store();
    store.map(|store| format!(", else downloads go to {}", Untrusted(store))).unwrap_or_default()
}

impl SymbolPath {
    /// Returns the likely mistakes, each once.
    pub fn problems(&self) -> Vec<SymbolPathProblem> {
        let entries = || self.text.split(';').map(str::trim);
        let mut problems = Vec::new();
        if entries().flat_map(|entry| entry.split('*')).any(|piece| trimmed(piece).contains('"')) {
            problems.push(SymbolPathProblem::Quotes);
        }
        if entries().any(has_blank) {
            problems.push(SymbolPathProblem::Blank);
        }
        let has_foreign = |entry: &str| pieces(entry).any(is_of_another_system);
        let foreign = entries().flat_map(pieces).filter(|piece| is_of_another_system(piece));
        problems.extend(foreign.map(|piece| SymbolPathProblem::OtherSystem(piece.to_owned())));
        if !self.has_servers() {
            let lonely = entries().filter(|entry| is_lonely(entry) && !has_foreign(entry));
            problems.extend(lonely.map(|entry| SymbolPathProblem::NoServer(entry.to_owned())));
        }
        let missing = self.stores().filter(|folder| !folder.is_dir());
        problems.extend(missing.map(|folder| SymbolPathProblem::NoFolder(folder.to_owned())));
        let mut seen = Vec::new();
        problems.retain(|problem| {
            let is_new = !seen.contains(problem);
            seen.push(problem.clone());
            is_new
        });
        problems
    }

    /// Returns the folders that are searched but not written: plain ones, and the last one of a chain without a server.
    fn stores(&self) -> impl Iterator<Item = &Path> {
        self.entries.iter().filter_map(|entry| match entry {
            NtSymbolPathEntry::LocalOrShare(folder) => Some(folder.as_path()),
            NtSymbolPathEntry::Chain { cache_paths, urls, .. } if urls.is_empty() => {
                super::cache_folder(cache_paths.last()?)
            }
            NtSymbolPathEntry::Chain { .. } | NtSymbolPathEntry::Cache(_) => None,
        })
    }
}

/// Returns what surrounds the bare piece.
fn trimmed(piece: &str) -> String {
    piece.replacen(bare(piece), "", 1)
}

/// Whether there is a blank beside an asterisk.
fn has_blank(entry: &str) -> bool {
    let pieces: Vec<&str> = entry.split('*').collect();
    let is_blank = |c: char| c.is_whitespace();
    pieces.iter().skip(1).any(|piece| piece.starts_with(is_blank))
        || pieces.iter().rev().skip(1).any(|piece| piece.ends_with(is_blank))
}

/// Whether an entry is just `srv*`, or a cache that has no symbols yet.
fn is_lonely(entry: &str) -> bool {
    let mut pieces = pieces(entry);
    let word = pieces.next().unwrap_or_default().to_ascii_lowercase();
    let mut folders = pieces.skip(usize::from(word == "symsrv")).filter(|piece| !piece.is_empty());
    match word.as_str() {
        "srv" | "symsrv" => folders.next().is_none(),
        "cache" => folders.next().is_none_or(|folder| !Path::new(folder).is_dir()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        SymbolPath::parse(text).problems().iter().map(ToString::to_string).collect()
    }

    /// Checks that a path has exactly one problem, whose message contains these words.
    #[track_caller]
    fn check(text: &str, words: &[&str]) {
        let problems = problems(text);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        for word in words {
            assert!(problems[0].contains(word), "{text}: {problems:?}");
        }
    }

    #[test]
    fn a_path_that_is_as_meant_has_no_problem() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = folder.path().display();
        for text in [
            "",
            " ; ",
            "https://x",
            "srv*https://x",
            "srv**https://x",
            "srv*/new/cache*https://x ; https://y",
            &format!("{here};cache*{here};srv*{here}"),
            "cache*;srv*;https://x",
        ] {
            assert_eq!(problems(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn each_problem_is_said_once_with_what_to_do() {
        for text in
            ["srv*", "srv", "SRV**", "symsrv*symsrv.dll*", "cache*", "cache", "cache*/no/where"]
        {
            check(text, &[text, "names no server", "--symserver ms", MICROSOFT]);
        }
        check("/no/where;/no/where", &["no folder /no/where"]);
        check("srv*/no/where", &["no folder /no/where", "create it"]);
        check("\"srv*https://x\"", &["quotes", "leave them out"]);
        check("srv*\"/c\"*\"https://x\"", &["quotes"]);
        check("srv* https://x", &["a blank beside *", "leave it out"]);
        check("srv*/c *https://x", &["a blank beside *"]);
    }

    #[test]
    fn quotes_and_blanks_do_not_change_a_path() {
        let plain = SymbolPath::parse("srv*/c*https://x");
        for text in ["\"srv*/c*https://x\"", "srv*/c* https://x", "\" srv * /c*\"https://x\" "] {
            let path = SymbolPath::parse(text);
            assert_eq!(
                (path.servers(), path.folders()),
                (plain.servers(), plain.folders()),
                "{text}"
            );
            assert!(!path.without_servers().has_servers(), "{text}");
            let settled = SymbolPath::parse("srv* \"c\"*https://x").based_on(Path::new("/base"));
            assert_eq!(settled.first_cache(), Some("/base/c".into()));
            assert_eq!(settled.problems().len(), 2, "{settled}");
        }
    }

    #[cfg(not(windows))]
    #[test]
    fn a_folder_of_windows_is_not_made_on_another_system() {
        for text in [r"srv*C:\Symbols*https://x", r"srv*\\files\sym*https://x", "srv*d:*https://x"]
        {
            check(text, &["is a Windows folder", "downloads go to "]);
            let caches: Vec<_> = default_store().into_iter().collect();
            assert_eq!(SymbolPath::parse(text).servers()[0].caches, caches);
        }
        check(r"C:\Symbols", &[r"C:\Symbols is a Windows folder"]);
        for text in [r"C:\Symbols", r"srv*C:\Symbols", r"cache*C:\Symbols", r"%TEMP%\sym"] {
            let path = SymbolPath::parse(text);
            assert!(path.folders().is_empty() && path.first_cache().is_none(), "{text}");
        }
        let path = SymbolPath::parse(r"srv*C:\a*/b*https://x");
        assert_eq!(path.first_cache(), Some("/b".into()));
    }
}
