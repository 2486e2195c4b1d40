//! Symbols saved with a trace: in folders beside it, and in the archive that contains it. Members of the archive are
//! unpacked on request.
//!
//! WPR writes PDBs of native images to `X.etl.NGENPDB`, Visual Studio to `X.etl.NGENPDBS` (learn, "CLR 4.0 NGEN PDB
//! support"). ETWAnalyzer reads `X.etl.EmbeddedPdbs`. PerfView packs `symbols` and `X.etl.ngenpdbs` into the `.zip` and
//! looks for `symbols` beside a trace; others pack `PDBCache`. All of these have the layout of a symbol server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use handlescope_model::output::temporary_folder;
use handlescope_model::{ARCHIVE_EXTENSIONS, AnyArchive, ContainerError, ContainerLimits};
use rustc_hash::FxHashMap;
use tempfile::TempDir;

use super::identity::StoreKey;
use super::report::SymbolFileError;

/// Finds the folders of symbols saved with a trace, and the trace itself if it is an archive. They should be searched
/// first, in this order. Links to folders are ignored.
///
/// `trace` is the trace or an extract of it. For an extract in a folder `Extract`, the folder above is searched, too.
pub fn symbols_beside(trace: &Path) -> Vec<PathBuf> {
    let name = trace.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    let (Some(name), Some(folder)) = (name, trace.parent()) else { return Vec::new() };
    let packed = name.rsplit_once('.').filter(|(_, end)| ARCHIVE_EXTENSIONS.contains(end));
    let name = packed.map_or(&*name, |(name, _)| name);
    let stem = [".json7z", ".etl"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let specific = ENDS.iter().flat_map(|end| [format!("{stem}.etl{end}"), format!("{stem}{end}")]);
    let names: Vec<String> = specific.chain(FOR_ALL.map(str::to_owned)).collect();
    let is_extract = folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case("extract"));
    let above = folder.parent().filter(|_| is_extract);
    let mut folders = Vec::new();
    for folder in [Some(folder), above].into_iter().flatten() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        folders.extend(folders_named(folder, &names));
    }
    if is_archive(trace) && trace.is_file() {
        folders.push(trace.to_owned());
    }
    folders
}

/// Returns the subfolders with one of these names, in the order of the names.
fn folders_named(folder: &Path, names: &[String]) -> Vec<PathBuf> {
    let mut folders: Vec<(usize, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let index = names.iter().position(|known| *known == name);
        // This is the type of the entry itself, so links are not followed.
        if let Some(index) = index
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            folders.push((index, entry.path()));
        }
    }
    folders.sort();
    folders.into_iter().map(|(_, path)| path).collect()
}

/// Suffixes that follow the trace's name in the names of symbol folders, in the order in which PerfView searches them.
pub const ENDS: [&str; 3] = [".ngenpdbs", ".ngenpdb", ".embeddedpdbs"];
/// Folders, beside traces or in an archive, with symbols for all traces. PerfView searches its own, `symbols`, last.
const FOR_ALL: [&str; 2] = ["symbols", "pdbcache"];

/// Symbols in archives.
#[derive(Default)]
pub struct PackedSymbols {
    /// Names of the members that may be symbols, by archive.
    names: FxHashMap<PathBuf, Vec<String>>,
    /// Folder for unpacked files, kept until the end of the session.
    scratch: Option<TempDir>,
    /// Bytes unpacked so far, by archive.
    unpacked: FxHashMap<PathBuf, u64>,
}

impl PackedSymbols {
    /// Returns the members that may be the file of a key; their identity is not checked.
    pub fn find(&mut self, archive: &Path, key: &StoreKey) -> Vec<String> {
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

    pub fn unpack(
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
        let opened = opened(archive, &limits)
            .and_then(|opened| opened.member(member, &limits))
            .map_err(failed)?;
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
        opened.unpack(&target, &|_| Ok(())).map_err(failed)?;
        Ok(path)
    }
}

/// Whether a trace is in an archive that is searched for symbols.
pub fn is_archive(trace: &Path) -> bool {
    let extension = trace.extension().unwrap_or_default();
    ARCHIVE_EXTENSIONS.iter().any(|archive| extension.eq_ignore_ascii_case(archive))
}

fn member_names(archive: &Path) -> Result<Vec<String>, ContainerError> {
    // Only the table of contents is unpacked.
    opened(archive, &ContainerLimits::for_members_of(u64::MAX)).map(|opened| opened.names())
}

fn opened<'a>(path: &'a Path, limits: &ContainerLimits) -> Result<AnyArchive<'a>, ContainerError> {
    AnyArchive::open(path, limits)?.ok_or_else(|| ContainerError::Unreadable {
        path: path.to_path_buf(),
        reason: "it is not an archive".to_owned(),
    })
}

