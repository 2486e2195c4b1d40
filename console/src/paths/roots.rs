//! Folders outside of which no file is read.

use std::{
    io,
    path::{Path, PathBuf},
};

use handlescope_model::{Reason, Untrusted};
use thiserror::Error;

/// The only folders whose files may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roots(Vec<PathBuf>);

/// Why a path is refused.
#[derive(Debug, Error)]
pub enum RootError {
    /// A root that cannot be one.
    #[error(
        "{}: is not a folder that can be read: {}; name another one with --root",
        Untrusted(.folder), Reason(.source)
    )]
    NoFolder { folder: PathBuf, source: io::Error },
    /// It leads out of the roots. Whether there is a file is not said.
    #[error("{}: lies outside of the folders that may be read: {roots}", Untrusted(.path))]
    Outside { path: PathBuf, roots: String },
    /// There is no such file in the roots.
    #[error("{}: file not found", Untrusted(.path))]
    Missing { path: PathBuf },
}

impl Roots {
    /// These folders, where links lead.
    ///
    /// # Errors
    /// Names the first that is not a folder.
    pub(crate) fn new(folders: &[PathBuf]) -> Result<Roots, RootError> {
        let real = |folder: &PathBuf| {
            let real = folder.canonicalize().and_then(|real| match real.is_dir() {
                true => Ok(real),
                false => Err(io::Error::new(io::ErrorKind::NotADirectory, "it is a file")),
            });
            real.map_err(|source| RootError::NoFolder { folder: folder.clone(), source })
        };
        folders.iter().map(real).collect::<Result<_, _>>().map(Roots)
    }

    /// Where the name of a file or folder leads. A relative one starts at the first root in which it exists.
    ///
    /// # Errors
    /// When it leads out of the roots, or to nothing.
    pub(crate) fn resolve(&self, name: &str) -> Result<PathBuf, RootError> {
        let mut places = self.0.iter().map(|root| root.join(name));
        let path = places.clone().find(|path| path.exists()).or_else(|| places.next());
        let path = path.unwrap_or_else(|| PathBuf::from(name));
        self.check(&path)?;
        path.canonicalize().map_err(|_| RootError::Missing { path })
    }

    /// Looks whether a path leads into the roots, and whatever does not exist would lie there.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn check(&self, path: &Path) -> Result<(), RootError> {
        let real = path.ancestors().find_map(|path| path.canonicalize().ok());
        if real.is_some_and(|real| self.0.iter().any(|root| real.starts_with(root))) {
            return Ok(());
        }
        let roots: Vec<String> = self.0.iter().map(|root| Untrusted(root).to_string()).collect();
        Err(RootError::Outside { path: path.to_owned(), roots: roots.join(", ") })
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
            assert!(error.contains("lies outside of the folders that may be read"), "{error}");
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
