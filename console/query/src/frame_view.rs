//! One frame as it is shown and compared.

use handlescope_model::tables::{Methods, ModuleLoads};
use handlescope_model::{ArchiveError, ModuleIdx, TableRows, Trace};
use std::collections::HashMap;
use std::fmt::{self, Write};

use handlescope_symbols::ResolvedFrame;

use super::frame_class::FrameClass;

/// Name of a frame outside all modules.
const UNKNOWN_METHOD: &str = "<UnknownMethod>";

/// One frame: a function or managed method, else a place in a module, else an address.
///
/// Displays as stack filters match it: `module!function`, `module+0x1A2B`, `<UnknownMethod>` or, without a known
/// offset, `module`.
#[derive(Debug, Clone, Copy)]
pub struct FrameView<'a> {
    pub module: Option<InModule<'a>>,
    pub name: Option<&'a ResolvedFrame>,
    /// The method, for managed code.
    pub method: Option<&'a ManagedMethod>,
    /// The raw address, for frames outside all modules and for frames from debugger text.
    pub address: Option<u64>,
}

/// A place in a module.
#[derive(Debug, Clone, Copy)]
pub struct InModule<'a> {
    pub row: ModuleIdx,
    pub name: &'a str,
    /// `None` if only the name of a function came with the trace.
    pub rva: Option<u64>,
    /// Class of frames in the module, if requested.
    pub class: FrameClass,
}

impl<'a> FrameView<'a> {
    /// Returns the module under which the frame is shown; for managed code, the assembly rather than its native image.
    pub fn module_name(&self) -> Option<&'a str> {
        match self.method {
            Some(method) => method.module.as_deref(),
            None => self.module.map(|module| module.name),
        }
    }

    /// Whether it is neither in a module nor in a known method.
    pub fn is_unknown(&self) -> bool {
        self.module.is_none() && self.method.is_none() && self.name.is_none()
    }

    /// Whether the function is inlined into that of the next frame.
    pub fn is_inlined(&self) -> bool {
        self.name.is_some_and(|name| name.inlined)
    }

    /// Returns the function, if known.
    pub fn function(&self) -> Option<&'a str> {
        match self.method {
            Some(method) => Some(&method.function),
            None => self.name.map(|name| &*name.function),
        }
    }

    /// Returns the frame's offset from the start of its function, in bytes; `None` for inlined code, which has no
    /// start.
    pub fn offset(&self) -> Option<u64> {
        match self.method {
            Some(method) => {
                let address = self.module.and_then(|module| module.rva).or(self.address)?;
                Some(method.offset(address))
            }
            None => {
                // Without an address, the offset is unknown.
                self.module?.rva.or(self.address)?;
                self.name.filter(|name| !name.inlined).map(|name| name.offset)
            }
        }
    }
}

/// What frames are compared by: the parts of their text, and the address for unknown code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameIdentity<'a> {
    Function {
        module: &'a str,
        function: &'a str,
    },
    Place {
        module: &'a str,
        rva: u64,
    },
    Module(&'a str),
    /// Code outside all modules and known methods, such as just-in-time compiled code without names. The same address
    /// in another process is different code, so [`TrimmedStacks`](super::TrimmedStacks) also compares the processes.
    Address(u64),
    Unknown,
}

impl FrameIdentity<'_> {
    /// Returns the address of unknown code, if nothing else is known.
    pub fn address(self) -> Option<u64> {
        match self {
            Self::Address(address) => Some(address),
            _ => None,
        }
    }
}

impl<'a> FrameView<'a> {
    /// Returns what the frame is compared by.
    pub fn identity(&self) -> FrameIdentity<'a> {
        let module = self.module.map(|module| (module.name, module.rva));
        match (self.method, module, self.name) {
            (Some(method), ..) => {
                FrameIdentity::Function { module: method.module_name(), function: &method.function }
            }
            (None, Some((module, _)), Some(name)) => {
                FrameIdentity::Function { module, function: &name.function }
            }
            (None, Some((module, Some(rva))), None) => FrameIdentity::Place { module, rva },
            (None, Some((module, None)), None) => FrameIdentity::Module(module),
            (None, None, Some(name)) => {
                FrameIdentity::Function { module: UNKNOWN_ASSEMBLY, function: &name.function }
            }
            (None, None, None) => {
                self.address.map_or(FrameIdentity::Unknown, FrameIdentity::Address)
            }
        }
    }
}

