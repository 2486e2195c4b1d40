//! Completion of file names.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{MAIN_SEPARATOR, Path, is_separator},
};

use handlescope_model::is_harmful;
use handlescope_session::paths::{
    TRACE_EXTENSIONS, has_extension, is_extract, is_plain_extract, with_home,
};
use handlescope_session::values::FORMATS;

/// A file or folder that may be meant.
#[derive(Debug, PartialEq, Eq)]
pub struct PathCandidate {
    /// The path as it would be typed, without quotes; a folder ends with a separator.
    pub path: String,
    /// Whether the path continues.
    pub is_folder: bool,
}

/// Which files are offered in addition to folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFilter {
    /// Traces and extracts.
    Traces,
    /// Tables to write.
    Tables,
    /// No files.
    Folders,
    /// All files.
    All,
}

impl FileFilter {
    fn accepts(self, path: &Path) -> bool {
        match self {
            FileFilter::Traces => {
                has_extension(path, TRACE_EXTENSIONS) || is_extract(path) || is_plain_extract(path)
            }
            FileFilter::Tables => has_extension(path, &FORMATS.map(|spec| spec.extension)),
            FileFilter::Folders => false,
            FileFilter::All => true,
        }
    }
}

/// Returns folders and files with paths that start with the typed text. Hidden ones are offered only after a dot.
pub fn candidates(typed: &str, filter: FileFilter) -> Vec<PathCandidate> {
    let name_starts = typed.rfind(is_separator).map_or(0, |index| index + 1);
    let (folder, prefix) = typed.split_at(name_starts);
    let listed = if folder.is_empty() { ".".into() } else { with_home(folder) };
    let Ok(entries) = fs::read_dir(listed) else { return Vec::new() };
    let mut candidates: Vec<PathCandidate> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_folder = entry.path().is_dir();
            let is_accepted = is_folder || filter.accepts(&entry.path());
            let is_hidden = name.starts_with('.') && !prefix.starts_with('.');
            let fits = starts_with(&name, prefix) && is_accepted && !is_hidden;
            let end = if is_folder { MAIN_SEPARATOR.to_string() } else { String::new() };
            fits.then(|| PathCandidate { path: format!("{folder}{name}{end}"), is_folder })
        })
        .collect();
    candidates.sort_by(|left, right| left.path.cmp(&right.path));
    candidates
}

/// Programs offered before the first letter is typed.
const USUAL_PROGRAMS: &[&str] = if cfg!(windows) {
    &["findstr", "more", "sort"]
} else {
    &["grep", "head", "jq", "less", "sort", "tail", "uniq", "wc"]
};

/// Extensions of programs on Windows.
const PROGRAM_EXTENSIONS: [&str; 3] = ["exe", "cmd", "bat"];

/// Returns the programs in the folders of PATH that start with the typed text.
pub fn programs(typed: &str) -> Vec<String> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let names = env::split_paths(&folders)
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_program = !cfg!(windows) || has_extension(&path, &PROGRAM_EXTENSIONS);
            let name = if cfg!(windows) { path.file_stem() } else { path.file_name() };
            Some(name?.to_str()?.to_owned()).filter(|_| is_program)
        });
    let fits = |name: &String| {
        if typed.is_empty() {
            USUAL_PROGRAMS.contains(&name.as_str())
        } else {
            starts_with(name, typed) && !name.contains(is_harmful)
        }
    };
    names.filter(fits).collect::<BTreeSet<String>>().into_iter().collect()
}

/// Whether a text starts with another, ignoring case.
pub fn starts_with(text: &str, prefix: &str) -> bool {
    let mut text = text.chars().flat_map(char::to_lowercase);
    prefix.chars().flat_map(char::to_lowercase).all(|expected| text.next() == Some(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_traces_and_extracts_are_offered_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let names =
            ["leaky.etl", "Leak two.json7z", "leaky.csv", ".leaky.etl", "other.etl", "crash.dmp"];
        for name in names {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        fs::create_dir(folder.path().join("leaks")).expect("a folder");
        let start = format!("{}{MAIN_SEPARATOR}", folder.path().display());
        let filter = |typed: &str, filter| -> Vec<String> {
            candidates(&format!("{start}{typed}"), filter)
                .into_iter()
                .map(|c| c.path.strip_prefix(&start).unwrap_or("?").to_owned())
                .collect()
        };
        let traces = |typed| filter(typed, FileFilter::Traces);
        let leaks = format!("leaks{MAIN_SEPARATOR}");
        assert_eq!(traces("le"), ["Leak two.json7z", &leaks, "leaky.etl"]);
        assert_eq!(traces("leaky.e"), ["leaky.etl"]);
        assert_eq!(traces("c"), ["crash.dmp"]);
        assert_eq!(traces(".l"), [".leaky.etl"]);
        assert_eq!(filter("l", FileFilter::Tables), [leaks.as_str(), "leaky.csv"]);
        assert_eq!(filter("l", FileFilter::Folders), [leaks]);
        assert_eq!(candidates(&format!("{start}no/such/"), FileFilter::Traces), []);
    }
}
