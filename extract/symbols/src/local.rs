//! PDBs in local folders, laid out as debuggers do; they are searched before the servers.
//!
//! Stores hold `NAME/INDEX/NAME` or, with two tiers, `NA/NAME/INDEX/NAME`, compressed or not, or a pointer to the file.
//! Both layouts are searched, because files may predate the second tier. Folders filled by hand also hold the bare
//! `NAME`. Folders filled on Windows may spell names and indexes in any case, which matters on case-sensitive file
//! systems.

use std::fs;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::beside::PackedSymbols;
use super::identity::StoreKey;
use super::report::SymbolOrigin;
use super::server::install::{self, FileForm};

/// Searches the folders of a symbol path and remembers what they contain.
pub struct LocalFolders {
    /// Each folder, and whether it is a plain one where bare files count.
    roots: Vec<(PathBuf, bool)>,
    listings: FxHashMap<PathBuf, FolderListing>,
    /// The symbols in roots that are archives.
    pub packed: PackedSymbols,
}

/// A file that may be the PDB or lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCandidate {
    pub path: PathBuf,
    pub form: FileForm,
    /// The member, if the file is an archive.
    pub member: Option<String>,
    pub origin: SymbolOrigin,
}

/// Entries of a folder by lower-case name.
type FolderListing = FxHashMap<String, Vec<PathBuf>>;

impl LocalFolders {
    pub fn new(roots: Vec<(PathBuf, bool)>) -> Self {
        Self { roots, listings: FxHashMap::default(), packed: PackedSymbols::default() }
    }

    /// Returns all files that could be the PDB, best first. Their identity is not checked.
    pub fn find(&mut self, key: &StoreKey) -> Vec<FileCandidate> {
        let mut candidates = Vec::new();
        for (root, is_plain) in self.roots.clone() {
            if root.is_file() {
                let members = self.packed.find(&root, key).into_iter();
                candidates.extend(members.map(|member| FileCandidate {
                    path: root.clone(),
                    form: FileForm::Plain,
                    member: Some(member),
                    origin: SymbolOrigin::Folder(root.clone()),
                }));
                continue;
            }
            let named = self.entries(&root, &key.name);
            let origin = if is_plain {
                SymbolOrigin::Folder(root.clone())
            } else {
                SymbolOrigin::Cache(root.clone())
            };
            let origin = || origin.clone();
            let candidate =
                |path: PathBuf, form| FileCandidate { path, form, member: None, origin: origin() };
            let mut folders: Vec<PathBuf> = Vec::new();
            let first_tier = self.entries(&root, key.first_tier());
            let in_tiers: Vec<PathBuf> =
                first_tier.iter().flat_map(|tier| self.entries(tier, &key.name)).collect();
            for folder in in_tiers.iter().chain(&named).filter(|path| path.is_dir()) {
                // There are few entries: one per build of the module.
                let index = key.index.to_ascii_lowercase();
                folders.extend(listing(folder).remove(&index).into_iter().flatten());
            }
            // A download may have created it after the root was listed.
            let exact = install::folder(&root, key);
            if !folders.contains(&exact) && exact.is_dir() {
                folders.push(exact);
            }
            for mut files in folders.iter().map(|folder| listing(folder)) {
                for form in FileForm::ALL {
                    let name = form.name(&key.name).map(|name| name.to_ascii_lowercase());
                    let paths = name.and_then(|name| files.remove(&name)).into_iter().flatten();
                    candidates.extend(paths.map(|path| candidate(path, form)));
                }
            }
            if is_plain {
                candidates.extend(named.into_iter().map(|path| candidate(path, FileForm::Plain)));
            }
        }
        candidates.retain(|candidate| candidate.path.is_file());
        candidates
    }

    /// Forgets all listings, so that folders are listed again.
    pub fn forget(&mut self) {
        self.listings.clear();
    }

