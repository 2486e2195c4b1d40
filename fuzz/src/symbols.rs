//! Treats any bytes as symbols, and any text as a symbol path.

use std::path::Path;
use std::{fs, panic};

use goblin::pe::header::Header;
use handlescope_symbols::{
    ModuleIdentity, PdbIdentity, ServerChoice, SymbolPath, SymbolSources, Symbolizer,
    SymbolizerOptions,
};
use symbolic::debuginfo::pdb::PdbObject;

/// Resolves functions of a module from these bytes as a PDB or an image; returns how many of its addresses have one.
/// The bytes are put on the symbol path under the identity they claim themselves, so that they are read to the end.
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
    // Once in parts, as for a large PDB, and once as a whole.
    named(0);
    named(u64::MAX)
}

/// Parses a text as a symbol path and as a server list, and checks what holds for every path.
pub fn read_path(text: &str) {
    let path = SymbolPath::parse(text);
    assert_eq!(path.text(), text);
    let settled = path.based_on(Path::new("/base"));
    assert_eq!(settled.based_on(Path::new("/other")), settled);
    assert_eq!(settled.is_empty(), path.is_empty());
    if text.chars().all(|c| c == ';' || c.is_whitespace()) {
        assert!(path.is_empty());
    }
    if let Ok(servers) = ServerChoice::parse_list(text) {
        assert!(!servers.is_empty());
        let is_local = |choice: &ServerChoice| !matches!(choice, ServerChoice::Environment);
        let servers: Vec<ServerChoice> = servers.into_iter().filter(is_local).collect();
        let sources = SymbolSources { servers, ..SymbolSources::default() };
        assert!(sources.symbol_path().is_ok());
    }
    let sources = SymbolSources { folders: vec![text.into()], ..SymbolSources::default() };
    if let Ok(path) = sources.symbol_path() {
        assert!(!path.is_empty());
    }
}
