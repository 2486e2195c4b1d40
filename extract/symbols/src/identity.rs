//! Identities of a module and its PDB, and how they are spelled in a symbol store.
//!
//! Files that this program keeps for itself in a symbol cache are in a folder of their own. No file from a trace or a
//! server can have its name, because [`StoreKey`] refuses it.

use std::fmt;
use std::path::{Path, PathBuf};

use handlescope_model::Untrusted;
use symbolic::common::DebugId;
use uuid::Uuid;

/// Identity of a module in the trace; the key for finding its symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModuleIdentity {
    /// Last part of the path, such as `ntdll.dll`.
    pub name: String,
    /// Path as in the trace.
    pub path: String,
    /// Mapped size in bytes; 0 if the trace does not say.
    pub size: u64,
    /// Link time stamp of the PE header.
    pub timestamp: Option<u32>,
    /// Identity of the PDB that belongs to the image, if the trace names one.
    pub pdb: Option<PdbIdentity>,
}

/// The identity of a PDB according to the image's RSDS record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PdbIdentity {
    /// File name; may be the full path of the build machine.
    pub name: String,
    /// Identifies the link that made image and PDB.
    pub guid: Uuid,
    /// Counts the writes to the PDB until that link.
    pub age: u32,
}

impl PdbIdentity {
    /// Returns the last part of the name; both kinds of separators count on every system.
    pub fn file_name(&self) -> &str {
        self.name.rsplit(['/', '\\']).next().unwrap_or_default()
    }

    /// Returns the identity as the PDB itself states it.
    pub fn debug_id(&self) -> DebugId {
        DebugId::from_parts(self.guid, self.age)
    }
}

impl fmt::Display for PdbIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {{{}}} age {}", Untrusted(self.file_name()), self.guid, self.age)
    }
}

/// Properties that distinguish an image file from others with its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageIdentity {
    /// File name without any path.
    pub name: String,
    pub timestamp: u32,
    /// Mapped size in bytes.
    pub size: u64,
}

impl ImageIdentity {
    /// Returns `None` if the trace does not say enough about the module.
    pub fn new(module: &ModuleIdentity) -> Option<Self> {
        let name = module.name.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())?;
        let timestamp = module.timestamp.filter(|timestamp| *timestamp != 0)?;
        let size = Some(module.size).filter(|size| *size != 0)?;
        Some(Self { name: name.to_owned(), timestamp, size })
    }

    /// Whether these header fields belong to this image. A mapped image has whole pages, even if its header says less.
    pub fn is(&self, timestamp: u32, size: u32) -> bool {
        let pages = |size: u64| size.div_ceil(0x1000);
        self.timestamp == timestamp && pages(self.size) == pages(size.into())
    }
}

/// The place of a PDB or an image in every symbol store: `NAME/INDEX/NAME`, or `NA/NAME/INDEX/NAME` in a two-tier
/// store, which has a file [`TWO_TIERS`] in its root.
///
/// The name comes from a trace, which may be hostile, and becomes part of paths that are read and written. So a key
/// only exists if its name cannot lead out of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreKey {
    /// File name without any path, such as `ntdll.pdb`.
    pub name: String,
    /// Index in symbol servers. For a PDB it is the GUID in upper-case hex without dashes followed by the age in
    /// lower-case hex; for an image the time stamp and the size in the same spelling.
    pub index: String,
}

/// The file in the root of a two-tier store (learn, "Symbol Store Folder Tree"). Its content does not matter.
pub const TWO_TIERS: &str = "index2.txt";

impl StoreKey {
    /// Maximum length of a name; longer names fit in no file system once a suffix is added.
    const MAX_NAME: usize = 200;

    /// Returns the place of a PDB; `None` if its name cannot be a file name on every system.
    pub fn new(pdb: &PdbIdentity) -> Option<Self> {
        Self::with_index(pdb.file_name(), format!("{:X}{:x}", pdb.guid.simple(), pdb.age))
    }

