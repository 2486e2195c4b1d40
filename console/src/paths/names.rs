//! What files of traces are called.

use std::path::{Path, PathBuf};

/// Extensions of files that hold a trace.
pub(crate) const TRACE_EXTENSIONS: &[&str] = &["etl", "zip", "7z"];

pub(crate) const EXTRACT_EXTENSION: &str = "json7z";

/// Extension of ETWAnalyzer's uncompressed extracts, which have several files.
pub(crate) const PLAIN_EXTENSION: &str = "json";

/// Folder of extracts beside their traces, as ETWAnalyzer names it.
pub(crate) const EXTRACT_FOLDER: &str = "Extract";

/// Whether a path has the name of an extract.
pub(crate) fn is_extract(path: &Path) -> bool {
    has_extension(path, &[EXTRACT_EXTENSION])
}

/// Whether a path is the main file of an uncompressed extract of ETWAnalyzer that has handles. Folders
/// have JSON of all sorts.
pub(crate) fn is_plain_extract(path: &Path) -> bool {
    let companion = || {
        let stem = path.file_stem()?.to_str()?;
        Some(path.with_file_name(format!("{stem}_Derived_Handle.{PLAIN_EXTENSION}")))
    };
    has_extension(path, &[PLAIN_EXTENSION]) && companion().is_some_and(|path| path.is_file())
}

/// Whether a path has one of these extensions, in any case.
pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let own = path.extension().unwrap_or_default();
    extensions.iter().any(|extension| own.eq_ignore_ascii_case(extension))
}

/// A path with its `~` replaced.
pub(crate) fn with_home(name: &str) -> PathBuf {
    let rest = name.strip_prefix("~/").or_else(|| name.strip_prefix("~\\"));
    match rest.or((name == "~").then_some("")).zip(dirs::home_dir()) {
        Some(("", home)) => home,
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(name),
    }
}
