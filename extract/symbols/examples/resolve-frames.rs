//! Resolves random frames in a folder of modules and PDBs, and prints how long that took.
//!
//! resolve-frames FOLDER SYMCACHES FRAMES
//!
//! The frames are the same in every run. See `benches/symbols.sh`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs};

use handlescope_model::Cancel;
use handlescope_symbols::{
    CodeAddress, ModuleIdentity, NoSymbolObserver, PdbIdentity, SymbolPath, Symbolizer,
    SymbolizerOptions,
};
use symbolic::common::ByteView;
use symbolic::debuginfo::pe::PeObject;

/// `IMAGE_SCN_MEM_EXECUTE`
const EXECUTABLE: u32 = 0x2000_0000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, symcaches, frames] = arguments.as_slice() else {
        return Err("usage: resolve-frames FOLDER SYMCACHES FRAMES".into());
    };
    let requests = requests(Path::new(folder), frames.parse()?)?;
    let options = SymbolizerOptions {
        symcache_folder: Some(PathBuf::from(symcaches)),
        ..SymbolizerOptions::default()
    };
    let symbolizer = Symbolizer::new(SymbolPath::parse(folder), options);

    let start = Instant::now();
    let chains = symbolizer.resolve_all(&requests, &NoSymbolObserver, &Cancel::default());
    let time = start.elapsed();

    let chains: Vec<_> = chains.into_iter().flatten().collect();
    let named = chains.iter().filter(|chain| !chain.is_empty()).count();
    let inlined = chains.iter().filter(|chain| chain.len() > 1).count();
    let (time, frames) = (time.as_secs_f64(), chains.len());
    println!("{time:.3} s for {frames} frames, {named} named, {inlined} with inlined functions");
    for report in symbolizer.report().iter().filter(|report| !report.is_resolved()) {
        println!("{report}");
    }
    Ok(())
}

/// A module and addresses in it.
type Request = (ModuleIdentity, Vec<CodeAddress>);

/// Picks the same number of distinct addresses in every module.
fn requests(folder: &Path, frames: usize) -> Result<Vec<Request>, Box<dyn Error>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "dll"));
    paths.sort();
    let share = frames.div_ceil(paths.len().max(1));
    paths.iter().map(|path| request(path, share)).collect()
}

fn request(path: &Path, frames: usize) -> Result<Request, Box<dyn Error>> {
    let bytes = ByteView::open(path)?;
    let image = PeObject::parse(&bytes)?;
    let id = image.debug_id();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let module = ModuleIdentity {
        path: name.clone(),
        pdb: Some(PdbIdentity {
            name: name.replace(".dll", ".pdb"),
            guid: id.uuid(),
            age: id.appendix(),
        }),
        name,
        size: 0,
        timestamp: None,
    };
    let code = image.sections().iter().find(|section| section.characteristics & EXECUTABLE != 0);
    let code = code.ok_or("no code")?;
    let step = (u64::from(code.virtual_size) / frames as u64).max(1);
    let rvas = (0..frames as u64).map(|n| u64::from(code.virtual_address) + n * step);
    Ok((module, rvas.map(CodeAddress::from).collect()))
}
