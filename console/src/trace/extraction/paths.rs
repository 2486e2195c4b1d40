//! Where extracts lie.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use handlescope_extract::filetime;
use handlescope_model::tables::TraceInfos;
use handlescope_model::{ArchiveError, SCHEMA_VERSION, Trace, Untrusted};
use tempfile::TempDir;

use super::stable_hash::name_of;
use crate::paths::{EXTRACT_EXTENSION, EXTRACT_FOLDER, stem};
use crate::terminal::Messages;
use crate::trace::LoadError;

/// Folder in the cache of converted extracts.
const CONVERTED_FOLDER: &str = "Converted";

/// `Extract/NAME.json7z` beside a trace.
pub(crate) fn beside(trace: &Path) -> PathBuf {
    let folder = trace.parent().unwrap_or(Path::new("")).join(EXTRACT_FOLDER);
    folder.join(file_name(trace))
}

/// The place in the platform's cache for a trace whose own folder cannot be written. Traces of one
/// name in different folders do not meet there.
pub(crate) fn in_cache(trace: &Path) -> PathBuf {
    cached(EXTRACT_FOLDER, trace).join(file_name(trace))
}

/// The folder in the platform's cache for what extracts of another program are converted to.
pub(super) fn converted(extract: &Path) -> PathBuf {
    cached(CONVERTED_FOLDER, extract)
}

/// The folder in the cache for what is made of traces in one folder.
fn cached(kind: &str, trace: &Path) -> PathBuf {
    let folder = trace.parent().unwrap_or(Path::new(""));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let cache = dirs::cache_dir().unwrap_or_else(std::env::temp_dir);
    cache.join("handlescope").join(kind).join(name_of([folder.to_string_lossy().as_bytes()]))
}

/// `NAME.json7z` in the folder of a trace, where it may have been moved.
pub(crate) fn side_by_side(trace: &Path) -> PathBuf {
    trace.with_file_name(file_name(trace))
}

/// The extract's name: that of the trace with another extension. Of `a.etl.zip` both go.
pub(crate) fn file_name(trace: &Path) -> PathBuf {
    let mut name = stem(trace);
    name.push(".");
    name.push(EXTRACT_EXTENSION);
    PathBuf::from(name)
}

/// Makes the folder of an extract, and proves that files can be made in it.
pub(crate) fn prepare_folder(extract: &Path) -> io::Result<()> {
    let folder = match extract.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    tempfile::tempfile_in(folder).map(drop)
}

/// Where an extract is kept.
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    /// The folder that goes with the session, where the cache cannot be written.
    pub(crate) folder: Option<TempDir>,
}

/// A place in the cache, or one for this session only, with a note.
pub(crate) fn kept(wanted: PathBuf, messages: &mut Messages<'_>) -> Result<Kept, LoadError> {
    let Err(reason) = prepare_folder(&wanted) else {
        return Ok(Kept { path: wanted, folder: None });
    };
    let folder = tempfile::Builder::new().prefix("handlescope-").tempdir();
    let folder = folder.map_err(|source| LoadError::NoCache { path: wanted.clone(), source })?;
    messages.note(format_args!(
        "{} cannot be written ({reason}); working without a cache, so the next session does this again",
        Untrusted(&wanted)
    ));
    let path = folder.path().join(wanted.file_name().unwrap_or_default());
    Ok(Kept { path, folder: Some(folder) })
}

/// Whether an extract can stand for its trace.
pub(crate) enum Freshness {
    /// It can.
    UpToDate(Box<Trace>),
    /// There is none.
    Missing,
    /// There is one, but not of this trace or not for this program; the reason is for the user.
    Stale(String),
    /// There is one that another program made, which holds what this one cannot make again.
    Foreign,
}

/// Whether another program made an extract, so that it is not to be overwritten.
pub(crate) fn is_foreign(extract: &Path) -> bool {
    matches!(Trace::open(extract), Err(ArchiveError::NotAnExtract { .. }))
}

/// Compares an extract with its trace: it must hold the trace's time or be newer, hold its size, have
/// the current layout, and be readable. An extract for ETWAnalyzer has the time of the session, which
/// is before that of the trace.
pub(crate) fn freshness(trace: &Path, extract: &Path) -> Freshness {
    let (Ok(source), Ok(target)) = (fs::metadata(trace), fs::metadata(extract)) else {
        return Freshness::Missing;
    };
    let is_older = match (source.modified(), target.modified()) {
        (Ok(source), Ok(target)) => source > target,
        _ => false,
    };
    let older = || Freshness::Stale("is older than the trace".into());
    let source_time = source.modified().ok().and_then(filetime);
    match recorded(extract) {
        Err(ArchiveError::NotAnExtract { .. }) => Freshness::Foreign,
        Err(_) if is_older => older(),
        Err(error) => Freshness::Stale(format!("cannot be used ({error})")),
        Ok((trace, _, _))
            if is_older && (source_time.is_none() || told_time(&trace) != source_time) =>
        {
            older()
        }
        Ok((_, version, _)) if version != SCHEMA_VERSION => {
            Freshness::Stale("was made by an older version".into())
        }
        Ok((_, _, size)) if size != source.len() => {
            Freshness::Stale("is of a trace of another size".into())
        }
        Ok((opened, _, _)) => Freshness::UpToDate(Box::new(opened)),
    }
}

/// When the trace of an extract was changed last, as the extract says.
fn told_time(trace: &Trace) -> Option<i64> {
    trace.values(TraceInfos::source_modified_filetime).ok()?.get(0)
}

/// An extract with what it says about its layout version and the size of its source.
pub(super) fn recorded(extract: &Path) -> Result<(Trace, u32, u64), ArchiveError> {
    let trace = Trace::open(extract)?;
    let version = trace.values(TraceInfos::schema_version)?.get(0).unwrap_or_default();
    let size = trace.values(TraceInfos::source_size)?.get(0).unwrap_or_default();
    Ok((trace, version, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extract_lies_in_a_folder_beside_the_trace() {
        for (trace, expected) in [
            ("a.etl", "Extract/a.json7z"),
            ("/t/a.b.etl", "/t/Extract/a.b.json7z"),
            ("t/a.etl.zip", "t/Extract/a.json7z"),
            ("t/a.7z", "t/Extract/a.json7z"),
            ("t/a.v2.7z", "t/Extract/a.v2.json7z"),
            ("t/a.etl.etl", "t/Extract/a.etl.json7z"),
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
    fn a_damaged_extract_is_stale_and_a_missing_one_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (trace, extract) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
        fs::write(&trace, "trace").expect("a file");
        assert!(matches!(freshness(&trace, &extract), Freshness::Missing));
        fs::write(&extract, "no archive").expect("a file");
        assert!(matches!(freshness(&trace, &extract), Freshness::Stale(_)));
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
