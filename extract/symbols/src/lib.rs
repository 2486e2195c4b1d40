//! Function names for the addresses in modules of a trace, from PDBs, symbol servers and images.
//!
//! Names are resolved late: the extract stores modules and relative addresses (RVAs), and names are looked up when they
//! are shown. A [`Symbolizer`] takes the modules' identities as the trace knows them and resolves batches of RVAs:
//!
//! ```
//! use handlescope_symbols::{
//!     ModuleIdentity, PdbIdentity, SymbolPath, Symbolizer, SymbolizerOptions,
//! };
//!
//! let guid = "0155fe84-c000-1eb1-57c6-858e85d46b4c".parse()?;
//! let module = ModuleIdentity {
//!     name: "ntdll.dll".to_owned(),
//!     path: r"C:\Windows\System32\ntdll.dll".to_owned(),
//!     size: 0x1f_0000,
//!     timestamp: None,
//!     pdb: Some(PdbIdentity { name: "ntdll.pdb".to_owned(), guid, age: 1 }),
//! };
//! let path = SymbolPath::parse("examples/symbols");
//! let symbolizer = Symbolizer::new(path, SymbolizerOptions::default());
//! for chain in symbolizer.resolve(&module, &[0x1350, 0x1720]) {
//!     for frame in chain.iter() {
//!         println!("{}!{}+{:#x}", module.name, frame.function, frame.offset);
//!     }
//! }
//! # Ok::<(), uuid::Error>(())
//! ```
//!
//! For each module, the first source that has something wins:
//!
//! 1. a PDB that was saved with the trace ([`symbols_beside`]), then one in a local place of the symbol path (a cache,
//!    a store or a plain folder), then, on Windows, one in the caches of WinDbg, WPA and Visual Studio;
//! 2. a symcache in the path's cache folder, even if its PDB is gone;
//! 3. a PDB from a server, asked only if the path has `srv*…*https://…`. A file that a server does not have is
//!    remembered for some days; interrupted downloads are continued; a server that is dead or too slow is given up;
//! 4. the exports of the image, if it is in a local place, for addresses in exported functions.
//!
//! A PDB counts only if its own GUID and age match the trace, wherever it was found, and an image only if its time
//! stamp and size do. A PDB is converted to a symcache, which serves later sessions as long as the PDB stays the same
//! file. Of a large PDB, only the object files whose functions are requested are converted, now and in later sessions.
//!
//! Nothing here prints or panics. [`Symbolizer::report`] says what happened.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod beside;
#[cfg(test)]
mod fixture;
mod identity;
#[cfg(test)]
mod linked_tests;
mod local;
mod module;
mod options;
mod path;
mod pdb;
mod pointer;
mod report;
mod search;
mod server;
mod speed;
mod switches;
mod symbolizer;
#[cfg(test)]
mod tests;

pub use self::beside::symbols_beside;
pub use self::identity::{ModuleIdentity, PdbIdentity};
pub use self::module::{CodeAddress, FrameChain, ResolvedFrame};
pub use self::options::{DownloadBudget, NoSymbolObserver, SymbolObserver, SymbolizerOptions};
pub use self::path::{SymbolPath, SymbolPathProblem, default_store};
pub use self::report::{
    MissingAt, ModuleReport, SearchFailure, SearchOutcome, SymbolFileError, SymbolOrigin,
};
pub use self::switches::{ServerChoice, SymbolSources, SymbolSourcesError};
pub use self::symbolizer::Symbolizer;
