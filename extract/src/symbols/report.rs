//! What became of the search for a module's symbols, in words for the user.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::identity::{ModuleIdentity, PdbIdentity};

/// What happened to one module whose symbols were asked for.
///
/// `Display` writes one line for a message; a refused file and a silent server are always named.
#[derive(Clone, Debug)]
pub struct ModuleReport {
    /// The module as it was asked for.
    pub module: ModuleIdentity,
    /// How the search ended.
    pub outcome: Outcome,
    /// Files that were found and not used, also when another one was used in the end.
    pub refused: Vec<Arc<SymbolFileError>>,
    /// Places that could not be searched, such as a server out of reach.
    pub failures: Vec<SearchFailure>,
    /// A converted symcache that could not be kept for the next session, and why.
    pub unsaved: Option<Arc<SymbolFileError>>,
}

/// How the search for the symbols of a module ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Names are there.
    Resolved {
        /// The file they come from: the PDB, or a symcache whose PDB is on the path no longer.
        file: PathBuf,
        /// Whether an earlier session had converted the PDB.
        was_converted: bool,
    },
    /// The trace has no RSDS record for the image, so that no PDB can be proven to belong to it.
    NoPdbIdentity,
    /// The name of the PDB can be no file name.
    UnusableName,
    /// No symbol path is set.
    NoSymbolPath,
    /// No place on the symbol path has the PDB, or only files that were refused.
    NotFound,
}

/// A place on the symbol path that could not be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFailure {
    /// Address of the server, as on the symbol path; the whole path where no server is to blame.
    pub place: String,
    /// What went wrong.
    pub reason: String,
}

/// Why a file is of no use, or could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SymbolFileError {
    /// The PDB belongs to another build of the module.
    #[error(
        "{} has guid {} and age {}, but the trace needs guid {} and age {}",
        path.display(), found.guid, found.age, expected.guid, expected.age
    )]
    WrongIdentity {
        /// The refused file.
        path: PathBuf,
        /// What the trace asks for.
        expected: PdbIdentity,
        /// What the file says it is, under the name that was asked for.
        found: PdbIdentity,
    },
    /// The PDB can not be read as one.
    #[error("{} is damaged, delete it or get it again", path.display())]
    Malformed {
        /// The refused file.
        path: PathBuf,
        /// What the parser says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system denied the file.
    #[error("can not {action} {}", path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file, or the folder it should go to.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

impl SymbolFileError {
    /// The file the error is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::WrongIdentity { path, .. }
            | Self::Malformed { path, .. }
            | Self::Io { path, .. } => path,
        }
    }
}

impl ModuleReport {
    /// Whether the module's frames can have names.
    pub fn is_resolved(&self) -> bool {
        matches!(self.outcome, Outcome::Resolved { .. })
    }
}

impl fmt::Display for ModuleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.module.name.escape_debug())?;
        match (&self.outcome, &self.module.pdb) {
            (Outcome::Resolved { file, .. }, _) => write!(f, "symbols from {}", file.display())?,
            (Outcome::NoPdbIdentity, _) => f.write_str("no pdb identity in the trace")?,
            (Outcome::UnusableName, pdb) => {
                let name = pdb.as_ref().map_or("", PdbIdentity::file_name);
                write!(f, "the pdb name '{}' can be no file name", name.escape_debug())?;
            }
            (Outcome::NoSymbolPath, _) => f.write_str("no symbol path is set")?,
            (Outcome::NotFound, Some(pdb)) => write!(f, "{pdb} not found on the symbol path")?,
            (Outcome::NotFound, None) => f.write_str("not found on the symbol path")?,
        }
        for SearchFailure { place, reason } in &self.failures {
            write!(f, "; {place}: {reason}")?;
        }
        for error in self.refused.iter().chain(&self.unsaved) {
            write!(f, "; {}", Chain(error.as_ref()))?;
        }
        Ok(())
    }
}

/// An error with all its sources on one line.
pub(super) struct Chain<'a>(pub(super) &'a dyn std::error::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}
