//! Parses `-resource`: mappings in words, or a file that lists them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use handlescope_extract::{MappingError, ResourceMapping, check_mappings};
use handlescope_model::{Reason, Untrusted};

use crate::paths::{has_extension, with_home};

/// Extensions of files of mappings.
const EXTENSIONS: &[&str] = &["toml"];

/// Longest mapping file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Why the value of `-resource` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MappingsError {
    #[error("-resource: {0}")]
    Words(#[from] MappingError),
    #[error("{}: {error}", Untrusted(path))]
    File { path: PathBuf, error: MappingError },
    #[error(
        "{}: {}; -resource takes a file with a list in TOML, or mappings in words",
        Untrusted(path), Reason(.source)
    )]
    Unread { path: PathBuf, source: io::Error },
    #[error("{}: larger than {MAX_FILE} bytes, so not a list of mappings", Untrusted(path))]
    TooLong { path: PathBuf },
}

/// Returns the mappings of `-resource`; empty if it was not given.
pub fn mappings(given: Option<&str>) -> Result<Vec<ResourceMapping>, MappingsError> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let path = with_home(given);
    if !has_extension(&path, EXTENSIONS) {
        let mappings = ResourceMapping::from_words(given)?;
        check_mappings(&mappings)?;
        return Ok(mappings);
    }
    let text = read(&path)?;
    let mappings = ResourceMapping::from_list(&text)
        .and_then(|mappings| check_mappings(&mappings).map(|()| mappings));
    mappings.map_err(|error| MappingsError::File { path, error })
}

fn read(path: &Path) -> Result<String, MappingsError> {
    let unread = |source| MappingsError::Unread { path: path.to_path_buf(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(unread)?;
    let length = file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(unread)?;
    if length as u64 > MAX_FILE {
        return Err(MappingsError::TooLong { path: path.to_path_buf() });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_the_ending_of_a_list_is_a_file_and_all_else_are_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.TOML");
        std::fs::write(&path, "[[resource]]\nevent = 'P/Take'\naction = 'acquire'\n")
            .expect("a file");
        let of_file = mappings(path.to_str()).expect("a list");
        assert_eq!(of_file, mappings(Some("P/Take acquire")).expect("words"));
        assert!(mappings(None).expect("nothing").is_empty());
    }

    #[test]
    fn errors_name_the_option_or_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = |given: &str| mappings(Some(given)).expect_err("no mapping").to_string();
        assert!(error("Take").starts_with("-resource: Take: \"Take\" is not a PROVIDER/EVENT"));
        let path = folder.path().join("a.toml");
        let name = path.to_str().expect("a name");
        assert!(error(name).contains("a.toml: ") && error(name).contains("-resource takes a file"));
        std::fs::write(&path, "[[resource]]\nevent = 7").expect("a file");
        assert!(error(name).contains("a.toml: not a list of mappings: line 2"), "{}", error(name));
        std::fs::write(&path, " ".repeat(1 << 21)).expect("a file");
        assert!(error(name).contains("larger than 1048576 bytes"));
    }
}
