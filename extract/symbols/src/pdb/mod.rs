//! Converts a PDB file to symcaches, if it is the requested PDB.

mod bounds;
mod compilands;
pub mod msf;
pub mod names;
pub mod pe;
pub mod ranges;
pub mod source_server;
pub mod symcache;

use std::path::{Path, PathBuf};

use handlescope_model::Cancel;
use handlescope_model::guard::quietly;
use symbolic::common::{Arch, ByteView, Language, Name, NameMangling};
use symbolic::debuginfo::pdb::PdbObject;
use symbolic::debuginfo::{Function, Symbol};
use symbolic::symcache::SymCacheConverter;

use self::compilands::Compilands;
use self::ranges::Ranges;
use self::source_server::{SourceServer, check_source_server};
use self::symcache::PartSymcache;
use crate::identity::PdbIdentity;
use crate::report::SymbolFileError;

/// A PDB found under the right name; [`PdbFile::verify`] checks that it is the right one.
pub struct PdbFile {
    path: PathBuf,
    bytes: ByteView<'static>,
}

/// The addresses to convert from a PDB.
pub struct Conversion<'a> {
    pub addresses: &'a [u32],
    /// Addresses whose functions are known already.
    pub covered: &'a Ranges,
    /// Maximum size in bytes of a PDB that is converted as a whole.
    pub whole_up_to: u64,
}

type ParseError = Box<dyn std::error::Error + Send + Sync>;

impl PdbFile {
    pub fn open(path: &Path) -> Result<Self, SymbolFileError> {
        Self::open_as(path, path)
    }

    /// Opens a file that messages call by another name.
    pub fn open_as(path: &Path, shown: &Path) -> Result<Self, SymbolFileError> {
        let bytes = ByteView::open(path).map_err(SymbolFileError::io("read", shown))?;
        Ok(Self { path: shown.to_owned(), bytes })
    }

    /// Succeeds if GUID and age of the PDB match `expected`.
    ///
    /// The age that counts is in the debug information stream. Tools that post-process a PDB increase the other one, in
    /// the PDB information stream, and the image never learns of it.
    pub fn verify(&self, expected: &PdbIdentity) -> Result<(), SymbolFileError> {
        let actual = self.guarded(|pdb| Ok(pdb.debug_id()))?;
        if actual == expected.debug_id() {
            return Ok(());
        }
        Err(SymbolFileError::WrongIdentity {
            path: self.path.clone(),
            expected: expected.clone(),
            actual: PdbIdentity {
                name: expected.name.clone(),
                guid: actual.uuid(),
                age: actual.appendix(),
            },
        })
    }

    /// Converts functions and public symbols to symcaches. A PDB up to `request.whole_up_to` becomes one symcache; of a
    /// larger one, only the parts for requested addresses that are not covered yet are converted.
    ///
    /// A PDB that is only partly readable is refused, because the addresses of a missing function would get its
    /// neighbour's name. Returns early with an error once `cancel` asks for it.
    pub fn to_symcaches(
        &self,
        request: &Conversion<'_>,
        cancel: &Cancel,
    ) -> Result<Vec<PartSymcache>, SymbolFileError> {
        self.guarded(|pdb| {
            bounds::check_counts(pdb)?;
            check_source_server(&self.bytes)?;
            bounds::check_types(pdb)?;
            if self.bytes.len() as u64 <= request.whole_up_to {
                return Ok(vec![PartSymcache {
                    bytes: convert(pdb, cancel)?,
                    ranges: Ranges::all(),
                }]);
            }
            let compilands = Compilands::read(&self.bytes, pdb)?;
            let mut symcaches = Vec::new();
            for part in compilands.parts(request.addresses, request.covered) {
                let file = compilands.pdb_of(&part)?;
                let bytes = convert(&PdbObject::parse(&file)?, cancel)?;
                symcaches.push(PartSymcache { bytes, ranges: part.ranges });
            }
            Ok(symcaches)
        })
    }

    /// Returns the locations of source files according to the PDB.
    pub fn source_server(&self) -> SourceServer {
        quietly(|| bounds::check_streams(&self.bytes).ok().map(|()| SourceServer::new(&self.bytes)))
            .ok()
            .flatten()
            .unwrap_or_default()
    }

    /// Parses the PDB and runs `read` on it. Turns a panic of the parser into an error: it uses numbers of a damaged
    /// file as indexes.
    fn guarded<T>(
        &self,
        read: impl FnOnce(&PdbObject<'_>) -> Result<T, ParseError>,
    ) -> Result<T, SymbolFileError> {
        let parse = || {
            bounds::check_streams(&self.bytes)?;
            read(&PdbObject::parse(&self.bytes)?)
        };
        quietly(parse)
            .unwrap_or_else(|_| Err("the parser cannot read it".into()))
            .map_err(|source| SymbolFileError::Malformed { path: self.path.clone(), source })
    }
}

/// Builds a symcache of all functions and public symbols.
fn convert(pdb: &PdbObject<'_>, cancel: &Cancel) -> Result<Vec<u8>, ParseError> {
    bounds::check_scopes(pdb)?;
    let arch = pdb.arch();
    // Not `SymCacheConverter::process_object`, because it strips leading underscores even where they are part of the
    // name (`_beginthreadex` on x64).
    let mut converter = SymCacheConverter::new();
    converter.set_arch(arch);
    converter.set_debug_id(pdb.debug_id());
    for function in pdb.debug_session()?.functions() {
        let mut function = function?;
        cancel.check()?;
        cut_parameters(&mut function);
        converter.process_symbolic_function(&function);
    }
    for mut symbol in pdb.symbols() {
        undecorate(&mut symbol, arch);
        converter.process_symbolic_symbol(&symbol);
    }
    let mut symcache = Vec::new();
    converter.serialize(&mut symcache)?;
    Ok(symcache)
}

fn cut_parameters(function: &mut Function<'_>) {
    let bare = names::without_parameters(function.name.as_str());
    if bare.len() < function.name.as_str().len() {
        function.name = Name::new(bare.to_owned(), NameMangling::Unmangled, Language::Unknown);
    }
    function.inlinees.iter_mut().for_each(cut_parameters);
}

fn undecorate(symbol: &mut Symbol<'_>, arch: Arch) {
    if let Some(name) = &mut symbol.name {
        let bare = names::without_decoration(name, arch);
        if bare.len() < name.len() {
            *name = bare.to_owned().into();
        }
    }
}
