//! Names from the exports of an image, for modules without a PDB.
//!
//! An export has a start but no end, and most functions are not exported. So the nearest export before an address names
//! it only if both are in the same function. The bounds of functions come from the image itself:
//!
//! * x64 and ARM64 images list the range of every function with a stack frame (`.pdata`). A part of a function that is
//!   elsewhere is chained to the main part and has the same name.
//! * Between these ranges are functions without a frame, such as the system calls of `ntdll.dll`. An export there
//!   extends to the padding that linkers put between functions, to the next export or to the end of the gap, whichever
//!   comes first.
//! * 32-bit images have no such list. There all exports end that way, or with their section.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use goblin::pe::data_directories::DataDirectory;
use goblin::pe::exception::{ExceptionData, RuntimeFunction};
use goblin::pe::export::{ExportAddressTableEntry, ExportData, ExportDirectoryTable};
use goblin::pe::header::{COFF_MACHINE_ARM64, COFF_MACHINE_X86_64, Header};
use goblin::pe::options::ParseOptions;
use goblin::pe::section_table::SectionTable;
use goblin::pe::utils::find_offset;
use handlescope_model::guard::quietly;
use symbolic::common::ByteView;

use crate::identity::ImageIdentity;
use crate::module::{CodeAddress, ResolvedFrame};
use crate::pdb::names;
use crate::report::SymbolFileError;

/// `IMAGE_SCN_MEM_EXECUTE`
const EXECUTABLE: u32 = 0x2000_0000;
/// Ordinals have 16 bits, so there cannot be more functions; few functions have several names.
const MAX_EXPORTS: u32 = 0x2_0000;
/// The limit in Windows.
const MAX_SECTIONS: u16 = 96;
/// Maximum bytes of the function list, enough for about two million functions.
const MAX_LIST_BYTES: u32 = 24 << 20;
/// Maximum length of an export's name; linkers write none longer.
const MAX_NAME_LENGTH: usize = 4096;
/// Maximum number of chained parts of a function.
const MAX_CHAIN_LENGTH: usize = 8;

type ParseError = Box<dyn Error + Send + Sync>;

/// Fill byte between functions: `int3`.
const PADDING: u8 = 0xcc;
/// Functions start at multiples of this, if there is padding at all.
const ALIGNMENT: usize = 16;

/// The exported functions of an image, and their bounds.
pub struct ExportTable {
    /// Exports by RVA, each once.
    exports: Vec<Export>,
    /// Executable sections.
    code: Vec<Range>,
    /// Functions sorted by start, without overlaps. Empty if the image has no list.
    functions: Vec<UnwindFunction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    start: u32,
    end: u32,
}

#[derive(Debug)]
struct Export {
    start: u32,
    /// RVA of the first padding, or the next export if that comes first.
    end: u32,
    name: Arc<str>,
}

/// A function with a stack frame, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnwindFunction {
    range: Range,
    /// The part that the function starts with, possibly this one.
    main: Range,
}

impl Range {
    fn contains(self, rva: u32) -> bool {
        (self.start..self.end).contains(&rva)
    }
}

impl ExportTable {
    /// Reads an image, if it is the requested one.
    pub fn open(path: &Path, expected: &ImageIdentity) -> Result<Self, SymbolFileError> {
        let bytes = ByteView::open(path).map_err(SymbolFileError::io("read", path))?;
        Self::read(&bytes, path, expected)
    }

    pub fn read(
        bytes: &[u8],
        path: &Path,
        expected: &ImageIdentity,
    ) -> Result<Self, SymbolFileError> {
        let read = || {
            let image = ImageReader::parse(bytes)?;
            let is_right = expected.is(image.timestamp, image.size);
            let exports = if is_right { Some(image.exports()?) } else { None };
            Ok(((image.timestamp, u64::from(image.size)), exports))
        };
        // The parser trusts numbers in a damaged file.
        let result: Result<_, ParseError> =
            quietly(read).unwrap_or_else(|_| Err("the parser cannot read it".into()));
        let (identity, exports) = result
            .map_err(|source| SymbolFileError::Malformed { path: path.to_owned(), source })?;
        exports.ok_or_else(|| SymbolFileError::WrongImage {
            path: path.to_owned(),
            expected: (expected.timestamp, expected.size),
            actual: identity,
        })
    }

    /// Returns the exported function at an address. A return address counts by the instruction before it.
    pub fn at(&self, address: CodeAddress) -> Option<ResolvedFrame> {
        let CodeAddress { rva, is_return } = address;
        let before = u64::from(is_return);
        let frame = self.function(rva.checked_sub(before)?)?;
        Some(ResolvedFrame { offset: frame.offset + before, ..frame })
    }

