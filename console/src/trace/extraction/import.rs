//! Extracts of ETWAnalyzer: converted once, into the cache, and then opened like any other.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use handlescope_extract::{ImportLimits, import, import_sources};
use handlescope_model::{SCHEMA_VERSION, Trace, Untrusted};
use tempfile::TempDir;

use super::{Kept, kept, line, paths, report, stable_hash::name_of};
use crate::{
    cancel::Cancel,
    paths::stem,
    terminal::{Messages, Progress},
    trace::LoadError,
};

/// What an extract looks like from outside: the size of each of its files, when it was changed, and how
/// it starts.
///
/// ETWAnalyzer gives its files the time of the session, so that a newer file may have an older time:
/// it has to be the very same. Extracts of one trace all have the same time; but an archive starts with
/// a checksum of its table of contents, in which are those of its members.
struct State(Vec<(PathBuf, u64, Option<SystemTime>, Vec<u8>)>);

/// Bytes of the start of a 7z archive.
const START_BYTES: u64 = 32;

impl State {
    fn of(extract: &Path) -> State {
        let state = |file: PathBuf| {
            let metadata = fs::metadata(&file).ok();
            let size = metadata.as_ref().map_or(0, fs::Metadata::len);
            let mut start = Vec::new();
            // What cannot be read is reported when it is imported.
            let _ = File::open(&file).map(|file| file.take(START_BYTES).read_to_end(&mut start));
            (file, size, metadata.and_then(|metadata| metadata.modified().ok()), start)
        };
        State(import_sources(extract).into_iter().map(state).collect())
    }

    /// A name for the state, for the file that is converted from it.
    fn name(&self) -> String {
        let State(files) = self;
        let parts = files.iter().flat_map(|(file, size, modified, start)| {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let modified =
                modified.map_or_else(Vec::new, |time| time.as_nanos().to_le_bytes().into());
            [name.into_bytes(), size.to_le_bytes().into(), modified, start.clone()]
        });
        let parts: Vec<Vec<u8>> = parts.collect();
        name_of(parts.iter().map(Vec::as_slice))
    }
}

/// Opens what an extract of ETWAnalyzer was converted to, after converting it if that was not done
/// or the extract has changed since. The extract itself stays as it is.
///
/// No part of it may be larger than `max_size`, if that is given.
pub(crate) fn imported(
    extract: &Path,
    max_size: Option<u64>,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<(Trace, Option<TempDir>), LoadError> {
    let name = stem(extract).to_string_lossy().into_owned();
    let folder = paths::converted(extract);
    let output = folder.join(file_name(&name, &State::of(extract).name()));
    if let Ok((trace, SCHEMA_VERSION, _)) = paths::recorded(&output) {
        return Ok((trace, None));
    }
    let Kept { path: output, folder: temporary } = kept(output, messages)?;
    let summary = {
        let progress = Progress::new(extract, messages.is_watched());
        import(extract, &output, limits(max_size), &progress, cancel)?
    };
    remove_older(&folder, &name, &output);
    report::warn(extract, &summary, messages);
    let (extract, line) = (Untrusted(extract), line(&output, &summary));
    messages.note(format_args!("{extract} is ETWAnalyzer's and was converted: {line}"));
    Ok((Trace::open(&output)?, temporary))
}

fn limits(max_size: Option<u64>) -> ImportLimits {
    let usual = ImportLimits::default();
    let Some(member_bytes) = max_size else { return usual };
    ImportLimits {
        container: usual.container.trusted_with(member_bytes),
        record_bytes: usual.record_bytes.max(member_bytes),
        ..usual
    }
}

/// What an extract of this name is converted to when it is in a state.
fn file_name(name: &str, state: &str) -> String {
    format!("{name}.{state}.json7z")
}

/// Removes what an extract was converted to before it changed.
fn remove_older(folder: &Path, name: &str, newest: &Path) {
    let shape = file_name(name, "0123456789abcdef");
    let is_older = |path: &Path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let state = file.strip_prefix(name).and_then(|rest| rest.strip_suffix(".json7z"));
        path != newest && file.len() == shape.len() && state.is_some_and(|s| s.starts_with('.'))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_older(&entry.path()) {
            // Another program may have it open; it is only a cache.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_older_conversions_of_the_same_extract_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let (old, new) =
            (path(&file_name("a", "0123456789abcde1")), path(&file_name("a", "0123456789abcde2")));
        let other = path(&file_name("a.b", "0123456789abcde1"));
        for file in [&old, &new, &other] {
            fs::write(file, "").expect("a file");
        }
        remove_older(folder.path(), "a", &new);
        assert_eq!([old, new, other].map(|path| path.exists()), [false, true, true]);
    }

    #[test]
    fn a_change_of_size_or_time_is_another_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let extract = folder.path().join("a.json7z");
        fs::write(&extract, "a").expect("a file");
        let before = State::of(&extract).name();
        assert_eq!(State::of(&extract).name(), before);
        fs::write(&extract, "ab").expect("a file");
        assert_ne!(State::of(&extract).name(), before);
    }

    #[test]
    fn content_of_the_same_size_and_time_is_another_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let extract = folder.path().join("a.json7z");
        let mut states = ["ab", "ac"].map(|content| {
            fs::write(&extract, content).expect("a file");
            let file = File::options().write(true).open(&extract).expect("a file");
            file.set_modified(SystemTime::UNIX_EPOCH).expect("a time");
            State::of(&extract).name()
        });
        states.sort_unstable();
        assert_ne!(states[0], states[1]);
    }
}