    fn entries(&mut self, root: &Path, name: &str) -> Vec<PathBuf> {
        let listing = self.listings.entry(root.to_owned()).or_insert_with(|| listing(root));
        listing.get(&name.to_ascii_lowercase()).cloned().unwrap_or_default()
    }
}

/// Lists a folder; one that cannot be listed counts as empty.
fn listing(folder: &Path) -> FolderListing {
    let mut listing = FolderListing::default();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        listing.entry(name).or_default().push(entry.path());
    }
    listing.values_mut().for_each(|paths| paths.sort());
    listing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> StoreKey {
        StoreKey { name: "App.pdb".into(), index: "0155FE84C0001EB157C6858E85D46B4C1a".into() }
    }

    fn with_files(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("temporary folder");
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("has a parent")).expect("folder");
            fs::write(path, b"").expect("file");
        }
        folder
    }

    fn find(folder: &Path, is_plain: bool) -> Vec<String> {
        let candidates = LocalFolders::new(vec![(folder.to_owned(), is_plain)]).find(&key());
        candidates
            .iter()
            .filter_map(|candidate| candidate.path.strip_prefix(folder).ok())
            .map(|path| path.to_string_lossy().replace('\\', "/"))
            .collect()
    }

    #[test]
    fn the_store_layout_in_any_case_precedes_the_bare_file() {
        let folder = with_files(&[
            "app.PDB/0155fe84c0001eb157c6858e85d46b4c1A/APP.pdb",
            "app.PDB/0155fe84c0001eb157c6858e85d46b4c1B/APP.pdb",
            "aPP.pdb",
            "other.pdb",
        ]);
        assert_eq!(
            find(folder.path(), true),
            ["app.PDB/0155fe84c0001eb157c6858e85d46b4c1A/APP.pdb", "aPP.pdb"]
        );
    }

    #[test]
    fn a_store_with_two_tiers_is_searched_beside_what_has_one() {
        let index = "0155FE84C0001EB157C6858E85D46B4C1a";
        let [two, one] = ["aP/App.pdb", "App.pdb"].map(|store| format!("{store}/{index}/App.pdb"));
        let folder = with_files(&[&one, &two, "aP/App.pdb/1/App.pdb"]);
        for is_plain in [true, false] {
            assert_eq!(find(folder.path(), is_plain), [two.clone(), one.clone()]);
        }
    }

    #[test]
    fn a_download_goes_where_a_store_with_two_tiers_wants_it() {
        let folder = with_files(&["index2.txt"]);
        let store = install::folder(folder.path(), &key());
        assert!(store.starts_with(folder.path().join("Ap")), "{}", store.display());
    }

    #[test]
    fn a_packed_file_or_a_pointer_comes_after_the_file_itself() {
        let store = "App.pdb/0155FE84C0001EB157C6858E85D46B4C1a";
        let files = ["file.ptr", "app.PD_", "App.pdb", "App.pdb.partial", "App.pdb.partial.source"];
        let folder =
            with_files(&files.map(|name| format!("{store}/{name}")).each_ref().map(|s| &**s));
        assert_eq!(
            find(folder.path(), false),
            ["App.pdb", "app.PD_", "file.ptr"].map(|name| format!("{store}/{name}"))
        );
    }

    #[test]
    fn a_store_that_was_filled_after_the_first_search_is_searched_again() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut folders = LocalFolders::new(vec![(folder.path().to_owned(), false)]);
        assert!(folders.find(&key()).is_empty());
        let store = install::folder(folder.path(), &key());
        fs::create_dir_all(&store).expect("folder");
        fs::write(store.join("App.pdb"), b"").expect("file");
        assert_eq!(folders.find(&key()).len(), 1);
    }

    #[test]
    fn a_cache_folder_has_no_bare_files() {
        let folder = with_files(&["App.pdb"]);
        assert!(find(folder.path(), false).is_empty());
        assert_eq!(find(folder.path(), true), ["App.pdb"]);
    }

    #[test]
    fn a_folder_that_does_not_exist_is_empty() {
        assert!(find(Path::new("/does/not/exist"), true).is_empty());
    }
}
