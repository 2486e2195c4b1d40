//! Which files are the same trace.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::names::{
    EXTRACT_EXTENSION, EXTRACT_FOLDER, PLAIN_EXTENSION, TRACE_EXTENSIONS, has_extension,
    is_extract, shortened,
};

/// What a trace and its extract have in common: the folder, without `Extract`, and the name, without
/// `.etl`, `.zip`, `.7z`, `.etl.zip`, `.etl.7z` or `.json7z`. A text keeps its extension: a debugger's log of a
/// program may lie beside a trace of it. Two traces that share it would share
/// their extract, too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SameTrace {
    folder: PathBuf,
    stem: OsString,
}

impl SameTrace {
    /// Of a trace or an extract.
    pub(crate) fn of(path: &Path) -> SameTrace {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let mut folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let is_extracts =
            folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case(EXTRACT_FOLDER));
        if is_extracts && (is_extract(path) || has_extension(path, &[PLAIN_EXTENSION])) {
            folder.pop();
        }
        let stem = shortened(stem(path));
        // Windows takes a.etl and A.etl for one.
        SameTrace { folder, stem: if cfg!(windows) { stem.to_ascii_lowercase() } else { stem } }
    }
}

/// Whether two names stand for one file, which exists: in another spelling, by a symbolic or a hard link.
pub(crate) fn is_same_file(left: &Path, right: &Path) -> bool {
    // Both are opened for it, and a pipe waits for its other end.
    let are_files = [left, right].iter().all(|path| path.is_file());
    are_files && same_file::is_same_file(left, right).unwrap_or(false)
}

/// The name of a trace or an extract without its extension. Of `a.etl.zip` both go.
pub(crate) fn stem(path: &Path) -> OsString {
    let is_trace = has_extension(path, TRACE_EXTENSIONS)
        || has_extension(path, &[EXTRACT_EXTENSION, PLAIN_EXTENSION]);
    if !is_trace {
        return path.file_name().unwrap_or_default().to_owned();
    }
    let mut stem = PathBuf::from(path.file_stem().unwrap_or_default());
    if has_extension(path, &["zip", "7z"]) && has_extension(&stem, &["etl"]) {
        stem.set_extension("");
    }
    stem.into_os_string()
}

/// A path as it is shown: of `a.etl.zip` and `a.etl.7z`, which name their content, it is `a`.
pub(crate) fn shown(path: &Path) -> PathBuf {
    let name = stem(path);
    match path.file_stem() {
        Some(one_less) if *one_less != *name => path.with_file_name(name),
        _ => path.to_path_buf(),
    }
}

/// What names several traces apart: what `name` makes of each path, with as many folders in front of it as it takes.
/// What folders do not tell apart has its whole path.
pub(crate) fn names_apart(paths: &[&Path], name: impl Fn(&Path) -> OsString) -> Vec<PathBuf> {
    let label = |path: &Path, folders: usize| -> PathBuf {
        let all: Vec<_> = path.parent().into_iter().flat_map(Path::components).collect();
        let last = all.get(all.len().saturating_sub(folders)..).unwrap_or_default();
        last.iter().collect::<PathBuf>().join(name(path))
    };
    let mut labels: Vec<PathBuf> = paths.iter().map(|path| label(path, 0)).collect();
    let most = paths.iter().map(|path| path.components().count()).max().unwrap_or_default();
    for folders in 1..=most {
        let mut counts: HashMap<PathBuf, usize> = HashMap::new();
        labels.iter().for_each(|label| *counts.entry(label.clone()).or_default() += 1);
        for (path, own) in paths.iter().zip(&mut labels) {
            if counts.get(own).is_some_and(|count| *count > 1) {
                *own = if folders == most { path.to_path_buf() } else { label(path, folders) };
            }
        }
    }
    labels
}

/// Each trace once, by name: the trace itself before an archive with it, and both before the
/// extract, because loading a trace finds out whether its extract is up to date.
pub(crate) fn once_each(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    let rank = |path: &PathBuf| match path {
        _ if is_extract(path) => 2,
        _ if has_extension(path, &[PLAIN_EXTENSION]) => 3,
        _ if has_extension(path, &["etl"]) => 0,
        _ => 1,
    };
    files.sort_by_cached_key(|path| (rank(path), path.clone()));
    let mut first: BTreeMap<SameTrace, PathBuf> = BTreeMap::new();
    for file in files {
        first.entry(SameTrace::of(&file)).or_insert(file);
    }
    let mut files: Vec<PathBuf> = first.into_values().collect();
    files.sort();
    files
}