    /// Returns the place of an image; `None` as for a PDB.
    pub fn from_image(image: &ImageIdentity) -> Option<Self> {
        Self::with_index(&image.name, format!("{:08X}{:x}", image.timestamp, image.size))
    }

    /// Returns the name of the first folder in a two-tier store: the first two characters of the file name. Windows
    /// drops a trailing dot or blank; if nothing is left, there is no such folder.
    pub fn first_tier(&self) -> &str {
        let end = self.name.char_indices().nth(2).map_or(self.name.len(), |(end, _)| end);
        self.name.get(..end).unwrap_or_default().trim_end_matches(['.', ' '])
    }

    fn with_index(name: &str, index: String) -> Option<Self> {
        let is_safe = !name.is_empty()
            && name.len() <= Self::MAX_NAME
            && !name.ends_with(['.', ' '])
            && !name.contains(|c: char| c.is_control() || r#"<>:"|?*/\"#.contains(c))
            && !is_device(name)
            && !is_private_folder(name);
        is_safe.then(|| Self { name: name.to_owned(), index })
    }
}

/// Whether Windows takes the name for a device, whatever its extension and folder.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_numbered = |kind: &str| {
        let number = stem.strip_prefix(kind);
        number.is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']))
    };
    matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL") || is_numbered("COM") || is_numbered("LPT")
}

const FOLDER: &str = ".handlescope";

/// Returns the program's own folder in a cache.
pub fn private_folder(cache: &Path) -> PathBuf {
    cache.join(FOLDER)
}

/// Whether a name means the private folder, also on case-insensitive systems.
fn is_private_folder(name: &str) -> bool {
    name.eq_ignore_ascii_case(FOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_reaches_the_files_that_the_program_keeps_in_a_cache() {
        for name in [".handlescope", ".HandleScope", r"C:\build\.handlescope"] {
            assert_eq!(StoreKey::new(&named(name)), None, "{name}");
        }
        assert!(StoreKey::new(&named(".handlescope.pdb")).is_some());
    }

    fn named(name: &str) -> PdbIdentity {
        let guid = Uuid::from_u128(0x0155fe84_c000_1eb1_57c6_858e85d46b4c);
        PdbIdentity { name: name.to_owned(), guid, age: 0x1a }
    }

    #[test]
    fn the_index_is_the_guid_in_upper_case_and_the_age_in_lower_case() {
        let key = StoreKey::new(&named("ntdll.pdb")).expect("a plain name");
        assert_eq!(key.index, "0155FE84C0001EB157C6858E85D46B4C1a");
    }

    #[test]
    fn the_first_tier_is_two_characters_and_never_leads_elsewhere() {
        for (name, tier) in [
            ("ntdll.pdb", "nt"),
            ("App.pdb", "Ap"),
            ("äö.pdb", "äö"),
            ("a.pdb", "a"),
            ("a", "a"),
            ("..a.pdb", ""),
            (". a", ""),
        ] {
            let key = StoreKey::new(&named(name)).expect(name);
            assert_eq!(key.first_tier(), tier);
        }
    }

    #[test]
    fn a_path_of_the_build_machine_counts_by_its_last_part() {
        for path in [r"D:\build\out\app.pdb", "/home/ci/out/app.pdb", r"mixed/kinds\app.pdb"] {
            assert_eq!(StoreKey::new(&named(path)).map(|key| key.name), Some("app.pdb".into()));
        }
    }

    #[test]
    fn a_name_that_could_leave_its_folder_is_no_key() {
        let hostile =
            ["", ".", "..", r"a\..", "a/", "c:", "a\0.pdb", "nul.pdb", "a?.pdb", "Com1 .x.y"];
        for name in hostile {
            assert_eq!(StoreKey::new(&named(name)), None, "{name:?}");
        }
        assert_eq!(StoreKey::new(&named(&"a".repeat(201))), None);
    }
}