    /// Returns the exported function of an instruction.
    fn function(&self, rva: u64) -> Option<ResolvedFrame> {
        let rva = u32::try_from(rva).ok()?;
        let section = self.code.iter().find(|section| section.contains(rva))?;
        let export = match self.location(rva, *section) {
            ExportLocation::Function(function) => {
                self.nearest(rva, function.range).or_else(|| self.nearest(rva, function.main))?
            }
            ExportLocation::Between(gap) => {
                self.nearest(rva, gap).filter(|export| rva < export.end)?
            }
        };
        Some(ResolvedFrame {
            source: None,
            function: export.name.clone(),
            offset: u64::from(rva - export.start),
            file: None,
            line: None,
            inlined: false,
        })
    }

    /// Returns the last export within `range` that is not after `rva`.
    ///
    /// A part of a function that precedes its main part would have a negative offset, so it gets no name.
    fn nearest(&self, rva: u32, range: Range) -> Option<&Export> {
        let behind =
            self.exports.partition_point(|export| export.start <= rva && export.start < range.end);
        let nearest = self.exports.get(behind.checked_sub(1)?)?;
        range.contains(nearest.start).then_some(nearest)
    }

    fn location(&self, rva: u32, section: Range) -> ExportLocation {
        let behind = self.functions.partition_point(|function| function.range.start <= rva);
        let before = behind.checked_sub(1).and_then(|at| self.functions.get(at));
        if let Some(function) = before.filter(|function| function.range.contains(rva)) {
            return ExportLocation::Function(*function);
        }
        let next = self.functions.get(behind);
        ExportLocation::Between(Range {
            start: before.map_or(section.start, |function| function.range.end.max(section.start)),
            end: next.map_or(section.end, |function| function.range.start.min(section.end)),
        })
    }
}

enum ExportLocation {
    Function(UnwindFunction),
    Between(Range),
}

/// An image being read.
struct ImageReader<'a> {
    bytes: &'a [u8],
    machine: u16,
    timestamp: u32,
    size: u32,
    file_alignment: u32,
    sections: Vec<SectionTable>,
    exports: Option<DataDirectory>,
    functions: Option<DataDirectory>,
}

