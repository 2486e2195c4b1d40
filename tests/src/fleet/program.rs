//! Builds of the fleet's program, compiled and linked for Windows. Each has its functions at other addresses, and its
//! own PDB.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::folders::copy_folder;
use crate::functions::FunctionTable;
use crate::linked::{ImageFacts, compile, publics};
use crate::stacks::Stacks;

/// File name of the program.
pub const PROGRAM: &str = "fleet.exe";

/// File versions of the builds in release order, which differs from their alphabetical order.
pub const VERSIONS: [&str; 5] = ["4.1.0.0", "4.2.0.0", "4.9.1.7", "4.10.0.0", "4.10.1.0"];

const SOURCE: &str = include_str!("fleet.cpp");

/// Functions of the sample; the program calls its Windows modules.
const SAMPLE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/src/functions.txt"));

/// Offset of a return address from the start of its function, bytes.
const BEHIND_CALL: u64 = 12;

/// A build of the program.
#[derive(Debug)]
pub struct ProgramBuild {
    pub version: &'static str,
    /// Stacks with the addresses of this build.
    pub stacks: Stacks,
}

/// Compiles all builds, and adds their PDBs and those of Windows to a folder laid out like a symbol server.
///
/// # Errors
/// If a file cannot be written, or the compiler or linker fails.
///
/// # Panics
/// If the PDBs of the sample cannot be copied.
pub fn builds(symbols: &Path) -> io::Result<Vec<ProgramBuild>> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/symbols");
    copy_folder(&sample, symbols);
    (0..).zip(VERSIONS).map(|(number, version)| build(number, version, symbols)).collect()
}

fn build(number: u32, version: &'static str, symbols: &Path) -> io::Result<ProgramBuild> {
    let folder = tempfile::tempdir()?;
    let source = format!("#define PADDING {}\n{SOURCE}", 40 + 100 * number);
    let map = compile(&source, PROGRAM, "fleet.pdb", folder.path())?;
    let ImageFacts { guid, age, size, timestamp } = ImageFacts::read(&folder.path().join(PROGRAM))?;
    let guid = guid.to_string().replace('-', "");
    let place = symbols.join("fleet.pdb").join(format!("{}{age:X}", guid.to_uppercase()));
    fs::create_dir_all(&place)?;
    fs::copy(folder.path().join("fleet.pdb"), place.join("fleet.pdb"))?;

    let mut functions = SAMPLE.to_owned();
    let _ =
        writeln!(functions, "module {PROGRAM} fleet.pdb {guid} {age} 0x{size:x} 0x{timestamp:x}");
    for (name, rva) in publics(&map) {
        let _ = writeln!(functions, "call {PROGRAM} {name} * 0x{:x}", rva + BEHIND_CALL);
    }
    let functions = FunctionTable::parse(&functions).map_err(io::Error::other)?;
    Ok(ProgramBuild { version, stacks: Stacks::new(functions) })
}
