//! The folders from which files may be read, and what loading may write.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use handlescope_model::{Reason, Untrusted};
use thiserror::Error;

/// The only folders from which files may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots(Vec<PathBuf>);

/// Why a path is refused.
#[derive(Debug, Error)]
pub enum RootError {
    /// A root that is not a folder.
    #[error(
        "{}: not a readable folder: {}; name another one with --root",
        Untrusted(.folder), Reason(.source)
    )]
    NoFolder { folder: PathBuf, source: io::Error },
    /// The path leads out of the roots. The message does not say whether the file exists.
    #[error("{}: is outside the folders that may be read: {roots}", Untrusted(.path))]
    Outside { path: PathBuf, roots: String },
    /// No such file in the roots.
    #[error("{}: file not found", Untrusted(.path))]
    Missing { path: PathBuf },
}

impl Roots {
    /// Creates roots from these folders, with links resolved.
    ///
    /// # Errors
    /// Names the first one that is not a folder.
    pub fn new(folders: &[PathBuf]) -> Result<Roots, RootError> {
        folders
            .iter()
            .map(|folder| {
                let real = folder.canonicalize().and_then(|real| {
                    if real.is_dir() {
                        Ok(real)
                    } else {
                        Err(io::Error::new(io::ErrorKind::NotADirectory, "it is a file"))
                    }
                });
                real.map_err(|source| RootError::NoFolder { folder: folder.clone(), source })
            })
            .collect::<Result<_, _>>()
            .map(Roots)
    }

    /// Returns the shortest name that finds a file again: relative to a root, or its path.
    pub fn name(&self, path: &Path) -> String {
        let name = self
            .0
            .iter()
            .filter_map(|root| path.strip_prefix(root).ok())
            .min_by_key(|name| name.as_os_str().len())
            .unwrap_or(path);
        name.to_string_lossy().into_owned()
    }

    /// Replaces the paths of files below a root by their names in a text.
    pub fn shortened(&self, text: &str) -> String {
        let root = |text: String, root: &PathBuf| {
            text.replace(&format!("{}{}", root.to_string_lossy(), std::path::MAIN_SEPARATOR), "")
        };
        self.0.iter().fold(text.to_owned(), root)
    }

    /// Resolves the name of a file or folder. A relative one starts at the first root that has it.
    ///
    /// # Errors
    /// If it leads out of the roots, or does not exist.
    pub fn resolve(&self, name: &str) -> Result<PathBuf, RootError> {
        let mut candidates = self.0.iter().map(|root| root.join(name));
        let path = candidates.clone().find(|path| path.exists()).or_else(|| candidates.next());
        let path = path.unwrap_or_else(|| PathBuf::from(name));
        match path.canonicalize() {
            Ok(real) if self.contain(&real) => Ok(real),
            Ok(_) => Err(self.outside(&path)),
            Err(_) => self.check(&path).and(Err(RootError::Missing { path })),
        }
    }

    /// Checks that a path is inside the roots, or would be if it existed.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self, path: &Path) -> Result<(), RootError> {
        let real = path.ancestors().find_map(|path| path.canonicalize().ok());
        if real.is_some_and(|real| self.contain(&real)) { Ok(()) } else { Err(self.outside(path)) }
    }

    /// Checks that a file opened by a path in the roots really is there. A link may have replaced a part of the path
    /// since it was checked.
    ///
    /// # Errors
    /// If it is elsewhere.
    pub fn check_opened(&self, path: &Path, file: &File) -> io::Result<()> {
        if !self.contain(path) || self.contain(&real_path(path, file)?) {
            return Ok(());
        }
        let reason = "it is outside the folders that may be read";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
    }

    fn contain(&self, path: &Path) -> bool {
        self.0.iter().any(|root| path.starts_with(root))
    }

    fn outside(&self, path: &Path) -> RootError {
        let roots: Vec<String> = self.0.iter().map(|root| Untrusted(root).to_string()).collect();
        RootError::Outside { path: path.to_owned(), roots: roots.join(", ") }
    }
}

