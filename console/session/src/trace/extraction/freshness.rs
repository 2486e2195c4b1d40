//! Whether an extract belongs to the trace beside it.

use std::path::{Path, PathBuf};

use handlescope_extract::SourceIdentity;
use handlescope_model::tables::TraceInfos;
use handlescope_model::{ARCHIVE_EXTENSIONS, ArchiveError, Reason, Table, Trace};

use crate::paths::{EXTRACT_FOLDER, stem};

/// Whether an extract can be used in place of its trace.
pub enum Freshness {
    /// It can.
    UpToDate(Box<Trace>),
    /// The extract or the trace does not exist.
    Missing,
    /// The extract is of another trace or not for this program; the reason is shown to the user.
    Stale(String),
    /// Another program's extract, which may hold what this one cannot recreate.
    Foreign,
}

/// Whether another program made an extract, so that it must not be overwritten.
pub fn is_foreign(extract: &Path) -> bool {
    matches!(Trace::open(extract), Err(ArchiveError::NotAnExtract { .. }))
}

/// Compares an extract with its trace. It must have the current layout, be readable, and have been made from a file
/// with the trace's size, time and content. The extract's own time means nothing: a trace may be replaced by an older
/// one, and an extract by ETWAnalyzer has the time of the session.
pub fn freshness(trace: &Path, extract: &Path) -> Freshness {
    if !trace.exists() || !extract.exists() {
        return Freshness::Missing;
    }
    let recorded =
        Trace::open(extract).and_then(|opened| Ok((RecordedIdentity::new(&opened)?, opened)));
    let (recorded, opened) = match recorded {
        Err(ArchiveError::NotAnExtract { .. }) => return Freshness::Foreign,
        Err(ArchiveError::Layout { version, supported, .. }) => {
            let age = if version < supported { "an older" } else { "a newer" };
            return Freshness::Stale(format!("was made by {age} version"));
        }
        Err(error) => return Freshness::Stale(format!("cannot be used ({error})")),
        Ok(recorded) => recorded,
    };
    let reason = match SourceIdentity::new(trace) {
        Ok(now) => recorded.difference(trace, &now),
        Err(error) => Some(format!("cannot be compared with its trace ({})", Reason(&error))),
    };
    let Some(reason) = reason else { return Freshness::UpToDate(Box::new(opened)) };
    Freshness::Stale(match opened.height(Table::Symbols) {
        Ok(names @ 1..) => format!("{reason}; the {names} names of functions in it are discarded"),
        _ => reason,
    })
}

/// Finds the trace beside an extract that was named itself, and how the two differ. `None` if there is no trace, or the
/// extract was made from it.
pub fn differing_trace(extract: &Path, opened: &Trace) -> Option<(PathBuf, String)> {
    let recorded = RecordedIdentity::new(opened).ok()?;
    let folder = extract.parent().unwrap_or(Path::new(""));
    let is_in_extracts =
        folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case(EXTRACT_FOLDER));
    let above = folder.parent().filter(|_| is_in_extracts);
    let name = stem(extract);
    let mut first = None;
    for folder in [Some(folder), above].into_iter().flatten() {
        // The extract of a text keeps the text's extension in its name.
        let text = (name == *recorded.name).then_some("");
        let packed = ["", ".etl"].into_iter().flat_map(|inner| {
            ARCHIVE_EXTENSIONS.iter().map(move |archive| format!("{inner}.{archive}"))
        });
        let ends = text.into_iter().chain([".etl"]).map(str::to_owned).chain(packed);
        for end in ends {
            let mut file = name.clone();
            file.push(end);
            let trace = folder.join(file);
            let Some(now) = SourceIdentity::new(&trace).ok() else { continue };
            let difference = recorded.difference(&trace, &now)?;
            first = first.or(Some((trace, difference)));
        }
    }
    first
}

/// Identity of the file an extract was made from, as recorded in it.
struct RecordedIdentity {
    size: u64,
    modified_ns: Option<i64>,
    /// `None` in an extract by ETWAnalyzer.
    content: Option<String>,
    path: String,
    name: String,
}

impl RecordedIdentity {
    fn new(trace: &Trace) -> Result<Self, ArchiveError> {
        let text = trace.values(TraceInfos::source_content)?.get(0).map(str::to_owned);
        let paths = trace.values(TraceInfos::source_path)?;
        let names = trace.values(TraceInfos::source_name)?;
        Ok(Self {
            size: trace.values(TraceInfos::source_size)?.get(0).unwrap_or_default(),
            modified_ns: trace.values(TraceInfos::source_modified_ns)?.get(0),
            content: text,
            path: paths.text(0).to_owned(),
            name: names.text(0).to_owned(),
        })
    }

    /// Returns why the trace is not, or may not be, the file the extract was made from.
    fn difference(&self, trace: &Path, now: &SourceIdentity) -> Option<String> {
        let difference = if self.size != now.size {
            "belongs to a trace of another size"
        } else if self.content.is_none() {
            "does not identify its trace"
        } else if self.modified_ns < now.modified_ns {
            "is older than the trace"
        } else if self.modified_ns != now.modified_ns {
            "belongs to a trace of another time"
        } else if self.content.as_ref() != Some(&now.content) {
            "belongs to a trace with other content"
        } else if self.is_of_another_member(trace) {
            "belongs to an archive with another name"
        } else {
            return None;
        };
        Some(difference.to_owned())
    }

    /// Whether the trace may be another member of the same archive; the archive's name decides which member is used.
    fn is_of_another_member(&self, trace: &Path) -> bool {
        let archive = last_name(&self.path);
        archive != self.name && archive != last_name(&trace.to_string_lossy())
    }
}

/// Returns the last component of a path written on any system, because extracts travel.
fn last_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
    fn every_part_of_the_identity_counts() {
        let now = SourceIdentity { size: 7, modified_ns: Some(100), content: "ab".to_owned() };
        let recorded = |archive: &str| RecordedIdentity {
            size: 7,
            modified_ns: Some(100),
            content: Some("ab".to_owned()),
            path: format!("old/{archive}"),
            name: "a.etl".to_owned(),
        };
        let same = || recorded("a.etl");
        let trace = Path::new("new/a.etl");
        let difference = |recorded: &RecordedIdentity| recorded.difference(trace, &now);
        assert_eq!(difference(&same()), None);
        for archive in ["a.zip", r"C:\traces\a.zip"] {
            assert_eq!(recorded(archive).difference(Path::new("new/a.zip"), &now), None);
        }
        assert_eq!(difference(&recorded(r"C:\traces\a.etl")), None);
        for (recorded, reason) in [
            (RecordedIdentity { size: 8, ..same() }, "another size"),
            (RecordedIdentity { modified_ns: Some(99), ..same() }, "older than the trace"),
            (RecordedIdentity { modified_ns: None, ..same() }, "older than the trace"),
            (RecordedIdentity { modified_ns: Some(101), ..same() }, "another time"),
            (RecordedIdentity { content: Some("ac".to_owned()), ..same() }, "other content"),
            (RecordedIdentity { content: None, ..same() }, "does not identify its trace"),
            (recorded("b.zip"), "an archive with another name"),
        ] {
            assert!(difference(&recorded).is_some_and(|d| d.contains(reason)), "{reason}");
        }
    }
}