/// Whether a member of an archive is in a symbol folder.
fn is_symbol(name: &str) -> bool {
    let folders = name.rsplit(['/', '\\']).skip(1).map(str::to_ascii_lowercase);
    folders
        .into_iter()
        .any(|folder| FOR_ALL.contains(&&*folder) || ENDS.iter().any(|end| folder.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use sevenz_rust::{ArchiveEntry, ArchiveWriter};
    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;
    use crate::SearchOutcome;
    use crate::fixture::{TestPdb, cabinet, names_from};

    fn folder_with(names: &[&str]) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in names {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        folder
    }

    fn beside(folder: &TempDir, trace: &str) -> Vec<String> {
        let folders = symbols_beside(&folder.path().join(trace));
        folders
            .iter()
            .map(|path| {
                let path = path.strip_prefix(folder.path()).expect("in the folder");
                path.to_string_lossy().replace('\\', "/")
            })
            .collect()
    }

    #[test]
    fn folders_that_belong_to_the_trace_are_in_perfviews_order() {
        let names =
            ["A.ngenpdb", "a.etl.EmbeddedPdbs", "a.etl.NGENPDB", "a.ETL.ngenpdbs", "b.etl.NGENPDB"];
        let folder = folder_with(&names);
        let expected = ["a.ETL.ngenpdbs", "a.etl.NGENPDB", "A.ngenpdb", "a.etl.EmbeddedPdbs"];
        for trace in [
            "a.etl",
            "A.etl.zip",
            "a.zip",
            "a.cab",
            "a.diagsession",
            "a.json7z",
            "Extract/a.json7z",
        ] {
            assert_eq!(beside(&folder, trace), expected, "{trace}");
        }
        assert_eq!(beside(&folder, "b.etl"), ["b.etl.NGENPDB"]);
        assert!(beside(&folder, "c.etl").is_empty());
    }

    #[test]
    fn a_folder_for_all_traces_comes_behind_the_folders_of_the_trace() {
        let folder = folder_with(&["Symbols", "PDBCache", "a.etl.NGENPDB", "Extract/symbols"]);
        assert_eq!(beside(&folder, "a.etl"), ["a.etl.NGENPDB", "Symbols", "PDBCache"]);
        assert_eq!(beside(&folder, "b.etl"), ["Symbols", "PDBCache"]);
        let expected = ["Extract/symbols", "a.etl.NGENPDB", "Symbols", "PDBCache"];
        assert_eq!(beside(&folder, "Extract/a.json7z"), expected);
    }

    #[test]
    fn the_archive_of_a_trace_is_searched_too() {
        let folder = folder_with(&[]);
        for name in ["a.etl.zip", "a.7z"] {
            fs::write(folder.path().join(name), b"").expect("a file");
            assert_eq!(beside(&folder, name), [name]);
        }
        fs::write(folder.path().join("a.json7z"), b"").expect("a file");
        assert!(beside(&folder, "a.json7z").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_beside_a_trace_is_not_followed() {
        let folder = folder_with(&["elsewhere"]);
        let link = folder.path().join("a.etl.NGENPDB");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), link).expect("a link");
        assert!(beside(&folder, "a.etl").is_empty());
    }

    #[test]
    fn symbols_beside_a_trace_need_no_symbol_path() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = folder_with(&["a.etl.NGENPDB"]);
        let file = folder.path().join("a.etl.NGENPDB").join(pdb.store_path("a.pdb"));
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(&file, pdb.bytes()).expect("a file");
        let folders = symbols_beside(&folder.path().join("a.etl"));
        let (chain, outcome) = names_from(folders, &pdb, 1 << 30);
        assert_eq!(chain.first().map(|frame| &*frame.function), Some("Work"));
        assert_eq!(outcome, SearchOutcome::Resolved { file, was_converted: false });
        assert_eq!(names_from(Vec::new(), &pdb, 1 << 30).1, SearchOutcome::NoSymbolPath);
    }

    fn zip_with(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
        let path = folder.path().join("a.etl.zip");
        let mut zip = ZipWriter::new(File::create(&path).expect("a file"));
        zip.start_file(name, SimpleFileOptions::default()).expect("a member");
        zip.write_all(content).expect("content");
        zip.finish().expect("an archive");
        path
    }

    /// Writes the trace and a member in one solid block, as 7-Zip packs files.
    fn seven_zip_with(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
        let path = folder.path().join("a.etl.7z");
        let mut archive = ArchiveWriter::create(&path).expect("an archive");
        let entries = ["a.etl", name].map(ArchiveEntry::new_file).to_vec();
        let sources = vec![(&b"the trace"[..]).into(), content.into()];
        archive.push_archive_entries(entries, sources).expect("members");
        archive.finish().expect("an archive");
        path
    }

    fn cabinet_with(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
        let path = folder.path().join("a.cab");
        fs::write(&path, cabinet(name, content)).expect("an archive");
        path
    }

    #[test]
    fn symbols_in_the_archive_of_a_trace_are_unpacked_when_they_are_needed() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = tempfile::tempdir().expect("a folder");
        let store = pdb.store_path("a.pdb");
        for parent in ["symbols", "Symbols", "PDBCache", "a.etl.ngenpdbs", "deep/symbols"] {
            for archive in [zip_with, seven_zip_with, cabinet_with] {
                let path = archive(&folder, &format!("{parent}/{store}"), &pdb.bytes());
                let (chain, outcome) = names_from(vec![path.clone()], &pdb, 1 << 30);
                assert_eq!(chain.first().map(|frame| &*frame.function), Some("Work"), "{path:?}");
                let file = path.join(format!("{parent}/{store}"));
                assert_eq!(outcome, SearchOutcome::Resolved { file, was_converted: false });
            }
        }
        for archive in [zip_with, seven_zip_with, cabinet_with] {
            let path = archive(&folder, &format!("elsewhere/{store}"), &pdb.bytes());
            assert_eq!(names_from(vec![path], &pdb, 1 << 30).1, SearchOutcome::NotFound);
        }
    }

    #[test]
    fn a_file_too_large_or_no_pdb_in_an_archive_is_refused() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("symbols/{}", pdb.store_path("a.pdb"));
        for archive in [zip_with, seven_zip_with, cabinet_with] {
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
        for archive in [zip_with, seven_zip_with, cabinet_with] {
            let path = archive(&folder, &name, &pdb.bytes());
            let bytes = fs::read(&path).expect("bytes");
            for end in (0..bytes.len()).step_by(bytes.len() / 9) {
                fs::write(&path, &bytes[..end]).expect("a cut archive");
                assert!(names_from(vec![path.clone()], &pdb, 1 << 30).0.is_empty(), "{end}");
            }
        }
    }
}
