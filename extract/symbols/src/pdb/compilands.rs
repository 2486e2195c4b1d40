//! Reads a large PDB in part: of the object files (compilands) it was linked from, only those whose code is requested.
//!
//! The debug information stream lists the compilands, each with its own stream for functions and lines. It also lists
//! ranges of code with the compiland that contributed them ("The PDB DBI Stream" in LLVM's documentation). A copy of
//! the PDB with the streams of only a few compilands is a valid PDB, too; the parser does not notice that others are
//! missing.
//!
//! If the linker folded a function into an equal one of another compiland, it has the name of the one whose code was
//! kept.

use std::io::Cursor;
use std::mem;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use symbolic::debuginfo::pdb::PdbObject;
use symbolic::debuginfo::pdb::pdb::{self, FallibleIterator, StreamIndex, SymbolData, SymbolIndex};

use super::bounds::{self, u16_at, u32_at};
use super::msf::{MsfWriter, PAGE};
use super::ranges::Ranges;

const DEBUG_INFORMATION: u32 = 3;
/// The number of a stream that does not exist.
const ABSENT: u16 = u16::MAX;
/// Size of the debug information header. It has the stream numbers of two hash tables at 12 and 16, and that of the
/// symbols at 20. At 24 is the size of the list of compilands, which follows the header.
const HEADER: usize = 64;

/// Maximum bytes of compilands converted at once; the conversion takes about four times as much memory.
const CONVERTED_AT_ONCE: usize = 64 << 20;

type PdbReader<'p> = pdb::PDB<'p, Cursor<&'p [u8]>>;

/// The compilands of a PDB and where their code is.
pub struct Compilands<'o, 'p> {
    pdb: &'o PdbObject<'p>,
    all: Vec<Compiland>,
    /// Sorted by address.
    contributions: Vec<Contribution>,
    symbols: pdb::SymbolTable<'p>,
    /// Public symbols, sorted by address.
    publics: Vec<(u32, SymbolIndex)>,
    /// The debug information stream.
    information: Vec<u8>,
    /// Number of streams.
    streams: u32,
}

struct Compiland {
    /// Offset of its stream number in the debug information.
    at: usize,
    stream: u16,
    /// Lower-case name.
    name: String,
    /// Bytes of symbols, old lines and subsections, which follow each other in the stream.
    sizes: [u32; 3],
}

struct Contribution {
    code: Range<u32>,
    compiland: usize,
}

/// Compilands that are converted together, and the addresses that their functions cover.
pub struct CompilandGroup {
    compilands: Vec<usize>,
    pub ranges: Ranges,
}

impl<'o, 'p> Compilands<'o, 'p> {
    pub fn read(file: &[u8], pdb: &'o PdbObject<'p>) -> Result<Self, pdb::Error> {
        let mut reader = pdb.inner().write();
        let information = bytes(&mut reader, DEBUG_INFORMATION)?;
        let symbols = reader.global_symbols()?;
        let address_map = reader.address_map()?;
        let mut contributions = Vec::new();
        let debug_information = reader.debug_information()?;
        let mut listed = debug_information.section_contributions()?;
        while let Some(contribution) = listed.next()? {
            let flags = contribution.characteristics;
            if (flags.executable() || flags.execute())
                && let Some(start) = contribution.offset.to_rva(&address_map)
            {
                let code = start.0..start.0.saturating_add(contribution.size);
                contributions.push(Contribution { code, compiland: contribution.module });
            }
        }
        contributions.sort_unstable_by_key(|contribution| contribution.code.start);
        let mut publics = Vec::new();
        let mut listed = symbols.iter();
        while let Some(symbol) = listed.next()? {
            if let Ok(SymbolData::Public(public)) = symbol.parse()
                && let Some(address) = public.offset.to_rva(&address_map)
            {
                publics.push((address.0, symbol.index()));
            }
        }
        publics.sort_unstable();
        let (all, streams) = (compilands(&information), bounds::stream_count(file));
        Ok(Self { pdb, all, contributions, symbols, publics, information, streams })
    }

