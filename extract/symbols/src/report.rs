//! The outcome of the search for a module's symbols, in words for the user.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use handlescope_model::{Reason, Untrusted};
use thiserror::Error;

use super::identity::{ModuleIdentity, PdbIdentity};
use super::pointer::PointerError;

/// Report on a module whose symbols were requested.
///
/// `Display` writes one line for a message; it always names refused files and silent servers. If
/// [`refused`](Self::refused) and [`failures`](Self::failures) are empty, the user cannot do anything about missing
/// symbols.
#[derive(Clone, Debug)]
pub struct ModuleReport {
    /// The requested module.
    pub module: ModuleIdentity,
    /// Outcome of the search.
    pub outcome: SearchOutcome,
    /// Files that were refused, even if another file was used in the end.
    pub refused: Vec<Arc<SymbolFileError>>,
    /// Places that could not be searched, such as an unreachable server. A server that was given up appears only once,
    /// with the first module whose file was requested from it.
    pub failures: Vec<SearchFailure>,
    /// Servers that have no PDB of this identity.
    pub missing: Vec<MissingAt>,
    /// Servers that were not asked because they had been given up before.
    pub skipped: Vec<String>,
    /// Where the file of [`SearchOutcome::Resolved`] came from.
    pub origin: Option<SymbolOrigin>,
    /// Why a converted symcache could not be kept for the next session.
    pub unsaved: Option<Arc<SymbolFileError>>,
    /// Number of distinct addresses requested in the module.
    pub requested: usize,
    /// Number of distinct addresses that got a name.
    pub named: usize,
}

/// Outcome of the search for the symbols of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchOutcome {
    /// Symbols were found.
    Resolved {
        /// The file they come from: the PDB, or a symcache whose PDB is no longer on the path.
        file: PathBuf,
        /// Whether an earlier session had converted the PDB.
        was_converted: bool,
    },
    /// Exports of the image name some functions; there is no PDB.
    ResolvedFromExports {
        /// The image.
        file: PathBuf,
    },
    /// The trace has no RSDS record for the image, so no PDB can be proven to belong to it.
    NoPdbIdentity,
    /// The name of the PDB cannot be a file name.
    UnusableName,
    /// No symbol path is set.
    NoSymbolPath,
    /// No folder or server on the symbol path has the PDB, or all files found were refused.
    NotFound,
}

/// The part of the symbol path that had the symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolOrigin {
    /// A plain folder.
    Folder(PathBuf),
    /// A cache or store, filled for example by a download of an earlier session.
    Cache(PathBuf),
    /// Downloaded in this session, from this address.
    Server(String),
    /// A symcache whose PDB is no longer on the path.
    Symcache,
}

impl fmt::Display for SymbolOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "folder {}", Untrusted(folder)),
            Self::Cache(folder) => write!(f, "cache {}", Untrusted(folder)),
            Self::Server(address) => write!(f, "server {address}"),
            Self::Symcache => f.write_str("symcache"),
        }
    }
}

/// A server without the PDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingAt {
    /// Address of the server, as on the symbol path.
    pub server: String,
    /// Whether it said so in an earlier session and was not asked in this one.
    pub is_remembered: bool,
    /// Whether it has a file under that name, but minutes ago the file was damaged or from another build.
    pub is_refused: bool,
}

/// What happened during the search, whether or not symbols were found.
#[derive(Clone, Debug, Default)]
pub struct SearchNotes {
    pub refused: Vec<Arc<SymbolFileError>>,
    pub failures: Vec<SearchFailure>,
    pub missing: Vec<MissingAt>,
    pub skipped: Vec<String>,
}

impl SearchNotes {
    pub fn extend(&mut self, notes: &Self) {
        self.refused.extend_from_slice(&notes.refused);
        self.failures.extend_from_slice(&notes.failures);
        self.missing.extend_from_slice(&notes.missing);
        self.skipped.extend_from_slice(&notes.skipped);
    }
}

/// A folder or server on the symbol path that could not be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFailure {
    /// Address of the server, as on the symbol path; the whole path if no server is to blame.
    pub location: String,
    /// Reason for the failure.
    pub reason: String,
}