/// Which files may be read to load a trace, and whether extracts may be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The only folders from which files are read, except for the cache; `None` for any.
    pub roots: Option<Arc<Roots>>,
    /// Write nothing except in a temporary folder that is deleted with the trace.
    pub read_only: bool,
}

impl Access {
    /// Checks that a file may be read.
    ///
    /// # Errors
    /// If it may not.
    pub fn check(&self, path: &Path) -> Result<(), RootError> {
        self.roots.as_ref().map_or(Ok(()), |roots| roots.check(path))
    }

    /// Whether a file may be read.
    pub fn allows(&self, path: &Path) -> bool {
        self.check(path).is_ok()
    }
}

/// Returns the path of an open file.
#[cfg(target_os = "linux")]
fn real_path(_: &Path, file: &File) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Returns the path of an open file, if `path` still leads to it.
#[cfg(not(target_os = "linux"))]
fn real_path(path: &Path, file: &File) -> io::Result<PathBuf> {
    use same_file::Handle;
    let real = path.canonicalize()?;
    if Handle::from_path(&real)? == Handle::from_file(file.try_clone()?)? {
        Ok(real)
    } else {
        Err(io::Error::other("it was replaced while it was opened"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_path_is_where_its_links_lead() {
        let home = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (home.path().join("in"), home.path().join("out"));
        for folder in [&inside, &outside] {
            fs::create_dir(folder).expect("a folder");
            fs::write(folder.join("a.etl"), "").expect("a file");
        }
        let roots = Roots::new(std::slice::from_ref(&inside)).expect("roots");
        let real = inside.canonicalize().expect("a folder").join("a.etl");
        for name in ["a.etl", "./a.etl", "../in/a.etl"] {
            assert_eq!(roots.resolve(name).expect(name), real);
        }
        let outside_path = outside.join("a.etl");
        for name in ["../out/a.etl", "../out/none", "..", outside_path.to_str().expect("text")] {
            let error = roots.resolve(name).expect_err(name).to_string();
            assert!(error.contains("is outside the folders that may be read"), "{error}");
        }
        let error = roots.resolve("b.etl").expect_err("no file").to_string();
        assert!(error.ends_with("b.etl: file not found"), "{error}");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&outside, inside.join("link")).expect("a link");
            for name in ["link", "link/a.etl", "link/none"] {
                assert!(matches!(roots.resolve(name), Err(RootError::Outside { .. })), "{name}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_opened_by_a_link_out_of_the_roots_is_refused_whatever_replaces_the_link() {
        let home = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (home.path().join("in"), home.path().join("out"));
        fs::create_dir(&inside).expect("a folder");
        fs::write(&outside, "").expect("a file");
        let roots = Roots::new(&[inside]).expect("roots");
        let path = roots.0[0].join("a.etl");
        std::os::unix::fs::symlink(&outside, &path).expect("a link");
        let opened = File::open(&path).expect("a file");
        let refused = || roots.check_opened(&path, &opened).expect_err("it is outside").kind();
        assert_eq!(refused(), io::ErrorKind::PermissionDenied);
        fs::remove_file(&path).expect("a link");
        fs::write(&path, "").expect("a file");
        refused();
        let opened = File::open(&path).expect("a file");
        roots.check_opened(&path, &opened).expect("it lies in the roots");
        // The cache is not one of the roots, and is read.
        let opened = File::open(&outside).expect("a file");
        roots.check_opened(&outside, &opened).expect("no path in the roots");
    }

    #[test]
    fn a_root_is_a_folder() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("file");
        fs::write(&file, "").expect("a file");
        for path in [file, home.path().join("none")] {
            let error = Roots::new(&[path]).expect_err("no folder").to_string();
            assert!(error.contains("name another one with --root"), "{error}");
        }
    }
}
