//! Where extracts are stored.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use handlescope_model::stable_hash::name_of;
use handlescope_model::{Reason, Untrusted, output};
use tempfile::TempDir;

use crate::paths::{EXTRACT_EXTENSION, EXTRACT_FOLDER, shortened, stem};
use crate::terminal::Messages;
use crate::trace::LoadError;

/// Cache folder of converted extracts.
const CONVERTED_FOLDER: &str = "Converted";

/// `Extract/NAME.json7z` beside a trace.
pub fn beside(trace: &Path) -> PathBuf {
    let folder = trace.parent().unwrap_or(Path::new("")).join(EXTRACT_FOLDER);
    folder.join(file_name(trace))
}

/// Returns the place in the platform's cache for a trace with a read-only folder. Traces of the same name in different
/// folders do not collide there.
pub fn in_cache(trace: &Path) -> PathBuf {
    cached(EXTRACT_FOLDER, trace).join(file_name(trace))
}

/// Returns the folder in the platform's cache for converted extracts of another program.
pub fn converted(extract: &Path) -> PathBuf {
    cached(CONVERTED_FOLDER, extract)
}

/// Returns the cache folder for everything derived from traces in one folder.
fn cached(kind: &str, trace: &Path) -> PathBuf {
    let folder = trace.parent().unwrap_or(Path::new(""));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let cache = dirs::cache_dir().unwrap_or_else(std::env::temp_dir);
    real(cache).join("handlescope").join(kind).join(name_of([folder.to_string_lossy().as_bytes()]))
}

/// Returns `NAME.json7z` in the trace's own folder, where the user may have moved it.
pub fn side_by_side(trace: &Path) -> PathBuf {
    trace.with_file_name(file_name(trace))
}

/// Returns the extract's name: the trace's with another extension. `a.etl.zip` loses both of its own.
pub fn file_name(trace: &Path) -> PathBuf {
    let mut name = shortened(stem(trace));
    name.push(".");
    name.push(EXTRACT_EXTENSION);
    PathBuf::from(name)
}

/// Folders created for an extract. Dropping this removes those that are empty, because then the extract failed.
#[must_use = "the folders are removed if they are empty when this is dropped"]
#[derive(Debug, Default)]
pub struct MadeFolders(Vec<PathBuf>);

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // A folder with files in it stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Creates the folder of an extract, and proves that files can be created in it.
///
/// # Errors
/// If they cannot.
pub fn prepare_folder(extract: &Path) -> io::Result<MadeFolders> {
    let folder = output::folder_of(extract);
    let made = folder
        .ancestors()
        .take_while(|folder| !folder.exists())
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(Path::to_owned);
    let made = MadeFolders(made.collect());
    output::prepare_folder(folder).map(|()| made)
}

/// Resolves the links in a folder of this program. A server's roots may contain a link to it, and no link may lead out
/// of the roots.
fn real(folder: PathBuf) -> PathBuf {
    // On Windows messages would show it as `\\?\C:\…`.
    if cfg!(windows) { folder } else { folder.canonicalize().unwrap_or(folder) }
}

/// Where an extract is kept.
pub struct ExtractLocation {
    pub path: PathBuf,
    /// The folder that is deleted with the session, if the cache cannot be written.
    pub folder: Option<TempDir>,
    /// Folders created for it.
    pub made: MadeFolders,
}

/// Returns a place in the cache or, with a note, one for this session only.
pub fn kept(extract: PathBuf, messages: &mut Messages<'_>) -> Result<ExtractLocation, LoadError> {
    match prepare_folder(&extract) {
        Ok(made) => Ok(ExtractLocation { path: extract, folder: None, made }),
        Err(reason) => for_want_of_cache(&extract, &reason, messages),
    }
}

/// Returns a place for this session only, with a note why.
pub fn for_want_of_cache(
    extract: &Path,
    reason: &io::Error,
    messages: &mut Messages<'_>,
) -> Result<ExtractLocation, LoadError> {
    let kept = for_session(extract)?;
    messages.note(format_args!(
        "{} cannot be written ({}); working without a cache, so the next session does this again",
        Untrusted(extract),
        Reason(reason)
    ));
    Ok(kept)
}

/// Returns a place for this session only.
pub fn for_session(extract: &Path) -> Result<ExtractLocation, LoadError> {
    let folder = output::temporary_folder()
        .map_err(|source| LoadError::NoCache { path: extract.to_owned(), source })?;
    let path = real(folder.path().to_owned()).join(extract.file_name().unwrap_or_default());
    Ok(ExtractLocation { path, folder: Some(folder), made: MadeFolders::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_were_made_for_an_extract_go_with_its_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let extract = folder.path().join("a/Extract/a.json7z");
        drop(prepare_folder(&extract).expect("prepared"));
        assert!(!folder.path().join("a").exists());
        let made = prepare_folder(&extract).expect("prepared");
        fs::write(&extract, b"x").expect("written");
        drop(made);
        assert!(extract.exists());
        let own = folder.path().join("own");
        fs::create_dir(&own).expect("a folder");
        drop(prepare_folder(&own.join("a.json7z")).expect("prepared"));
        assert!(own.exists(), "it was there before");
    }

    #[test]
    fn the_extract_lies_in_a_folder_beside_the_trace() {
        for (trace, expected) in [
            ("a.etl", "Extract/a.json7z"),
            ("/t/a.b.etl", "/t/Extract/a.b.json7z"),
            ("t/a.etl.zip", "t/Extract/a.json7z"),
            ("t/a.7z", "t/Extract/a.json7z"),
            ("t/a.v2.7z", "t/Extract/a.v2.json7z"),
            ("t/a.etl.etl", "t/Extract/a.etl.json7z"),
            ("t/a.dmp", "t/Extract/a.dmp.json7z"),
            ("t/a.dmp.zip", "t/Extract/a.dmp.json7z"),
            ("t/session.log", "t/Extract/session.log.json7z"),
            ("t/session", "t/Extract/session.json7z"),
        ] {
            assert_eq!(beside(Path::new(trace)), Path::new(expected), "{trace}");
        }
    }

    #[test]
    fn traces_of_one_name_do_not_meet_in_the_cache() {
        let (left, right) = (in_cache(Path::new("/x/a.etl")), in_cache(Path::new("/y/a.etl")));
        assert_ne!(left, right);
        assert!(left.ends_with("a.json7z"));
    }

    #[test]
    fn places_in_the_cache_stay_the_same_in_every_build() {
        let cache = dirs::cache_dir().unwrap_or_else(std::env::temp_dir);
        let in_cache = in_cache(Path::new("/no such folder/a.etl"));
        let converted = converted(Path::new("/no such folder/a.7z"));
        for (place, expected) in [
            (in_cache, "handlescope/Extract/95b390e843bcd80b/a.json7z"),
            (converted, "handlescope/Converted/95b390e843bcd80b"),
        ] {
            assert_eq!(place.strip_prefix(&cache), Ok(Path::new(expected)));
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_noticed_before_the_work() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("a file");
        assert!(prepare_folder(&file.join("a.json7z")).is_err());
        assert!(prepare_folder(&folder.path().join("new/a.json7z")).is_ok());
    }
}
