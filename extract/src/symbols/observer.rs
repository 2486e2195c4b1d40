//! Following the search for symbols.

use handlescope_model::Cancel;

use super::identity::{ModuleIdentity, PdbIdentity};

/// Follows [`Symbolizer::prepare`](super::Symbolizer::prepare) and
/// [`Symbolizer::resolve_all`](super::Symbolizer::resolve_all), which calls it from several threads.
///
/// Several downloads are under way at once; the PDB says which one is meant.
pub trait SymbolObserver: Sync {
    /// So many PDBs are not at hand and will be asked for.
    fn planned(&self, _files: usize) {}

    /// A server is asked for a PDB.
    fn started(&self, _pdb: &PdbIdentity) {}

    /// Another process downloads the PDB, and is waited for.
    fn waiting(&self, _pdb: &PdbIdentity) {}

    /// Bytes of a PDB are there, of so many if the server says; fewer than before when a download
    /// had to start again.
    fn progress(&self, _pdb: &PdbIdentity, _bytes: u64, _total: Option<u64>) {}

    /// The search for a PDB ended; the report says how.
    fn finished(&self, _pdb: &PdbIdentity) {}

    /// The frames of a module are resolved, as far as they can be; so many modules of all are done.
    fn resolved(&self, _module: &ModuleIdentity, _done: usize, _of: usize) {}
}

/// Sees nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSymbolObserver;

impl SymbolObserver for NoSymbolObserver {}

/// What follows a search, and what stops it.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) observer: &'a dyn SymbolObserver,
    pub(super) cancel: &'a Cancel,
}
