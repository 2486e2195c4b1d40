//! Splits paths of images. The kernel writes them in several ways: with the device of their volume, below
//! `\SystemRoot`, and on Windows 7 and 8.1 in load events without a volume.

use std::collections::{BTreeMap, HashMap};

/// Folder of `\SystemRoot` if no event names it.
const SYSTEM_ROOT: &str = r"\windows";

/// Path split into volume and rest, both in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ImagePath {
    /// Device or drive; `None` if the path has none.
    pub volume: Option<String>,
    /// Path on the volume; it begins with a backslash.
    pub rest: String,
}

impl ImagePath {
    /// Splits a path, with the volume only if the path itself has one.
    pub fn parse(path: &str) -> Self {
        let mut path = path.to_lowercase();
        if let Some(rest) = path.strip_prefix(r"\??\") {
            path = rest.to_owned();
        }
        let end = match path.strip_prefix(r"\device\") {
            Some(rest) => rest.find('\\').map(|at| at + path.len() - rest.len()),
            None => Some(2).filter(|_| path.get(1..3) == Some(r":\")),
        };
        let Some(end) = end else { return Self { volume: None, rest: path } };
        let rest = path.split_off(end);
        Self { volume: Some(path), rest }
    }
}

/// Path prefixes of a trace, for finding the volumes of paths.
pub struct ImagePaths {
    /// Device of each drive, in lower case.
    devices: HashMap<String, String>,
    root: ImagePath,
}

impl ImagePaths {
    /// Takes the prefixes as the kernel writes them, each with what programs write.
    pub fn new(volumes: &BTreeMap<String, String>) -> Self {
        let devices = volumes.iter().filter_map(|(kernel, dos)| {
            let drive = dos.strip_suffix('\\').filter(|drive| drive.ends_with(':'))?;
            let device =
                kernel.strip_suffix('\\').filter(|device| device.starts_with(r"\Device\"))?;
            Some((drive.to_lowercase(), device.to_lowercase()))
        });
        let root = volumes.get(r"\SystemRoot\").and_then(|root| root.strip_suffix('\\'));
        let mut paths = Self {
            devices: devices.collect(),
            root: ImagePath::parse(root.filter(|root| root.len() > 2).unwrap_or(SYSTEM_ROOT)),
        };
        paths.root = paths.on_device(paths.root.clone());
        paths
    }

    /// Splits a path, with the volume if it can be found.
    pub fn split(&self, path: &str) -> ImagePath {
        let path = self.on_device(ImagePath::parse(path));
        let below = path.rest.strip_prefix(r"\systemroot").filter(|rest| rest.starts_with('\\'));
        match (&path.volume, below) {
            (None, Some(below)) => {
                let rest = format!("{}{below}", self.root.rest);
                ImagePath { volume: self.root.volume.clone(), rest }
            }
            _ => path,
        }
    }

    /// Returns the volume of Windows, if known.
    pub fn system_volume(&self) -> Option<&str> {
        self.root.volume.as_deref()
    }

    fn on_device(&self, path: ImagePath) -> ImagePath {
        let device = path.volume.as_ref().and_then(|volume| self.devices.get(volume)).cloned();
        ImagePath { volume: device.or(path.volume), ..path }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(volumes: &[(&str, &str)], path: &str) -> (Option<String>, String) {
        let volumes = volumes.iter().map(|(nt, dos)| ((*nt).to_owned(), (*dos).to_owned()));
        let ImagePath { volume, rest } = ImagePaths::new(&volumes.collect()).split(path);
        (volume, rest)
    }

    #[test]
    fn every_way_to_write_a_path_of_a_known_volume_is_the_same() {
        let volumes = [(r"\Device\HarddiskVolume3\", r"C:\"), (r"\SystemRoot\", r"C:\Windows\")];
        let expected =
            (Some(r"\device\harddiskvolume3".to_owned()), r"\windows\system32\a.dll".to_owned());
        for path in [
            r"\Device\HarddiskVolume3\Windows\System32\a.dll",
            r"\SystemRoot\System32\A.dll",
            r"\??\C:\Windows\system32\a.dll",
            r"c:\Windows\system32\a.dll",
        ] {
            assert_eq!(split(&volumes, path), expected, "{path}");
        }
        let without = (None, expected.1);
        assert_eq!(split(&volumes, r"\Windows\System32\a.dll"), without);
        assert_eq!(split(&[], r"\SystemRoot\System32\a.dll"), without);
    }

    #[test]
    fn paths_that_are_no_paths_stay_as_they_are() {
        for path in ["", "a", r"\", r"\device\", r"\device\x", "é:", r"\systemrootx\a", "c:"] {
            assert_eq!(split(&[], path), (None, path.to_owned()));
        }
    }
}