/// Reasons why a file is unusable or could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SymbolFileError {
    /// The PDB belongs to another build of the module.
    #[error(
        "{} has guid {} and age {}, but the trace needs guid {} and age {}",
        Untrusted(path), actual.guid, actual.age, expected.guid, expected.age
    )]
    WrongIdentity {
        /// The refused file.
        path: PathBuf,
        /// The identity that the trace needs.
        expected: PdbIdentity,
        /// The identity that the file has under the requested name.
        actual: PdbIdentity,
    },
    /// The image is another build of the module.
    #[error(
        "{} has time stamp {:#x} and size {:#x}, but the trace needs time stamp {:#x} and size {:#x}",
        Untrusted(path), actual.0, actual.1, expected.0, expected.1
    )]
    WrongImage {
        /// The refused file.
        path: PathBuf,
        /// Time stamp and size that the trace needs.
        expected: (u32, u64),
        /// Time stamp and size of the file.
        actual: (u32, u64),
    },
    /// The PDB or image cannot be parsed.
    #[error("{} is damaged, delete it or get it again", Untrusted(path))]
    Malformed {
        /// The refused file.
        path: PathBuf,
        /// The parser's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file was modified while it was read.
    #[error("{} changed while it was read, try again when nothing writes to it", Untrusted(path))]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file, or its unpacked content, exceeds the size limit.
    #[error("{} is larger than {limit} bytes", Untrusted(path))]
    TooLarge {
        /// The refused file, or its address.
        path: PathBuf,
        /// The exceeded limit.
        limit: u64,
    },
    /// The limit for all downloads together was reached.
    #[error(
        "downloads reached the limit of {limit} bytes per session; what was received is kept for the next one"
    )]
    TooManyDownloads {
        /// The limit, bytes.
        limit: u64,
    },
    /// A store points to a file that does not exist.
    #[error("{}: {reason}", Untrusted(path))]
    Pointer {
        /// The pointer.
        path: PathBuf,
        reason: PointerError,
    },
    /// The operating system refused access to the file.
    #[error("cannot {action} {}", Untrusted(path))]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file, or the folder it should go to.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl SymbolFileError {
    /// Wraps an operating system error about a file that could not be read or written.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

impl ModuleReport {
    /// Creates a report that has only the outcome.
    pub fn new(module: ModuleIdentity, outcome: SearchOutcome) -> Self {
        Self {
            module,
            outcome,
            refused: Vec::new(),
            failures: Vec::new(),
            missing: Vec::new(),
            skipped: Vec::new(),
            origin: None,
            unsaved: None,
            requested: 0,
            named: 0,
        }
    }

    /// Returns the problems of the search, even if symbols were found in the end: places that could not be searched,
    /// files that were refused, a symcache that could not be kept.
    pub fn troubles(&self) -> impl Iterator<Item = String> {
        let failures = self
            .failures
            .iter()
            .map(|SearchFailure { location, reason }| format!("{}: {reason}", Untrusted(location)));
        let skipped = self
            .skipped
            .iter()
            .map(|server| format!("{server}: not asked again after its failures"));
        let unsaved = self.unsaved.iter().map(|error| ErrorChain(error.as_ref()).to_string());
        failures.chain(skipped).chain(self.refusals()).chain(unsaved)
    }

    /// Returns the reasons why found files were not used, each with its causes.
    pub fn refusals(&self) -> impl Iterator<Item = String> {
        self.refused.iter().map(|error| ErrorChain(error.as_ref()).to_string())
    }

    /// Whether the module's frames can have names.
    pub fn is_resolved(&self) -> bool {
        matches!(
            self.outcome,
            SearchOutcome::Resolved { .. } | SearchOutcome::ResolvedFromExports { .. }
        )
    }
}

impl fmt::Display for ModuleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Untrusted(&self.module.name))?;
        match (&self.outcome, &self.module.pdb) {
            (SearchOutcome::Resolved { file, .. }, _) => {
                write!(f, "symbols from {}", Untrusted(file))?;
            }
            (SearchOutcome::ResolvedFromExports { file }, _) => {
                write!(f, "no pdb, exports from {}", Untrusted(file))?;
            }
            (SearchOutcome::NoPdbIdentity, _) => f.write_str("no pdb identity in the trace")?,
            (SearchOutcome::UnusableName, pdb) => {
                let name = pdb.as_ref().map_or("", PdbIdentity::file_name);
                write!(f, "the pdb name '{}' cannot be a file name", Untrusted(name))?;
            }
            (SearchOutcome::NoSymbolPath, _) => f.write_str("no symbol path is set")?,
            (SearchOutcome::NotFound, Some(pdb)) => {
                write!(f, "{pdb} not found on the symbol path")?;
            }
            (SearchOutcome::NotFound, None) => f.write_str("not found on the symbol path")?,
        }
        self.troubles().try_for_each(|trouble| write!(f, "; {trouble}"))
    }
}

/// An error with all its sources on one line.
pub struct ErrorChain<'a>(pub &'a (dyn std::error::Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next = Some(self.0);
        let mut separator = "";
        while let Some(error) = next {
            match error.downcast_ref() {
                Some(error) => write!(f, "{separator}{}", Reason(error))?,
                None => write!(f, "{separator}{error}")?,
            }
            (next, separator) = (error.source(), ": ");
        }
        Ok(())
    }
}