    /// Returns parts that cover the addresses, except those that are `covered` already.
    pub fn parts(&self, addresses: &[u32], covered: &Ranges) -> Vec<CompilandGroup> {
        let mut code: FxHashMap<usize, Vec<Range<u32>>> = FxHashMap::default();
        let mut gaps = Vec::new();
        for &address in addresses.iter().filter(|&&address| !covered.contains(address.into())) {
            match self.contribution(address) {
                Ok(contribution) => drop(code.entry(contribution.compiland).or_default()),
                Err(gap) => gaps.push(gap),
            }
        }
        for contribution in &self.contributions {
            if let Some(code) = code.get_mut(&contribution.compiland) {
                code.push(contribution.code.clone());
            }
        }
        let mut requested: Vec<_> = code.into_iter().collect();
        requested.sort_unstable_by_key(|(compiland, _)| *compiland);
        let mut parts = Vec::new();
        let (mut compilands, mut ranges, mut bytes) = (Vec::new(), gaps, 0);
        for (compiland, code) in requested {
            let size = self.all.get(compiland).map_or(0, Compiland::bytes);
            if bytes > 0 && bytes + size > CONVERTED_AT_ONCE {
                let compilands = mem::take(&mut compilands);
                parts.push(CompilandGroup {
                    compilands,
                    ranges: mem::take(&mut ranges).into_iter().collect(),
                });
                bytes = 0;
            }
            bytes += size;
            compilands.push(compiland);
            ranges.extend(code);
        }
        parts.push(CompilandGroup { compilands, ranges: ranges.into_iter().collect() });
        parts.retain(|part| !part.ranges.is_empty());
        parts
    }

    /// Returns the contribution that contains an address, or else the gap between two contributions.
    fn contribution(&self, address: u32) -> Result<&Contribution, Range<u32>> {
        let after = self.contributions.partition_point(|next| next.code.start <= address);
        let last = after.checked_sub(1).and_then(|index| self.contributions.get(index));
        match last {
            Some(last) if address < last.code.end => Ok(last),
            _ => {
                let next = self.contributions.get(after);
                Err(last.map_or(0, |last| last.code.end)
                    ..next.map_or(u32::MAX, |next| next.code.start))
            }
        }
    }

    /// Builds a PDB with the functions and public symbols of a part.
    pub fn pdb_of(&self, part: &CompilandGroup) -> Result<Vec<u8>, pdb::Error> {
        let mut reader = self.pdb.inner().write();
        let kept = self.with_exporters(&part.compilands, &mut reader)?;
        let mut information = self.information.clone();
        let mut dropped: FxHashSet<u32> = FxHashSet::default();
        let is_left = |(index, _): &(usize, &Compiland)| !kept.contains(index);
        for (_, compiland) in self.all.iter().enumerate().filter(is_left) {
            dropped.insert(compiland.stream.into());
            if let Some(number) = information.get_mut(compiland.at..compiland.at + 2) {
                number.copy_from_slice(&ABSENT.to_le_bytes());
            }
        }
        dropped.extend(self.hashes());
        let mut writer = MsfWriter::new(PAGE);
        for number in 0..self.streams {
            if dropped.contains(&number) {
                writer.push(&[]);
            } else if number == DEBUG_INFORMATION {
                writer.push(&information);
            } else if number == self.symbols_stream() {
                writer.push(&self.publics_in(&part.ranges)?);
            } else {
                let stream = reader.raw_stream(index(number))?;
                writer.push(stream.as_ref().map(|stream| stream.as_slice()).unwrap_or_default());
            }
        }
        Ok(writer.finish())
    }

    /// Returns the compilands and those they import names from.
    fn with_exporters(
        &self,
        compilands: &[usize],
        reader: &mut PdbReader<'_>,
    ) -> Result<FxHashSet<usize>, pdb::Error> {
        let mut kept: FxHashSet<usize> = compilands.iter().copied().collect();
        let mut names = FxHashSet::default();
        for compiland in compilands.iter().filter_map(|&index| self.all.get(index)) {
            let stream = bytes(reader, compiland.stream.into())?;
            for name in exporters(compiland.subsections_of(&stream)) {
                let strings = reader.string_table()?;
                names.insert(name.to_string_lossy(&strings)?.to_ascii_lowercase());
            }
        }
        let is_exporter = |(_, compiland): &(usize, &Compiland)| names.contains(&*compiland.name);
        kept.extend(self.all.iter().enumerate().filter(is_exporter).map(|(index, _)| index));
        Ok(kept)
    }

