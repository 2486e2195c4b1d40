//! Symbols in the archive that a trace lies in, unpacked one by one when they are asked for.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use handlescope_model::output::temporary_folder;
use handlescope_model::{Container, ContainerError, ContainerLimits};
use rustc_hash::FxHashMap;
use tempfile::TempDir;

use crate::members::{SevenZipMembers, copy};
use crate::symbols::identity::StoreKey;
use crate::symbols::report::SymbolFileError;
use crate::zip_archive::Zip;

/// What follows the name of a trace in the names of such folders, in the order PerfView searches them.
pub(in crate::symbols) const ENDS: [&str; 3] = [".ngenpdbs", ".ngenpdb", ".embeddedpdbs"];
/// PerfView's folder for the symbols of all traces beside it, and in a `.zip`. It searches it after the others.
pub(in crate::symbols) const FOR_ALL: &str = "symbols";

/// Symbols in archives.
#[derive(Default)]
pub(in crate::symbols) struct PackedSymbols {
    /// Names of the members that may be symbols, by archive.
    names: FxHashMap<PathBuf, Vec<String>>,
    /// What was unpacked, until the end of the session.
    scratch: Option<TempDir>,
    /// By archive, how much that is in bytes.
    unpacked: FxHashMap<PathBuf, u64>,
}

impl PackedSymbols {
    /// The members that may be the file of a key; their identity is not checked.
    pub(in crate::symbols) fn find(&mut self, archive: &Path, key: &StoreKey) -> Vec<String> {
        let names = self.names.entry(archive.to_owned()).or_insert_with(|| {
            let names = member_names(archive).unwrap_or_default();
            names.into_iter().filter(|name| is_symbol(name)).collect()
        });
        let is_file = |name: &&String| {
            let mut parts = name.rsplit(['/', '\\']);
            parts.next().is_some_and(|file| file.eq_ignore_ascii_case(&key.name))
                && parts.next().is_some_and(|index| index.eq_ignore_ascii_case(&key.index))
        };
        names.iter().filter(is_file).cloned().collect()
    }

    pub(in crate::symbols) fn unpack(
        &mut self,
        archive: &Path,
        member: &str,
        key: &StoreKey,
        max_bytes: u64,
    ) -> Result<PathBuf, SymbolFileError> {
        let failed = |error: ContainerError| match error {
            ContainerError::TooLarge { limit, .. } => {
                SymbolFileError::TooLarge { path: archive.join(member), limit }
            }
            error => {
                SymbolFileError::Malformed { path: archive.join(member), source: Box::new(error) }
            }
        };
        let io = |action| SymbolFileError::io(action, archive);
        let limits = ContainerLimits::for_members_of(max_bytes);
        let packed = fs::metadata(archive).map_err(io("read"))?.len();
        let opened = Member::open(archive, member, &limits).map_err(failed)?;
        let unpacked = self.unpacked.entry(archive.to_owned()).or_default();
        *unpacked = unpacked.saturating_add(opened.size());
        limits.check_content(archive, packed, *unpacked).map_err(failed)?;
        let scratch = match self.scratch.take() {
            Some(made) => made,
            None => temporary_folder().map_err(io("unpack"))?,
        };
        let folder = self.scratch.insert(scratch).path().join(&key.index);
        fs::create_dir_all(&folder).map_err(io("unpack"))?;
        let path = folder.join(&key.name);
        let target = File::create(&path).map_err(io("unpack"))?;
        opened.unpack(target).map_err(failed)?;
        Ok(path)
    }
}

/// A member that may be unpacked.
enum Member<'a> {
    Zip(Box<Zip>, &'a Path, &'a str, u64),
    SevenZip(Box<SevenZipMembers<'a>>),
}

impl<'a> Member<'a> {
    /// Opens an archive at a member, if the limits allow to unpack that.
    fn open(
        archive: &'a Path,
        member: &'a str,
        limits: &ContainerLimits,
    ) -> Result<Self, ContainerError> {
        if is_seven_zip(archive) {
            let container = Container::open(archive, limits)?;
            let place = container.archive.files.iter().position(|entry| entry.name == member);
            let wanted = place.into_iter().collect();
            let members = SevenZipMembers::choose(archive, container, wanted, limits)?;
            return Ok(Self::SevenZip(Box::new(members)));
        }
        let mut zip = opened_zip(archive)?;
        let size =
            zip.archive.by_name(member).map_err(|error| damaged(archive, member, &error))?.size();
        limits.check_size(archive, member, size)?;
        Ok(Self::Zip(Box::new(zip), archive, member, size))
    }

    /// Its size, unpacked, bytes.
    fn size(&self) -> u64 {
        match self {
            Self::Zip(.., size) => *size,
            Self::SevenZip(members) => members.entries().map(|(_, size)| size).sum(),
        }
    }

