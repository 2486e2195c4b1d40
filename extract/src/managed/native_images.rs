//! PDB identities that the .NET runtime logs of its native images (NGEN).
//!
//! Only merged traces have identity records for every image; of native images the runtime's own
//! module events say the same.

use std::collections::HashMap;

use crate::etl::Guid;
use crate::kernel::Images;

/// GUID, age and file name of a PDB.
type Pdb = (Guid, u32, String);

/// The PDBs of native images, by process and path.
#[derive(Debug, Default)]
pub struct NativeImages(HashMap<(u32, String), Pdb>);

impl NativeImages {
    /// Takes what the runtime said in a process; `path` has a drive.
    pub fn add(&mut self, pid: u32, path: &str, pdb: Pdb) {
        self.0.insert((pid, on_volume(path)), pdb);
    }

    /// Gives the identities to the images that have none.
    pub fn identify(&self, images: &mut Images) {
        if self.0.is_empty() {
            return;
        }
        let paths: Vec<String> = images.paths.iter().map(|path| on_volume(path)).collect();
        for row in images.rows.iter_mut().filter(|row| row.file.pdb.is_none()) {
            let Some(path) = paths.get(row.path as usize) else { continue };
            row.file.pdb = self.0.get(&(row.pid, path.clone())).cloned();
        }
    }
}

/// A path without its volume, in lower case: the kernel writes `\Device\HarddiskVolume3\Windows`
/// where the runtime writes `C:\Windows`.
fn on_volume(path: &str) -> String {
    let path = path.to_lowercase();
    let rest = match path.strip_prefix(r"\device\") {
        Some(rest) => rest.find('\\').and_then(|at| rest.get(at..)),
        None => path.get(1..).and_then(|rest| rest.strip_prefix(':')),
    };
    rest.map_or_else(|| path.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Image;
    use crate::raw::Action;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_path_has_no_volume_however_it_is_written() {
        for path in [r"\Device\HarddiskVolume3\Windows\a.dll", r"C:\windows\A.dll"] {
            assert_eq!(on_volume(path), r"\windows\a.dll");
        }
        assert_eq!(on_volume(r"\SystemRoot\a.sys"), r"\systemroot\a.sys");
        assert_eq!(on_volume(""), "");
        assert_eq!(on_volume("ä"), "ä");
    }

    #[test]
    fn an_image_of_the_process_gets_the_pdb_unless_it_has_one() {
        let pdb = |age| (Guid([1; 16]), age, "Leaky.ni.pdb".to_owned());
        let mut native = NativeImages::default();
        native.add(7, r"C:\x\Leaky.ni.dll", pdb(1));
        let mut images = Images::default();
        let path = utf16(r"\Device\HarddiskVolume3\x\leaky.ni.dll");
        for (pid, base) in [(7, 0x1000), (7, 0x2000), (8, 0x1000)] {
            let image = Image {
                action: Action::Begin,
                base,
                size: 0x100,
                pid,
                checksum: 1,
                timestamp: 0,
                path: &path,
            };
            images.event(&image, 1);
        }
        images.rows[1].file.pdb = Some(pdb(2));
        native.identify(&mut images);
        let ages: Vec<_> =
            images.rows.iter().map(|row| row.file.pdb.as_ref().map(|pdb| pdb.1)).collect();
        assert_eq!(ages, [Some(1), Some(2), None]);
    }
}
