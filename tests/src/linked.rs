//! Windows images compiled by clang++ and linked by lld-link: their PDBs, identities and functions.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use crate::bytes::Guid;

/// Properties of an image that traces contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageFacts {
    /// GUID of its PDB.
    pub guid: Guid,
    /// Age of its PDB.
    pub age: u32,
    /// Mapped size, in bytes.
    pub size: u32,
    /// Time stamp of the file.
    pub timestamp: u32,
}

impl ImageFacts {
    /// Reads an image with a PDB.
    ///
    /// # Errors
    /// If it cannot be read, or is no such image.
    pub fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        Self::parse(&bytes).ok_or_else(|| io::Error::other("no image with a PDB"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let number =
            |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.first_chunk().copied()?));
        let at = bytes.windows(4).position(|bytes| bytes == b"RSDS")?;
        let middle = number(at + 8)?;
        let first = u128::from(number(at + 4)?) << 96 | u128::from(middle.rotate_left(16)) << 64;
        let rest = u64::from_be_bytes(*bytes.get(at + 12..)?.first_chunk()?);
        let header = number(0x3c)? as usize;
        Some(Self {
            guid: Guid::new(first | u128::from(rest)),
            age: number(at + 20)?,
            size: number(header + 80)?,
            timestamp: number(header + 8)?,
        })
    }
}

/// The options keep the path of the temporary folder out of the PDB, so that its GUID is always the same.
const COMPILE: &str = "-no-canonical-prefixes --target=x86_64-pc-windows-msvc -std=c++17 -O1 -g -gcodeview \
    -ffreestanding -nostdinc -resource-dir=. -fdebug-compilation-dir=. -fcoverage-compilation-dir=. -fno-ident \
    -fno-exceptions -fno-optimize-sibling-calls -c program.cpp -o program.obj";
const LINK: &str = "/nologo /nodefaultlib /debug /Brepro /opt:noref,noicf /pdbaltpath:%_PDB% /pdbsourcepath:. \
    /subsystem:console /entry:Main /map:program.map program.obj";

/// Base address that the linker assumes for an image.
const PREFERRED: u64 = 0x1_4000_0000;

/// Compiles and links a program in a folder, and returns the linker's map.
///
/// # Errors
/// If a file cannot be written, or the compiler or linker fails.
pub fn compile(source: &str, program: &str, pdb: &str, folder: &Path) -> io::Result<String> {
    fs::write(folder.join("program.cpp"), source)?;
    run("clang++", COMPILE.split_whitespace().map(str::to_owned), folder)?;
    let outputs = [format!("/out:{program}"), format!("/pdb:{pdb}")];
    run("lld-link", LINK.split_whitespace().map(str::to_owned).chain(outputs), folder)?;
    fs::read_to_string(folder.join("program.map"))
}

fn run(program: &str, arguments: impl Iterator<Item = String>, folder: &Path) -> io::Result<()> {
    let output = Command::new(program).args(arguments).current_dir(folder).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))))
}

/// Returns the functions in a linker map, with their RVAs.
#[must_use]
pub fn publics(map: &str) -> Vec<(String, u64)> {
    let function = |line: &str| {
        let [_, symbol, address, "program.obj"] = *line.split_whitespace().collect::<Vec<_>>()
        else {
            return None;
        };
        let address = u64::from_str_radix(address, 16).ok()?;
        Some((undecorated(symbol), address - PREFERRED))
    };
    map.lines().filter_map(function).collect()
}

/// Returns the plain name of a function: `?Open@Cache@fleet@@…` is `fleet::Cache::Open`.
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
        let map = " 0001:00000070  ?Open@Cache@fleet@@SAXPECH@Z  0000000140001070  program.obj\n \
                   0001:000000d0  Main  00000001400010d0  program.obj\n\n entry point at  0001:000000d0\n";
        let functions = [("fleet::Cache::Open".to_owned(), 0x1070), ("Main".to_owned(), 0x10d0)];
        assert_eq!(publics(map), functions);
    }
}