impl<'a> ImageReader<'a> {
    /// Reads the headers.
    fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let header = Header::parse(bytes)?;
        let coff = &header.coff_header;
        let optional = header.optional_header.ok_or("there is no optional header")?;
        if coff.number_of_sections > MAX_SECTIONS {
            return Err("there are too many sections".into());
        }
        let mut at = usize::try_from(header.dos_header.pe_pointer)?
            + goblin::pe::header::SIZEOF_PE_MAGIC
            + goblin::pe::header::SIZEOF_COFF_HEADER
            + usize::from(coff.size_of_optional_header);
        Ok(Self {
            bytes,
            machine: coff.machine,
            timestamp: coff.time_date_stamp,
            size: optional.windows_fields.size_of_image,
            file_alignment: optional.windows_fields.file_alignment,
            sections: coff.sections(bytes, &mut at)?,
            exports: optional.data_directories.get_export_table().copied(),
            functions: optional.data_directories.get_exception_table().copied(),
        })
    }

    fn exports(&self) -> Result<ExportTable, ParseError> {
        let executable =
            self.sections.iter().filter(|section| section.characteristics & EXECUTABLE != 0);
        let code: Vec<Range> = executable
            .map(|section| Range {
                start: section.virtual_address,
                end: section.virtual_address.saturating_add(section.virtual_size),
            })
            .collect();
        let mut exports = self.named_functions()?;
        exports.retain(|(rva, _)| code.iter().any(|section| section.contains(*rva)));
        // Of several names of one function, keep the alphabetically first.
        exports.sort();
        exports.dedup_by_key(|(rva, _)| *rva);
        let ends: Vec<u32> = exports.iter().skip(1).map(|(rva, _)| *rva).collect();
        let ends = ends.into_iter().chain([u32::MAX]);
        let exports = exports.into_iter().zip(ends).map(|((start, name), end)| {
            let section = code.iter().find(|section| section.contains(start));
            let end = section.map_or(start, |section| end.min(section.end));
            Export { start, end: self.padding(start, end).unwrap_or(end), name }
        });
        Ok(ExportTable { exports: exports.collect(), functions: self.functions()?, code })
    }

    /// Returns the first padding between two addresses.
    fn padding(&self, start: u32, end: u32) -> Option<u32> {
        let at = self.offset(start)?;
        let code = self.bytes.get(at..)?.iter().take(usize::try_from(end - start).ok()?);
        let mut padding = None;
        for (byte, rva) in code.zip(start..) {
            if usize::try_from(rva).is_ok_and(|rva| rva.is_multiple_of(ALIGNMENT))
                && padding.is_some()
            {
                return padding;
            }
            padding = (*byte == PADDING).then(|| padding.unwrap_or(rva));
        }
        padding
    }

    /// Returns the named exports, without forwarders.
    fn named_functions(&self) -> Result<Vec<(u32, Arc<str>)>, ParseError> {
        let Some(directory) = self.exports.filter(|directory| directory.virtual_address != 0)
        else {
            return Ok(Vec::new());
        };
        let at = self.offset(directory.virtual_address).ok_or("the exports are not in the file")?;
        let table = ExportDirectoryTable::parse(self.bytes, at)?;
        if table.number_of_name_pointers.max(table.address_table_entries) > MAX_EXPORTS {
            return Err("there are too many exports".into());
        }
        let data = ExportData::parse(self.bytes, directory, &self.sections, self.file_alignment)?;
        let names = data.export_name_pointer_table.iter().zip(&data.export_ordinal_table);
        Ok(names
            .filter_map(|(&name, &ordinal)| {
                match data.export_address_table.get(usize::from(ordinal))? {
                    ExportAddressTableEntry::ExportRVA(rva) => {
                        Some((*rva, names::readable(self.text(name)?).into()))
                    }
                    ExportAddressTableEntry::ForwarderRVA(_) => None,
                }
            })
            .collect())
    }

    /// Returns the functions with stack frames.
    fn functions(&self) -> Result<Vec<UnwindFunction>, ParseError> {
        let Some(directory) = self.functions.filter(|directory| directory.size != 0) else {
            return Ok(Vec::new());
        };
        if directory.size > MAX_LIST_BYTES {
            return Err("there are too many functions".into());
        }
        let mut functions = match self.machine {
            COFF_MACHINE_X86_64 => self.x64_functions(directory)?,
            COFF_MACHINE_ARM64 => self.arm64_functions(directory)?,
            _ => Vec::new(),
        };
        functions.retain(|function| function.range.start < function.range.end);
        functions.sort();
        if functions.is_sorted_by(|function, next| function.range.end <= next.range.start) {
            return Ok(functions);
        }
        Err("functions overlap".into())
    }

    fn x64_functions(&self, directory: DataDirectory) -> Result<Vec<UnwindFunction>, ParseError> {
        let data =
            ExceptionData::parse(self.bytes, directory, &self.sections, self.file_alignment)?;
        let mut functions = Vec::new();
        for entry in data.functions() {
            let entry = entry?;
            let main = self.main_part(&data, entry);
            functions.push(UnwindFunction { range: range(entry), main: range(main) });
        }
        Ok(functions)
    }

    /// Follows the chain from a part to the main part of its function.
    fn main_part(&self, data: &ExceptionData<'_>, function: RuntimeFunction) -> RuntimeFunction {
        let mut main = function;
        for _ in 0..MAX_CHAIN_LENGTH {
            // An odd address refers to a further entry. Compilers write none, and goblin follows such references
            // endlessly.
            let info = (main.unwind_info_address.is_multiple_of(2))
                .then(|| data.get_unwind_info(main, &self.sections).ok());
            match info.flatten().and_then(|info| info.chained_info) {
                Some(next) => main = next,
                None => return main,
            }
        }
        function
    }

    fn arm64_functions(&self, directory: DataDirectory) -> Result<Vec<UnwindFunction>, ParseError> {
        let data = ExceptionData::parse_arm64_with_opts(
            self.bytes,
            directory,
            &self.sections,
            self.file_alignment,
            &ParseOptions::default(),
        )?;
        let mut functions = Vec::new();
        for entry in data.functions_arm64() {
            let entry = entry?;
            let length = match data.get_unwind_info_arm64(entry, &self.sections) {
                Some(info) => info?.header.function_length(),
                None => entry.function_length(),
            };
            let start = entry.begin_address;
            let range = Range { start, end: start.saturating_add(length) };
            functions.push(UnwindFunction { range, main: range });
        }
        Ok(functions)
    }

    fn offset(&self, rva: u32) -> Option<usize> {
        let rva = usize::try_from(rva).ok()?;
        find_offset(rva, &self.sections, self.file_alignment, &ParseOptions::default())
    }

    fn text(&self, rva: u32) -> Option<&'a str> {
        let rest = self.bytes.get(self.offset(rva)?..)?;
        let text = rest.iter().take(MAX_NAME_LENGTH).position(|&byte| byte == 0)?;
        str::from_utf8(rest.get(..text)?).ok().filter(|text| !text.is_empty())
    }
}

fn range(function: RuntimeFunction) -> Range {
    Range { start: function.begin_address, end: function.end_address }
}

#[cfg(test)]
mod tests;
