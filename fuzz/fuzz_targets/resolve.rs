//! No PDB or image, however damaged, makes the resolve step panic, hang or take all memory.
//!
//! The input lies on the symbol path under the identity that it states itself, so that it is read
//! to the end. Good seeds are the files of `examples/symbols` and `examples/bin`.

#![no_main]

use std::sync::Once;
use std::{fs, panic};

use goblin::pe::header::Header;
use handlescope_fuzz::symbols::{
    ModuleIdentity, PdbIdentity, SymbolPath, Symbolizer, SymbolizerOptions,
};
use libfuzzer_sys::fuzz_target;
use symbolic::debuginfo::pdb::PdbObject;

fuzz_target!(|bytes: &[u8]| {
    // A panic of the parser is not a failure here, as long as the library catches it; what it does not
    // catch ends the fuzzer, whatever the hook.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| panic::set_hook(Box::new(|_| {})));
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
    let symcache_folder = Some(folder.path().join("symcaches"));
    let options = SymbolizerOptions { symcache_folder, ..SymbolizerOptions::default() };
    let path = SymbolPath::parse(&folder.path().to_string_lossy());
    let symbolizer = Symbolizer::new(path, options);
    let rvas: Vec<u64> = (0..0x4000).step_by(3).chain([u64::MAX, 1 << 32]).collect();
    assert_eq!(symbolizer.resolve(&module, &rvas).len(), rvas.len());
    let _ = symbolizer.report().iter().map(ToString::to_string).collect::<Vec<_>>();
});
