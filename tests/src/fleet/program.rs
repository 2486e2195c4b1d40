//! Builds of the program of a fleet, compiled and linked for Windows: their functions lie at other addresses, and each
//! has a PDB of its own.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::folders::copy_folder;
use crate::functions::Functions;
use crate::linked::Image;
use crate::stacks::Stacks;

/// File of the program.
pub(super) const PROGRAM: &str = "fleet.exe";

/// File versions of the builds, in the order of their releases, which is not that of the texts.
pub(super) const VERSIONS: [&str; 5] = ["4.1.0.0", "4.2.0.0", "4.9.1.7", "4.10.0.0", "4.10.1.0"];

const SOURCE: &str = include_str!("fleet.cpp");

/// Functions of the sample, whose modules of Windows the program calls.
const SAMPLE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/src/functions.txt"));

/// No option brings a path of the temporary folder into the PDB, so that its GUID is the same each time.
const COMPILE: &str = "-no-canonical-prefixes --target=x86_64-pc-windows-msvc -std=c++17 -O1 -g -gcodeview \
    -ffreestanding -nostdinc -resource-dir=. -fdebug-compilation-dir=. -fcoverage-compilation-dir=. -fno-ident \
    -fno-exceptions -fno-optimize-sibling-calls -c fleet.cpp -o fleet.obj";
const LINK: &str = "/nologo /nodefaultlib /debug /Brepro /opt:noref,noicf /pdbaltpath:%_PDB% /pdbsourcepath:. \
    /subsystem:console /entry:Main /out:fleet.exe /pdb:fleet.pdb /map:fleet.map fleet.obj";

/// Address that the linker assumes for the image.
const PREFERRED: u64 = 0x1_4000_0000;

/// Bytes from the start of a function to an address behind its call.
const BEHIND_CALL: u64 = 12;

/// A build of the program.
#[derive(Debug)]
pub(super) struct Build {
    pub(super) version: &'static str,
    /// Stacks with the addresses of this build.
    pub(super) stacks: Stacks,
}

/// Compiles all builds, and adds their PDBs and those of Windows to a folder in the layout of a symbol server.
///
/// # Errors
/// When a file cannot be written, or the compiler or linker fails.
///
/// # Panics
/// When the PDBs of the sample cannot be copied.
pub(super) fn builds(symbols: &Path) -> io::Result<Vec<Build>> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/symbols");
    copy_folder(&sample, symbols);
    (0..).zip(VERSIONS).map(|(number, version)| build(number, version, symbols)).collect()
}

fn build(number: u32, version: &'static str, symbols: &Path) -> io::Result<Build> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("fleet.cpp"), SOURCE)?;
    let padding = format!("-DPADDING={}", 40 + 100 * number);
    run("clang++", COMPILE.split(' ').chain([padding.as_str()]), folder.path())?;
    run("lld-link", LINK.split(' '), folder.path())?;

    let Image { guid, age, size, timestamp } = Image::read(&folder.path().join(PROGRAM))?;
    let guid = guid.to_string().replace('-', "");
    let place = symbols.join("fleet.pdb").join(format!("{}{age:X}", guid.to_uppercase()));
    fs::create_dir_all(&place)?;
    fs::copy(folder.path().join("fleet.pdb"), place.join("fleet.pdb"))?;

    let mut functions = SAMPLE.to_owned();
    let _ =
        writeln!(functions, "module {PROGRAM} fleet.pdb {guid} {age} 0x{size:x} 0x{timestamp:x}");
    for (name, rva) in publics(&fs::read_to_string(folder.path().join("fleet.map"))?) {
        let _ = writeln!(functions, "call {PROGRAM} {name} * 0x{:x}", rva + BEHIND_CALL);
    }
    let functions = Functions::parse(&functions).map_err(io::Error::other)?;
    Ok(Build { version, stacks: Stacks::new(functions) })
}

fn run<'a>(
    program: &str,
    arguments: impl Iterator<Item = &'a str>,
    folder: &Path,
) -> io::Result<()> {
    let output = Command::new(program).args(arguments).current_dir(folder).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))))
}

/// Functions of a linker's map, with their RVAs.
fn publics(map: &str) -> Vec<(String, u64)> {
    let function = |line: &str| {
        let [_, symbol, address, "fleet.obj"] = *line.split_whitespace().collect::<Vec<_>>() else {
            return None;
        };
        let address = u64::from_str_radix(address, 16).ok()?;
        Some((undecorated(symbol), address - PREFERRED))
    };
    map.lines().filter_map(function).collect()
}

/// The name of a function: `?Open@Cache@fleet@@…` is `fleet::Cache::Open`.
fn undecorated(symbol: &str) -> String {
    let Some((path, _)) = symbol.strip_prefix('?').and_then(|rest| rest.split_once("@@")) else {
        return symbol.to_owned();
    };
    path.rsplit('@').collect::<Vec<_>>().join("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_map_have_their_names_and_rvas() {
        let map = " 0001:00000070  ?Open@Cache@fleet@@SAXPECH@Z  0000000140001070  fleet.obj\n \
                   0001:000000d0  Main  00000001400010d0  fleet.obj\n\n entry point at  0001:000000d0\n";
        let functions = [("fleet::Cache::Open".to_owned(), 0x1070), ("Main".to_owned(), 0x10d0)];
        assert_eq!(publics(map), functions);
    }
}
