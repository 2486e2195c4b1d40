//! Imports extracts of ETWAnalyzer: converts them once, into the cache, and then opens them like any other.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_extract::{ExtractError, SourceIdentity};
use handlescope_model::stable_hash::name_of;
use handlescope_model::{Trace, Untrusted};
use handlescope_sources::{ImportLimits, import, import_sources};

use super::{ExtractLocation, OpenedExtract, for_session, kept, line, paths};
use crate::cancel::Cancel;
use crate::paths::{Access, shortened, stem};
use crate::terminal::Messages;
use crate::trace::LoadError;

/// The files of an extract, with the identity of each.
///
/// ETWAnalyzer gives its files the time of the session, so a newer file may have an older time. Therefore the identity
/// must match exactly. Extracts of one trace all have the same time. But an archive starts with a checksum of its table
/// of contents, which holds the checksums of the members.
#[derive(PartialEq, Eq)]
struct ExtractState(Vec<(PathBuf, Option<SourceIdentity>)>);

impl ExtractState {
    fn new(extract: &Path) -> ExtractState {
        let files = import_sources(extract).into_iter().map(|file| {
            // The import reports a file that cannot be read.
            let identity = SourceIdentity::new(&file).ok();
            (file, identity)
        });
        ExtractState(files.collect())
    }

    /// Returns a name for the state, used for the converted file.
    fn name(&self) -> String {
        let ExtractState(files) = self;
        let fields: Vec<Vec<u8>> = files
            .iter()
            .flat_map(|(file, identity)| {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let (modified, content) =
                    identity.as_ref().map_or_else(Default::default, |identity| {
                        let modified = identity.modified_ns.map(i64::to_le_bytes);
                        (modified.map_or_else(Vec::new, Vec::from), identity.content.clone())
                    });
                // The content includes the size.
                [name.into_bytes(), modified, content.into_bytes()]
            })
            .collect();
        name_of(fields.iter().map(Vec::as_slice))
    }
}

/// Opens the converted copy of an ETWAnalyzer extract; converts it if the copy is missing, stale or damaged. The
/// extract itself stays as it is.
///
/// If `max_size` is given, no part of it may be larger.
pub fn imported(
    extract: &Path,
    max_size: Option<u64>,
    access: &Access,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<OpenedExtract, LoadError> {
    for file in import_sources(extract) {
        access.check(&file)?;
    }
    let name = shortened(stem(extract)).to_string_lossy().into_owned();
    let folder = paths::converted(extract);
    let before = ExtractState::new(extract);
    let output = folder.join(file_name(&name, &before.name()));
    if let Ok(trace) = Trace::open(&output)
        && trace.verify().is_ok()
    {
        return Ok(OpenedExtract::found(trace));
    }
    let ExtractLocation { path: output, folder: temporary, made: _made } =
        if access.read_only { for_session(&output)? } else { kept(output, messages)? };
    let summary = {
        let progress = messages.progress(extract);
        import(extract, &output, limits(max_size), &progress, cancel)?
    };
    if ExtractState::new(extract) != before {
        // The extract changed while it was converted.
        let _ = fs::remove_file(&output);
        return Err(ExtractError::Changed { path: extract.to_path_buf() }.into());
    }
    remove_older(&folder, &name, &output);
    let (extract, line) = (Untrusted(extract), line(&output, &summary));
    let line = format!("{extract} is ETWAnalyzer's and was converted: {line}");
    Ok(OpenedExtract { trace: Trace::open(&output)?, line: Some(line), temporary })
}

fn limits(max_size: Option<u64>) -> ImportLimits {
    let defaults = ImportLimits::default();
    let Some(member_bytes) = max_size else { return defaults };
    ImportLimits {
        container: defaults.container.trusted_with(member_bytes),
        record_bytes: defaults.record_bytes.max(member_bytes),
        ..defaults
    }
}

/// Returns the file name of the converted copy, for an extract with this name in this state.
fn file_name(name: &str, state: &str) -> String {
    format!("{name}.{state}.json7z")
}

/// Removes copies converted from earlier states of an extract.
fn remove_older(folder: &Path, name: &str, newest: &Path) {
    let shape = file_name(name, "0123456789abcdef");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let state = file.strip_prefix(name).and_then(|rest| rest.strip_suffix(".json7z"));
        let is_named = file.len() == shape.len() && state.is_some_and(|s| s.starts_with('.'));
        if is_named && path != newest {
            // Another program may have it open; it is only a cache.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_older_conversions_of_the_same_extract_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let (old, new) =
            (path(&file_name("a", "0123456789abcde1")), path(&file_name("a", "0123456789abcde2")));
        let unrelated = path(&file_name("a.b", "0123456789abcde1"));
        for file in [&old, &new, &unrelated] {
            fs::write(file, "").expect("a file");
        }
        remove_older(folder.path(), "a", &new);
        assert_eq!([old, new, unrelated].map(|path| path.exists()), [false, true, true]);
    }

    #[test]
    fn a_change_of_size_or_time_is_another_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let extract = folder.path().join("a.json7z");
        fs::write(&extract, "a").expect("a file");
        let before = ExtractState::new(&extract).name();
        assert_eq!(ExtractState::new(&extract).name(), before);
        fs::write(&extract, "ab").expect("a file");
        assert_ne!(ExtractState::new(&extract).name(), before);
    }

    #[test]
    fn content_of_the_same_size_and_time_is_another_state_also_far_from_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let extract = folder.path().join("a.json7z");
        let mut states = ["b", "c"].map(|end| " ".repeat(50_000) + end).map(|content| {
            fs::write(&extract, content).expect("a file");
            let file = File::options().write(true).open(&extract).expect("a file");
            file.set_modified(SystemTime::UNIX_EPOCH).expect("a time");
            ExtractState::new(&extract).name()
        });
        states.sort_unstable();
        assert_ne!(states[0], states[1]);
    }

    #[test]
    fn the_name_of_a_state_stays_the_same_in_every_build() {
        let content = "7 bytes".to_owned();
        let identity = SourceIdentity { size: 7, modified_ns: Some(5), content };
        let state = ExtractState(vec![(PathBuf::from("/x/a.7z"), Some(identity))]);
        assert_eq!(file_name("a", &state.name()), "a.ada2b85c7eb8bb18.json7z");
    }
}