    /// Returns the streams of hash tables, which only searches by name need.
    fn hashes(&self) -> impl Iterator<Item = u32> {
        [12, 16].into_iter().filter_map(|at| u16_at(&self.information, at)).map(u32::from)
    }

    fn symbols_stream(&self) -> u32 {
        u16_at(&self.information, 20).unwrap_or(ABSENT).into()
    }

    /// Returns the records of public symbols within ranges.
    fn publics_in(&self, ranges: &Ranges) -> Result<Vec<u8>, pdb::Error> {
        let mut records = Vec::new();
        let mut symbols = self.symbols.iter();
        for range in ranges.iter() {
            let begin = self.publics.partition_point(|(address, _)| *address < range.start);
            let inside = self.publics.iter().skip(begin);
            for (_, index) in inside.take_while(|(address, _)| *address < range.end) {
                symbols.seek(*index);
                let Some(symbol) = symbols.next()? else { continue };
                let length = u16::try_from(symbol.raw_bytes().len()).unwrap_or(u16::MAX);
                records.extend(length.to_le_bytes());
                records.extend(symbol.raw_bytes());
            }
        }
        Ok(records)
    }
}

impl Compiland {
    fn bytes(&self) -> usize {
        self.sizes.iter().map(|&size| size as usize).sum()
    }

    /// Returns the subsections in the bytes of its stream.
    fn subsections_of<'b>(&self, stream: &'b [u8]) -> &'b [u8] {
        let [symbols, lines, _] = self.sizes.map(|size| size as usize);
        stream.get(symbols.saturating_add(lines)..).unwrap_or_default()
    }
}

/// Parses the list of compilands in the debug information. An entry is 64 bytes, then its name and its library's name,
/// each zero-terminated, then padding to a multiple of four.
fn compilands(information: &[u8]) -> Vec<Compiland> {
    let size = u32_at(information, 24).unwrap_or(0) as usize;
    let end = information.len().min(HEADER.saturating_add(size));
    let mut compilands = Vec::new();
    let mut at = HEADER;
    while let Some(record) = information.get(at..end).filter(|record| record.len() >= 64) {
        let mut texts = record.get(64..).unwrap_or_default().splitn(3, |&byte| byte == 0);
        let (Some(name), Some(library)) = (texts.next(), texts.next()) else { break };
        compilands.push(Compiland {
            at: at + 34,
            stream: u16_at(record, 34).unwrap_or(ABSENT),
            name: String::from_utf8_lossy(name).to_ascii_lowercase(),
            sizes: [36, 40, 44].map(|at| u32_at(record, at).unwrap_or(0)),
        });
        at += (64 + name.len() + library.len() + 2).next_multiple_of(4);
    }
    compilands
}

/// Returns the names of the compilands from which a compiland imports ids of types and functions. A subsection has its
/// kind and its length. An import subsection then has, for each compiland, its name, a count, and that many ids.
fn exporters(mut subsections: &[u8]) -> Vec<pdb::StringRef> {
    const IMPORTS: u32 = 0xF5;
    let mut names = Vec::new();
    while let (Some(kind), Some(length)) = (u32_at(subsections, 0), u32_at(subsections, 4)) {
        let length = length as usize;
        let mut imports = subsections.get(8..).unwrap_or_default();
        imports = imports.get(..length).unwrap_or(imports);
        while kind == IMPORTS
            && let (Some(name), Some(count)) = (u32_at(imports, 0), u32_at(imports, 4))
        {
            names.push(pdb::StringRef(name));
            imports = imports.get(8 + 4 * count as usize..).unwrap_or_default();
        }
        subsections = subsections.get(8 + length.next_multiple_of(4)..).unwrap_or_default();
    }
    names
}

/// Returns the bytes of a stream; empty if it does not exist.
fn bytes(reader: &mut PdbReader<'_>, number: u32) -> Result<Vec<u8>, pdb::Error> {
    let stream = reader.raw_stream(index(number))?;
    Ok(stream.map(|stream| stream.as_slice().to_vec()).unwrap_or_default())
}

fn index(stream: u32) -> StreamIndex {
    StreamIndex(u16::try_from(stream).unwrap_or(ABSENT))
}
