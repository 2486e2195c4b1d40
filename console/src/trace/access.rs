//! What loading may touch.

use std::{path::Path, sync::Arc};

use crate::paths::{RootError, Roots};

/// Which files may be read to load a trace, and whether extracts may be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The only folders whose files are read, but for the cache; `None` for any.
    pub(crate) roots: Option<Arc<Roots>>,
    /// Nothing is written but in a temporary folder that goes with the trace.
    pub(crate) read_only: bool,
}

impl Access {
    /// Looks whether a file may be read.
    ///
    /// # Errors
    /// When it may not.
    pub(crate) fn check(&self, path: &Path) -> Result<(), RootError> {
        self.roots.as_ref().map_or(Ok(()), |roots| roots.check(path))
    }

    /// Whether a file may be read.
    pub(crate) fn allows(&self, path: &Path) -> bool {
        self.check(path).is_ok()
    }
}