    fn unpack(self, mut target: File) -> Result<(), ContainerError> {
        match self {
            Self::SevenZip(members) => members.unpack(&[target], &|_| Ok(())),
            Self::Zip(mut zip, path, member, size) => {
                let mut content =
                    zip.archive.by_name(member).map_err(|error| damaged(path, member, &error))?;
                copy(&mut content, &mut target, size, &|_| Ok(()))
                    .map_err(|error| damaged(path, member, &error))
            }
        }
    }
}

/// Whether a trace lies in an archive in which symbols are looked for.
pub(in crate::symbols) fn is_archive(trace: &Path) -> bool {
    is_seven_zip(trace) || has_extension(trace, "zip")
}

fn is_seven_zip(path: &Path) -> bool {
    has_extension(path, "7z")
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
}

fn member_names(archive: &Path) -> Result<Vec<String>, ContainerError> {
    if is_seven_zip(archive) {
        // Nothing is unpacked but the table of contents.
        let container = Container::open(archive, &ContainerLimits::for_members_of(u64::MAX))?;
        let files = container.archive.files.into_iter().filter(|entry| !entry.is_directory);
        return Ok(files.map(|entry| entry.name).collect());
    }
    opened_zip(archive).map(|zip| zip.names)
}

fn opened_zip(path: &Path) -> Result<Zip, ContainerError> {
    let file = File::open(path)
        .map_err(|source| ContainerError::Open { path: path.to_path_buf(), source })?;
    Zip::open(path, file)
}

fn damaged(path: &Path, member: &str, error: &dyn std::error::Error) -> ContainerError {
    let (path, member) = (path.to_path_buf(), member.to_owned());
    ContainerError::Member { path, member, reason: error.to_string() }
}

/// Whether a member of an archive lies in a folder for symbols.
fn is_symbol(name: &str) -> bool {
    let folders = name.rsplit(['/', '\\']).skip(1).map(str::to_ascii_lowercase);
    let is_named =
        |folder: String| folder == FOR_ALL || ENDS.iter().any(|end| folder.ends_with(end));
    folders.into_iter().any(is_named)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use sevenz_rust::{ArchiveEntry, ArchiveWriter};
    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;
    use crate::symbols::Outcome;
    use crate::symbols::fixture::{TestPdb, names_from};

    fn zip_with(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
        let path = folder.path().join("a.etl.zip");
        let mut zip = ZipWriter::new(File::create(&path).expect("a file"));
        zip.start_file(name, SimpleFileOptions::default()).expect("a member");
        zip.write_all(content).expect("content");
        zip.finish().expect("an archive");
        path
    }

    /// The trace and a member in one solid block, as 7-Zip packs files.
    fn seven_zip_with(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
        let path = folder.path().join("a.etl.7z");
        let mut archive = ArchiveWriter::create(&path).expect("an archive");
        let entries = ["a.etl", name].map(ArchiveEntry::new_file).to_vec();
        let sources = vec![(&b"the trace"[..]).into(), content.into()];
        archive.push_archive_entries(entries, sources).expect("members");
        archive.finish().expect("an archive");
        path
    }

    #[test]
    fn symbols_in_the_archive_of_a_trace_are_unpacked_when_they_are_needed() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = tempfile::tempdir().expect("a folder");
        let store = pdb.store_path("a.pdb");
        for place in ["symbols", "Symbols", "a.etl.ngenpdbs", "deep/symbols"] {
            for archive in [zip_with, seven_zip_with] {
                let path = archive(&folder, &format!("{place}/{store}"), &pdb.bytes());
                let (chain, outcome) = names_from(vec![path.clone()], &pdb, 1 << 30);
                assert_eq!(chain.first().map(|frame| &*frame.function), Some("Work"), "{path:?}");
                let file = path.join(format!("{place}/{store}"));
                assert_eq!(outcome, Outcome::Resolved { file, was_converted: false });
            }
        }
        for archive in [zip_with, seven_zip_with] {
            let path = archive(&folder, &format!("elsewhere/{store}"), &pdb.bytes());
            assert_eq!(names_from(vec![path], &pdb, 1 << 30).1, Outcome::NotFound);
        }
    }

    #[test]
    fn what_is_too_large_or_no_pdb_in_an_archive_is_refused() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("symbols/{}", pdb.store_path("a.pdb"));
        for archive in [zip_with, seven_zip_with] {
            let path = archive(&folder, &name, &pdb.bytes());
            assert!(names_from(vec![path], &pdb, 100).0.is_empty());
            let path = archive(&folder, &name, b"no PDB");
            assert!(names_from(vec![path], &pdb, 1 << 30).0.is_empty());
        }
    }

    #[test]
    fn an_archive_that_is_damaged_has_no_symbols() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("symbols/{}", pdb.store_path("a.pdb"));
        for archive in [zip_with, seven_zip_with] {
            let path = archive(&folder, &name, &pdb.bytes());
            let bytes = fs::read(&path).expect("bytes");
            for end in (0..bytes.len()).step_by(bytes.len() / 9) {
                fs::write(&path, &bytes[..end]).expect("a cut archive");
                assert!(names_from(vec![path.clone()], &pdb, 1 << 30).0.is_empty(), "{end}");
            }
        }
    }
}
