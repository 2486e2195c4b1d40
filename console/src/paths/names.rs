//! What files of traces are called.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use handlescope_model::stable_hash::name_of;

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

/// Longest name of what is made of a trace, bytes: a file system takes 255, and the name goes on with the state of what
/// was converted and `.json7z`.
const LONGEST_NAME: usize = 230;

/// A name that leaves room for what an extract adds to it; a long one is cut, and ends in a hash of all of it.
pub(crate) fn shortened(name: OsString) -> OsString {
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let end = format!("~{}", name_of([name.as_encoded_bytes()]));
    let text = name.to_string_lossy();
    let start = &text[..text.floor_char_boundary(LONGEST_NAME - end.len())];
    [start, &end].concat().into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_for_an_extract_is_cut_and_stays_unique() {
        let short = |end: &str| shortened(format!("{}{end}", "é".repeat(120)).into());
        let (one, other) = (short("1"), short("2"));
        assert_ne!(one, other);
        for name in [one, other] {
            assert!(name.len() <= LONGEST_NAME && name.to_string_lossy().starts_with("éé"));
            assert_eq!(shortened(name.clone()), name);
        }
        let longest = OsString::from("a".repeat(LONGEST_NAME));
        assert_eq!(shortened(longest.clone()), longest);
    }
}
