//! What this program keeps for itself in a cache of symbols: in one folder, whose name no file from a trace
//! or a server can have ([`StoreKey`](super::identity::StoreKey) refuses it).

use std::path::{Path, PathBuf};

const FOLDER: &str = ".handlescope";

/// The folder in a cache.
pub(super) fn folder(cache: &Path) -> PathBuf {
    cache.join(FOLDER)
}

/// Whether a name means that folder, on systems that know no case as well.
pub(super) fn is_folder(name: &str) -> bool {
    name.eq_ignore_ascii_case(FOLDER)
}