impl fmt::Display for FrameView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.identity() {
            FrameIdentity::Function { module, function } => write!(f, "{module}!{function}"),
            FrameIdentity::Place { module, rva } => write!(f, "{module}+0x{rva:X}"),
            FrameIdentity::Module(module) => f.write_str(module),
            FrameIdentity::Address(_) | FrameIdentity::Unknown => f.write_str(UNKNOWN_METHOD),
        }
    }
}

/// Maximum number of frames in the text of a stack. ETW records at most 199; a hostile extract may claim millions.
const MAX_LINES: usize = 512;

/// Returns the frames of a stack, one per line, and their number.
pub fn frame_lines<'a>(frames: impl Iterator<Item = FrameView<'a>>) -> (String, usize) {
    let (mut text, mut depth) = (String::new(), 0);
    for frame in frames {
        depth += 1;
        let line_end = if depth > 1 { "\n" } else { "" };
        // Writing to a string does not fail.
        let _ = match depth {
            ..=MAX_LINES => write!(text, "{line_end}{frame}"),
            _ => Ok(()),
        };
    }
    if let Some(more) = depth.checked_sub(MAX_LINES).filter(|more| *more > 0) {
        let _ = write!(text, "\n… {more} more frames");
    }
    (text, depth)
}

/// Base addresses of modules that are mapped at one address only.
#[derive(Debug, Default)]
pub struct ModuleBases(HashMap<ModuleIdx, Option<u64>>);

impl ModuleBases {
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let modules = trace.values(ModuleLoads::module)?;
        let bases = trace.values(ModuleLoads::base)?;
        let mut by_module = HashMap::new();
        for (row, module) in modules.range(0..modules.len()).enumerate() {
            let base = bases.get(row);
            let only_base = by_module.entry(module).or_insert(base);
            *only_base = only_base.filter(|&only_base| Some(only_base) == base);
        }
        Ok(Self(by_module))
    }

    /// Returns the address of a frame; `None` if its module is mapped at several addresses.
    pub fn address(&self, frame: &FrameView<'_>) -> Option<u64> {
        let in_module = frame.module.and_then(|module| {
            let base = self.0.get(&module.row).copied().flatten()?;
            Some(base.wrapping_add(module.rva?))
        });
        in_module.or(frame.address)
    }
}

/// Placeholder for the assembly of a method if the trace does not name it.
const UNKNOWN_ASSEMBLY: &str = "<UnknownModule>";

#[derive(Debug)]
pub struct ManagedMethod {
    /// File name of the assembly, if the trace names it.
    pub module: Option<String>,
    /// `Namespace.Type.Method`.
    pub function: String,
    /// Start of its code: an offset in a native image, or an address.
    start: u64,
}

impl ManagedMethod {
    /// Loads the methods of a trace, by row.
    pub fn load_all(trace: &Trace) -> Result<Vec<ManagedMethod>, ArchiveError> {
        let methods = Methods::read(trace)?;
        Ok(methods
            .rows()
            .map(|method| ManagedMethod {
                module: method.module,
                function: match method.type_name.as_str() {
                    "" => method.name,
                    type_name => format!("{type_name}.{}", method.name),
                },
                start: method.rva.or(method.address).unwrap_or_default(),
            })
            .collect())
    }

    /// Returns the name of the assembly for display.
    pub fn module_name(&self) -> &str {
        self.module.as_deref().unwrap_or(UNKNOWN_ASSEMBLY)
    }

    /// Returns the distance of an address from the start of the method; `address` may be an offset in its native image.
    pub fn offset(&self, address: u64) -> u64 {
        address.saturating_sub(self.start)
    }
}
