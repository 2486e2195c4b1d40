//! Symbols that were saved with a trace: folders beside it, and members of the `.zip` it lies in.
//!
//! WPR writes PDBs of native images to `X.etl.NGENPDB`, Visual Studio to `X.etl.NGENPDBS` (learn, "CLR 4.0 NGEN
//! PDB support"), ETWAnalyzer reads `X.etl.EmbeddedPdbs`; PerfView packs `symbols` and `X.etl.ngenpdbs` into the
//! `.zip`. All are laid out as symbol servers are.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use handlescope_model::ContainerLimits;
use rustc_hash::FxHashMap;
use tempfile::TempDir;

use super::identity::StoreKey;
use super::report::SymbolFileError;
use crate::members::copy;
use crate::zip_archive::Zip;

/// What follows the name of a trace in the names of such folders, in the order PerfView searches them.
const ENDS: [&str; 3] = [".ngenpdbs", ".ngenpdb", ".embeddedpdbs"];
/// PerfView's folder in a `.zip`.
const IN_ZIP: &str = "symbols";

/// Where symbols lie that were saved with a trace: real folders, no links, and the trace itself where that is a
/// `.zip`. To be searched first, in this order.
///
/// `trace` is the trace or an extract of it; one in a folder `Extract` is searched from the folder above, too.
pub fn symbols_beside(trace: &Path) -> Vec<PathBuf> {
    let name = trace.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    let (Some(name), Some(folder)) = (name, trace.parent()) else { return Vec::new() };
    let stem = [".etl.zip", ".etl.7z", ".json7z", ".zip", ".7z", ".etl"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(&name);
    let names: Vec<String> =
        ENDS.iter().flat_map(|end| [format!("{stem}.etl{end}"), format!("{stem}{end}")]).collect();
    let is_extract = folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case("extract"));
    let above = folder.parent().filter(|_| is_extract);
    let mut found = Vec::new();
    for folder in [Some(folder), above].into_iter().flatten() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        found.extend(folders_named(folder, &names));
    }
    if name.ends_with(".zip") && trace.is_file() {
        found.push(trace.to_owned());
    }
    found
}

