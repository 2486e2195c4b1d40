//! Paths: expands names, folders and patterns to files, and writes files whole or not at all.

mod expand;
mod overwrite;
mod roots;
#[cfg(test)]
mod tests;
mod written;

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub use self::expand::{ExpandError, Pattern, Walk, expand, folders_in, missing, verdict};
pub use self::overwrite::{
    Aside, Output, Overwrite, OverwriteError, append_whole, is_null_device, write_aside,
    write_whole,
};
pub use self::roots::{Access, RootError, Roots};
pub use self::written::exclusive_lock;
use handlescope_model::ARCHIVE_EXTENSIONS;
use handlescope_model::stable_hash::name_of;

/// Extensions of trace files.
pub const TRACE_EXTENSIONS: &[&str] = &{
    let [zip, seven_zip, diagsession, cabinet] = ARCHIVE_EXTENSIONS;
    ["etl", zip, seven_zip, diagsession, cabinet, DUMP_EXTENSION]
};

/// Extension of minidumps. An extract's name keeps it, because a dump is often named like the trace beside it.
const DUMP_EXTENSION: &str = "dmp";

pub const EXTRACT_EXTENSION: &str = "json7z";

/// Extension of ETWAnalyzer's uncompressed extracts, which consist of several files.
pub const PLAIN_EXTENSION: &str = "json";

/// Folder of extracts beside their traces, as ETWAnalyzer names it.
pub const EXTRACT_FOLDER: &str = "Extract";

/// Whether a path has the name of an extract.
pub fn is_extract(path: &Path) -> bool {
    has_extension(path, &[EXTRACT_EXTENSION])
}

/// Whether a path is the main file of an uncompressed ETWAnalyzer extract with handles. Folders contain all sorts of
/// JSON.
pub fn is_plain_extract(path: &Path) -> bool {
    let Some(stem) = path.file_stem().and_then(OsStr::to_str) else { return false };
    let companion = format!("{stem}_Derived_Handle.{PLAIN_EXTENSION}");
    has_extension(path, &[PLAIN_EXTENSION]) && path.with_file_name(companion).is_file()
}

/// Whether a path has one of these extensions, ignoring case.
pub fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().unwrap_or_default();
    extensions.iter().any(|listed| extension.eq_ignore_ascii_case(listed))
}

/// Longest name of a file derived from a trace, in bytes. A file system allows 255, and the name is followed by the
/// source's state and `.json7z`.
const MAX_NAME_LENGTH: usize = 230;

/// Leaves room in a name for what an extract adds to it. A long one is cut and ends in a hash of the whole.
pub fn shortened(name: OsString) -> OsString {
    if name.len() <= MAX_NAME_LENGTH {
        return name;
    }
    let end = format!("~{}", name_of([name.as_encoded_bytes()]));
    let text = name.to_string_lossy();
    let start = &text[..text.floor_char_boundary(MAX_NAME_LENGTH - end.len())];
    [start, &end].concat().into()
}

/// Returns a path with `~` replaced.
pub fn with_home(name: &str) -> PathBuf {
    let rest = name.strip_prefix("~/").or_else(|| name.strip_prefix("~\\"));
    match rest.or((name == "~").then_some("")).zip(dirs::home_dir()) {
        Some(("", home)) => home,
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(name),
    }
}

/// Key shared by a trace and its extract: the folder, without `Extract`, and the name, without `.etl`, `.zip`, `.7z`,
/// `.etl.zip`, `.etl.7z` or `.json7z`. A text file keeps its extension, because a debugger's log of a program may be
/// next to a trace of it. Two traces with the same key would also share their extract.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SameTrace {
    folder: PathBuf,
    stem: OsString,
}

impl SameTrace {
    /// Returns the key of a trace or an extract.
    pub fn new(path: &Path) -> SameTrace {
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let is_extracts =
            folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case(EXTRACT_FOLDER));
        if is_extracts && (is_extract(path) || has_extension(path, &[PLAIN_EXTENSION])) {
            folder.pop();
        }
        let stem = shortened(stem(path));
        // To Windows, a.etl and A.etl are the same.
        SameTrace { folder, stem: if cfg!(windows) { stem.to_ascii_lowercase() } else { stem } }
    }
}

/// Whether two names refer to the same existing file: spelled differently, or through a symbolic or hard link.
pub fn is_same_file(left: &Path, right: &Path) -> bool {
    // The comparison opens both files, which would block on a pipe.
    let are_files = [left, right].iter().all(|path| path.is_file());
    are_files && same_file::is_same_file(left, right).unwrap_or(false)
}

/// Returns the name of a trace or an extract without its extension. `a.etl.zip` loses both.
pub fn stem(path: &Path) -> OsString {
    let is_trace = has_extension(path, TRACE_EXTENSIONS)
        || has_extension(path, &[EXTRACT_EXTENSION, PLAIN_EXTENSION]);
    if !is_trace || has_extension(path, &[DUMP_EXTENSION]) {
        return path.file_name().unwrap_or_default().to_owned();
    }
    let mut stem = PathBuf::from(path.file_stem().unwrap_or_default());
    if has_extension(path, &ARCHIVE_EXTENSIONS) && has_extension(&stem, &["etl"]) {
        stem.set_extension("");
    }
    stem.into_os_string()
}

/// Returns a path as shown to users: `a` for `a.etl.zip` and `a.etl.7z`, which name their content.
pub fn shown(path: &Path) -> PathBuf {
    let name = stem(path);
    match path.file_stem() {
        Some(stem) if *stem != *name => path.with_file_name(name),
        _ => path.to_path_buf(),
    }
}

/// Returns names that tell traces apart: the `name` of each path, with as many parent folders as needed. If folders do
/// not help, the whole path.
pub fn names_apart(paths: &[&Path], name: impl Fn(&Path) -> OsString) -> Vec<PathBuf> {
    let label = |path: &Path, folders: usize| -> PathBuf {
        let components: Vec<_> = path.parent().into_iter().flat_map(Path::components).collect();
        let nearest =
            components.get(components.len().saturating_sub(folders)..).unwrap_or_default();
        nearest.iter().collect::<PathBuf>().join(name(path))
    };
    let mut labels: Vec<PathBuf> = paths.iter().map(|path| label(path, 0)).collect();
    let depth = paths.iter().map(|path| path.components().count()).max().unwrap_or_default();
    for folders in 1..=depth {
        let mut counts: HashMap<PathBuf, usize> = HashMap::new();
        labels.iter().for_each(|label| *counts.entry(label.clone()).or_default() += 1);
        for (path, current) in paths.iter().zip(&mut labels) {
            if counts.get(current).is_some_and(|count| *count > 1) {
                *current = if folders == depth { path.to_path_buf() } else { label(path, folders) };
            }
        }
    }
    labels
}

/// Keeps each trace once, by name. Prefers the trace over an archive of it, and both over the extract, because loading
/// a trace checks whether its extract is up to date.
pub fn once_each(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    files.sort_by_cached_key(|path| {
        let rank = match path {
            _ if is_extract(path) => 2,
            _ if has_extension(path, &[PLAIN_EXTENSION]) => 3,
            _ if has_extension(path, &["etl"]) => 0,
            _ => 1,
        };
        (rank, path.clone())
    });
    let mut first: BTreeMap<SameTrace, PathBuf> = BTreeMap::new();
    for file in files {
        first.entry(SameTrace::new(&file)).or_insert(file);
    }
    let mut files: Vec<PathBuf> = first.into_values().collect();
    files.sort();
    files
}
