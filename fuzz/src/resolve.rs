//! What is done with any bytes as a PDB or an image: they lie on the symbol path under the identity that they state
//! themselves, so that they are read to the end.

use std::{fs, panic};

use goblin::pe::header::Header;
use handlescope_symbols::{ModuleIdentity, PdbIdentity, SymbolPath, Symbolizer, SymbolizerOptions};
use symbolic::debuginfo::pdb::PdbObject;

/// Looks for functions of a module in these bytes; says how many of its places have one.
pub fn resolve(bytes: &[u8]) -> usize {
    let parse = || PdbObject::parse(bytes).ok().map(|pdb| pdb.debug_id());
    let pdb = panic::catch_unwind(parse).ok().flatten();
    let image = Header::parse(bytes).ok().and_then(|header| {
        let size = header.optional_header?.windows_fields.size_of_image;
        Some((header.coff_header.time_date_stamp, size))
    });
    let module = ModuleIdentity {
        name: "a.dll".to_owned(),
        path: r"C:\a.dll".to_owned(),
        size: image.map_or(0, |(_, size)| size.into()),
        timestamp: image.map(|(timestamp, _)| timestamp),
        pdb: pdb.map(|id| PdbIdentity {
            name: "a.pdb".to_owned(),
            guid: id.uuid(),
            age: id.appendix(),
        }),
    };
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.pdb", "a.dll"] {
        fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let rvas: Vec<u64> = (0..0x4000).step_by(3).chain([u64::MAX, 1 << 32]).collect();
    let named = |whole_pdb_bytes: u64| {
        let options = SymbolizerOptions {
            symcache_folder: Some(folder.path().join(format!("symcaches up to {whole_pdb_bytes}"))),
            whole_pdb_bytes,
            ..SymbolizerOptions::default()
        };
        let path = SymbolPath::parse(&folder.path().to_string_lossy());
        let symbolizer = Symbolizer::new(path, options);
        let resolved = symbolizer.resolve(&module, &rvas);
        assert_eq!(resolved.len(), rvas.len());
        let _ = symbolizer.report().iter().map(ToString::to_string).collect::<Vec<_>>();
        resolved.iter().filter(|chain| !chain.is_empty()).count()
    };
    // As a large PDB, in parts, and as a whole.
    named(0);
    named(u64::MAX)
}
