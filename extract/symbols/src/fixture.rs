//! Small PDB files for tests, written as the parser expects them.
//!
//! They hold public symbols in one executable section and nothing else. The layout follows "The MSF File Format" and
//! "The PDB DBI Stream" in LLVM's documentation.

use std::io::{Cursor, Write};
use std::path::PathBuf;

use uuid::Uuid;

use super::pdb::msf::MsfWriter;
use super::{
    FrameChain, ModuleIdentity, PdbIdentity, SearchOutcome, SymbolPath, Symbolizer,
    SymbolizerOptions,
};

/// The content of a test PDB.
#[derive(Clone)]
pub struct TestPdb {
    pub guid: Uuid,
    /// Age in the debug information stream, which an image refers to.
    pub age: u32,
    /// Age in the PDB information stream.
    pub info_age: u32,
    pub machine: u16,
    /// RVA (at least [`SECTION`]) and name, as decorated by the linker.
    pub functions: Vec<(u32, &'static str)>,
}

/// RVA of the only section.
pub const SECTION: u32 = 0x1000;
pub const AMD64: u16 = 0x8664;
pub const I386: u16 = 0x14c;

const NO_STREAM: u16 = 0xffff;
const SYMBOL_STREAM: u16 = 5;
const SECTION_STREAM: u16 = 6;

impl TestPdb {
    pub fn new(functions: &[(u32, &'static str)]) -> Self {
        let guid = Uuid::from_u128(0x0155fe84_c000_1eb1_57c6_858e85d46b4c);
        Self { guid, age: 2, info_age: 5, machine: AMD64, functions: functions.to_vec() }
    }

    /// Returns a module of a trace that this PDB belongs to, named like the PDB.
    pub fn module(&self, pdb: &str) -> ModuleIdentity {
        let identity = PdbIdentity { name: pdb.to_owned(), guid: self.guid, age: self.age };
        ModuleIdentity {
            name: pdb.replace(".pdb", ".dll"),
            path: format!(r"C:\Windows\{pdb}"),
            size: 0,
            timestamp: None,
            pdb: Some(identity),
        }
    }

    /// Returns the path in symbol stores, with forward slashes.
    pub fn store_path(&self, pdb: &str) -> String {
        format!("{pdb}/{:X}{:x}/{pdb}", self.guid.simple(), self.age)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let types = type_stream();
        let streams = [
            Vec::new(),
            self.info_stream(),
            types.clone(),
            self.debug_stream(),
            types,
            self.symbol_stream(),
            section_stream(),
        ];
        msf(&streams)
    }

    fn info_stream(&self) -> Vec<u8> {
        let mut stream = u32s(&[20000404, 0, self.info_age]);
        stream.extend(self.guid.to_bytes_le());
        // No named streams: empty string buffer and empty map.
        stream.extend(u32s(&[0, 0, 0, 0, 0]));
        stream
    }

    fn debug_stream(&self) -> Vec<u8> {
        let mut stream = u32s(&[u32::MAX, 19990903, self.age]);
        stream.extend(u16s(&[NO_STREAM, 0, NO_STREAM, 0, SYMBOL_STREAM, 0]));
        let debug_header = u16s(&{
            let mut streams = [NO_STREAM; 11];
            streams[5] = SECTION_STREAM;
            streams
        });
        stream.extend(u32s(&[0, 0, 0, 0, 0, 0, debug_header.len() as u32, 0]));
        stream.extend(u16s(&[0, self.machine, 0, 0]));
        stream.extend(debug_header);
        stream
    }

    fn symbol_stream(&self) -> Vec<u8> {
        const S_PUB32: u16 = 0x110e;
        const FUNCTION: u32 = 2;
        let mut stream = Vec::new();
        for (rva, name) in &self.functions {
            let mut record = u16s(&[S_PUB32]);
            record.extend(u32s(&[FUNCTION, rva - SECTION]));
            record.extend(u16s(&[1]));
            record.extend(name.as_bytes());
            record.push(0);
            while !(record.len() + 2).is_multiple_of(4) {
                record.push(0);
            }
            stream.extend(u16s(&[record.len() as u16]));
            stream.extend(record);
        }
        stream
    }
}

/// Builds a cabinet with one file.
pub fn cabinet(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut builder = cab::CabinetBuilder::new();
    builder.add_folder(cab::CompressionType::MsZip).add_file(name);
    let mut writer = builder.build(Cursor::new(Vec::new())).expect("a cabinet");
    while let Some(mut file) = writer.next_file().expect("a file") {
        file.write_all(bytes).expect("written");
    }
    writer.finish().expect("a cabinet").into_inner()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("compressed")
}

/// Returns a type or id stream without records.
fn type_stream() -> Vec<u8> {
    let mut stream = u32s(&[20040203, 56, 0x1000, 0x1000, 0]);
    stream.extend(u16s(&[NO_STREAM, NO_STREAM]));
    stream.extend(u32s(&[4, 0x3ffff, 0, 0, 0, 0, 0, 0]));
    stream
}

fn section_stream() -> Vec<u8> {
    const CODE_EXECUTE_READ: u32 = 0x6000_0020;
    let mut stream = b".text\0\0\0".to_vec();
    stream.extend(u32s(&[0x10000, SECTION, 0x10000, 0x400, 0, 0, 0, CODE_EXECUTE_READ]));
    stream
}

fn msf(streams: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = MsfWriter::new(0x200);
    streams.iter().for_each(|stream| writer.push(stream));
    writer.finish()
}

fn u16s(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn u32s(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Resolves a name with symbols from these locations; also returns where the symbols were found.
pub fn names_from(
    locations: Vec<PathBuf>,
    pdb: &TestPdb,
    max_bytes: u64,
) -> (FrameChain, SearchOutcome) {
    let cache = tempfile::tempdir().expect("a folder");
    let options = SymbolizerOptions {
        symcache_folder: Some(cache.path().to_owned()),
        beside: locations,
        max_file_bytes: max_bytes,
        ..SymbolizerOptions::default()
    };
    let symbolizer = Symbolizer::new(SymbolPath::default(), options);
    let chain = symbolizer.resolve(&pdb.module("a.pdb"), &[0x1000]).remove(0);
    (chain, symbolizer.report().remove(0).outcome)
}