/// The folders in a folder that have one of some names, in the order of these.
fn folders_named(folder: &Path, names: &[String]) -> Vec<PathBuf> {
    let mut found: Vec<(usize, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let place = names.iter().position(|known| *known == name);
        // The type of the entry: a link is none.
        let is_folder = || entry.file_type().is_ok_and(|kind| kind.is_dir());
        if let Some(place) = place.filter(|_| is_folder()) {
            found.push((place, entry.path()));
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Symbols in `.zip` archives, unpacked when they are asked for.
#[derive(Default)]
pub(super) struct ZippedSymbols {
    /// Names of the members that may be symbols, by archive.
    names: FxHashMap<PathBuf, Vec<String>>,
    /// What was unpacked, until the end of the session.
    scratch: Option<TempDir>,
    /// By archive, how much that is in bytes.
    unpacked: FxHashMap<PathBuf, u64>,
}

impl ZippedSymbols {
    /// The members that may be the file of a key; their identity is not checked.
    pub(super) fn find(&mut self, zip: &Path, key: &StoreKey) -> Vec<String> {
        let names = self.names.entry(zip.to_owned()).or_insert_with(|| {
            let opened = File::open(zip).ok().and_then(|file| Zip::open(zip, file).ok());
            let names = opened.map_or_else(Vec::new, |opened| opened.names);
            names.into_iter().filter(|name| is_symbol(name)).collect()
        });
        let is_file = |name: &&String| {
            let mut parts = name.rsplit(['/', '\\']);
            parts.next().is_some_and(|file| file.eq_ignore_ascii_case(&key.name))
                && parts.next().is_some_and(|index| index.eq_ignore_ascii_case(&key.index))
        };
        names.iter().filter(is_file).cloned().collect()
    }

    /// Unpacks a member.
    pub(super) fn unpack(
        &mut self,
        zip: &Path,
        member: &str,
        key: &StoreKey,
        max_bytes: u64,
    ) -> Result<PathBuf, SymbolFileError> {
        let io = |action| SymbolFileError::io(action, zip);
        let malformed = |source: Box<dyn std::error::Error + Send + Sync>| {
            SymbolFileError::Malformed { path: zip.join(member), source }
        };
        let file = File::open(zip).map_err(io("read"))?;
        let packed = file.metadata().map_err(io("read"))?.len();
        let mut archive = Zip::open(zip, file).map_err(|error| malformed(error.into()))?.archive;
        let mut content = archive.by_name(member).map_err(|error| malformed(error.into()))?;
        let size = content.size();
        if size > max_bytes {
            return Err(SymbolFileError::TooLarge { path: zip.join(member), limit: max_bytes });
        }
        let unpacked = self.unpacked.entry(zip.to_owned()).or_default();
        *unpacked = unpacked.saturating_add(size);
        let limits = ContainerLimits::for_members_of(max_bytes);
        limits.check_content(zip, packed, *unpacked).map_err(|error| malformed(error.into()))?;
        let scratch = match self.scratch.take() {
            Some(made) => made,
            None => {
                tempfile::Builder::new().prefix("handlescope-").tempdir().map_err(io("unpack"))?
            }
        };
        let folder = self.scratch.insert(scratch).path().join(&key.index);
        fs::create_dir_all(&folder).map_err(io("unpack"))?;
        let path = folder.join(&key.name);
        let mut target = File::create(&path).map_err(io("unpack"))?;
        copy(&mut content, &mut target, size, &|_| Ok(()))
            .map_err(|error| malformed(error.into()))?;
        Ok(path)
    }
}

/// Whether a member of a `.zip` lies in a folder for symbols.
fn is_symbol(name: &str) -> bool {
    let folders = name.rsplit(['/', '\\']).skip(1).map(str::to_ascii_lowercase);
    let is_named =
        |folder: String| folder == IN_ZIP || ENDS.iter().any(|end| folder.ends_with(end));
    folders.into_iter().any(is_named)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::super::fixture::TestPdb;
    use super::super::{FrameChain, Outcome, SymbolPath, Symbolizer, SymbolizerOptions};
    use super::*;

    fn folder_with(names: &[&str]) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in names {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        folder
    }

    fn beside(folder: &TempDir, trace: &str) -> Vec<String> {
        let found = symbols_beside(&folder.path().join(trace));
        let relative = |path: &PathBuf| {
            let path = path.strip_prefix(folder.path()).expect("in the folder");
            path.to_string_lossy().replace('\\', "/")
        };
        found.iter().map(relative).collect()
    }

    #[test]
    fn folders_that_belong_to_the_trace_are_found_in_perfviews_order() {
        let names =
            ["A.ngenpdb", "a.etl.EmbeddedPdbs", "a.etl.NGENPDB", "a.ETL.ngenpdbs", "b.etl.NGENPDB"];
        let folder = folder_with(&names);
        let all = ["a.ETL.ngenpdbs", "a.etl.NGENPDB", "A.ngenpdb", "a.etl.EmbeddedPdbs"];
        for trace in ["a.etl", "A.etl.zip", "a.zip", "a.json7z", "Extract/a.json7z"] {
            assert_eq!(beside(&folder, trace), all, "{trace}");
        }
        assert_eq!(beside(&folder, "b.etl"), ["b.etl.NGENPDB"]);
        assert!(beside(&folder, "c.etl").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_beside_a_trace_is_not_followed() {
        let folder = folder_with(&["elsewhere"]);
        let link = folder.path().join("a.etl.NGENPDB");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), link).expect("a link");
        assert!(beside(&folder, "a.etl").is_empty());
    }

    /// Names from these places, and where the symbols were.
    fn names_from(places: Vec<PathBuf>, pdb: &TestPdb, max_bytes: u64) -> (FrameChain, Outcome) {
        let cache = tempfile::tempdir().expect("a folder");
        let options = SymbolizerOptions {
            symcache_folder: Some(cache.path().to_owned()),
            beside: places,
            max_file_bytes: max_bytes,
            ..SymbolizerOptions::default()
        };
        let symbolizer = Symbolizer::new(SymbolPath::default(), options);
        let chain = symbolizer.resolve(&pdb.module("a.pdb"), &[0x1000]).remove(0);
        (chain, symbolizer.report().remove(0).outcome)
    }

    fn zip_with(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
        let path = folder.path().join("a.etl.zip");
        let mut zip = ZipWriter::new(File::create(&path).expect("a file"));
        zip.start_file(name, SimpleFileOptions::default()).expect("a member");
        zip.write_all(content).expect("content");
        zip.finish().expect("an archive");
        path
    }

    #[test]
    fn symbols_beside_a_trace_need_no_symbol_path() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = folder_with(&["a.etl.NGENPDB"]);
        let file = folder.path().join("a.etl.NGENPDB").join(pdb.store_path("a.pdb"));
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(&file, pdb.bytes()).expect("a file");
        let places = symbols_beside(&folder.path().join("a.etl"));
        let (chain, outcome) = names_from(places, &pdb, 1 << 30);
        assert_eq!(chain.first().map(|frame| &*frame.function), Some("Work"));
        assert_eq!(outcome, Outcome::Resolved { file, was_converted: false });
        assert_eq!(names_from(Vec::new(), &pdb, 1 << 30).1, Outcome::NoSymbolPath);
    }

    #[test]
    fn symbols_in_the_zip_of_a_trace_are_unpacked_when_they_are_needed() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = folder_with(&[]);
        let store = pdb.store_path("a.pdb");
        for place in ["symbols", "Symbols", "a.etl.ngenpdbs", "deep/symbols"] {
            let zip = zip_with(&folder, &format!("{place}/{store}"), &pdb.bytes());
            let (chain, outcome) = names_from(symbols_beside(&zip), &pdb, 1 << 30);
            assert_eq!(chain.first().map(|frame| &*frame.function), Some("Work"), "{place}");
            let file = zip.join(format!("{place}/{store}"));
            assert_eq!(outcome, Outcome::Resolved { file, was_converted: false });
        }
        let zip = zip_with(&folder, &format!("elsewhere/{store}"), &pdb.bytes());
        assert_eq!(names_from(vec![zip], &pdb, 1 << 30).1, Outcome::NotFound);
    }

    #[test]
    fn what_is_too_large_or_no_pdb_in_a_zip_is_refused() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = folder_with(&[]);
        let store = pdb.store_path("a.pdb");
        let zip = zip_with(&folder, &format!("symbols/{store}"), &pdb.bytes());
        assert!(names_from(vec![zip], &pdb, 100).0.is_empty());
        let zip = zip_with(&folder, &format!("symbols/{store}"), b"no PDB");
        assert!(names_from(vec![zip], &pdb, 1 << 30).0.is_empty());
    }
}
